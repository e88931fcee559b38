"""What an executor does with a trace; the engines themselves are tested with the agent."""

from __future__ import annotations

from pathlib import Path

from feather_trace import spark


def test_an_agent_that_cannot_be_started_fails_the_trace_and_not_the_job(tmp_path: Path) -> None:
    agent = tmp_path / "ft-agent"
    failed = {"path": "host=a", "outcome": "failed"}
    missing = spark.task(str(agent), "/srv/traces", "host=a", [])
    assert missing == {**failed, "why": f"{agent} cannot be started: No such file or directory"}
    agent.write_text("#!/no/such/interpreter\n")
    agent.chmod(0o644)
    refused = spark.task(str(agent), "/srv/traces", "host=a", ["critical_sections"])
    assert refused == {**failed, "why": f"{agent} cannot be started: Permission denied"}

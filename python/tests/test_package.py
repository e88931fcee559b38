"""The package as others get it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run([sys.executable, "-m", *map(str, command)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_typed() -> None:
    # What it knows of the libraries stays beside them: reading these takes half a minute.
    run("mypy", f"--cache-dir={sys.prefix}/mypy-cache", "src", cwd=HOME)


def test_it_can_be_installed_from_the_repository(tmp_path: Path) -> None:
    # A copy, so that a build leaves nothing in the repository; what it depends on is here already.
    shutil.copytree(HOME, tmp_path / "python", ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path / "installed"
    flags = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    run("pip", "install", *flags, "--target", target, tmp_path / "python")
    assert (target / "feather_trace/py.typed").exists()
    code = f"import sys; sys.path.insert(0, {str(target)!r}); import feather_trace; print(feather_trace.__file__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert found.stdout.startswith(str(target))

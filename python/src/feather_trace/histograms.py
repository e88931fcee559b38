"""Percentiles of many traces, from histograms that can be added."""

from __future__ import annotations

from collections.abc import Sequence

# What a percentile of the table `histograms` can be too high by, as a share of it: bounds of a bucket are that far apart.
ERROR = 1 / 32


def column(percentile: float) -> str:
    """The name of the column of a percentile: `p99_9_ns`."""
    return f"p{percentile:g}_ns".replace(".", "_")


def percentile_sql(
    histograms: str,
    by: Sequence[str] = ("quantity", "name"),
    percentiles: Sequence[float] = (50, 99, 99.9),
    where: str = "mark <> 'censored'",
) -> str:
    """A query for lengths in rows of the table `histograms`, of one trace or of many: for each group of `by`, its columns and

    - `count`, `mean_ns`, `max_ns`: how many intervals, their mean length, the longest;
    - `exact`: the share of them whose length and parts are exact (0 to 1);
    - `p50_ns`, `p99_ns`, `p99_9_ns`, …: nearest-rank percentiles, never too low, and at most 1/32 too high.

    It is plain SQL, which DuckDB and Spark understand alike: `histograms` and `by` are a table and columns (or expressions with
    no alias) of the engine, and stand in it as they are. `where` says which rows count; wake-ups that are censored were not seen
    to end, and are left out if nothing else is said.

    Raises `ValueError` for a percentile outside of 0 to 100, and without a column to group by.
    """
    if not by or not all(0 < p <= 100 for p in percentiles):
        raise ValueError("name a column to group by, and percentiles above 0, up to 100")
    groups = ", ".join(by)
    ranks = ",\n       ".join(
        f"least(min(CASE WHEN up_to >= {p} * of_all / 100 THEN to_ns END), max(max_ns)) AS {column(p)}" for p in percentiles
    )
    return f"""
SELECT {groups}, CAST(sum(n) AS BIGINT) AS count, sum(total_ns) / sum(n) AS mean_ns, max(max_ns) AS max_ns, sum(n_exact) / sum(n) AS exact,
       {ranks}
FROM (
    SELECT *, sum(n) OVER (PARTITION BY {groups} ORDER BY to_ns) AS up_to, sum(n) OVER (PARTITION BY {groups}) AS of_all
    FROM (
        SELECT {groups}, to_ns, CAST(sum(count) AS BIGINT) AS n, CAST(sum(sum_ns) AS DOUBLE) AS total_ns, max(max_ns) AS max_ns,
               CAST(sum(CASE WHEN mark = 'exact' THEN count ELSE 0 END) AS BIGINT) AS n_exact
        FROM {histograms} WHERE {where} GROUP BY {groups}, to_ns
    ) AS merged
) AS ranked
GROUP BY {groups}
ORDER BY sum(total_ns) DESC"""

-- All traces of a catalogue in DuckDB (1.3 or newer): their tables, and percentiles over many of them.
--
--     SET VARIABLE fleet = '/srv/traces';          -- or s3://BUCKET/PREFIX, with DuckDB's extension httpfs
--     .read fleet_duckdb.sql
--     SELECT host, sum(dur) / 1e6 AS held_ms FROM every('critical_sections') GROUP BY ALL;
--     SELECT host, name, sum(exact) / sum(count) AS exact,
--            percentile_ns(array_agg(bucket(to_ns, count, max_ns)), 99) / 1e3 AS p99_us
--     FROM histograms() WHERE quantity = 'hold' GROUP BY ALL;
--
-- A trace exists if its row does: what lies there without one, because it is being brought or removed, is in no answer.
-- A trace that is being analysed at the moment can be there with some of its results.

-- A row for each trace. (DuckDB opens the files of a macro without an argument as it is defined, when there may be none yet.)
CREATE OR REPLACE MACRO traces(name := 'traces') AS TABLE
SELECT * FROM read_parquet(getvariable('fleet') || '/' || name || '/*.parquet', union_by_name = true);

-- A table of every trace, with `host`, `date` and `trace`, which also say which files need not be opened.
CREATE OR REPLACE MACRO every(name) AS TABLE
SELECT * FROM read_parquet(getvariable('fleet') || '/host=*/date=*/trace=*/' || name || '/*.parquet',
                           hive_partitioning = true, hive_types_autocast = false, union_by_name = true)
SEMI JOIN traces() USING (trace);

-- The traces with results of this version, which stands in the file that is written when they are complete.
CREATE OR REPLACE MACRO analysed(name := 'analysis.json') AS TABLE
SELECT regexp_extract(filename, 'trace=([^/]*)/[^/]*$', 1) AS trace
FROM read_text(getvariable('fleet') || '/host=*/date=*/trace=*/' || name)
WHERE regexp_extract(content, '"version": *([0-9]+)', 1) = '26';

-- The table `histograms` of every trace. `exact` is how many of `count` have an exact length: sum(exact) / sum(count) is the
-- share of a figure that is exact. A wake-up whose mark is 'censored' was not seen to end.
-- Of traces whose results are of this version and complete, as `ft-agent fleet` counts them: `analysed()` has their names.
CREATE OR REPLACE MACRO histograms(name := 'histograms') AS TABLE
SELECT *, CASE WHEN mark = 'exact' THEN count ELSE 0 END AS exact FROM every(name) SEMI JOIN analysed() USING (trace);

-- A row of a histogram, for percentile_ns.
CREATE OR REPLACE MACRO bucket(to_ns, n, max_ns) AS
{'to_ns': to_ns::BIGINT, 'n': n::BIGINT, 'max_ns': max_ns::BIGINT};

-- No percentile is longer than the longest interval.
CREATE OR REPLACE MACRO at_most_the_longest(added) AS least(added.to_ns, added.max_ns);

-- The nearest-rank percentile (0 < p <= 100) of all lengths in these buckets: never too low, and at most 1/32 too high.
-- Buckets are added from the shortest on until their sum, which begins at minus the rank, is no longer negative.
CREATE OR REPLACE MACRO percentile_ns(buckets, p) AS
at_most_the_longest(list_reduce(
    list_prepend(
        bucket(0, -ceil(p * list_sum(list_transform(buckets, lambda b: b.n))::BIGINT / 100), 0),
        list_sort(buckets)),
    lambda a, b: {
        'to_ns': CASE WHEN a.n >= 0 THEN a.to_ns ELSE b.to_ns END,
        'n': CASE WHEN a.n >= 0 THEN a.n ELSE a.n + b.n END,
        'max_ns': greatest(a.max_ns, b.max_ns)}));

-- The traces of a catalogue in Spark (4.0 or newer), as fleet_duckdb.sql has them in DuckDB: views, and percentiles over many traces.
--
--     spark-sql --hivevar fleet=/srv/traces -i fleet_spark.sql          -- or s3a://BUCKET/PREFIX
--     SELECT host, name, sum(exact) / sum(count) AS exact,
--            percentile_ns(array_agg(bucket(to_ns, count, max_ns)), 99) / 1e3 AS p99_us
--     FROM histograms WHERE quantity = 'hold' GROUP BY ALL;
--
-- A trace exists if its row does. Other tables are read as `histograms` is.

-- A host may be called 007.
SET spark.sql.sources.partitionColumnTypeInference.enabled = false;

-- A row for each trace.
CREATE OR REPLACE TEMPORARY VIEW traces USING parquet OPTIONS (path '${fleet}/traces');

-- With those of traces that do not exist.
CREATE OR REPLACE TEMPORARY VIEW histograms_found USING parquet
OPTIONS (path '${fleet}/host=*/date=*/trace=*/histograms', basePath '${fleet}');

-- The table `histograms` of every trace. `exact` is how many of `count` have an exact length: sum(exact) / sum(count) is the
-- share of a figure that is exact. A wake-up whose mark is 'censored' was not seen to end.
CREATE OR REPLACE TEMPORARY VIEW histograms AS
SELECT *, CASE WHEN mark = 'exact' THEN count ELSE 0 END AS exact
FROM histograms_found LEFT SEMI JOIN traces USING (trace);

-- A row of a histogram, for percentile_ns.
CREATE OR REPLACE TEMPORARY FUNCTION bucket(to_ns BIGINT, n BIGINT, max_ns BIGINT)
RETURNS STRUCT<to_ns: BIGINT, n: BIGINT, max_ns: BIGINT>
RETURN named_struct('to_ns', to_ns, 'n', n, 'max_ns', max_ns);

-- The nearest-rank percentile (0 < p <= 100) of all lengths in these buckets: never too low, and at most 1/32 too high.
-- Buckets are added from the shortest on until their sum, which begins at minus the rank, is no longer negative.
CREATE OR REPLACE TEMPORARY FUNCTION percentile_ns(buckets ARRAY<STRUCT<to_ns: BIGINT, n: BIGINT, max_ns: BIGINT>>, p DECIMAL(6, 3))
RETURNS BIGINT
RETURN aggregate(
    array_sort(buckets),
    named_struct('to_ns', 0L, 'n', -CAST(ceil(p * aggregate(buckets, 0L, (sum, b) -> sum + b.n) / 100) AS BIGINT), 'max_ns', 0L),
    (a, b) -> named_struct(
        'to_ns', if(a.n >= 0, a.to_ns, b.to_ns),
        'n', if(a.n >= 0, a.n, a.n + b.n),
        'max_ns', greatest(a.max_ns, b.max_ns)),
    a -> least(a.to_ns, a.max_ns));

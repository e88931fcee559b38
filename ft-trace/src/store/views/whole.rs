//! Whether a trace is whole, asked by the script: its parts must be those that stand in [`Meta`] and [`Results`].
//!
//! The names, the sizes and the rows of the footers are compared. (DuckDB has no checksum of a piece of a file.) Whoever wants what
//! is left sets the variable `incomplete`; the table `known.fault` then says what is not read.

use std::fmt::Write;

use super::sql::literal;
use super::{Meta, Results};
use crate::store::part::part_name;
use crate::store::parts::PartMeta;

/// What is compared, behind the parts that were written.
const COMPARED: &str = "
CREATE OR REPLACE TABLE known.fault AS
SELECT name, file, p.recorded, CASE
    WHEN f.file IS NULL THEN 'is missing (' || p.rows || ' rows)'
    WHEN p.file IS NULL THEN 'was not written with the others of its table'
    WHEN f.size <> p.bytes THEN 'has ' || f.size || ' bytes and was written with ' || p.bytes END AS wrong
FROM known.part AS p
FULL JOIN (SELECT string_split(filename, '/')[-2] AS name, string_split(filename, '/')[-1] AS file, size
           FROM read_blob(getvariable('trace_dir') || '/*/part-*.parquet')) AS f USING (name, file)
WHERE wrong IS NOT NULL AND name IN (SELECT name FROM known.part);
CREATE OR REPLACE MACRO paths_of(parts) AS list_transform(parts, lambda part: getvariable('trace_dir') || '/' || part);
SET VARIABLE parts_there = (
    SELECT paths_of(list(name || '/' || file)) FROM known.part ANTI JOIN known.fault USING (name, file));
INSERT INTO known.fault
SELECT name, file, recorded, 'is another file than was written'
FROM (SELECT string_split(file_name, '/')[-2] AS name, string_split(file_name, '/')[-1] AS file, num_rows
      FROM parquet_file_metadata(getvariable('parts_there')))
JOIN known.part USING (name, file) WHERE num_rows <> rows;
SET VARIABLE is_whole = (
    SELECT CASE WHEN count(*) = 0 OR coalesce(getvariable('incomplete')::BOOLEAN, false) THEN true
    ELSE error('this trace is not whole: ' || min(name || '/' || file || ' ' || wrong)
        || CASE count(*) WHEN 1 THEN '' ELSE ', and ' || (count(*) - 1) || ' more' END
        || CASE WHEN bool_or(coalesce(recorded, name IN (SELECT name FROM known.part WHERE recorded)))
           THEN '; bring the trace again from where it was recorded'
           ELSE '; run `ft-agent analyze` on it, which makes its results anew' END
        || ', or SET VARIABLE incomplete = true and read it again for the rest') END
    FROM known.fault);
SET VARIABLE parts_left = (
    SELECT map_from_entries(list((name, paths_of(files))))
    FROM (SELECT name, list(name || '/' || file) AS files FROM known.part ANTI JOIN known.fault USING (name, file)
          WHERE name IN (SELECT name FROM known.fault) GROUP BY name));
";

/// Writes the statements; those of a trace of an earlier version take all parts.
pub(super) fn write(meta: &Meta, results: &Results, out: &mut String) {
    out.push_str("\nSET VARIABLE parts_left = NULL::MAP(VARCHAR, VARCHAR[]);\n");
    let recorded = meta.tables.iter().map(|(name, table)| (name, &table.files, true));
    let results = results.tables.iter().map(|(name, files)| (name, files, false));
    let mut parts = String::new();
    for (name, files, recorded) in recorded.chain(results) {
        for PartMeta { part, rows, bytes, .. } in files {
            let separator = if parts.is_empty() { "" } else { "," };
            let (name, file) = (literal(name), part_name(*part));
            let _ =
                write!(parts, "{separator}\n    ({name}, '{file}', {rows}, {bytes}, {recorded})");
        }
    }
    if parts.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "CREATE SCHEMA IF NOT EXISTS known;
CREATE OR REPLACE TABLE known.part AS
SELECT name, file, rows::BIGINT AS rows, bytes::BIGINT AS bytes, recorded FROM (VALUES{parts}) AS t(name, file, rows, bytes, recorded);{COMPARED}"
    );
}

//! Runs one statement.

use std::sync::Arc;

use rusqlite::Connection;

use crate::{Error, Expect, ResultRows, Value};

/// The largest size of one result in bytes.
pub(crate) const MAX_RESULT: usize = 64 << 20;

/// The size of a value besides its text or blob.
const PER_VALUE: usize = size_of::<Value>();

/// Runs `sql` to its end with one value for each parameter, and keeps the rows that `expect` asks
/// for.
pub(crate) fn run(
    connection: &Connection,
    sql: &str,
    params: &[Value],
    expect: Expect,
) -> Result<ResultRows, Error> {
    let fail = |error: rusqlite::Error| Error::from_sqlite(&error, sql);
    let mut statement = connection.prepare_cached(sql).map_err(fail)?;
    if statement.parameter_count() != params.len() {
        let message = format!(
            "{} values for {} parameters, in: {sql}",
            params.len(),
            statement.parameter_count()
        );
        return Err(Error::usage(message));
    }
    for (index, value) in params.iter().enumerate() {
        statement
            .raw_bind_parameter(index + 1, value)
            .map_err(fail)?;
    }
    let keep = match expect {
        Expect::One | Expect::Optional => 1,
        Expect::Many => usize::MAX,
        Expect::Exec => 0,
    };
    let mut kept = Vec::new();
    let mut bytes = 0;
    let mut rows = statement.raw_query();
    // A statement that changes data must run to its end even if no more rows are needed.
    while let Some(row) = rows.next().map_err(fail)? {
        if kept.len() >= keep {
            continue;
        }
        let width = row.as_ref().column_count();
        // Results are cached, so each row gets exactly the capacity that it needs.
        let mut values = Vec::with_capacity(width);
        for column in 0..width {
            values.push(row.get_ref(column).map(Value::from).map_err(fail)?);
        }
        bytes += values
            .iter()
            .map(|value| PER_VALUE + value.heap_size())
            .sum::<usize>();
        if bytes > MAX_RESULT {
            return Err(Error::TooLarge { limit: MAX_RESULT });
        }
        kept.push(values);
    }
    drop(rows);
    kept.shrink_to_fit();
    // Read after the run, in which SQLite may have prepared the statement again for a changed
    // schema.
    let columns: Arc<[Arc<str>]> = statement.column_names().map(Arc::from).collect();
    Ok(ResultRows {
        columns,
        rows: kept,
    })
}

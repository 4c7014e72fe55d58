//! Runs one statement.

use std::sync::Arc;

use rusqlite::{Connection, Statement, ffi};

use super::failure::sentence;
use crate::query::strip_sigil;
use crate::value::{MAX_RESULT, size_of_row};
use crate::{Error, Expect, ResultRows, Value};

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
    let rows = match rows(&mut statement, expect.kept()) {
        Ok(rows) => rows.ok_or(Error::TooLarge { limit: MAX_RESULT })?,
        Err(error) if may_be_a_value(&error, params) => {
            let names = (1..=params.len()).filter_map(|index| statement.parameter_name(index));
            return Err(Error::Value {
                names: names.map(|name| strip_sigil(name).to_owned()).collect(),
                message: sentence(&error),
                sql: sql.into(),
            });
        }
        Err(error) => return Err(fail(error)),
    };
    // Read after the run, in which SQLite may have prepared the statement again for a changed
    // schema.
    let columns: Arc<[Arc<str>]> = statement.column_names().map(Arc::from).collect();
    Ok(ResultRows { columns, rows })
}

/// Runs a statement to its end, and keeps the first `keep` rows; none if they are too large.
fn rows(statement: &mut Statement<'_>, keep: usize) -> rusqlite::Result<Option<Vec<Vec<Value>>>> {
    let mut kept = Vec::new();
    let mut bytes = 0;
    let mut rows = statement.raw_query();
    // A statement that changes data must run to its end even if no more rows are needed.
    while let Some(row) = rows.next()? {
        if kept.len() >= keep {
            continue;
        }
        let width = row.as_ref().column_count();
        // Results are cached, so each row gets exactly the capacity that it needs.
        let mut values = Vec::with_capacity(width);
        for column in 0..width {
            values.push(row.get_ref(column).map(Value::from)?);
        }
        bytes += size_of_row(&values);
        if bytes > MAX_RESULT {
            return Ok(None);
        }
        kept.push(values);
    }
    kept.shrink_to_fit();
    Ok(Some(kept))
}

/// True if a statement that was prepared may have failed at a value that it was given: at a text,
/// such as one that is no FTS5 expression, for which SQLite has no code of its own; or at a number
/// that LIMIT, OFFSET or a rowid cannot be.
fn may_be_a_value(error: &rusqlite::Error, params: &[Value]) -> bool {
    let Some(code) = error.sqlite_error() else {
        return false;
    };
    match code.extended_code & 0xff {
        ffi::SQLITE_ERROR => params
            .iter()
            .any(|value| matches!(value, Value::Text(_) | Value::Json(_))),
        ffi::SQLITE_MISMATCH => params.iter().any(|value| *value != Value::Null),
        _ => false,
    }
}

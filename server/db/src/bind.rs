//! Values of a step that an earlier step supplies.

use crate::{Bind, Error, ResultRows, Value};

/// Returns the values of a step, given the results of the earlier ones.
pub(crate) fn values(binds: &[Bind], results: &[ResultRows]) -> Result<Vec<Value>, Error> {
    binds.iter().map(|bind| value(bind, results)).collect()
}

fn value(bind: &Bind, results: &[ResultRows]) -> Result<Value, Error> {
    match bind {
        Bind::Value(value) => Ok(value.clone()),
        Bind::Column { step, column } => {
            let rows = results
                .get(*step)
                .ok_or_else(|| Error::usage(format!("statement {} has not run yet", step + 1)))?;
            let index = rows
                .columns
                .iter()
                .position(|name| name.eq_ignore_ascii_case(column))
                .ok_or_else(|| {
                    Error::usage(format!("statement {} gives no column {column}", step + 1))
                })?;
            let row = rows.rows.first();
            Ok(row.map_or(Value::Null, |row| row[index].clone()))
        }
    }
}

//! Values of a step that come from an earlier one.

use crate::{Bind, Error, Rows, Value};

/// The value, given what the earlier steps gave.
pub(crate) fn value(bind: &Bind, results: &[Rows]) -> Result<Value, Error> {
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
            let row = rows.rows.first().ok_or(Error::NoRow { step: *step })?;
            Ok(row[index].clone())
        }
    }
}

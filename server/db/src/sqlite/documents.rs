//! Texts of a result that are read as JSON documents.

use std::sync::Arc;

use crate::value::MAX_RESULT;
use crate::{Error, ResultRows, Value};

/// Puts documents in the place of the texts at these places of each row. A text that is no JSON, or
/// is nested more than 127 deep, stays a text.
///
/// # Errors
/// [`Error::TooLarge`], as documents take more memory than their text.
pub(super) fn read(results: &mut ResultRows, places: &[usize]) -> Result<(), Error> {
    let mut bytes = 0;
    for row in &mut results.rows {
        for place in places {
            let Some(value) = row.get_mut(*place) else {
                continue;
            };
            if let Value::Text(text) = value
                && let Ok(document) = serde_json::from_str(text)
            {
                *value = Value::Json(Arc::new(document));
                bytes += value.heap_size();
            }
            if bytes > MAX_RESULT {
                return Err(Error::TooLarge { limit: MAX_RESULT });
            }
        }
    }
    Ok(())
}

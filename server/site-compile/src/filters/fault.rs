//! What a filter says of a value or an argument that it cannot use.

use minijinja::{Error, ErrorKind, value::Value};

/// Returns the value, if there is one: not none, and not an empty text.
pub(super) fn given<'v>(filter: &str, value: &'v Value) -> Result<Option<&'v Value>, Error> {
    if value.is_undefined() {
        return Err(Error::new(
            ErrorKind::UndefinedError,
            format!("filter `{filter}` is given a value that does not exist"),
        ));
    }
    let is_empty = value.as_str().is_some_and(|text| text.trim().is_empty());
    Ok((!value.is_none() && !is_empty).then_some(value))
}

/// The most of a value that an error shows.
const SHOWN: usize = 60;

/// Returns the error of a value that a filter cannot write.
pub(super) fn unfit(filter: &str, value: &Value, takes: &str) -> Error {
    let shown = format!("{value:?}");
    let shown = match shown.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    };
    Error::new(
        ErrorKind::InvalidOperation,
        format!("filter `{filter}` cannot write {shown}; it takes {takes}"),
    )
}

/// Returns the error of an argument that a filter does not take.
pub(super) fn unfit_argument(filter: &str, what: &str, takes: &str) -> Error {
    let what: String = what.chars().take(SHOWN).collect();
    Error::new(
        ErrorKind::InvalidOperation,
        format!("filter `{filter}`: {what}; it takes {takes}"),
    )
}

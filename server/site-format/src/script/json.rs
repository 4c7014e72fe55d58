//! `-- json:` lines.
//!
//! ```sql
//! -- json: items
//! -- json: items total counted.n
//! ```

use super::{
    Complaint,
    bytes::{ColumnName, column},
    declare::complain,
};
use crate::parameter_names::is_name;

/// Reads what follows `-- json:`: the name of a query, and where the number of all rows is.
pub(super) fn json(rest: &str) -> Result<(&str, Option<ColumnName>), Complaint> {
    const EXAMPLE: &str = "for example: -- json: items, or: -- json: items total counted.n";
    let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if !is_name(name) {
        return complain(format!("`{name}` is no name of a query"), EXAMPLE);
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    match words[..] {
        [] => Ok((name, None)),
        ["total", of] => match column(of) {
            Some(total) => Ok((name, Some(total))),
            None => complain(format!("`{of}` names no column of a query"), EXAMPLE),
        },
        ["total"] => complain("`total` has no column behind it", EXAMPLE),
        [word, ..] => complain(format!("`{word}` says nothing about the JSON"), EXAMPLE),
    }
}

//! Says what is wrong with a statement, and what to do.

use crate::error::{SqlError, sentence};
use crate::sqlite::catalog::Catalog;
use crate::sqlite::recorder::Recorded;

/// Turns SQLite's refusal to prepare `sql` into a sentence with a place and advice.
pub(crate) fn explain(
    error: &rusqlite::Error,
    sql: &str,
    recorded: &Recorded,
    catalog: &Catalog,
) -> SqlError {
    if let Some(what) = recorded.refused {
        return SqlError {
            message: format!("this is {what}"),
            offset: None,
            hint: Some("leave it out".into()),
        };
    }
    let mut offset = match error {
        rusqlite::Error::SqlInputError { offset, .. } => usize::try_from(*offset).ok(),
        _ => None,
    };
    let (message, hint) = match error {
        rusqlite::Error::MultipleStatement => {
            offset = sql.find(';').map(|at| at + 1);
            (
                "more than one statement".to_owned(),
                Some("each query is one statement; give each a name of its own".to_owned()),
            )
        }
        rusqlite::Error::InvalidParameterName(_) => {
            offset = sql.find('?');
            (
                "a parameter without a name".to_owned(),
                Some("name it, as in :id".to_owned()),
            )
        }
        other => {
            let message = sentence(other);
            let hint = advise(&message, catalog);
            offset = offset.or_else(|| locate(&message, sql));
            (message, hint)
        }
    };
    SqlError {
        message,
        offset,
        hint,
    }
}

fn advise(message: &str, catalog: &Catalog) -> Option<String> {
    if let Some(name) = message.strip_prefix("no such table: ") {
        let name = name.strip_prefix("main.").unwrap_or(name);
        return closest(name, catalog.tables.keys().map(String::as_str))
            .map(|near| format!("did you mean {near}?"));
    }
    if let Some(name) = message.strip_prefix("no such column: ") {
        let column = name.rsplit('.').next().unwrap_or(name);
        let columns = catalog
            .tables
            .values()
            .flat_map(|table| table.columns.iter().map(|column| column.name.as_str()));
        return closest(column, columns).map(|near| format!("did you mean {near}?"));
    }
    None
}

/// Where the name stands that SQLite has no place for: it says where for some errors only.
pub(crate) fn locate(message: &str, sql: &str) -> Option<usize> {
    let (_, name) = message.strip_prefix("no such ")?.split_once(": ")?;
    let name = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    let text = sql.to_ascii_lowercase();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(&name)
        .map(|(at, _)| at)
        .find(|at| !text[..*at].ends_with(is_word) && !text[at + name.len()..].starts_with(is_word))
}

/// The name that is most like `name`, if any is like it at all.
fn closest<'a>(name: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    among
        .map(|other| (strsim::damerau_levenshtein(&name, other), other))
        .filter(|(distance, other)| *distance <= 1 + other.len() / 4 && *distance > 0)
        .min()
        .map(|(_, other)| other)
}

//! Explains the error of a statement, with the place and a remedy.

use super::failure::sentence;
use crate::SqlError;
use crate::sql::{Dialect, Lexer, TokenKind, place_of_name};
use crate::sqlite::catalog::Catalog;
use crate::sqlite::recorder::AuthorizerRecord;

/// Turns SQLite's refusal to prepare `sql` into a message with a place and advice.
pub(crate) fn explain(
    error: &rusqlite::Error,
    sql: &str,
    recorded: &AuthorizerRecord,
    catalog: &Catalog,
) -> SqlError {
    if let Some(what) = recorded.refused {
        return SqlError::new(format!("this is {what}")).with_hint("leave it out");
    }
    let mut offset = match error {
        rusqlite::Error::SqlInputError { offset, .. } => usize::try_from(*offset).ok(),
        _ => None,
    };
    let (message, hint) = match error {
        rusqlite::Error::MultipleStatement => {
            offset = place_of_kind(sql, TokenKind::Semicolon).map(|at| at + 1);
            (
                "more than one statement".to_owned(),
                Some("each query is one statement; give each a name of its own".to_owned()),
            )
        }
        rusqlite::Error::InvalidParameterName(_) => {
            offset = place_of_kind(sql, TokenKind::Positional);
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
        let tables = catalog.tables.keys().map(String::as_str);
        return Some(did_you_mean(closest(name, tables.clone())).unwrap_or_else(|| {
            let tables: Vec<&str> = tables.filter(|name| !name.starts_with('_')).collect();
            match tables.as_slice() {
                [] => "the database has no tables yet; migrations/0001_start.sql is a place to make them".to_owned(),
                some => format!("the database has {}", some.join(", ")),
            }
        }));
    }
    if let Some(name) = message.strip_prefix("no such column: ") {
        let column = name.rsplit('.').next().unwrap_or(name);
        let columns = catalog
            .tables
            .values()
            .flat_map(|table| table.columns.iter().map(|column| column.name.as_str()));
        return did_you_mean(closest(column, columns))
            .or_else(|| Some(format!("no table here has a column {column}")));
    }
    let near = message
        .strip_prefix("near \"")
        .and_then(|rest| rest.split_once('"'));
    if let Some((word, _)) = near {
        let keyword = closest(&word.to_ascii_lowercase(), KEYWORDS.split(' '));
        let known = KEYWORDS
            .split(' ')
            .any(|known| known.eq_ignore_ascii_case(word));
        return did_you_mean(keyword.filter(|_| !known)).or_else(|| {
            Some(format!(
                "the statement can be read up to `{word}`; look just before it"
            ))
        });
    }
    (message == "incomplete input").then(|| {
        "the statement breaks off: a bracket, a quote or a word is missing at its end".to_owned()
    })
}

/// The keywords of statements, for the correction of misspelt ones.
const KEYWORDS: &str = "\
    select from where group order by having limit offset join left inner on using and or not null \
    in like between exists union distinct as asc desc case when then else end with insert into \
    values update set delete returning";

fn did_you_mean(near: Option<&str>) -> Option<String> {
    near.map(|near| format!("did you mean {near}?"))
}

/// The byte offset of the name that SQLite does not know. SQLite reports the offset for some errors
/// only.
pub(crate) fn locate(message: &str, sql: &str) -> Option<usize> {
    let (_, name) = message.strip_prefix("no such ")?.split_once(": ")?;
    let name = name.rsplit('.').next().unwrap_or(name);
    place_of_name(sql, Dialect::Sqlite, name)
}

fn place_of_kind(sql: &str, kind: TokenKind) -> Option<usize> {
    let mut tokens = Lexer::new(sql, Dialect::Sqlite);
    let token = tokens.find(|token| token.kind == kind);
    token.map(|token| token.start)
}

/// The name that is most similar to `name`, if any is similar enough.
fn closest<'a>(name: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    among
        .map(|other| (strsim::damerau_levenshtein(&name, other), other))
        .filter(|(distance, other)| *distance <= 1 + other.len() / 4 && *distance > 0)
        .min()
        .map(|(_, other)| other)
}

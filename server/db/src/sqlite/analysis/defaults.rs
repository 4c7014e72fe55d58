//! Functions that the authorizer reports only because a column that is read has a default
//! (coherence.md, rule 14).
//!
//! SQLite asks about the functions of a default wherever it compiles a read of the column. But no
//! read runs them: an older row, which lacks the column, has the default only if that is constant,
//! and NULL otherwise.

use std::collections::{BTreeSet, HashSet};

use rusqlite::Connection;

use super::functions;
use crate::sqlite::clockwatch;
use crate::sqlite::recorder::AuthorizerRecord;

/// Why one of the functions `called`, of those that the statement calls, makes its results
/// uncacheable, if any does.
///
/// A function of a statement that only reads is left out if it stands in a default of a table that
/// is read, and nowhere in the text of the statement and of its views: what is called is named
/// where it is called.
pub(super) fn objection(
    connection: &Connection,
    sql: &str,
    (recorded, mut called): (&AuthorizerRecord, BTreeSet<String>),
    readonly: bool,
) -> Option<String> {
    let clock_is_watched = clockwatch::register().is_some();
    let reason = functions::objection(&called, clock_is_watched)?;
    let texts = with_views(connection, sql)
        .and_then(|text| Ok((text, of_tables_read(connection, recorded)?)));
    match texts {
        Ok((text, defaults)) if readonly => {
            called.retain(|name| text.contains(name.as_str()) || !defaults.contains(name.as_str()));
            functions::objection(&called, clock_is_watched)
        }
        _ => Some(reason),
    }
}

/// The statement with every view that it may read, in lower case.
fn with_views(connection: &Connection, sql: &str) -> rusqlite::Result<String> {
    let mut statement = connection
        .prepare("SELECT lower(name), lower(sql) FROM sqlite_schema WHERE type = 'view'")?;
    let views = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<Vec<(String, String)>>>()?;
    let mut text = sql.to_ascii_lowercase();
    let mut added = HashSet::new();
    loop {
        let before = added.len();
        for (name, view) in &views {
            // A name with a quote may be written otherwise where it is read.
            let may_be_read = text.contains(name) || name.contains(['"', '\'', '`', ']']);
            if may_be_read && added.insert(name) {
                text.push('\n');
                text.push_str(view);
            }
        }
        if added.len() == before {
            return Ok(text);
        }
    }
}

/// The defaults of the tables that are read, in lower case. The expressions of generated columns,
/// which run as they are read, are not among them.
fn of_tables_read(
    connection: &Connection,
    recorded: &AuthorizerRecord,
) -> rusqlite::Result<String> {
    let mut statement = connection.prepare(
        "SELECT lower(dflt_value) FROM pragma_table_xinfo(?1, 'main') WHERE dflt_value IS NOT NULL AND hidden = 0",
    )?;
    let mut text = String::new();
    for table in recorded.reads.keys() {
        let mut rows = statement.query([table])?;
        while let Some(row) = rows.next()? {
            text.push_str(&row.get::<_, String>(0)?);
            text.push('\n');
        }
    }
    Ok(text)
}

//! Applies migrations to SQLite.

use rusqlite::{Connection, OptionalExtension};

use super::failure::sentence;
use super::hint;
use crate::migration::{fingerprint, place};
use crate::{Error, Migration};

/// The table that records the applied migrations.
pub(crate) const TABLE: &str = "CREATE TABLE IF NOT EXISTS _millpond_migrations (name TEXT PRIMARY KEY, hash TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT";

/// True if the migration was applied before.
pub(crate) fn is_applied(connection: &Connection, migration: &Migration) -> Result<bool, Error> {
    let Migration { name, sql } = migration;
    let applied: Option<String> = connection
        .query_row(
            "SELECT hash FROM _millpond_migrations WHERE name = ?1",
            [name],
            |row| row.get(0),
        )
        .optional()
        .map_err(|error| own(&error))?;
    match applied {
        Some(applied) if applied == fingerprint(sql) => Ok(true),
        Some(_) => Err(Error::MigrationChanged { name: name.clone() }),
        None => Ok(false),
    }
}

/// Applies a migration inside a transaction.
pub(crate) fn apply(connection: &Connection, migration: &Migration) -> Result<(), Error> {
    let Migration { name, sql } = migration;
    for (start, statement) in statements(sql) {
        if let Err((offset, message)) = execute(connection, statement) {
            let (line, column) = place(sql, start + offset);
            return Err(Error::Migration {
                name: name.clone(),
                line,
                column,
                message,
            });
        }
    }
    connection
        .execute(
            "INSERT INTO _millpond_migrations VALUES (?1, ?2, datetime('now'))",
            [name, &fingerprint(sql)],
        )
        .map_err(|error| own(&error))?;
    Ok(())
}

fn own(error: &rusqlite::Error) -> Error {
    Error::from_sqlite(error, TABLE)
}

fn execute(connection: &Connection, statement: &str) -> Result<(), (usize, String)> {
    let mut prepared = connection.prepare(statement).map_err(|error| {
        let offset = match &error {
            rusqlite::Error::SqlInputError { offset, .. } => usize::try_from(*offset).unwrap_or(0),
            _ => hint::locate(&sentence(&error), statement).unwrap_or(0),
        };
        (offset, sentence(&error))
    })?;
    let mut rows = prepared.raw_query();
    while rows
        .next()
        .map_err(|error| (0, sentence(&error)))?
        .is_some()
    {}
    Ok(())
}

/// Splits a script into statements, each with its byte offset, without leading white space and
/// comments.
///
/// A semicolon ends a statement, except in strings, names and comments, and in the body of CREATE
/// TRIGGER, which ends with `; END`.
fn statements(sql: &str) -> Vec<(usize, &str)> {
    let mut statements = Vec::new();
    let mut start = None;
    let mut words: Vec<String> = Vec::new();
    let mut after_semicolon = false;
    let mut at = 0;
    while at < sql.len() {
        let (kind, end) = token(sql, at);
        let text = &sql[at..end];
        if kind == Token::Blank {
            at = end;
            continue;
        }
        if kind == Token::Semicolon {
            let in_trigger = is_trigger(&words)
                && !(words.last().is_some_and(|word| word == "end") && after_semicolon);
            if !in_trigger {
                statements.extend(start.take().map(|start: usize| (start, &sql[start..end])));
                words.clear();
            }
            after_semicolon = true;
        } else {
            start.get_or_insert(at);
            if kind == Token::Word {
                // An `END` after a semicolon closes the trigger; another `END` closes a CASE.
                let closes_trigger = text.eq_ignore_ascii_case("end") && after_semicolon;
                words.push(text.to_ascii_lowercase());
                after_semicolon = closes_trigger;
            } else {
                after_semicolon = false;
                words.push(String::new());
            }
        }
        at = end;
    }
    statements.extend(start.map(|start| (start, &sql[start..])));
    statements
}

/// True if the words begin `CREATE [TEMP|TEMPORARY] TRIGGER`.
fn is_trigger(words: &[String]) -> bool {
    let mut words = words.iter().map(String::as_str);
    words.next() == Some("create")
        && matches!(
            (words.next(), words.next()),
            (Some("trigger"), _) | (Some("temp" | "temporary"), Some("trigger"))
        )
}

#[derive(PartialEq, Eq)]
enum Token {
    Blank,
    Semicolon,
    Word,
    Other,
}

/// The token at byte `at`, and the offset of its end.
fn token(sql: &str, at: usize) -> (Token, usize) {
    let rest = &sql[at..];
    let until = |end: &str, from: usize| {
        rest[from..]
            .find(end)
            .map_or(sql.len(), |found| at + from + found + end.len())
    };
    let first = rest.chars().next().unwrap_or(' ');
    let while_ = |holds: fn(char) -> bool| {
        rest.find(|c| !holds(c))
            .map_or(sql.len(), |found| at + found)
    };
    match first {
        ';' => (Token::Semicolon, at + 1),
        '-' if rest.starts_with("--") => (Token::Blank, until("\n", 2)),
        '/' if rest.starts_with("/*") => (Token::Blank, until("*/", 2)),
        '\'' => (Token::Other, until("'", 1)),
        '"' => (Token::Other, until("\"", 1)),
        '`' => (Token::Other, until("`", 1)),
        '[' => (Token::Other, until("]", 1)),
        c if c.is_ascii_whitespace() => (Token::Blank, while_(|c| c.is_ascii_whitespace())),
        c if is_word(c) => (Token::Word, while_(is_word)),
        c => (Token::Other, at + c.len_utf8()),
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(sql: &str) -> Vec<&str> {
        statements(sql)
            .into_iter()
            .map(|(_, statement)| statement)
            .collect()
    }

    #[test]
    fn splits_at_semicolons_outside_strings_and_comments() {
        assert_eq!(
            split("a 'x;''y'; b \"q;\" -- no; end\n; /* ; */ c"),
            ["a 'x;''y';", "b \"q;\" -- no; end\n;", "c"]
        );
        assert_eq!(split("  ;; -- nothing\n"), Vec::<&str>::new());
        assert_eq!(split("select 'open"), ["select 'open"]);
        assert_eq!(split("é; ü"), ["é;", "ü"]);
    }

    #[test]
    fn keeps_triggers_together() {
        let trigger = "create trigger t after insert on a begin update b set x = case when 1 then 2 end; delete from c; end;";
        let script = format!("{trigger} create temp trigger u begin select 1; END ; drop table a;");
        assert_eq!(
            split(&script),
            [
                trigger,
                "create temp trigger u begin select 1; END ;",
                "drop table a;"
            ]
        );
    }
}

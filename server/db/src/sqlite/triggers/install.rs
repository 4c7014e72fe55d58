//! Makes and removes the tables and triggers that record changes.

use std::collections::BTreeMap;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::definitions::{Definitions, TriggerText};
use super::recording::Present;
use super::{CHANGES, FEED};
use crate::data_file::quoted;
use crate::sqlite::catalog::Catalog;

/// Removes the triggers, so that columns and tables can be altered. They name columns, and SQLite
/// refuses to drop a column that a trigger names.
pub(crate) fn remove_triggers(connection: &Connection) -> rusqlite::Result<()> {
    for name in Present::read(connection)?.triggers.keys() {
        connection.execute_batch(&drop_trigger(name))?;
    }
    Ok(())
}

/// Makes the triggers anew for the schema that `catalog` describes.
pub(crate) fn add_triggers(connection: &Connection, catalog: &Catalog) -> rusqlite::Result<()> {
    remove_triggers(connection)?;
    for trigger in Definitions::of(connection, catalog)?.triggers.values() {
        connection.execute_batch(&trigger.sql)?;
    }
    Ok(())
}

/// Makes the two tables in a database that has nothing yet: then each migration makes the triggers
/// of its tables.
pub(crate) fn begin_new(connection: &Connection) -> rusqlite::Result<()> {
    let is_new = |connection: &Connection| {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)";
        connection.query_row(sql, [], |row| row.get::<_, bool>(0))
    };
    if !is_new(connection)? {
        return Ok(());
    }
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Another program may have been faster.
    if is_new(&transaction)? {
        transaction.execute_batch(&make_tables(&Definitions::without_triggers()))?;
    }
    transaction.commit()
}

pub(super) fn drop_trigger(name: &str) -> String {
    format!("DROP TRIGGER IF EXISTS {}", quoted(name))
}

/// The statements that remove everything.
pub(crate) fn remove_all(present: &Present) -> String {
    let triggers = present.triggers.keys().map(|name| drop_trigger(name));
    let tables = present
        .tables
        .keys()
        .map(|name| format!("DROP TABLE {name}"));
    triggers.chain(tables).collect::<Vec<_>>().join("; ")
}

/// The statements that make the two tables, and a history of their own.
pub(super) fn make_tables(definitions: &Definitions) -> String {
    let dropped = [CHANGES, FEED].map(|name| format!("DROP TABLE IF EXISTS {name}"));
    let made = definitions.tables.values().cloned();
    let row = format!("INSERT INTO {FEED} (nonce, n, floor) VALUES (random(), 0, 0)");
    let all = dropped.into_iter().chain(made).chain([row]);
    all.collect::<Vec<_>>().join("; ")
}

/// The statements that make the triggers of each table that lacks some or has others, by table.
pub(super) fn make_triggers(
    present: &Present,
    definitions: &Definitions,
) -> BTreeMap<String, String> {
    let mut by_table: BTreeMap<&str, Vec<(&String, &TriggerText)>> = BTreeMap::new();
    for (name, trigger) in &definitions.triggers {
        by_table
            .entry(&trigger.table)
            .or_default()
            .push((name, trigger));
    }
    let lacking = by_table.into_iter().filter(|(_, triggers)| {
        let is_present = |(name, trigger): &(&String, &TriggerText)| {
            present.triggers.get(*name) == Some(&trigger.sql)
        };
        !triggers.iter().all(is_present)
    });
    lacking
        .map(|(table, triggers)| {
            let dropped = triggers.iter().map(|(name, _)| drop_trigger(name));
            let made = triggers.iter().map(|(_, trigger)| trigger.sql.clone());
            let all: Vec<String> = dropped.chain(made).collect();
            (table.to_owned(), all.join("; "))
        })
        .collect()
}

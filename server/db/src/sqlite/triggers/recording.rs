//! Whether the changes of other programs are recorded, for one state of the schema.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::definitions::Definitions;
use super::records::FeedRow;
use super::{CHANGES, FEED, is_own_table};
use crate::sqlite::catalog::{Catalog, SchemaKey};

/// State of the triggers and of SQLite's statistics.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) key: SchemaKey,
    /// The pages of the tables in which ANALYZE keeps what it finds: their roots.
    pub(crate) statistics: Vec<u32>,
    /// `None` if changes are not recorded, or not all of them.
    pub(crate) feed: Option<RecordedFeed>,
    /// The tables without triggers, lower-case, such as those in which virtual tables keep their
    /// rows.
    pub(crate) unrecorded: Vec<String>,
}

/// The tables and triggers are as they must be.
#[derive(Debug)]
pub(crate) struct RecordedFeed {
    /// The one page of `_millpond_feed`, which each recorded change writes.
    pub(crate) page: u32,
    pub(crate) definitions: Definitions,
    /// As it was read last.
    pub(crate) row: FeedRow,
}

impl Recording {
    /// Reads the schema `key` that `connection` has in its transaction. `catalog` describes it if
    /// the owner asks for triggers.
    pub(crate) fn load(
        connection: &Connection,
        key: SchemaKey,
        catalog: Option<&Catalog>,
    ) -> rusqlite::Result<Self> {
        let feed = match catalog {
            Some(catalog) => RecordedFeed::load(connection, catalog)?,
            None => None,
        };
        let mut roots = connection.prepare_cached(
            "SELECT rootpage FROM sqlite_schema WHERE name IN ('sqlite_stat1', 'sqlite_stat4')",
        )?;
        let statistics = roots
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let recorded = feed.as_ref().map(|feed| &feed.definitions.recorded);
        let has_triggers = |name: &str| recorded.is_some_and(|all| all.contains_key(name));
        let unrecorded = catalog
            .into_iter()
            .flat_map(Catalog::stored_tables)
            .filter(|name| !has_triggers(name) && !is_own_table(name))
            .map(str::to_owned)
            .collect();
        Ok(Self {
            key,
            statistics,
            feed,
            unrecorded,
        })
    }
}

impl RecordedFeed {
    fn load(connection: &Connection, catalog: &Catalog) -> rusqlite::Result<Option<Self>> {
        let definitions = Definitions::of(connection, catalog)?;
        if !Present::read(connection)?.is_as_defined(&definitions) {
            return Ok(None);
        }
        let page = connection
            .prepare_cached("SELECT rootpage FROM sqlite_schema WHERE name = ?1")?
            .query_row([FEED], |row| row.get(0))?;
        let row = FeedRow::read(connection)?;
        Ok(row.filter(FeedRow::is_working).map(|row| Self {
            page,
            definitions,
            row,
        }))
    }
}

/// The tables and triggers that the database has, each with its text.
#[derive(Debug)]
pub(crate) struct Present {
    pub(crate) tables: BTreeMap<String, String>,
    pub(crate) triggers: BTreeMap<String, String>,
}

impl Present {
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let read = |kind: &str| {
            connection
                .prepare_cached(
                    "SELECT name, sql FROM sqlite_schema WHERE type = ?1 AND name LIKE '\\_millpond\\_%' ESCAPE '\\'",
                )?
                .query_map([kind], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<BTreeMap<String, String>>>()
        };
        let mut tables = read("table")?;
        tables.retain(|name, _| name == CHANGES || name == FEED);
        Ok(Self {
            tables,
            triggers: read("trigger")?,
        })
    }

    pub(crate) fn is_as_defined(&self, definitions: &Definitions) -> bool {
        let same = |(name, trigger): (&String, &super::definitions::TriggerText)| {
            self.triggers.get(name) == Some(&trigger.sql)
        };
        self.tables == definitions.tables
            && self.triggers.len() == definitions.triggers.len()
            && definitions.triggers.iter().all(same)
    }
}

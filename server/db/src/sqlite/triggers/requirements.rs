//! What a database lacks so that the changes of other programs are recorded, for `millpond check`.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::definitions::Definitions;
use super::install::{drop_trigger, make_tables, make_triggers, remove_all};
use super::recording::Present;
use super::records::FeedRow;
use crate::sqlite::catalog::{Catalog, SchemaKey};
use crate::{Error, FeedKind, Requirement};

/// How long a repair waits for another program's transaction.
const PATIENCE: Duration = Duration::from_secs(5);

/// The key of a catalog that is not kept.
const NO_KEY: SchemaKey = SchemaKey {
    generation: 0,
    version: 0,
};

const WITHOUT: &str =
    "until then each commit of another program ends all results, not only those that show its rows";

/// Lists the requirements that the SQLite database at `path` lacks for this kind of feed, or has
/// too much; the most basic first. Nothing if there is no file.
///
/// # Errors
/// [`Error::Unavailable`] if the file cannot be read.
pub fn sqlite_requirements(path: &Path, feed: FeedKind) -> Result<Vec<Requirement>, Error> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .and_then(|connection| {
            let transaction = connection.unchecked_transaction()?;
            missing(&transaction, feed)
        })
        .map_err(Error::unavailable)
}

/// The tables of the SQLite database at `path` of which [`FeedKind::Triggers`] records no rows, so
/// that each change by another program counts as one to all of them; each in lower case, with the
/// reason, to stand after its name.
///
/// # Errors
/// [`Error::Unavailable`] if the file cannot be read.
pub fn recorded_as_whole(path: &Path) -> Result<Vec<(String, &'static str)>, Error> {
    let read = |connection: &Connection| {
        let catalog = Catalog::load(connection, NO_KEY)?;
        Ok(Definitions::of(connection, &catalog)?.whole)
    };
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .and_then(|connection| read(&connection))
        .map(|whole| whole.into_iter().collect())
        .map_err(Error::unavailable)
}

/// Runs the statements of a requirement on the SQLite database at `path`, in one transaction.
///
/// # Errors
/// [`Error::Usage`] with SQLite's message.
pub fn repair_sqlite(path: &Path, requirement: &Requirement) -> Result<(), Error> {
    let Some(statement) = &requirement.statement else {
        return Err(Error::usage("there is no statement for this"));
    };
    open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .and_then(|connection| {
            connection.execute_batch(&format!("BEGIN IMMEDIATE; {statement}; COMMIT"))
        })
        .map_err(|error| Error::usage(crate::sqlite::failure::sentence(&error)))
}

fn open(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

fn missing(connection: &Connection, feed: FeedKind) -> rusqlite::Result<Vec<Requirement>> {
    let present = Present::read(connection)?;
    if feed != FeedKind::Triggers {
        return Ok(leftover(&present).into_iter().collect());
    }
    let catalog = Catalog::load(connection, NO_KEY)?;
    let definitions = Definitions::of(connection, &catalog)?;
    let mut all = Vec::new();
    let has_tables = present.tables == definitions.tables
        && FeedRow::read(connection)?.is_some_and(|row| row.is_working());
    if !has_tables {
        all.push(
            Requirement::new("the table of changes is missing or out of order", WITHOUT)
                .repaired_by(make_tables(&definitions), true),
        );
    }
    for (table, statements) in make_triggers(&present, &definitions) {
        let missing = format!("{table}: triggers that record changes are missing or changed");
        all.push(Requirement::new(missing, WITHOUT).repaired_by(statements, true));
    }
    let strange = present
        .triggers
        .keys()
        .filter(|name| !definitions.triggers.contains_key(*name));
    all.extend(strange.map(|name| {
        Requirement::new(format!("{name}: a trigger of an earlier state"), WITHOUT)
            .repaired_by(drop_trigger(name), true)
    }));
    Ok(all)
}

/// Returns the remains of triggers after the owner has gone back.
fn leftover(present: &Present) -> Option<Requirement> {
    let is_clean = present.tables.is_empty() && present.triggers.is_empty();
    (!is_clean).then(|| {
        Requirement::new(
            "triggers record changes that no server reads",
            "each write of a program costs more for them",
        )
        .repaired_by(remove_all(present), true)
    })
}

//! The writer connection: one transaction, from its first statement to the delivery of what it changed.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base_clock::Boottime;
use rusqlite::{Connection, ErrorCode};

use super::catalog::{Catalog, TableKind};
use super::collector::Collector;
use super::connection::{Deadline, Opened, Purpose, open, pragma, schema_version};
use super::file::{Identity, OpenFile};
use super::interest::Watch;
use super::preupdate::Observed;
use super::recorder::{Policy, Recorded, Recorder};
use super::run::run;
use super::ticks::mark;
use crate::sqlite::database::Shared;
use crate::{Error, Expect, Rows, Step, Value, bind};

/// How long one attempt to begin waits for another program's transaction; polls go on between attempts.
const BEGIN_PATIENCE: Duration = Duration::from_millis(10);

/// Statements whose written tables are remembered.
const MAX_REMEMBERED: usize = 4_096;

/// The writer connection with what belongs to it.
pub(crate) struct Session {
    pub(crate) observed: Observed,
    pub(crate) recorder: Recorder,
    deadline: Deadline,
    collector: Collector,
    pub(crate) file: OpenFile,
    data_version: i64,
    watch: Arc<Watch>,
    /// The schema and the version of the interest that `watch` was made for.
    watch_for: Option<(Arc<Catalog>, u64)>,
    /// What each statement writes, by the authorizer's word when it was prepared.
    writes: HashMap<Arc<str>, BTreeSet<String>>,
}

/// Between a commit and its delivery: if it is dropped armed, what was committed has not been told.
struct Undelivered<'a> {
    shared: &'a Shared,
    armed: bool,
}

impl Drop for Undelivered<'_> {
    fn drop(&mut self) {
        if self.armed {
            // The sink itself may be what panicked; a second panic while unwinding would abort.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                self.shared.delivery.new_epoch("a commit was not delivered");
            }));
        }
    }
}

impl Session {
    /// Opens the database; `expected` is the file that must be found at the path, or any if there may be none yet.
    pub(crate) fn open(shared: &Shared, expected: Option<Identity>) -> Result<Self, Error> {
        let create = expected.is_none();
        let path = &shared.options.path;
        let cannot = |error: rusqlite::Error| shared.cannot_open(&error);
        // The file that is looked at must be the one that is opened, or its replacement would go unnoticed.
        for _ in 0..8 {
            let before = Identity::of(path);
            let Opened {
                connection,
                recorder,
                deadline,
            } = open(path, Purpose::Write { create, expected }, BEGIN_PATIENCE).map_err(cannot)?;
            let data_version = pragma(&connection, "PRAGMA data_version").map_err(cannot)?;
            schema_version(&connection).map_err(cannot)?;
            let Some(file) = OpenFile::note(path) else {
                continue;
            };
            if !before.is_none_or(|before| file.identity() == before) {
                continue;
            }
            let collector = Collector::default();
            let observed = Observed::new(connection, Box::new(collector.clone()));
            return Ok(Self {
                observed,
                recorder,
                deadline,
                collector,
                file,
                data_version,
                watch: Arc::default(),
                watch_for: None,
                writes: HashMap::new(),
            });
        }
        Err(Error::unavailable(format!(
            "{} keeps being replaced",
            path.display()
        )))
    }

    pub(crate) fn connection(&self) -> &Connection {
        self.observed.connection()
    }

    pub(crate) fn roll_back(&self) -> rusqlite::Result<()> {
        if self.connection().is_autocommit() {
            Ok(())
        } else {
            execute(self.connection(), "ROLLBACK")
        }
    }

    /// Begins an epoch if another connection has committed since this was last asked.
    pub(crate) fn check_foreign(&mut self, shared: &Shared) -> Result<(), Error> {
        let version = pragma(self.connection(), "PRAGMA data_version")
            .map_err(|error| Error::from_sqlite(&error, "PRAGMA data_version"))?;
        if version != self.data_version {
            shared.delivery.new_epoch("another program has committed");
            self.data_version = version;
        }
        Ok(())
    }

    /// Between BEGIN IMMEDIATE and the delivery. Gives what `work` gave, and a time before the commit.
    pub(crate) fn in_transaction<T>(
        &mut self,
        shared: &Shared,
        tick: u64,
        work: impl FnOnce(&mut Self, &Shared) -> Result<T, Error>,
    ) -> Result<(T, Boottime), Error> {
        self.check_foreign(shared)?;
        let (schema, interest) = self.watch(shared)?;
        self.collector.0.lock().begin(Arc::clone(&self.watch));
        let changes = self.connection().total_changes();
        let result = work(self, shared)?;
        let version = |connection: &Connection| {
            schema_version(connection)
                .map_err(|error| Error::from_sqlite(&error, "PRAGMA schema_version"))
        };
        let schema_changed = version(self.connection())? != schema;
        // We hold the write lock, so nothing of others can be committed to this file before our commit has ended.
        let sent = Boottime::now();
        if !self.file.is_at(&shared.options.path) {
            return Err(Error::unavailable(
                "the database file was replaced during the transaction",
            ));
        }
        let mut undelivered = Undelivered {
            shared,
            armed: true,
        };
        if let Err(error) = execute(self.connection(), "COMMIT") {
            // A deferred constraint leaves the transaction as it was. After any other failure (a full disk) it is not
            // certain what a reader may have seen, so the guard begins an epoch.
            undelivered.armed = error.sqlite_error_code() != Some(ErrorCode::ConstraintViolation);
            return Err(Error::from_sqlite(&error, "COMMIT"));
        }
        let mut collected = self.collector.0.lock();
        // Interest that was added meanwhile was not watched for in all rows. Whoever adds it later reads later, too:
        // after its epoch, which begins after this look, and so after the commit.
        let unseen = collected.is_empty() && self.connection().total_changes() != changes;
        if shared.interest.version() != interest {
            collected.widen();
        }
        let broken = collected.broken || unseen;
        let tags = collected.take_tags();
        drop(collected);
        if !tags.is_empty() {
            shared.delivery.apply(mark(tick), tags);
        }
        if broken || schema_changed {
            shared.delivery.new_epoch(if broken {
                "the changes of a commit are not known"
            } else {
                "the schema has changed"
            });
        }
        undelivered.armed = false;
        Ok((result, sent))
    }

    /// Makes sure that `self.watch` is for the present schema and interest; gives the versions of both.
    fn watch(&mut self, shared: &Shared) -> Result<(i64, u64), Error> {
        let fail = |error: rusqlite::Error| Error::from_sqlite(&error, "PRAGMA schema_version");
        let catalog = shared
            .catalogs
            .of(self.connection(), shared.generation.load(Ordering::SeqCst))
            .map_err(fail)?;
        // Before the columns are taken: what is added in between is watched, and the transaction widened for nothing.
        let interest = shared.interest.version();
        let version = catalog.key.version;
        if !self
            .watch_for
            .as_ref()
            .is_some_and(|(known, for_interest)| {
                known.key == catalog.key && *for_interest == interest
            })
        {
            self.watch = Arc::new(shared.interest.watch(&catalog));
            self.watch_for = Some((catalog, interest));
        }
        Ok((version, interest))
    }

    pub(crate) fn steps(&mut self, shared: &Shared, steps: &[Step]) -> Result<Vec<Rows>, Error> {
        let mut results: Vec<Rows> = Vec::with_capacity(steps.len());
        for (
            index,
            Step {
                query,
                bind,
                expect,
            },
        ) in steps.iter().enumerate()
        {
            let params = bind
                .iter()
                .map(|bind| bind::value(bind, &results))
                .collect::<Result<Vec<Value>, Error>>()?;
            let Self {
                observed,
                recorder,
                deadline,
                ..
            } = &*self;
            let (ran, recorded) = recorder.record(Policy::Owner, || {
                deadline.within(shared.options.statement_timeout, || {
                    run(observed.connection(), query.sql(), &params, *expect)
                })
            });
            self.note_writes(query.sql_arc(), recorded);
            let rows = ran?;
            if *expect == Expect::One && rows.rows.is_empty() {
                return Err(Error::NoRow { step: index });
            }
            results.push(rows);
        }
        Ok(results)
    }

    /// Adds the tables that the authorizer says the statement writes to those that the hook saw: both, always.
    ///
    /// The hook tells the values, but it is not called for a virtual table itself.
    fn note_writes(&mut self, sql: &Arc<str>, recorded: Recorded) {
        if self.writes.len() >= MAX_REMEMBERED {
            self.writes.clear();
            // So that the statements are prepared again, and the authorizer asked.
            self.connection().flush_prepared_statement_cache();
        }
        let writes = self.writes.entry(Arc::clone(sql)).or_default();
        writes.extend(recorded.writes);
        let Some((catalog, _)) = &self.watch_for else {
            return;
        };
        let mut collected = self.collector.0.lock();
        for name in writes.iter() {
            match catalog.table(name).map(|table| &table.kind) {
                Some(TableKind::Table) => collected.add_table(name, false),
                Some(TableKind::Virtual(table)) => table
                    .shadows
                    .iter()
                    .for_each(|shadow| collected.add_table(shadow, true)),
                // Written through INSTEAD OF triggers, whose own tables are in the list.
                Some(TableKind::View) => {}
                Some(TableKind::Shadow) | None => collected.add_table(name, true),
            }
        }
    }
}

pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

pub(crate) fn execute(connection: &Connection, sql: &'static str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.raw_execute().map(drop)
}

//! The writer connection: one transaction, from its first statement to the delivery of what it
//! changed.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base_clock::Boottime;
use rusqlite::{Connection, ErrorCode};

use super::catalog::{Catalog, SchemaKey, TableKind};
use super::collector::Collector;
use super::connection::{Deadline, OpenConnection, Purpose, open, schema_version};
use super::file::{FileIdentity, OpenFile};
use super::foreign::ForeignCommits;
use super::heartbeats::Heartbeats;
use super::interest::WatchList;
use super::migrate;
use super::preupdate::ObservedConnection;
use super::recorder::{AuthorizerRecord, Recorder, StatementPolicy};
use super::run::run;
use super::ticks::mark;
use super::triggers::install::{add_triggers, begin_new, remove_triggers};
use super::triggers::is_own_table;
use crate::sqlite::shared::SqliteShared;
use crate::{Error, Expect, FeedKind, Migration, ResultRows, WriteStep, bind};

/// How long one attempt to begin waits for another program's transaction; the writer polls between
/// attempts.
const BEGIN_PATIENCE: Duration = Duration::from_millis(10);

/// The number of statements whose written tables are remembered.
const MAX_REMEMBERED: usize = 4_096;

/// The writer connection with its hook, its authorizer and its file.
pub(crate) struct WriterSession {
    pub(crate) observed: ObservedConnection,
    pub(crate) recorder: Recorder,
    deadline: Deadline,
    collector: Collector,
    pub(crate) file: OpenFile,
    pub(crate) foreign: ForeignCommits,
    watch: Arc<WatchList>,
    /// The schema and the version of the interest for which `watch` was made.
    watch_for: Option<(Arc<Catalog>, u64)>,
    /// The tables that each statement writes according to the authorizer when it was prepared.
    writes: HashMap<Arc<str>, BTreeSet<String>>,
    pub(super) heartbeats: Heartbeats,
}

/// A guard between a commit and its delivery: if it is dropped armed, the commit was not delivered,
/// and a new epoch begins.
struct UndeliveredGuard<'a> {
    shared: &'a SqliteShared,
    armed: bool,
}

impl Drop for UndeliveredGuard<'_> {
    fn drop(&mut self) {
        if self.armed {
            // The sink itself may have panicked; a second panic while unwinding would abort.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                self.shared.delivery.new_epoch("a commit was not delivered");
            }));
        }
    }
}

impl WriterSession {
    /// Opens the database. `expected` is the file that must be at the path. `None` accepts any
    /// file, and creates one if there is none.
    pub(crate) fn open(
        shared: &SqliteShared,
        expected: Option<FileIdentity>,
    ) -> Result<Self, Error> {
        let create = expected.is_none();
        let path = &shared.options.path;
        let cannot = |error: rusqlite::Error| shared.open_error(&error);
        // The inspected file must be the opened one, or its replacement would go undetected.
        for _ in 0..8 {
            let before = FileIdentity::of(path);
            let OpenConnection {
                connection,
                recorder,
                deadline,
                heartbeats,
            } = open(path, Purpose::Write { create, expected }, BEGIN_PATIENCE).map_err(cannot)?;
            schema_version(&connection).map_err(cannot)?;
            if create && shared.options.feed == FeedKind::Triggers {
                begin_new(&connection).map_err(cannot)?;
            }
            let foreign = ForeignCommits::of(&connection).map_err(cannot)?;
            let Some(file) = OpenFile::note(path) else {
                continue;
            };
            if !before.is_none_or(|before| file.identity() == before) {
                continue;
            }
            let collector = Collector::default();
            let observed = ObservedConnection::new(connection, Box::new(collector.clone()));
            let mut session = Self {
                observed,
                recorder,
                deadline,
                collector,
                file,
                foreign,
                watch: Arc::default(),
                watch_for: None,
                writes: HashMap::new(),
                heartbeats,
            };
            session.begin_recording(shared)?;
            return Ok(session);
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

    /// Runs `work` after BEGIN IMMEDIATE, commits, and delivers the changes. Returns the result of
    /// `work`, a time before the commit, and the tick of the event that the commit is.
    pub(crate) fn in_transaction<T>(
        &mut self,
        shared: &Arc<SqliteShared>,
        tick: u64,
        work: impl FnOnce(&mut Self, &SqliteShared) -> Result<T, Error>,
    ) -> Result<(T, Boottime, u64), Error> {
        self.check_foreign_commits(shared, tick)?;
        let (schema, interest) = self.refresh_watch(shared)?;
        self.collector.0.lock().begin(Arc::clone(&self.watch));
        self.suspend_triggers()?;
        let changes = self.connection().total_changes();
        self.heartbeats.begin(shared, self.file.identity(), tick);
        let result = work(self, shared);
        let tick = self.heartbeats.end().unwrap_or(tick);
        let result = result?;
        let version = |connection: &Connection| {
            schema_version(connection)
                .map_err(|error| Error::from_sqlite(&error, "PRAGMA schema_version"))
        };
        let has_written = self.connection().total_changes() != changes;
        let new_schema = Some(version(self.connection())?).filter(|version| *version != schema);
        let own_commit = self.prepare_own_commit(shared, has_written, new_schema)?;
        // This connection holds the write lock, so no other program can commit to this file before
        // this commit has ended.
        let sent = Boottime::now();
        if !self.file.is_at(&shared.options.path) {
            return Err(Error::unavailable(
                "the database file was replaced during the transaction",
            ));
        }
        let mut undelivered = UndeliveredGuard {
            shared,
            armed: true,
        };
        if let Err(error) = execute(self.connection(), "COMMIT") {
            // A deferred constraint leaves the transaction open. After any other failure (a full
            // disk) it is uncertain what a reader may have seen, so the guard begins an epoch.
            undelivered.armed = error.sqlite_error_code() != Some(ErrorCode::ConstraintViolation);
            return Err(Error::from_sqlite(&error, "COMMIT"));
        }
        self.note_own_commit(own_commit);
        let mut collected = self.collector.0.lock();
        // Columns that were registered during the transaction were not watched for in all rows. A
        // column that is registered later is also read later: after its epoch, which begins after
        // this check, and so after the commit.
        let unseen = collected.is_empty() && has_written;
        if shared.interest.version() != interest {
            collected.widen();
        }
        let broken = collected.broken || unseen;
        let tags = collected.take_tags();
        drop(collected);
        if !tags.is_empty() {
            shared.delivery.apply(mark(tick), tags);
        }
        if broken || new_schema.is_some() {
            shared.delivery.new_epoch(if broken {
                "the changes of a commit are not known"
            } else {
                "the schema has changed"
            });
        }
        undelivered.armed = false;
        Ok((result, sent, tick))
    }

    pub(crate) fn watch(&self) -> &Arc<WatchList> {
        &self.watch
    }

    pub(crate) fn schema_key(&self, shared: &SqliteShared, version: i64) -> SchemaKey {
        SchemaKey {
            generation: shared.generation.load(Ordering::SeqCst),
            version,
        }
    }

    /// The catalog of the schema in the open transaction, and the version of the interest for
    /// which `self.watch` was made.
    pub(crate) fn catalog(&mut self, shared: &SqliteShared) -> Result<(Arc<Catalog>, u64), Error> {
        self.refresh_watch(shared)?;
        let (catalog, interest) = self
            .watch_for
            .as_ref()
            .ok_or_else(|| Error::unavailable("no catalog"))?;
        Ok((Arc::clone(catalog), *interest))
    }

    /// Updates `self.watch` to the current schema and interest; returns the versions of both.
    fn refresh_watch(&mut self, shared: &SqliteShared) -> Result<(i64, u64), Error> {
        let fail = |error: rusqlite::Error| Error::from_sqlite(&error, "PRAGMA schema_version");
        let catalog = shared
            .catalogs
            .of(self.connection(), shared.generation.load(Ordering::SeqCst))
            .map_err(fail)?;
        // Read before the columns: a column that is added in between is watched, and the
        // transaction is widened without need.
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

    pub(crate) fn run_steps(
        &mut self,
        shared: &SqliteShared,
        steps: &[WriteStep],
    ) -> Result<Vec<ResultRows>, Error> {
        let mut results: Vec<ResultRows> = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            let (query, expect) = (&step.query, step.expect);
            let params = bind::values(&step.bind, &results)?;
            let (ran, recorded) = self.recorder.record(StatementPolicy::Owner, || {
                let limit = shared.options.statement_timeout;
                let run = || run(self.connection(), query.sql(), &params, expect);
                self.deadline.within(limit, run)
            });
            self.record_writes(query.sql_arc(), recorded);
            let rows = ran?;
            if expect == Expect::One && rows.rows.is_empty() {
                return Err(Error::NoRow { step: index });
            }
            results.push(rows);
        }
        Ok(results)
    }

    /// Applies a migration in the open transaction; false if it was applied before. Triggers that
    /// record changes are made anew, as they would keep a column from being dropped.
    pub(crate) fn migrate(&self, migration: &Migration) -> Result<bool, Error> {
        let fail = |error: rusqlite::Error| Error::from_sqlite(&error, "_millpond_feed");
        let connection = self.connection();
        let has_triggers = self.foreign.is_recorded();
        if migrate::is_applied(connection, migration)? {
            return Ok(false);
        }
        if has_triggers {
            remove_triggers(connection).map_err(fail)?;
        }
        let (applied, _) = self.recorder.record(StatementPolicy::Migration, || {
            migrate::apply(connection, migration)
        });
        applied?;
        if has_triggers {
            let key = SchemaKey {
                generation: 0,
                version: 0,
            };
            let catalog = Catalog::load(connection, key).map_err(fail)?;
            add_triggers(connection, &catalog).map_err(fail)?;
        }
        Ok(true)
    }

    /// Adds the tables that the statement writes according to the authorizer and whose rows the
    /// hook does not report: SQLite does not call it for a virtual table itself.
    fn record_writes(&mut self, sql: &Arc<str>, recorded: AuthorizerRecord) {
        if self.writes.len() >= MAX_REMEMBERED {
            self.writes.clear();
            // The statements are then prepared again, and the authorizer is asked again.
            self.connection().flush_prepared_statement_cache();
        }
        let writes = self.writes.entry(Arc::clone(sql)).or_default();
        writes.extend(recorded.writes);
        let Some((catalog, _)) = &self.watch_for else {
            return;
        };
        let mut collected = self.collector.0.lock();
        for name in writes.iter().filter(|name| !is_own_table(name)) {
            match catalog.table(name).map(|table| &table.kind) {
                // The hook reports each of its rows.
                Some(TableKind::Table) => {}
                Some(TableKind::Virtual(table)) => table
                    .shadows
                    .iter()
                    .for_each(|shadow| collected.add_table(shadow)),
                // INSTEAD OF triggers write a view, and the tables of those triggers are in the
                // list.
                Some(TableKind::View) => {}
                Some(TableKind::Shadow) | None => collected.add_table(name),
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

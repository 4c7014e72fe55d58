//! Commits of other programs: what they changed, as far as that is certain (coherence.md, rule 17
//! and "SQLite with triggers").

use std::sync::Arc;

use millpond_store::Tag;
use rusqlite::Connection;

use super::catalog::{Catalog, SchemaKey};
use super::collector::CollectedChanges;
use super::connection::{pragma, schema_version};
use super::log::{self, CommitPages, LogPosition};
use super::log_file::LogFile;
use super::session::{WriterSession, execute};
use super::ticks::mark;
use super::triggers::recording::{RecordedFeed, Recording};
use super::triggers::records::{self, FeedRow};
use super::triggers::{MAX_UNREAD, REMOVED_AT_ONCE};
use crate::sqlite::shared::SqliteShared;
use crate::{Error, FeedKind};

/// The state of the file at the last look for commits of other programs.
pub(crate) struct ForeignCommits {
    data_version: i64,
    /// `None` if the log's index could not be read.
    position: Option<LogPosition>,
    recording: Option<Recording>,
}

/// Result of a look.
enum Finding {
    Changes(Vec<Tag>),
    /// Not everything that was changed is known.
    Epoch(&'static str),
}

const FOREIGN: &str = "another program has committed";
const NEW_SCHEMA: &str = "another program has committed, and has changed the schema";
const NO_LOG: &str = "another program has committed, and the log does not say what";
const UNRECORDED: &str = "another program has committed what no trigger has recorded";
const MISSING: &str =
    "another program has committed, and triggers that record changes are missing or changed";
const OTHER_HISTORY: &str =
    "another program has committed, and the count of recorded changes is of another history";
const LOST: &str = "another program has committed, and changes are missing in the full or emptied table of changes";

/// Why changes of other programs are not known row by row, for the owner's log.
const ADVICE: &str = "database.feed is \"triggers\", and triggers that record changes are missing or changed: each commit of another program ends all results; run \"millpond check --fix\"";

impl ForeignCommits {
    /// For a connection that was opened now and has read once.
    pub(crate) fn of(connection: &Connection) -> rusqlite::Result<Self> {
        // The position comes first: a commit in between is found at the next look.
        let position = log::position(&LogFile::of(connection));
        Ok(Self {
            data_version: pragma(connection, "PRAGMA data_version")?,
            position,
            recording: None,
        })
    }

    fn feed_mut(&mut self) -> Option<&mut RecordedFeed> {
        self.recording.as_mut()?.feed.as_mut()
    }

    fn feed(&self) -> Option<&RecordedFeed> {
        self.recording.as_ref()?.feed.as_ref()
    }

    /// True if the changes of other programs are recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.feed().is_some()
    }

    /// True if the table of changes is so full that it should be emptied without a write.
    pub(crate) fn has_backlog(&self) -> bool {
        self.feed()
            .is_some_and(|feed| feed.row.n - feed.row.floor > MAX_UNREAD / 4)
    }
}

/// The schema of one transaction.
struct Schema {
    key: SchemaKey,
    /// Only if the owner asks for triggers: reading it keeps what this connection has in memory.
    catalog: Option<Arc<Catalog>>,
    /// The version of the interest for which changes are collected.
    interest: u64,
}

/// The end of a transaction of this server.
pub(crate) struct OwnCommit {
    /// The log before the commit.
    before: Option<LogPosition>,
    row: Option<FeedRow>,
    /// Recording from now on, if the schema has changed.
    recording: Option<Recording>,
}

impl WriterSession {
    /// Reads the schema as far as it decides what is known of other programs' commits.
    pub(crate) fn begin_recording(&mut self, shared: &SqliteShared) -> Result<(), Error> {
        self.in_read_transaction(|session| {
            let schema = session.schema(shared)?;
            session.foreign.recording = Some(session.load_recording(shared, &schema)?);
            Ok(())
        })
    }

    /// The schema in the open transaction.
    fn schema(&mut self, shared: &SqliteShared) -> Result<Schema, Error> {
        if shared.options.feed == FeedKind::Triggers {
            let (catalog, interest) = self.catalog(shared)?;
            return Ok(Schema {
                key: catalog.key,
                catalog: Some(catalog),
                interest,
            });
        }
        let version = schema_version(self.connection())
            .map_err(|error| Error::from_sqlite(&error, "PRAGMA schema_version"))?;
        Ok(Schema {
            key: self.schema_key(shared, version),
            catalog: None,
            interest: 0,
        })
    }

    fn load_recording(&self, shared: &SqliteShared, schema: &Schema) -> Result<Recording, Error> {
        let recording = Recording::load(self.connection(), schema.key, schema.catalog.as_deref())
            .map_err(|error| Error::from_sqlite(&error, "sqlite_schema"))?;
        if schema.catalog.is_some() && recording.feed.is_none() {
            shared.failures.count(ADVICE);
        }
        Ok(recording)
    }

    fn in_read_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if !self.connection().is_autocommit() {
            return work(self);
        }
        let run = |connection: &Connection, sql: &'static str| {
            execute(connection, sql).map_err(|error| Error::from_sqlite(&error, sql))
        };
        run(self.connection(), "BEGIN")?;
        let outcome = work(self);
        run(
            self.connection(),
            if outcome.is_ok() {
                "COMMIT"
            } else {
                "ROLLBACK"
            },
        )?;
        outcome
    }

    /// Delivers what other connections have committed since the last look, as a change of the
    /// event `tick` or as a new epoch.
    pub(crate) fn check_foreign_commits(
        &mut self,
        shared: &SqliteShared,
        tick: u64,
    ) -> Result<(), Error> {
        let version = self.data_version()?;
        // After the version, so that it has each commit that moved the version.
        let position = log::position(&LogFile::of(self.connection()));
        let has_moved = version != self.foreign.data_version;
        if !has_moved && position == self.foreign.position {
            return Ok(());
        }
        let finding = self.in_read_transaction(|session| session.examine(shared, position))?;
        match finding {
            Finding::Changes(tags) if tags.is_empty() => {}
            Finding::Changes(tags) => shared.delivery.apply(mark(tick), tags),
            Finding::Epoch(reason) => shared.delivery.new_epoch(reason),
        }
        Ok(())
    }

    fn data_version(&self) -> Result<i64, Error> {
        pragma(self.connection(), "PRAGMA data_version")
            .map_err(|error| Error::from_sqlite(&error, "PRAGMA data_version"))
    }

    /// Finds what the commits up to `position` have changed, in a snapshot that sees all of them.
    fn examine(
        &mut self,
        shared: &SqliteShared,
        position: Option<LogPosition>,
    ) -> Result<Finding, Error> {
        let schema = self.schema(shared)?;
        let version = self.data_version()?;
        let commits = self.commits_up_to(position);
        let known = self.foreign.recording.take();
        let is_known = |recording: &Recording| recording.key == schema.key;
        let (mut recording, is_same_schema) = match known {
            Some(recording) if is_known(&recording) => (recording, true),
            _ => (self.load_recording(shared, &schema)?, false),
        };
        let finding = match commits {
            _ if !is_same_schema => Finding::Epoch(NEW_SCHEMA),
            Err(reason) => Finding::Epoch(reason),
            Ok(commits) => self.changes_of(shared, schema.interest, &mut recording, &commits)?,
        };
        if let (Finding::Epoch(_), Some(feed)) = (&finding, &mut recording.feed) {
            match self.feed_row()? {
                Some(row) => feed.row = row,
                None => recording.feed = None,
            }
        }
        self.foreign = ForeignCommits {
            data_version: version,
            position,
            recording: Some(recording),
        };
        Ok(finding)
    }

    fn commits_up_to(
        &self,
        position: Option<LogPosition>,
    ) -> Result<Vec<CommitPages>, &'static str> {
        match (&self.foreign.position, &position) {
            // The version has moved, so the log must have.
            (Some(from), Some(to)) if from != to => {
                log::commits_between(&LogFile::of(self.connection()), from, to)
            }
            _ => Err(NO_LOG),
        }
    }

    /// Returns the changes of the commits, if all of them were recorded.
    fn changes_of(
        &mut self,
        shared: &SqliteShared,
        interest: u64,
        recording: &mut Recording,
        commits: &[CommitPages],
    ) -> Result<Finding, Error> {
        let is_statistics =
            |pages: &CommitPages| pages.iter().all(|page| recording.statistics.contains(page));
        let mut commits = commits
            .iter()
            .filter(|pages| !is_statistics(pages))
            .peekable();
        if commits.peek().is_none() {
            return Ok(Finding::Changes(Vec::new()));
        }
        if shared.options.feed != FeedKind::Triggers {
            return Ok(Finding::Epoch(FOREIGN));
        }
        let Some(feed) = &mut recording.feed else {
            return Ok(Finding::Epoch(MISSING));
        };
        if !commits.all(|pages| pages.contains(&feed.page)) {
            return Ok(Finding::Epoch(UNRECORDED));
        }
        let row = match self.feed_row()? {
            Some(row) if row.continues(&feed.row) => row,
            _ => return Ok(Finding::Epoch(OTHER_HISTORY)),
        };
        let mut collected = CollectedChanges::default();
        collected.begin(Arc::clone(self.watch()));
        let (connection, definitions) = (self.connection(), &feed.definitions);
        let is_complete =
            records::collect(connection, definitions, feed.row.n, row.n, &mut collected)
                .map_err(|error| Error::from_sqlite(&error, "_millpond_change"))?;
        if !is_complete {
            return Ok(Finding::Epoch(LOST));
        }
        feed.row = row;
        for table in &recording.unrecorded {
            collected.add_table(table);
        }
        // A column that was registered meanwhile was not watched for in all records. One that is
        // registered later is also read later: after its epoch.
        if shared.interest.version() != interest {
            collected.widen();
        }
        Ok(Finding::Changes(collected.take_tags()))
    }

    fn feed_row(&self) -> Result<Option<FeedRow>, Error> {
        FeedRow::read(self.connection())
            .map_err(|error| Error::from_sqlite(&error, "_millpond_feed"))
    }

    /// Suspends the triggers for the open transaction, whose changes the hook sees. Other
    /// connections never see the mark.
    pub(crate) fn suspend_triggers(&self) -> Result<(), Error> {
        const SUSPEND: &str = "UPDATE _millpond_feed SET own = 1";
        if self.foreign.feed().is_none() {
            return Ok(());
        }
        execute(self.connection(), SUSPEND).map_err(|error| Error::from_sqlite(&error, SUSPEND))
    }

    /// The last statements of the open transaction: the triggers work again, old records go, and
    /// the count says to other servers on this file that something was changed.
    pub(crate) fn prepare_own_commit(
        &self,
        shared: &SqliteShared,
        has_written: bool,
        new_schema: Option<i64>,
    ) -> Result<OwnCommit, Error> {
        let fail = |error: rusqlite::Error| Error::from_sqlite(&error, "_millpond_feed");
        let mut row = None;
        if self.foreign.feed().is_some() {
            resume_triggers(self.connection(), has_written).map_err(fail)?;
            row = self.feed_row()?;
        }
        let recording = match new_schema {
            Some(version) => {
                let key = self.schema_key(shared, version);
                let catalog = match shared.options.feed {
                    FeedKind::Triggers => Some(Catalog::load(self.connection(), key)),
                    FeedKind::Logical => None,
                };
                let schema = Schema {
                    key,
                    catalog: catalog.transpose().map_err(fail)?.map(Arc::new),
                    interest: 0,
                };
                Some(self.load_recording(shared, &schema)?)
            }
            None => None,
        };
        Ok(OwnCommit {
            before: self.foreign.position,
            row,
            recording,
        })
    }

    /// The transaction was committed.
    pub(crate) fn note_own_commit(&mut self, commit: OwnCommit) {
        let OwnCommit {
            before,
            row,
            recording,
        } = commit;
        let now = log::position(&LogFile::of(self.connection()));
        if let (Some(before), Some(now)) = (before, now)
            && now.is_next_commit(&before)
        {
            self.foreign.position = Some(now);
        }
        if let (Some(row), Some(feed)) = (row, self.foreign.feed_mut()) {
            feed.row = row;
        }
        if recording.is_some() {
            self.foreign.recording = recording;
        }
    }
}

fn resume_triggers(connection: &Connection, has_written: bool) -> rusqlite::Result<()> {
    // Every record was read in this transaction.
    connection
        .prepare_cached(
            "DELETE FROM _millpond_change WHERE rowid IN (SELECT rowid FROM _millpond_change ORDER BY rowid LIMIT ?1)",
        )?
        .execute([REMOVED_AT_ONCE])?;
    connection
        .prepare_cached(
            "UPDATE _millpond_feed SET own = NULL, n = n + ?1, floor = coalesce(
             (SELECT c.n - 1 FROM _millpond_change c ORDER BY c.rowid LIMIT 1), n + ?1)",
        )?
        .execute([has_written])?;
    Ok(())
}

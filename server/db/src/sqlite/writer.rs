//! The thread that owns the writer connection: it runs own transactions and polls for foreign ones
//! (coherence.md, rule 17).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;
use tokio::sync::oneshot;

use super::file::{FileIdentity, OpenFile};
use super::migrate;
use super::session::{WriterSession, execute, is_busy};
use crate::queue::QueueItem;
use crate::sqlite::shared::SqliteShared;
use crate::{Error, Migration, WriteResult, WriteStep};

/// A job of the writer thread.
pub(crate) enum WriteJob {
    Write {
        steps: Vec<WriteStep>,
        reply: oneshot::Sender<Result<WriteResult, Error>>,
    },
    Migrate {
        migrations: Vec<Migration>,
        reply: std::sync::mpsc::Sender<Result<Vec<String>, Error>>,
    },
    /// Work of another module.
    Task(Box<dyn FnOnce(&mut Writer) + Send>),
    /// Poll now, because the feed was started.
    Poll,
}

/// The writer thread's state.
pub(crate) struct Writer {
    shared: Arc<SqliteShared>,
    /// `None` if the file could not be opened; every poll tries again.
    session: Option<WriterSession>,
    /// The previously open file, until its successor is open.
    previous_file: Option<OpenFile>,
    /// The failed attempt to open the file, if the last attempt failed.
    failed_open: Option<FailedOpen>,
    last_poll: Boottime,
}

/// How long a file that cannot be opened for writing is not read either, and the pause between
/// later attempts.
const REFUSAL_PERIOD: Duration = Duration::from_secs(1);

struct FailedOpen {
    file: Option<FileIdentity>,
    /// The time of the first failure.
    since: Boottime,
    retry_at: Boottime,
    error: Error,
}

impl Writer {
    /// Opens the database, and creates it if there is none.
    pub(crate) fn open(shared: &Arc<SqliteShared>) -> Result<Self, Error> {
        let session = WriterSession::open(shared, None)?;
        shared.admission.admit(session.file.identity());
        Ok(Self {
            shared: Arc::clone(shared),
            session: Some(session),
            previous_file: None,
            failed_open: None,
            last_poll: Boottime::default(),
        })
    }

    /// Runs jobs until the queue is closed.
    pub(crate) fn run(mut self) {
        loop {
            let due = self.last_poll.plus(self.shared.options.poll);
            let next = self.shared.writes.pop(Some(due.since(Boottime::now())));
            match next {
                QueueItem::Closed => return,
                QueueItem::Idle | QueueItem::Job(WriteJob::Poll) => self.catch_panics(Self::poll),
                QueueItem::Job(WriteJob::Write { steps, reply }) => {
                    if reply.is_closed() {
                        continue;
                    }
                    let mut result = Err(Error::unavailable("a write failed unexpectedly"));
                    self.catch_panics(|writer| result = writer.write(&steps));
                    let _ = reply.send(result);
                }
                QueueItem::Job(WriteJob::Task(task)) => self.catch_panics(task),
                QueueItem::Job(WriteJob::Migrate { migrations, reply }) => {
                    let mut result = Err(Error::unavailable("a migration failed unexpectedly"));
                    self.catch_panics(|writer| result = writer.migrate(&migrations));
                    let _ = reply.send(result);
                }
            }
            // Continuous writes must not delay the polls.
            self.poll_if_due();
        }
    }

    /// Catches a panic. The connection may be in any state, so it is closed, which rolls back, and
    /// the next event opens another one.
    fn catch_panics(&mut self, work: impl FnOnce(&mut Self)) {
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
            self.shared.failures.count("the writer thread panicked");
            self.abandon();
        }
    }

    fn poll_if_due(&mut self) {
        if Boottime::now() >= self.last_poll.plus(self.shared.options.poll) {
            self.catch_panics(Self::poll);
        }
    }

    /// Checks whether another program has committed, or has replaced the file.
    fn poll(&mut self) {
        let tick = self.shared.ticks.begin();
        let sent = Boottime::now();
        self.last_poll = sent;
        match self.check_for_changes(tick) {
            Ok(()) => {
                self.pass(tick, sent);
                self.empty_changes();
            }
            // No heartbeat is sent, so the reported age grows.
            Err(error) => {
                self.shared.failures.count(&error.to_string());
                // Unless the file is only locked, a new connection may succeed.
                if !matches!(error, Error::Timeout { .. } | Error::Locked { .. }) {
                    self.abandon();
                }
            }
        }
    }

    /// Closes the connection; the next event opens the file again.
    fn abandon(&mut self) {
        if let Some(session) = self.session.take() {
            self.previous_file = Some(session.file);
        }
    }

    fn check_for_changes(&mut self, tick: u64) -> Result<(), Error> {
        self.check_file()?;
        let shared = &self.shared;
        let session = self
            .session
            .as_mut()
            .ok_or_else(|| Error::unavailable("no connection"))?;
        session.check_foreign_commits(shared, tick)
    }

    /// Removes old records of other programs' changes if no write of ours has done so: a few of
    /// them, and only if the write lock is free.
    fn empty_changes(&mut self) {
        let shared = Arc::clone(&self.shared);
        let Some(session) = self.session.as_mut() else {
            return;
        };
        if !session.foreign.has_backlog() || !session.connection().is_autocommit() {
            return;
        }
        let tick = shared.ticks.begin();
        let emptied = execute(session.connection(), "BEGIN IMMEDIATE")
            .map_err(|error| Error::from_sqlite(&error, "BEGIN IMMEDIATE"))
            .and_then(|()| session.in_transaction(&shared, tick, |_, _| Ok(())));
        match emptied {
            Ok(((), sent, tick)) => self.pass(tick, sent),
            Err(_) if session.roll_back().is_err() => self.abandon(),
            Err(_) => {}
        }
    }

    fn pass(&self, tick: u64, sent: Boottime) {
        self.shared.pass(tick, sent);
    }

    /// Opens the file that the path leads to now, if it is not the open one.
    fn check_file(&mut self) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let path = &shared.options.path;
        if self
            .session
            .as_ref()
            .is_some_and(|session| session.file.is_at(path))
        {
            return Ok(());
        }
        // The inspected file is the one for which the log is moved away, and the one that must be
        // opened.
        let now = FileIdentity::of(path);
        if let Some(failed) = &self.failed_open
            && failed.file == now
            && Boottime::now() < failed.retry_at
        {
            return Err(failed.error.clone());
        }
        if now.is_none() || self.current_or_previous_file() != now {
            shared.admission.close();
            shared.close_readers();
        }
        self.abandon_replaced_file();
        if let Some(previous_file) = &self.previous_file {
            previous_file.set_log_aside(now);
        }
        let opened = match now {
            Some(_) => WriterSession::open(&shared, now),
            None => Err(Error::unavailable(format!(
                "{} has been removed",
                path.display()
            ))),
        };
        match opened {
            Ok(session) => self.install_session(session),
            Err(error) => self.record_failed_open(now, &error),
        }
    }

    /// The open file, or the one that was open last.
    fn current_or_previous_file(&self) -> Option<FileIdentity> {
        let open = self.session.as_ref().map(|session| &session.file);
        open.or(self.previous_file.as_ref()).map(OpenFile::identity)
    }

    /// The path leads to another file or to none, so results that were read from the old file must
    /// not be served again.
    fn abandon_replaced_file(&mut self) {
        if let Some(session) = &self.session {
            self.shared
                .delivery
                .new_epoch("the database file was replaced or removed");
            // Empties the log into the old file, wherever it is now. Otherwise SQLite would replay
            // the log into its successor.
            let _ = session
                .connection()
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
        self.abandon();
    }

    fn install_session(&mut self, session: WriterSession) -> Result<(), Error> {
        // The readers opened their connections before this connection could detect changes.
        self.shared.close_readers();
        self.shared.admission.admit(session.file.identity());
        self.session = Some(session);
        (self.previous_file, self.failed_open) = (None, None);
        self.shared
            .delivery
            .new_epoch("the database file was opened again");
        Ok(())
    }

    /// The file cannot be opened for writing: another program may hold it, or it may be read-only.
    /// After a while readers may open it all the same. No heartbeat is sent meanwhile, so no served
    /// result is older than the bound.
    fn record_failed_open(
        &mut self,
        file: Option<FileIdentity>,
        error: &Error,
    ) -> Result<(), Error> {
        let now = Boottime::now();
        self.shared.admission.failed();
        let since = match &self.failed_open {
            Some(before) if before.file == file => before.since,
            _ => now,
        };
        let is_lasting = now.since(since) >= REFUSAL_PERIOD;
        if let Some(file) = file.filter(|_| is_lasting) {
            self.shared.admission.admit(file);
        }
        self.failed_open = Some(FailedOpen {
            file,
            since,
            retry_at: if is_lasting {
                now.plus(REFUSAL_PERIOD)
            } else {
                now
            },
            error: error.clone(),
        });
        Err(error.clone())
    }

    fn write(&mut self, steps: &[WriteStep]) -> Result<WriteResult, Error> {
        let written = self.run_transaction(|session, shared| session.run_steps(shared, steps));
        if let Err(error @ Error::Unavailable { .. }) = &written {
            self.shared.failures.count(&error.to_string());
        }
        written.map(|results| WriteResult {
            results,
            position: self.shared.passed.own_position(self.shared.ticks.passed()),
        })
    }

    fn migrate(&mut self, migrations: &[Migration]) -> Result<Vec<String>, Error> {
        self.run_transaction(|session, _| {
            session
                .connection()
                .execute_batch(migrate::TABLE)
                .map_err(|error| Error::from_sqlite(&error, migrate::TABLE))
        })?;
        let mut applied = Vec::new();
        for migration in migrations {
            let new = self.run_transaction(|session, _| session.migrate(migration))?;
            if new {
                self.shared.delivery.new_epoch("a migration was applied");
                applied.push(migration.name.clone());
            }
        }
        Ok(applied)
    }

    /// Runs `work` in a transaction, which is one event, and delivers its changes.
    pub(crate) fn run_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut WriterSession, &SqliteShared) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let tick = self.begin()?;
        let shared = Arc::clone(&self.shared);
        let session = self
            .session
            .as_mut()
            .ok_or_else(|| Error::unavailable("no connection"))?;
        match session.in_transaction(&shared, tick, work) {
            Ok((result, sent, tick)) => {
                self.pass(tick, sent);
                Ok(result)
            }
            Err(error) => {
                if session.roll_back().is_err() {
                    self.abandon();
                }
                Err(error)
            }
        }
    }

    /// Waits for the write lock, and polls meanwhile; returns the tick of the event.
    fn begin(&mut self) -> Result<u64, Error> {
        /// How long another program may hold a file that has just replaced another.
        const REOPEN: Duration = Duration::from_millis(500);
        const PAUSE: Duration = Duration::from_millis(5);
        let begun = Boottime::now();
        let until = begun.plus(self.shared.options.busy_timeout);
        loop {
            let tick = self.shared.ticks.begin();
            if let Err(error) = self.check_file() {
                if Boottime::now() < begun.plus(REOPEN) {
                    std::thread::sleep(PAUSE);
                    continue;
                }
                return Err(error);
            }
            let session = self
                .session
                .as_ref()
                .ok_or_else(|| Error::unavailable("no connection"))?;
            match execute(session.connection(), "BEGIN IMMEDIATE") {
                Ok(()) => return Ok(tick),
                Err(error) if is_busy(&error) && Boottime::now() < until => self.poll_if_due(),
                Err(error) if is_busy(&error) => {
                    let waited = Some(self.shared.options.busy_timeout);
                    return Err(Error::Locked { waited });
                }
                Err(error) => return Err(Error::from_sqlite(&error, "BEGIN IMMEDIATE")),
            }
        }
    }
}

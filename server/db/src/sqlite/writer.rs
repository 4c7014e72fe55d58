//! The thread that owns the writer connection: own transactions, and polls for those of others (COHERENCE, rule 17).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;
use tokio::sync::oneshot;

use super::file::{Identity, OpenFile};
use super::recorder::Policy;
use super::session::{Session, execute, is_busy};
use crate::feed::Snapshot;
use crate::migration::{self, Migration};
use crate::queue::Next;
use crate::sqlite::database::Shared;
use crate::{Error, Step, Written};

/// What the writer thread is asked to do.
pub(crate) enum WriteJob {
    Write {
        steps: Vec<Step>,
        reply: oneshot::Sender<Result<Written, Error>>,
    },
    Migrate {
        migrations: Vec<Migration>,
        reply: std::sync::mpsc::Sender<Result<Vec<String>, Error>>,
    },
    /// Poll now: the feed has been started.
    Poll,
}

/// The writer thread's state.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    /// `None`: the file could not be opened; every poll tries again.
    session: Option<Session>,
    /// The file that was open before, until its successor is.
    left: Option<OpenFile>,
    /// The file that could not be opened, if that is how it stands.
    refused: Option<Refused>,
    last_poll: Boottime,
}

/// How long a file that cannot be opened for writing is not read either, and the pause between attempts from then on.
const LASTING: Duration = Duration::from_secs(1);

struct Refused {
    file: Option<Identity>,
    /// When it was first refused.
    since: Boottime,
    retry_at: Boottime,
    error: Error,
}

impl Writer {
    /// Opens the database, and makes it if there is none.
    pub(crate) fn open(shared: &Arc<Shared>) -> Result<Self, Error> {
        let session = Session::open(shared, None)?;
        shared.admission.admit(session.file.identity());
        Ok(Self {
            shared: Arc::clone(shared),
            session: Some(session),
            left: None,
            refused: None,
            last_poll: Boottime::default(),
        })
    }

    /// Works until the queue is closed.
    pub(crate) fn run(mut self) {
        loop {
            let due = self.last_poll.plus(self.shared.options.poll);
            let next = self.shared.writes.pop(Some(due.since(Boottime::now())));
            match next {
                Next::Closed => return,
                Next::Idle | Next::Job(WriteJob::Poll) => self.guarded(Self::poll),
                Next::Job(WriteJob::Write { steps, reply }) => {
                    if reply.is_closed() {
                        continue;
                    }
                    let mut result = Err(Error::unavailable("a write failed unexpectedly"));
                    self.guarded(|writer| result = writer.write(&steps));
                    let _ = reply.send(result);
                }
                Next::Job(WriteJob::Migrate { migrations, reply }) => {
                    let mut result = Err(Error::unavailable("a migration failed unexpectedly"));
                    self.guarded(|writer| result = writer.migrate(&migrations));
                    let _ = reply.send(result);
                }
            }
            // Writes that never pause must not put the polls off.
            self.poll_if_due();
        }
    }

    /// Survives a panic: whatever state the connection is in, it is closed, which rolls back, and the next event opens another.
    fn guarded(&mut self, work: impl FnOnce(&mut Self)) {
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
            self.shared.count_failure("the writer thread panicked");
            self.abandon();
        }
    }

    fn poll_if_due(&mut self) {
        if Boottime::now() >= self.last_poll.plus(self.shared.options.poll) {
            self.guarded(Self::poll);
        }
    }

    /// Looks whether another program has committed, or has put another file in place.
    fn poll(&mut self) {
        let tick = self.shared.ticks.begin();
        let sent = Boottime::now();
        self.last_poll = sent;
        match self.look() {
            Ok(()) => self.pass(tick, sent),
            // No heartbeat: the age grows, and with it what readers are told.
            Err(error) => {
                self.shared.count_failure(&error.to_string());
                // Unless the file is only locked, another connection may do better.
                if !matches!(error, Error::Timeout) {
                    self.abandon();
                }
            }
        }
    }

    /// Closes the connection; the next event opens the file again.
    fn abandon(&mut self) {
        if let Some(session) = self.session.take() {
            self.left = Some(session.file);
        }
    }

    fn look(&mut self) -> Result<(), Error> {
        self.check_file()?;
        let shared = &self.shared;
        let session = self
            .session
            .as_mut()
            .ok_or_else(|| Error::unavailable("no connection"))?;
        session.check_foreign(shared)
    }

    fn pass(&self, tick: u64, sent: Boottime) {
        self.shared.ticks.pass(tick);
        self.shared
            .delivery
            .passed(&Snapshot::Applied(tick), tick, sent);
        self.shared.passed.heard(sent);
    }

    /// Opens whatever file the path leads to now, if it is not the one that is open.
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
        // The file that is looked at is the one that the log is moved away for, and the one that must be opened.
        let now = Identity::of(path);
        if let Some(again) = &self.refused
            && again.file == now
            && Boottime::now() < again.retry_at
        {
            return Err(again.error.clone());
        }
        if now.is_none() || self.left_file() != now {
            shared.admission.close();
            shared.close_readers();
        }
        self.leave();
        if let Some(left) = &self.left {
            left.set_log_aside(now);
        }
        let opened = match now {
            Some(_) => Session::open(&shared, now),
            None => Err(Error::unavailable(format!(
                "{} has been removed",
                path.display()
            ))),
        };
        match opened {
            Ok(session) => self.enter(session),
            Err(error) => self.refuse(now, &error),
        }
    }

    /// The file that is open, or was before it was given up.
    fn left_file(&self) -> Option<Identity> {
        let open = self.session.as_ref().map(|session| &session.file);
        open.or(self.left.as_ref()).map(OpenFile::identity)
    }

    /// The path leads elsewhere: what was read from the file is not served again, whether or not there is a new one.
    fn leave(&mut self) {
        if let Some(session) = &self.session {
            self.shared
                .delivery
                .new_epoch("the database file was replaced or removed");
            // Into the old file, wherever it is now: its log would otherwise be played into its successor.
            let _ = session
                .connection()
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
        self.abandon();
    }

    fn enter(&mut self, session: Session) -> Result<(), Error> {
        // What the readers have open they opened before this connection watched it.
        self.shared.close_readers();
        self.shared.admission.admit(session.file.identity());
        self.session = Some(session);
        (self.left, self.refused) = (None, None);
        self.shared
            .delivery
            .new_epoch("the database file was opened again");
        Ok(())
    }

    /// The file cannot be opened for writing: another program may hold it, or it may be read-only. After a while it is read all
    /// the same. No heartbeat goes out meanwhile, so nothing is served that is older than the bound.
    fn refuse(&mut self, file: Option<Identity>, error: &Error) -> Result<(), Error> {
        let now = Boottime::now();
        self.shared.admission.failed();
        let since = match &self.refused {
            Some(before) if before.file == file => before.since,
            _ => now,
        };
        let is_lasting = now.since(since) >= LASTING;
        if let Some(file) = file.filter(|_| is_lasting) {
            self.shared.admission.admit(file);
        }
        self.refused = Some(Refused {
            file,
            since,
            retry_at: if is_lasting { now.plus(LASTING) } else { now },
            error: error.clone(),
        });
        Err(error.clone())
    }

    fn write(&mut self, steps: &[Step]) -> Result<Written, Error> {
        let written = self.transact(|session, shared| session.steps(shared, steps));
        if let Err(error @ Error::Unavailable { .. }) = &written {
            self.shared.count_failure(&error.to_string());
        }
        written.map(|results| Written {
            results,
            position: self.shared.passed.own(self.shared.ticks.passed()),
        })
    }

    fn migrate(&mut self, migrations: &[Migration]) -> Result<Vec<String>, Error> {
        self.transact(|session, _| {
            session
                .connection()
                .execute_batch(migration::TABLE)
                .map_err(|error| Error::from_sqlite(&error, migration::TABLE))
        })?;
        let mut applied = Vec::new();
        for migration in migrations {
            let new = self.transact(|session, _| {
                let Session {
                    observed, recorder, ..
                } = session;
                recorder
                    .record(Policy::Migration, || {
                        migration::apply(observed.connection(), migration)
                    })
                    .0
            })?;
            if new {
                self.shared.delivery.new_epoch("a migration was applied");
                applied.push(migration.name.clone());
            }
        }
        Ok(applied)
    }

    /// Runs `work` in a transaction of its own, which is one event, and delivers what it changed.
    fn transact<T>(
        &mut self,
        work: impl FnOnce(&mut Session, &Shared) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let tick = self.begin()?;
        let shared = Arc::clone(&self.shared);
        let session = self
            .session
            .as_mut()
            .ok_or_else(|| Error::unavailable("no connection"))?;
        match session.in_transaction(&shared, tick, work) {
            Ok((result, sent)) => {
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

    /// Waits for the write lock, and goes on polling meanwhile; gives the tick of the event.
    fn begin(&mut self) -> Result<u64, Error> {
        /// How long a file that has just replaced another may be held by someone.
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
                Err(error) => return Err(Error::from_sqlite(&error, "BEGIN IMMEDIATE")),
            }
        }
    }
}

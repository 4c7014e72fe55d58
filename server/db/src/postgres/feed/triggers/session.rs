//! One life of the feed by triggers: it sleeps, looks at the table of changes, applies what it
//! finds, and says how far it is.

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;

use super::super::catalog_checks::CatalogChecks;
use super::super::opening::{FLOOR, one, read_tables};
use super::super::relations::{FeedView, TableFamilies};
use super::super::settings::FeedSettings;
use super::super::wait::{FeedEnd, Patience, Stop};
use super::super::wire::{FeedConnection, Frame, QueryRows, unexpected};
use super::objects::CHANGES;
use super::opening::OpenedTriggerFeed;
use super::poll::{self, NodeRegistration, PollResult, TIDIED};
use super::rows::RowPlans;
use crate::feed::{Mark, Snapshot, Transactions};
use crate::postgres::TextRow;
use crate::postgres::catalog::{SESSIONS_CHANGED, session_part};
use crate::postgres::families::TABLES;
use crate::postgres::link::FeedLink;
use crate::postgres::wake::Sleeper;

/// A commit of another program shows within this time even without a notification.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Between two looks that notifications ask for, so that a busy database is not looked at for each
/// commit.
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);
/// The node says this often what it still needs.
const TIDY: Duration = Duration::from_secs(1);
/// The node says this often what it still needs, while there is more to remove than is removed at a
/// time.
const TIDY_MORE: Duration = Duration::from_millis(100);
/// How long it is waited at the end for the registration to be taken back.
const FAREWELL: Duration = Duration::from_millis(500);

/// Query that the connection was asked.
enum TriggerQuery {
    Look {
        looks: bool,
    },
    Tidy,
    /// For the tables, because the catalog has this fingerprint now.
    Tables(String),
    /// For a transaction id that all that was under way is below.
    Floor(String),
}

struct PendingTriggerQuery {
    asked: TriggerQuery,
    answer: QueryRows,
    sent: Boottime,
}

/// A life.
pub(super) struct TriggerFeedSession<'a> {
    settings: &'a FeedSettings,
    link: &'a FeedLink,
    control: FeedConnection,
    sleeper: Sleeper,
    names: NodeRegistration,
    question: Option<PendingTriggerQuery>,
    looks: CatalogChecks,
    /// When the next look is due without a call.
    due: Boottime,
    /// When the last one was sent.
    sent: Boottime,
    tidy_due: Boottime,
    /// A caller waits for a change that it knows of.
    is_called: bool,
    /// A notification says that there is a change.
    is_notified: bool,
    tables: Arc<TableFamilies>,
    fingerprint: String,
    /// Counter of lost changes when the life began.
    lost: String,
    /// Transactions that have been applied, and the snapshot as PostgreSQL writes it.
    seen: Arc<Transactions>,
    snapshot: String,
}

impl<'a> TriggerFeedSession<'a> {
    pub(super) fn new(
        settings: &'a FeedSettings,
        link: &'a FeedLink,
        opened: OpenedTriggerFeed,
        sleeper: Sleeper,
    ) -> Self {
        let now = Boottime::now();
        Self {
            settings,
            link,
            control: opened.control,
            sleeper,
            names: opened.names,
            question: None,
            looks: CatalogChecks::new(settings.heartbeat, now),
            due: now,
            sent: Boottime::default(),
            tidy_due: now,
            is_called: false,
            is_notified: false,
            tables: opened.tables,
            fingerprint: opened.fingerprint,
            lost: opened.lost,
            seen: opened.seen,
            snapshot: opened.snapshot,
        }
    }

    /// Lives until something is wrong.
    pub(super) fn run(&mut self, stop: &Stop) -> FeedEnd {
        let end = loop {
            if let Err(end) = self.turn(stop) {
                break end;
            }
        };
        if end == FeedEnd::Stopped {
            // If that fails, the node is struck off in a minute.
            let _ = self.leave();
        }
        end
    }

    /// Changes need not be kept for this node any more.
    fn leave(&mut self) -> Result<(), FeedEnd> {
        // The other end stays open meanwhile, so nothing ends this wait but its time.
        let (_open, end) = UnixStream::pair()?;
        let stop = Stop(end);
        let patience = Patience::of(&stop, FAREWELL);
        while self.question.is_some() {
            if self.control.expect(patience)?.tag == b'Z' {
                self.question = None;
            }
        }
        self.control.query(&self.names.leave(), patience).map(drop)
    }

    fn turn(&mut self, stop: &Stop) -> Result<(), FeedEnd> {
        let now = Boottime::now();
        if self.question.is_none() {
            if self.poll_due() <= now {
                self.look(now)?;
            } else if self.tidy_due <= now {
                let tidy = self.names.tidy(self.seen.xmin());
                self.ask(TriggerQuery::Tidy, &tidy, now)?;
            }
        }
        let sockets = [
            (self.control.as_fd(), self.control.waits_for()),
            (self.sleeper.as_fd(), rustix::event::PollFlags::IN),
        ];
        let [answers, _] = stop.wait(sockets, self.until())?;
        self.is_called |= self.sleeper.was_called();
        self.control.flush()?;
        if answers {
            self.control.fill()?;
        }
        while let Some(frame) = self.control.next()? {
            self.answered(&frame)?;
        }
        self.is_notified |= self.control.take_notified();
        self.check_silence(Boottime::now())
    }

    /// When to look next.
    fn poll_due(&self) -> Boottime {
        if self.is_called {
            Boottime::default()
        } else if self.is_notified {
            self.due.min(self.sent.plus(SHORTEST_SLEEP))
        } else {
            self.due
        }
    }

    /// When the next thing is due, if nothing comes.
    fn until(&self) -> Boottime {
        match &self.question {
            Some(question) => question.sent.plus(self.settings.wal_sender_timeout),
            None => self.poll_due().min(self.tidy_due),
        }
    }

    fn check_silence(&self, now: Boottime) -> Result<(), FeedEnd> {
        let patience = self.settings.wal_sender_timeout;
        match &self.question {
            Some(question) if now.since(question.sent) >= patience => {
                Err(FeedEnd::disconnected(format!(
                    "nothing arrived from the server for {} s",
                    patience.as_secs_f64()
                )))
            }
            _ => Ok(()),
        }
    }

    fn ask(&mut self, asked: TriggerQuery, sql: &str, now: Boottime) -> Result<(), FeedEnd> {
        self.question = Some(PendingTriggerQuery {
            asked,
            answer: QueryRows::default(),
            sent: now,
        });
        self.control.ask(sql)
    }

    /// Begins a look. It answers callers and notifications from before now; later ones ask for
    /// another look. A caller waits for a write of its own, or for one of another node, and is
    /// answered only by a look at the catalog too.
    fn look(&mut self, now: Boottime) -> Result<(), FeedEnd> {
        let looks = self.is_called || self.looks.is_due(now);
        self.is_called = false;
        self.is_notified = false;
        self.sent = now;
        self.due = now.plus(self.settings.heartbeat.min(LONGEST_SLEEP));
        let sql = poll::ask(&self.snapshot, looks);
        self.ask(TriggerQuery::Look { looks }, &sql, now)
    }

    fn answered(&mut self, frame: &Frame) -> Result<(), FeedEnd> {
        let Some(question) = &mut self.question else {
            return Err(unexpected(frame.tag));
        };
        let Some(rows) = question.answer.take(frame)? else {
            return Ok(());
        };
        let sent = question.sent;
        match self.question.take().map(|question| question.asked) {
            Some(TriggerQuery::Look { looks }) => self.found(rows, looks, sent),
            Some(TriggerQuery::Tidy) => self.tidied(&rows),
            Some(TriggerQuery::Tables(fingerprint)) => {
                self.tables = Arc::new(read_tables(&rows)?);
                self.ask(TriggerQuery::Floor(fingerprint), FLOOR, Boottime::now())
            }
            Some(TriggerQuery::Floor(fingerprint)) => {
                let floor = one(&rows)?.parse().map_err(FeedEnd::lost)?;
                let is_of_sessions = session_part(&fingerprint) != session_part(&self.fingerprint);
                self.fingerprint = fingerprint;
                // Ends the sessions that read, too: until the feed has begun again, which may take
                // long, they would read with what they began with.
                self.link
                    .schema_changed_below(floor, "the schema has changed");
                if is_of_sessions {
                    // So has this session.
                    return Err(FeedEnd::lost(SESSIONS_CHANGED));
                }
                self.link.seen(&self.seen);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn tidied(&mut self, rows: &[TextRow]) -> Result<(), FeedEnd> {
        let removed: usize = one(rows)?.parse().map_err(FeedEnd::lost)?;
        let pause = if removed < TIDIED { TIDY } else { TIDY_MORE };
        self.tidy_due = Boottime::now().plus(pause);
        Ok(())
    }

    /// Applies what a look has found, and says how far the feed is.
    fn found(&mut self, rows: Vec<TextRow>, looks: bool, sent: Boottime) -> Result<(), FeedEnd> {
        let found = PollResult::read(rows)
            .ok_or_else(|| FeedEnd::lost("what the table of changes has makes no sense"))?;
        if !found.is_registered {
            return Err(FeedEnd::lost(
                "this node was silent for so long that changes may have been removed before it has seen them",
            ));
        }
        if found.lost != self.lost {
            return Err(FeedEnd::lost(format!(
                "{CHANGES} was too large or was emptied, so changes may be missing; are there other nodes that hang, or a transaction that was \
                 open for long?"
            )));
        }
        self.apply(&found);
        self.seen = found.seen;
        self.snapshot = found.snapshot;
        match found.fingerprint {
            Some(fingerprint) if fingerprint != self.fingerprint => {
                // What is read now is at least as new as the fingerprint; if it is newer, the next
                // look finds it out. Who waits for his write is told after the epoch: his change
                // may be one that was not recorded.
                self.looks.invalidate();
                self.ask(TriggerQuery::Tables(fingerprint), TABLES, Boottime::now())
            }
            _ => {
                if looks {
                    self.looks.found(sent, Boottime::now());
                }
                self.passed(looks);
                Ok(())
            }
        }
    }

    fn apply(&self, found: &PollResult) {
        let delivery = &self.link.delivery;
        if found.is_cut {
            // All of them are visible to every later read, so nothing need be known of them.
            delivery.new_epoch("more has changed than is looked at");
            return;
        }
        let view = FeedView {
            watch: self.link.interest.watch(),
            tables: Arc::clone(&self.tables),
        };
        let mut plans = RowPlans::new(&view);
        for (transaction, recorded) in &found.changes {
            let (tags, anything) = plans.tags(recorded);
            let mark = Mark {
                transaction: *transaction,
                at: *transaction + 1,
            };
            let incomplete = || {
                let watched = Arc::ptr_eq(&view.watch, &self.link.interest.watch());
                anything.or((!watched).then_some("a query reads columns that were not watched"))
            };
            delivery.apply_unless(mark, tags, incomplete);
        }
    }

    /// How far the feed is. Counterexample: *a waiter is notified by a look that has not found the
    /// catalog as it is known: the triggers were disabled a moment before his write, which was not
    /// recorded, and what is kept lacks it.*
    fn passed(&self, has_looked: bool) {
        let seen = Snapshot::Transactions(Arc::clone(&self.seen));
        let (position, sent) = (self.seen.xmin(), self.looks.last());
        self.link.delivery.passed(&seen, position, sent);
        if has_looked {
            self.link.passed.heard(sent);
            self.link.seen(&self.seen);
        }
    }
}

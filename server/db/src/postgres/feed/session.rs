//! One life of the feed: the stream is read, applied and acknowledged, heartbeats go out, and
//! nothing here ever blocks but the one wait for all of it.

use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;
use rustix::event::PollFlags;

use super::heartbeat::{CompletedHeartbeat, Heartbeat, Pulse};
use super::messages::Note;
use super::opening::{FLOOR, OpenedFeed, one, read_tables};
use super::pace::PollPace;
use super::pgoutput::{Decoder, Malformed};
use super::relations::{FeedView, TableFamilies};
use super::replication::{self, Copied};
use super::settings::FeedSettings;
use super::setup;
use super::transactions::{Committed, Transactions};
use super::wait::{FeedEnd, Stop};
use super::wire::{FeedConnection, Frame, QueryRows, unexpected};
use crate::feed::{Mark, Snapshot};
use crate::postgres::TextRow;
use crate::postgres::catalog::{SESSIONS_CHANGED, session_part};
use crate::postgres::families::TABLES;
use crate::postgres::link::FeedLink;
use crate::postgres::wake::Sleeper;

/// The server is told at least this often how far we are, so that it keeps no WAL for us.
const STATUS: Duration = Duration::from_secs(1);

/// Query that the control connection was asked.
enum FeedQuery {
    Heartbeat,
    /// For the publication, because the catalog has this fingerprint now; and then for the tables.
    Publication(String),
    Tables(String),
    /// For a transaction id that all that was under way is below.
    Floor(String),
}

struct PendingFeedQuery {
    asked: FeedQuery,
    answer: QueryRows,
    since: Boottime,
}

/// A life.
pub(crate) struct FeedSession<'a> {
    settings: &'a FeedSettings,
    link: &'a FeedLink,
    control: FeedConnection,
    stream: FeedConnection,
    decoder: Decoder,
    transactions: Transactions,
    /// How many were delivered.
    delivered: u64,
    pace: PollPace,
    sleeper: Sleeper,
    heartbeat: Heartbeat,
    question: Option<PendingFeedQuery>,
    tables: Arc<TableFamilies>,
    fingerprint: String,
    /// The newest transaction id that is known, all 64 bits of it.
    newest: u64,
    /// How far everything was applied.
    position: u64,
    status_due: Boottime,
    heard: Boottime,
}

impl<'a> FeedSession<'a> {
    pub(crate) fn new(
        settings: &'a FeedSettings,
        link: &'a FeedLink,
        opened: OpenedFeed,
        sleeper: Sleeper,
    ) -> Self {
        let now = Boottime::now();
        Self {
            settings,
            link,
            control: opened.control,
            stream: opened.stream,
            decoder: Decoder::default(),
            transactions: Transactions::new(&settings.node),
            delivered: 0,
            pace: PollPace::default(),
            sleeper,
            heartbeat: Heartbeat::new(settings.heartbeat, now),
            question: None,
            tables: opened.tables,
            fingerprint: opened.fingerprint,
            newest: opened.floor,
            position: 0,
            status_due: now,
            heard: now,
        }
    }

    /// Lives until something is wrong.
    pub(crate) fn run(&mut self, stop: &Stop) -> FeedEnd {
        loop {
            if let Err(end) = self.turn(stop) {
                return end;
            }
        }
    }

    fn turn(&mut self, stop: &Stop) -> Result<(), FeedEnd> {
        let now = Boottime::now();
        if self.question.is_none() && self.heartbeat.due() <= now {
            let sql = self.heartbeat.send(&self.settings.node, now);
            self.ask(FeedQuery::Heartbeat, &sql, now)?;
        }
        if self.status_due <= now {
            self.send_status()?;
        }
        let sockets = [
            (self.stream.as_fd(), self.stream.waits_for()),
            (self.control.as_fd(), self.control.waits_for()),
        ];
        let [streams, answers] = stop.wait(sockets, self.until())?;
        // Before anything is applied, which may take its time.
        let woken = Boottime::now();
        self.control.flush()?;
        self.stream.flush()?;
        if streams && self.stream.fill()? {
            self.heard = woken;
        }
        if answers {
            self.control.fill()?;
        }
        let before = self.delivered;
        // Also what came with an answer before, so whether anything was read makes no difference.
        while let Some(frame) = self.stream.next()? {
            self.streamed(&frame)?;
        }
        while let Some(frame) = self.control.next()? {
            self.answered(&frame)?;
        }
        self.check_silence(woken)?;
        self.rest(stop, self.delivered - before, woken)
    }

    /// Lets more transactions come before the next look, if many came of late, all that came was
    /// read, and no caller waits for any of them: no write, no visitor, and no heartbeat, whose age
    /// would grow.
    fn rest(&mut self, stop: &Stop, found: u64, now: Boottime) -> Result<(), FeedEnd> {
        let Some(rest) = self.pace.found(found, now) else {
            return Ok(());
        };
        let awaited =
            self.question.is_some() || self.heartbeat.is_under_way() || self.link.is_waited_for();
        if awaited || self.stream.has_more() {
            return Ok(());
        }
        // Who has called since the last rest, or calls now, ends it.
        let sleeper = [(self.sleeper.as_fd(), PollFlags::IN)];
        let [called, _] = stop.wait(sleeper, rest.min(self.until()))?;
        if called {
            self.sleeper.was_called();
        }
        Ok(())
    }

    /// When the next thing is due, if nothing comes.
    fn until(&self) -> Boottime {
        let patience = self.settings.wal_sender_timeout;
        let answer = self.question.as_ref();
        let mut until = self.status_due.min(self.heard.plus(patience));
        until = until.min(answer.map_or(self.heartbeat.due(), |question| {
            question.since.plus(patience)
        }));
        until
    }

    /// Heartbeats come back through the stream several times in a second, so silence is a
    /// connection that is dead, or a server that is.
    fn check_silence(&self, now: Boottime) -> Result<(), FeedEnd> {
        let patience = self.settings.wal_sender_timeout;
        let unanswered = self
            .question
            .as_ref()
            .is_some_and(|question| now.since(question.since) >= patience);
        if unanswered || now.since(self.heard) >= patience {
            return Err(FeedEnd::disconnected(format!(
                "nothing arrived from the server for {} s",
                patience.as_secs_f64()
            )));
        }
        Ok(())
    }

    fn ask(&mut self, asked: FeedQuery, sql: &str, now: Boottime) -> Result<(), FeedEnd> {
        self.question = Some(PendingFeedQuery {
            asked,
            answer: QueryRows::default(),
            since: now,
        });
        self.control.ask(sql)
    }

    fn send_status(&mut self) -> Result<(), FeedEnd> {
        replication::status(self.position, self.stream.output());
        self.status_due = Boottime::now().plus(STATUS);
        self.stream.flush()
    }

    /// A message of the replication connection.
    fn streamed(&mut self, frame: &Frame) -> Result<(), FeedEnd> {
        match frame.tag {
            b'd' => {}
            // The server shuts down in good order.
            b'c' => return Err(FeedEnd::disconnected("the server has ended the stream")),
            tag => return Err(unexpected(tag)),
        }
        match replication::read(&frame.body) {
            Some(Copied::Data(data)) => self.data(data),
            Some(Copied::KeepAlive { end, reply }) => {
                if !self.transactions.is_amid() {
                    self.pass(end);
                }
                if reply { self.send_status() } else { Ok(()) }
            }
            None => Err(FeedEnd::lost("the stream has something unknown in it")),
        }
    }

    fn data(&mut self, data: &[u8]) -> Result<(), FeedEnd> {
        let event = self.decoder.decode(data).map_err(|Malformed| {
            let kind = data.first().map_or('-', |byte| char::from(*byte));
            FeedEnd::lost(format!(
                "the stream has a message {kind:?} that is not understood"
            ))
        })?;
        let (link, tables) = (self.link, &self.tables);
        let view = || FeedView {
            watch: link.interest.watch(),
            tables: Arc::clone(tables),
        };
        let committed = self.transactions.take(event, view);
        match committed.map_err(|senseless| FeedEnd::lost(senseless.0))? {
            Some(committed) => self.deliver(committed),
            None => Ok(()),
        }
    }

    /// Applies a transaction, and then wakes the writes that wait for it.
    fn deliver(&mut self, committed: Committed) -> Result<(), FeedEnd> {
        self.delivered += 1;
        let Committed {
            transaction,
            end,
            tags,
            anything,
            view,
            notes,
            has_write,
        } = committed;
        let mark = Mark {
            transaction: extend(transaction, self.newest),
            at: end,
        };
        let changes = !tags.is_empty() || anything.is_some();
        if changes || has_write {
            // Before the store can forget it, and before a waiter is notified of its arrival.
            self.link.replay.must_have(end);
        }
        if changes {
            let incomplete = || {
                let watched = Arc::ptr_eq(&view.watch, &self.link.interest.watch());
                let known = Arc::ptr_eq(&view.tables, &self.tables);
                anything
                    .or((!watched).then_some("a query reads columns that were not watched"))
                    .or((!known).then_some("the schema has changed while a transaction ran"))
            };
            self.link.delivery.apply_unless(mark, tags, incomplete);
        }
        self.pass(end);
        for note in notes {
            match note {
                Note::Write(token) => {
                    let position = self.link.passed.position();
                    self.link.pending.arrived(token, position);
                }
                Note::Heartbeat(number) => {
                    let beat = self.heartbeat.back(number, end);
                    self.beat(beat);
                }
            }
        }
        Ok(())
    }

    /// Everything up to `end` has been applied.
    fn pass(&mut self, end: u64) {
        self.position = self.position.max(end);
        self.link.passed.advance(self.position);
    }

    /// A message of the control connection.
    fn answered(&mut self, frame: &Frame) -> Result<(), FeedEnd> {
        let Some(question) = &mut self.question else {
            return Err(unexpected(frame.tag));
        };
        let Some(rows) = question.answer.take(frame)? else {
            return Ok(());
        };
        let asked = self.question.take().map(|question| question.asked);
        match asked {
            Some(FeedQuery::Heartbeat) => self.pulse(&rows),
            Some(FeedQuery::Publication(fingerprint)) => {
                setup::publishes_everything(&rows, &self.settings.publication)?;
                self.ask(FeedQuery::Tables(fingerprint), TABLES, Boottime::now())
            }
            Some(FeedQuery::Tables(fingerprint)) => {
                let tables = read_tables(&rows)?;
                // A transaction that is under way need not notice that nothing has changed.
                if tables != *self.tables {
                    self.tables = Arc::new(tables);
                }
                self.ask(FeedQuery::Floor(fingerprint), FLOOR, Boottime::now())
            }
            Some(FeedQuery::Floor(fingerprint)) => {
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
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn pulse(&mut self, rows: &[TextRow]) -> Result<(), FeedEnd> {
        let pulse = Pulse::read(rows)
            .ok_or_else(|| FeedEnd::lost("the answer to a heartbeat makes no sense"))?;
        setup::not_a_standby_ourselves(&pulse.standbys)?;
        self.newest = self.newest.max(pulse.seen.xmax());
        let Some(fingerprint) = pulse
            .fingerprint
            .filter(|fingerprint| *fingerprint != self.fingerprint)
        else {
            let beat = self.heartbeat.answered(pulse.seen, Boottime::now());
            self.beat(beat);
            return Ok(());
        };
        // What is read now is at least as new as the fingerprint; if it is newer, the next
        // heartbeat finds it out.
        self.heartbeat.invalidate();
        let publication = setup::publication(&self.settings.publication);
        let asked = FeedQuery::Publication(fingerprint);
        self.ask(asked, &publication, Boottime::now())
    }

    fn beat(&mut self, beat: Option<CompletedHeartbeat>) {
        if let Some(beat) = beat {
            // What a replica shows has no lower bound of its own (rule 7): only if this snapshot
            // shows the end of all that the feed may never report, a replica that has replayed the
            // heartbeat does too.
            let covers = self.link.may_keep(&beat.seen);
            let seen = Snapshot::Transactions(Arc::new(beat.seen));
            // The answer may come after more has been applied.
            let position = beat.position.max(self.position);
            if covers {
                self.link.replay.beat(beat.sent, beat.position);
            }
            self.link.delivery.passed(&seen, position, beat.sent);
            self.link.passed.heard(beat.sent);
        }
    }
}

/// The 64-bit id whose lower half is `transaction`, the nearest to `newest`: ids that are alive lie
/// within half of 32 bits.
fn extend(transaction: u32, newest: u64) -> u64 {
    // Two's complement makes the difference the shortest way round.
    let ahead = transaction.wrapping_sub(newest as u32).cast_signed();
    newest.wrapping_add_signed(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use super::extend;

    #[test]
    fn an_id_is_extended_to_the_nearest() {
        let epoch = 1_u64 << 32;
        assert_eq!(extend(733, 700), 733);
        assert_eq!(extend(700, 733), 700);
        assert_eq!(extend(5, epoch - 3), epoch + 5);
        assert_eq!(extend(u32::MAX - 2, epoch + 5), epoch - 3);
        assert_eq!(extend(733, 3 * epoch + 700), 3 * epoch + 733);
    }
}

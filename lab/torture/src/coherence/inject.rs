//! Who lets the faults happen.

use std::fmt::Display;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::Choices;
use lab_pgtest::Postgres;
use postgres::Client;

use crate::coherence::context::Context;
use crate::coherence::fault::Fault;
use crate::coherence::log::Change;
use crate::coherence::node::Node;
use crate::coherence::packets::Packets;
use crate::coherence::page::Ask;
use crate::coherence::reader::Visitor;
use crate::coherence::report::ScenarioReport;
use crate::coherence::rounds::LASTING;
use crate::coherence::rules::{LAST, Rule, SHOWN};
use crate::coherence::scenario::Feed;
use crate::coherence::schema::{RULES, Thing, ThingKind, label};
use crate::coherence::transaction;
use crate::coherence::writer::{committed, connect};

/// Thread that makes the faults happen.
pub(crate) struct FaultInjector<'f> {
    pub(crate) context: &'f Context,
    pub(crate) nodes: &'f [Arc<Node>],
    pub(crate) server: &'f mut Postgres,
    pub(crate) feed: Feed,
    /// Network in which packets can be lost.
    pub(crate) packets: Option<&'f Packets>,
    /// How long what lasts does last: longer than the shortest bound.
    pub(crate) lasting: Duration,
    /// Views that were replaced.
    pub(crate) labels: u64,
    /// The versions of the rules.
    pub(crate) rules: [u64; RULES as usize],
    /// Report of the workers that a fault starts.
    pub(crate) report: ScenarioReport,
}

/// The most requests for a page until it comes from memory.
const REMINDERS: usize = 20;
/// Until requests to a frozen node are under way.
const SENDING: Duration = Duration::from_millis(100);
/// From one rule to the next, at most.
const PAUSE_MS: usize = 300;
/// Rows of a large transaction; each takes some 100 bytes in the decoder's memory.
const LARGE: i32 = 20_000;

/// Changes a column's type and changes it back. Each node must treat the catalog as changed
/// (coherence.md, rule 9). Each row is written again, so readers with older snapshots would find
/// the table empty. The change can be repeated without limit. *Counterexample: a column that is
/// added and dropped leaves its number behind, and a table has 1,600 of them.*
const ALTERED: &str =
    "alter table account alter stamp type numeric; alter table account alter stamp type bigint";

impl FaultInjector<'_> {
    /// Does it, and lets everything be as it was.
    ///
    /// # Errors
    /// A sentence, if it could not be done.
    pub(crate) fn inject(&mut self, fault: Fault, choices: &mut Choices<'_>) -> Result<(), String> {
        let number = choices.below(self.nodes.len());
        let node = &self.nodes[number];
        match fault {
            Fault::FeedsKilled => self.feed.kill(&mut self.client()?),
            Fault::ServerRestarted => self.server.restart().map_err(to_message),
            Fault::ServerCrashed => {
                self.server.kill_hard();
                self.server.restart().map_err(to_message)
            }
            Fault::ServerAway => {
                self.server.stop();
                self.wait_out_fault();
                self.server.restart().map_err(to_message)
            }
            Fault::ServerFrozen => {
                self.server.freeze().map_err(to_message)?;
                self.wait_out_fault();
                self.server.thaw().map_err(to_message)
            }
            Fault::NodeFrozen => {
                let freeze = |node: &Node| node.freeze().map_err(to_message);
                let thaw = |node: &Node| node.thaw().map_err(to_message);
                self.exceed_bound(number, self.lasting, freeze, thaw)
            }
            Fault::NodeKilled => node.replace().map_err(to_message),
            Fault::RelaySilent => {
                let hush = |silent| move |node: &Node| node.silence(silent);
                self.exceed_bound(number, self.lasting, hush(true), hush(false))
            }
            Fault::ConnectionsCut => self.cut(number),
            Fault::PacketsLost
            | Fault::PacketsLostBriefly
            | Fault::PacketsToServerLost
            | Fault::PacketsFromServerLost
            | Fault::PacketsThinned => self.lose(fault, number),
            Fault::FeedDeaf | Fault::PoolDeaf => self.lose_packets(fault, number),
            Fault::ServerGoneUnheard => self.crash_unheard(number),
            Fault::SlotBesideOpenWrite => self.slot_beside_open_write(),
            Fault::TableAltered => self.client()?.batch_execute(ALTERED).map_err(to_message),
            Fault::ViewReplaced => self.replace_view(),
            Fault::RulesChanged => self.change_rules(choices),
            Fault::PublicationDropped => {
                let (away, back) = self.feed.silencing();
                let mut client = self.client()?;
                client.batch_execute(away).map_err(to_message)?;
                self.context.span.pass(self.lasting / 4);
                client.batch_execute(back).map_err(to_message)
            }
            Fault::LargeTransaction => self.large(),
        }
    }

    pub(crate) fn wait_out_fault(&self) {
        self.context.span.pass(self.lasting);
    }

    /// Keeps a node from its feed for longer than the bound while an account in the node's memory
    /// changes, and requests that account before the feed continues.
    pub(crate) fn exceed_bound(
        &mut self,
        number: usize,
        time: Duration,
        keep: impl FnOnce(&Node) -> Result<(), String>,
        release: impl FnOnce(&Node) -> Result<(), String>,
    ) -> Result<(), String> {
        let (context, node) = (self.context, &self.nodes[number]);
        let asks = [Ask::Account(1), Ask::Total, Ask::View(1), Ask::Top];
        self.load_into_memory(number, &asks);
        keep(node)?;
        // Other writers may hold the account's lock for longer than this one waits: then they have
        // changed the account.
        let raised = self.raise();
        context.span.pass(time);
        let report = &mut self.report;
        let released = thread::scope(|scope| {
            let looks = asks.each_ref().map(|ask| {
                scope.spawn(move || {
                    let mut visitor = Visitor::new(context);
                    visitor.request(number, ask);
                    visitor.report
                })
            });
            context.span.pass(SENDING);
            let released = release(node);
            for seen in looks.into_iter().filter_map(|look| look.join().ok()) {
                report.add(seen);
            }
            released
        });
        released.and(raised.map(drop))
    }

    /// Asks a node for pages until they come from memory, or for long enough.
    pub(crate) fn load_into_memory(&mut self, number: usize, asks: &[Ask]) {
        let mut visitor = Visitor::new(self.context);
        for ask in asks {
            for _ in 0..REMINDERS {
                if visitor.has_hit(number, ask) {
                    break;
                }
            }
        }
        self.report.add(visitor.report);
    }

    pub(crate) fn client(&self) -> Result<Client, String> {
        connect(&self.server.url()).map_err(to_message)
    }

    /// The slots wait for the open write, which is committed while they do.
    fn slot_beside_open_write(&self) -> Result<(), String> {
        let (mut client, mut other) = (self.client()?, self.client()?);
        self.write(&mut client, |_| {
            self.feed.kill(&mut other)?;
            self.wait_out_fault();
            Ok(())
        })
        .map(drop)
    }

    fn replace_view(&mut self) -> Result<(), String> {
        let mut client = self.client()?;
        let log = &self.context.log;
        let write = log.begin();
        self.labels += 1;
        log.note(
            write,
            Change {
                thing: Thing(ThingKind::Label, 0),
                version: self.labels,
                place: None,
            },
        );
        committed(log, write, client.batch_execute(&label(self.labels))).map_err(to_message)
    }

    /// Gives each rule its next version, in any order, and takes a right away for longer than the
    /// bound.
    fn change_rules(&mut self, choices: &mut Choices<'_>) -> Result<(), String> {
        let first = choices.below(SHOWN.len());
        for number in 0..SHOWN.len() {
            self.change_rule(SHOWN[(first + number) % SHOWN.len()])?;
            let pause = u64::try_from(choices.below(PAUSE_MS)).unwrap_or_default();
            self.context.span.pass(Duration::from_millis(pause));
        }
        self.change_rule(Rule::Right)?;
        self.context.span.pass(self.lasting.min(LASTING));
        self.change_rule(Rule::Right)
    }

    fn change_rule(&mut self, rule: Rule) -> Result<(), String> {
        let version = &mut self.rules[rule as usize];
        if *version == LAST && rule != Rule::Right {
            return Ok(());
        }
        *version += 1;
        let (log, version) = (&self.context.log, *version);
        let mut client = self.client()?;
        let write = log.begin();
        log.note(
            write,
            Change {
                thing: rule.thing(),
                version,
                place: None,
            },
        );
        committed(log, write, client.batch_execute(&rule.change(version))).map_err(to_message)
    }

    fn large(&self) -> Result<(), String> {
        let mut client = self.client()?;
        self.write(&mut client, |client| {
            client
                .execute(
                    "insert into bulk select i, repeat('x', 50) from generate_series(1, $1::int) i",
                    &[&LARGE],
                )
                .map_err(to_message)?;
            client
                .execute("delete from bulk", &[])
                .map_err(to_message)?;
            Ok(())
        })
        .map(drop)
    }

    /// Raises account 1; the version that it has then.
    pub(crate) fn raise(&self) -> Result<u64, String> {
        self.write(&mut self.client()?, |_| Ok(()))
    }

    /// A transaction that raises account 1 before and after another step; returns the account's
    /// version.
    pub(crate) fn write(
        &self,
        client: &mut Client,
        between: impl FnOnce(&mut Client) -> Result<(), String>,
    ) -> Result<u64, String> {
        let log = &self.context.log;
        let write = log.begin();
        let steps = |client: &mut Client| {
            client.batch_execute("begin").map_err(to_message)?;
            let first = transaction::raise(client, 1, 0, None, write).map_err(to_message)?;
            log.note(write, first);
            between(client)?;
            let last = transaction::raise(client, 1, 0, None, write).map_err(to_message)?;
            let version = last.version;
            log.note(write, last);
            Ok(version)
        };
        let version = match steps(client) {
            Ok(version) => version,
            Err(error) => {
                // The connection's end does the same.
                let _ = client.batch_execute("rollback");
                log.undone(write);
                return Err(error);
            }
        };
        let done = committed(log, write, client.batch_execute("commit"));
        done.map(|()| version).map_err(to_message)
    }
}

impl Feed {
    /// Ends all feeds, seen from the server.
    fn kill(self, client: &mut Client) -> Result<(), String> {
        let feeds = match self {
            Self::Logical => "select pg_terminate_backend(pid) from pg_stat_replication",
            Self::Triggers => {
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'millpond_feed'"
            }
        };
        client.batch_execute(feeds).map_err(to_message)
    }

    /// Returns the statements that hide changes from all feeds, and that end the hiding.
    fn silencing(self) -> (&'static str, &'static str) {
        match self {
            Self::Logical => (
                "drop publication if exists millpond",
                "create publication millpond for all tables",
            ),
            Self::Triggers => (
                "alter table account disable trigger _millpond_update",
                "alter table account enable always trigger _millpond_update",
            ),
        }
    }
}

pub(crate) fn to_message(error: impl Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use lab_pgtest::Options;
    use postgres::{Client, NoTls};

    use super::ALTERED;
    use crate::coherence::schema;

    #[test]
    fn a_table_is_altered_repeatedly_and_stays_the_same() {
        let server = Options::new().start().unwrap();
        let mut client = Client::connect(&server.url(), NoTls).unwrap();
        client.batch_execute(&schema::create()).unwrap();
        let mut shape = |what: &str| -> String {
            let sql = format!(
                "select {what} from pg_attribute where attrelid = 'account'::regclass and attnum > 0"
            );
            client.query_one(&sql, &[]).unwrap().get(0)
        };
        let columns = "string_agg(attnum || ' ' || atttypid::regtype, ',' order by attnum)";
        let changes = "string_agg(xmin::text, ',') || pg_relation_filenode('account')";
        let (kept, changed) = (shape(columns), shape(changes));
        for _ in 0..3 {
            let mut client = Client::connect(&server.url(), NoTls).unwrap();
            client.batch_execute(ALTERED).unwrap();
        }
        assert_eq!(shape(columns), kept);
        assert_ne!(shape(changes), changed);
    }
}

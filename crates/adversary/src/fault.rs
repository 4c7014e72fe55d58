//! What is done to the nodes and to the server while pages are read.

use std::fmt::Display;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use millpond_hostile::Dice;
use millpond_pgtest::Postgres;
use postgres::Client;

use crate::field::Field;
use crate::fight::Feed;
use crate::log::Change;
use crate::node::Node;
use crate::page::Ask;
use crate::reader::Visitor;
use crate::report::Report;
use crate::transaction;
use crate::world::{Kind, Thing, label};
use crate::writer::{committed, connect};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The server ends all feeds.
    FeedsKilled,
    /// A fast shutdown, and a start at once.
    ServerRestarted,
    /// SIGKILL to every process of the server, and recovery.
    ServerCrashed,
    /// The server is away for longer than the bound.
    ServerAway,
    /// The server's processes are stopped for longer than the bound: connections stay open, and nobody answers.
    ServerFrozen,
    /// A node is stopped for longer than the bound.
    NodeFrozen,
    /// A node is killed and started again.
    NodeKilled,
    /// Packets between a node and the server are lost for longer than the bound.
    WireSilent,
    /// All connections between a node and the server end.
    WireCut,
    /// New slots have to be made while a write is open.
    SlotBesideOpenWrite,
    /// A table gets a column and loses it.
    TableAltered,
    /// A view says something else.
    ViewReplaced,
    /// There is no publication for a moment; or a table's changes are not recorded, where triggers do that.
    PublicationDropped,
    /// A transaction beyond `logical_decoding_work_mem`.
    LargeTransaction,
}

impl Fault {
    /// All kinds.
    pub(crate) const ALL: [Self; 14] = [
        Self::FeedsKilled,
        Self::ServerRestarted,
        Self::ServerCrashed,
        Self::ServerAway,
        Self::ServerFrozen,
        Self::NodeFrozen,
        Self::NodeKilled,
        Self::WireSilent,
        Self::WireCut,
        Self::SlotBesideOpenWrite,
        Self::TableAltered,
        Self::ViewReplaced,
        Self::PublicationDropped,
        Self::LargeTransaction,
    ];

    /// Its name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::FeedsKilled => "feeds killed",
            Self::ServerRestarted => "server restarted",
            Self::ServerCrashed => "server crashed",
            Self::ServerAway => "server away",
            Self::ServerFrozen => "server frozen",
            Self::NodeFrozen => "node frozen",
            Self::NodeKilled => "node killed",
            Self::WireSilent => "wire silent",
            Self::WireCut => "wire cut",
            Self::SlotBesideOpenWrite => "slot beside an open write",
            Self::TableAltered => "table altered",
            Self::ViewReplaced => "view replaced",
            Self::PublicationDropped => "publication dropped",
            Self::LargeTransaction => "large transaction",
        }
    }
}

/// Who does it.
pub(crate) struct Striker<'f> {
    pub(crate) field: &'f Field,
    pub(crate) nodes: &'f [Arc<Node>],
    pub(crate) server: &'f mut Postgres,
    pub(crate) feed: Feed,
    /// How long what lasts does last: longer than the shortest bound.
    pub(crate) lasting: Duration,
    /// Views that were replaced.
    pub(crate) labels: u64,
    /// What was seen by those who come with a fault.
    pub(crate) report: Report,
}

/// How often a page is asked for until it comes from memory.
const REMINDERS: usize = 20;
/// Until requests to a frozen node are under way.
const SENDING: Duration = Duration::from_millis(100);
/// Rows of a large transaction; each takes some 100 bytes in the decoder's memory.
const LARGE: i32 = 20_000;

impl Striker<'_> {
    /// Does it, and lets everything be as it was.
    ///
    /// # Errors
    /// A sentence, if it could not be done.
    pub(crate) fn strike(&mut self, fault: Fault, dice: &mut Dice<'_>) -> Result<(), String> {
        let number = dice.below(self.nodes.len());
        let node = &self.nodes[number];
        match fault {
            Fault::FeedsKilled => kill_feeds(&mut self.client()?),
            Fault::ServerRestarted => self.server.restart().map_err(said),
            Fault::ServerCrashed => {
                self.server.kill_hard();
                self.server.restart().map_err(said)
            }
            Fault::ServerAway => {
                self.server.stop();
                self.last();
                self.server.restart().map_err(said)
            }
            Fault::ServerFrozen => {
                self.server.freeze().map_err(said)?;
                self.last();
                self.server.thaw().map_err(said)
            }
            Fault::NodeFrozen => {
                let freeze = |node: &Node| node.freeze().map_err(said);
                self.outlast(number, freeze, |node| node.thaw().map_err(said))
            }
            Fault::NodeKilled => node.replace().map_err(said),
            Fault::WireSilent => {
                let hush = |silent| move |node: &Node| {
                    node.wire.silence(silent);
                    Ok(())
                };
                self.outlast(number, hush(true), hush(false))
            }
            Fault::WireCut => {
                node.wire.cut();
                Ok(())
            }
            Fault::SlotBesideOpenWrite => self.slot_beside_open_write(),
            Fault::TableAltered => self
                .client()?
                .batch_execute("alter table account add column note text; alter table account drop column note")
                .map_err(said),
            Fault::ViewReplaced => self.replace_view(),
            Fault::PublicationDropped => {
                let (away, back) = match self.feed {
                    Feed::Logical => (
                        "drop publication if exists millpond",
                        "create publication millpond for all tables",
                    ),
                    Feed::Triggers => (
                        "alter table account disable trigger _millpond_update",
                        "alter table account enable always trigger _millpond_update",
                    ),
                };
                let mut client = self.client()?;
                client.batch_execute(away).map_err(said)?;
                self.field.span.pass(self.lasting / 4);
                client.batch_execute(back).map_err(said)
            }
            Fault::LargeTransaction => self.large(),
        }
    }

    fn last(&self) {
        self.field.span.pass(self.lasting);
    }

    /// Keeps a node from its feed for longer than the bound while an account that it has in memory changes, and asks it
    /// for that before it goes on.
    fn outlast(
        &mut self,
        number: usize,
        keep: impl FnOnce(&Node) -> Result<(), String>,
        release: impl FnOnce(&Node) -> Result<(), String>,
    ) -> Result<(), String> {
        let (field, node) = (self.field, &self.nodes[number]);
        let asks = [Ask::Account(1), Ask::Total, Ask::View(1), Ask::Top];
        self.remember(number, &asks);
        keep(node)?;
        // Somebody else may have the account's lock for longer than this one waits: then others have changed it.
        let raised = self
            .client()
            .and_then(|mut client| self.write(&mut client, |_| Ok(())));
        self.last();
        let report = &mut self.report;
        let released = thread::scope(|scope| {
            let looks = asks.each_ref().map(|ask| {
                scope.spawn(move || {
                    let mut visitor = Visitor::new(field);
                    visitor.look(number, ask);
                    visitor.report
                })
            });
            field.span.pass(SENDING);
            let released = release(node);
            for seen in looks.into_iter().filter_map(|look| look.join().ok()) {
                report.add(seen);
            }
            released
        });
        released.and(raised)
    }

    /// Asks a node for pages until they come from memory, or for long enough.
    fn remember(&mut self, number: usize, asks: &[Ask]) {
        let mut visitor = Visitor::new(self.field);
        for ask in asks {
            for _ in 0..REMINDERS {
                if visitor.has_hit(number, ask) {
                    break;
                }
            }
        }
        self.report.add(visitor.report);
    }

    fn client(&self) -> Result<Client, String> {
        connect(&self.server.url()).map_err(said)
    }

    /// The slots wait for the open write, which is committed while they do.
    fn slot_beside_open_write(&self) -> Result<(), String> {
        let (mut client, mut other) = (self.client()?, self.client()?);
        self.write(&mut client, |_| {
            kill_feeds(&mut other)?;
            self.last();
            Ok(())
        })
    }

    fn replace_view(&mut self) -> Result<(), String> {
        let mut client = self.client()?;
        let log = &self.field.log;
        let write = log.begin();
        self.labels += 1;
        log.note(
            write,
            Change {
                thing: Thing(Kind::Label, 0),
                version: self.labels,
                place: None,
            },
        );
        committed(log, write, client.batch_execute(&label(self.labels))).map_err(said)
    }

    fn large(&self) -> Result<(), String> {
        let mut client = self.client()?;
        self.write(&mut client, |client| {
            client
                .execute(
                    "insert into bulk select i, repeat('x', 50) from generate_series(1, $1::int) i",
                    &[&LARGE],
                )
                .map_err(said)?;
            client.execute("delete from bulk", &[]).map_err(said)?;
            Ok(())
        })
    }

    /// A transaction that raises an account before and after something else.
    fn write(
        &self,
        client: &mut Client,
        between: impl FnOnce(&mut Client) -> Result<(), String>,
    ) -> Result<(), String> {
        let log = &self.field.log;
        let write = log.begin();
        let steps = |client: &mut Client| {
            client.batch_execute("begin").map_err(said)?;
            let first = transaction::raise(client, 1, 0, None, write).map_err(said)?;
            log.note(write, first);
            between(client)?;
            let last = transaction::raise(client, 1, 0, None, write).map_err(said)?;
            log.note(write, last);
            Ok(())
        };
        if let Err(error) = steps(client) {
            // The connection's end does the same.
            let _ = client.batch_execute("rollback");
            log.undone(write);
            return Err(error);
        }
        committed(log, write, client.batch_execute("commit")).map_err(said)
    }
}

fn kill_feeds(client: &mut Client) -> Result<(), String> {
    client
        .batch_execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'millpond_feed'")
        .map_err(said)
}

fn said(error: impl Display) -> String {
    error.to_string()
}

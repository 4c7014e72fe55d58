//! A scenario on PostgreSQL from its beginning to its end.

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::Choices;
use lab_pgtest::{Options, Postgres};
use postgres::{Client, NoTls};

use crate::coherence::context::{Context, Target};
use crate::coherence::events;
use crate::coherence::inject::{FaultInjector, to_message};
use crate::coherence::node::{Link, Node};
use crate::coherence::packets::Packets;
use crate::coherence::reader;
use crate::coherence::relay::Relay;
use crate::coherence::report::ScenarioReport;
use crate::coherence::rounds;
use crate::coherence::schema;
use crate::coherence::upkeep::Upkeep;
use crate::coherence::writer;
use base_clock::Boottime;

/// How the nodes learn of changes (`database.feed`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feed {
    /// From the server's log.
    #[default]
    Logical,
    /// From triggers, on a server without logical replication.
    Triggers,
}

impl Feed {
    /// As the configuration has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Logical => "logical",
            Self::Triggers => "triggers",
        }
    }
}

/// The plan of a scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The program `millpond`.
    pub program: PathBuf,
    /// How its nodes learn of changes.
    pub feed: Feed,
    /// The right to lose packets, or why there is none: then relays replace the network.
    pub packets: Result<Packets, String>,
    /// How long pages are read, at least: each kind of fault is done once in any case.
    pub length: Duration,
    /// Pages that are read, at least: the last quiet period goes on until there are as many.
    pub least: LeastReads,
    /// Makes the choices. How threads mix is up to the machine.
    pub seed: u64,
    /// Threads that read, and that write.
    pub readers: usize,
    /// Other programs that write.
    pub writers: usize,
}

/// Pages that a scenario reads before it ends. On a machine that stays too slow it ends with less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeastReads {
    /// All pages.
    pub all: u64,
    /// Pages that came from memory.
    pub hits: u64,
    /// Pages that [`ScenarioReport::quiet_period`] counts.
    pub quiet: u64,
    /// Pages of the quiet period that came from memory.
    pub quiet_hits: u64,
}

/// Addresses at which the server listens for each node; for all others it listens at 127.0.0.1.
const ADDRESSES: [Ipv4Addr; 3] = [
    Ipv4Addr::new(127, 0, 0, 11),
    Ipv4Addr::new(127, 0, 0, 12),
    Ipv4Addr::new(127, 0, 0, 13),
];
/// `max_staleness` of the nodes. With ten minutes a time-to-live cannot pass for coherence.
pub(crate) const BOUNDS: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(600),
    Duration::from_secs(1),
];
/// Of each node, those who watch one page at a time.
const WATCHERS: usize = 4;
/// Of each node with the shortest bound, those who hold the stream of one page at a time.
const SUBSCRIBERS: usize = 2;

/// Fights.
///
/// # Errors
/// A sentence, if the server or a node could not be started.
pub fn run(plan: &Scenario) -> Result<ScenarioReport, String> {
    let mut server = server(plan.feed).map_err(to_message)?;
    let url = server.url();
    let mut client = Client::connect(&url, NoTls).map_err(to_message)?;
    client
        .batch_execute(&schema::create())
        .map_err(to_message)?;
    let nodes = nodes(plan, server.port()).map_err(to_message)?;
    let targets = nodes.iter().cloned();
    let context = Context::new(
        targets
            .map(|node| Box::new(node) as Box<dyn Target>)
            .collect(),
    );
    let upkeep = Upkeep {
        context: &context,
        nodes: &nodes,
        url: &url,
        data: server.data_folder(),
    };

    let mut report = thread::scope(|scope| {
        scope.spawn(|| upkeep.run());
        let write = |number, choices| writer::write(&context, &url, number, choices);
        run_clients(&context, plan, &write, |choices| {
            let mut injector = FaultInjector {
                context: &context,
                nodes: &nodes,
                server: &mut server,
                feed: plan.feed,
                packets: plan.packets.as_ref().ok(),
                lasting: rounds::LASTING,
                labels: 0,
                rules: [0; schema::RULES as usize],
                report: ScenarioReport::default(),
            };
            let mut report = rounds::inject_all(&mut injector, plan, choices);
            report.lost = rounds::lost(&context, &mut report);
            report
        })
    });
    for node in &nodes {
        node.stop().map_err(to_message)?;
    }
    (report.slots, report.sessions) = leftovers(&url)?;
    report.no_packets = plan.packets.clone().err();
    Ok(report)
}

/// Each node has a loopback address of the server for itself, if packets are told apart by address.
fn nodes(plan: &Scenario, port: u16) -> io::Result<Vec<Arc<Node>>> {
    let nodes = BOUNDS.iter().zip(ADDRESSES).map(|(bound, address)| {
        let link = match plan.packets {
            Ok(_) => Link::Straight((address, port)),
            Err(_) => Link::Relay(Relay::to(port)?),
        };
        Node::start(&plan.program, link, plan.feed, *bound).map(Arc::new)
    });
    nodes.collect()
}

fn server(feed: Feed) -> Result<Postgres, lab_pgtest::Error> {
    let addresses = ADDRESSES.map(|address| format!(",{address}"));
    let options = match feed {
        Feed::Logical => Options::new().logical(),
        Feed::Triggers => Options::new(),
    };
    options
        .set(
            "listen_addresses",
            format!("127.0.0.1{}", addresses.concat()),
        )
        // A scenario may last long, and its files stay small.
        .set("max_wal_size", "128MB")
        .set("min_wal_size", "32MB")
        .set("log_checkpoints", "off")
        .set("max_prepared_transactions", "20")
        // Small transactions are streamed too.
        .set("logical_decoding_work_mem", "64kB")
        .set("deadlock_timeout", "100ms")
        .start()
}

/// Lets readers work, and writers by `write`, until `rule` has returned; in it the faults happen.
pub(crate) fn run_clients(
    context: &Context,
    plan: &Scenario,
    write: &(dyn Fn(usize, Choices<'static>) + Sync),
    rule: impl FnOnce(&mut Choices<'static>) -> ScenarioReport,
) -> ScenarioReport {
    let seeded = |role: u64, number: usize| {
        Choices::seeded(plan.seed ^ role.rotate_right(8) ^ ((number as u64) << 32))
    };
    let mut report = ScenarioReport {
        seed: plan.seed,
        feed: plan.feed.name(),
        ..ScenarioReport::default()
    };
    thread::scope(|scope| {
        let mut visitors = Vec::new();
        for number in 0..plan.readers {
            visitors.push(scope.spawn(move || reader::read(context, seeded(1, number))));
        }
        for number in 0..context.nodes.len() * WATCHERS {
            let node = number % context.nodes.len();
            visitors.push(scope.spawn(move || reader::watch(context, node, seeded(5, number))));
        }
        for number in 0..context.nodes.len() * SUBSCRIBERS {
            let node = number % context.nodes.len();
            if context.nodes[node].bound() == context.shortest_bound() {
                let choices = seeded(6, number);
                visitors.push(scope.spawn(move || events::subscribe(context, node, choices)));
            }
        }
        for number in 0..context.nodes.len() {
            visitors.push(scope.spawn(move || reader::write(context, seeded(2, number))));
        }
        for number in 0..plan.writers {
            scope.spawn(move || write(number, seeded(3, number)));
        }
        let ruled = rule(&mut seeded(4, 0));
        context.span.end();
        report.lost.clone_from(&ruled.lost);
        report.add(ruled);
        for visitor in visitors {
            match visitor.join() {
                Ok(seen) => report.add(seen),
                Err(_) => report.note("a visitor panicked".to_owned()),
            }
        }
    });
    report.fates = context.log.fates();
    report
}

/// Slots and sessions of nodes that remain although the nodes have ended. A session whose node
/// could not close it ends when the server notices.
fn leftovers(url: &str) -> Result<(u64, u64), String> {
    let mut client = Client::connect(url, NoTls).map_err(to_message)?;
    let began = Boottime::now();
    loop {
        let row = client.query_one(
            "select (select count(*) from pg_replication_slots), \
             (select count(*) from pg_stat_activity where application_name in ('millpond', 'millpond_feed'))",
            &[],
        );
        let row = row.map_err(to_message)?;
        let [slots, sessions] = [0, 1].map(|at| row.get::<_, i64>(at).unsigned_abs());
        let is_over = Boottime::now().since(began) > rounds::RECOVERY;
        if slots + sessions == 0 || is_over {
            return Ok((slots, sessions));
        }
        // The server gives no event for the end of a session.
        thread::sleep(rounds::LOOK);
    }
}

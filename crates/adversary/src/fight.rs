//! A fight from its beginning to its end.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use millpond_hostile::Dice;
use millpond_pgtest::{Options, Postgres};
use postgres::{Client, NoTls};

use crate::clock::Moment;
use crate::fault::{Fault, Striker};
use crate::field::{Field, Target};
use crate::node::Node;
use crate::page::Ask;
use crate::reader::{self, Visitor};
use crate::report::Report;
use crate::world;
use crate::writer;

/// How the nodes learn of changes (`database.feed`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// From the server's log.
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

/// What is fought with.
#[derive(Clone, Debug)]
pub struct Fight {
    /// The program `millpond`.
    pub program: PathBuf,
    /// How its nodes learn of changes.
    pub feed: Feed,
    /// How long pages are read, at least: each kind of fault is done once in any case.
    pub length: Duration,
    /// Makes the choices. How threads mix is up to the machine.
    pub seed: u64,
    /// Threads that read, and that write.
    pub readers: usize,
    /// Other programs that write.
    pub writers: usize,
}

/// `max_staleness` of the nodes. With ten minutes a time-to-live cannot pass for coherence.
const BOUNDS: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(600),
    Duration::from_secs(1),
];
/// Of what lasts: longer than the bound of a second.
const LASTING: Duration = Duration::from_millis(2500);
/// Of what lasts, in one of five: a frozen node's feed is given up by the server then. Only in fights of [`LONG`].
const LASTING_LONG: Duration = Duration::from_secs(12);
/// From here on a fight has time for it.
const LONG: Duration = Duration::from_secs(300);
/// From one fault to the next, at most; in it there is time for hits.
const BETWEEN_MS: usize = 2000;
/// Of each node, those who watch one page at a time.
const WATCHERS: usize = 4;
/// How often a fault is tried.
const ATTEMPTS: usize = 5;
/// Until everything must be well again, and the last slot gone.
const RECOVERY: Duration = Duration::from_secs(60);
/// From one look to the next while that is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// Fights.
///
/// # Errors
/// A sentence, if the server or a node could not be started.
pub fn fight(plan: &Fight) -> Result<Report, String> {
    let mut server = server(plan.feed).map_err(said)?;
    let url = server.url();
    let mut client = Client::connect(&url, NoTls).map_err(said)?;
    client.batch_execute(&world::create()).map_err(said)?;
    let start = |bound| Node::start(&plan.program, server.port(), plan.feed, bound);
    let nodes = BOUNDS.map(|bound| start(bound).map(Arc::new));
    let nodes = nodes
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map_err(said)?;
    let targets = nodes.iter().cloned();
    let field = Field::new(
        targets
            .map(|node| Box::new(node) as Box<dyn Target>)
            .collect(),
    );

    let mut report = battle(&field, &url, plan, |dice| {
        let mut striker = Striker {
            field: &field,
            nodes: &nodes,
            server: &mut server,
            feed: plan.feed,
            lasting: LASTING,
            labels: 0,
            report: Report::default(),
        };
        let mut report = strikes(&mut striker, plan.length, dice);
        report.lost = recovered(&field, &mut report);
        report
    });
    for node in &nodes {
        node.stop().map_err(said)?;
    }
    report.slots = slots_left(&url)?;
    Ok(report)
}

fn server(feed: Feed) -> Result<Postgres, millpond_pgtest::Error> {
    let options = match feed {
        Feed::Logical => Options::new().logical(),
        Feed::Triggers => Options::new(),
    };
    options
        .set("max_prepared_transactions", "20")
        // Small transactions are streamed too.
        .set("logical_decoding_work_mem", "64kB")
        .set("deadlock_timeout", "100ms")
        .start()
}

/// Lets readers and writers work until `rule` has returned; in it the faults happen.
pub(crate) fn battle(
    field: &Field,
    url: &str,
    plan: &Fight,
    rule: impl FnOnce(&mut Dice<'static>) -> Report,
) -> Report {
    let seeded = |role: u64, number: usize| {
        Dice::seeded(plan.seed ^ role.rotate_right(8) ^ ((number as u64) << 32))
    };
    let mut report = Report {
        seed: plan.seed,
        ..Report::default()
    };
    thread::scope(|scope| {
        let mut visitors = Vec::new();
        for number in 0..plan.readers {
            visitors.push(scope.spawn(move || reader::read(field, seeded(1, number))));
        }
        for number in 0..field.nodes.len() * WATCHERS {
            let node = number % field.nodes.len();
            visitors.push(scope.spawn(move || reader::watch(field, node, seeded(5, number))));
        }
        for number in 0..field.nodes.len() {
            visitors.push(scope.spawn(move || reader::write(field, seeded(2, number))));
        }
        for number in 0..plan.writers {
            scope.spawn(move || writer::write(field, url, number, seeded(3, number)));
        }
        let ruled = rule(&mut seeded(4, 0));
        field.span.end();
        report.lost.clone_from(&ruled.lost);
        report.add(ruled);
        for visitor in visitors {
            match visitor.join() {
                Ok(seen) => report.add(seen),
                Err(_) => report.error("a visitor panicked"),
            }
        }
    });
    report.fates = field.log.fates();
    report
}

/// Every fault once in any order, and again until the time is over.
fn strikes(striker: &mut Striker<'_>, length: Duration, dice: &mut Dice<'_>) -> Report {
    let mut report = Report::default();
    let began = Moment::now();
    for round in 0.. {
        for fault in shuffled(dice) {
            if round > 0 && Moment::now().since(began) >= length {
                break;
            }
            let pause = u64::try_from(dice.below(BETWEEN_MS)).unwrap_or_default();
            striker.field.span.pass(Duration::from_millis(pause));
            let is_long = length >= LONG && dice.chance(20);
            striker.lasting = if is_long { LASTING_LONG } else { LASTING };
            // A deadlock with a writer is bad luck, and PostgreSQL's choice whom it hits.
            let mut outcome = striker.strike(fault, dice);
            for _ in 1..ATTEMPTS {
                if outcome.is_err() {
                    outcome = striker.strike(fault, dice);
                }
            }
            match outcome {
                Ok(()) => *report.faults.entry(fault.name()).or_default() += 1,
                Err(reason) => report.notes.push(format!("{}: {reason}", fault.name())),
            }
        }
        if Moment::now().since(began) >= length {
            break;
        }
    }
    report.add(std::mem::take(&mut striker.report));
    report
}

fn shuffled(dice: &mut Dice<'_>) -> Vec<Fault> {
    let mut faults = Fault::ALL.to_vec();
    for last in (1..faults.len()).rev() {
        faults.swap(last, dice.below(last + 1));
    }
    faults
}

/// Waits until each node gives pages from memory again; those that do not.
fn recovered(field: &Field, report: &mut Report) -> Vec<usize> {
    let began = Moment::now();
    let mut visitor = Visitor::new(field);
    let mut lost: Vec<usize> = (0..field.nodes.len()).collect();
    while !lost.is_empty() && Moment::now().since(began) < RECOVERY {
        lost.retain(|node| !visitor.has_hit(*node, &Ask::Account(2)));
        field.span.pass(LOOK);
    }
    report.add(visitor.report);
    lost
}

/// Slots end with their connections, a moment after these.
fn slots_left(url: &str) -> Result<u64, String> {
    let mut client = Client::connect(url, NoTls).map_err(said)?;
    let began = Moment::now();
    loop {
        let row = client.query_one("select count(*) from pg_replication_slots", &[]);
        let left: i64 = row.map_err(said)?.get(0);
        if left == 0 || Moment::now().since(began) > RECOVERY {
            return Ok(left.unsigned_abs());
        }
        thread::sleep(LOOK);
    }
}

fn said(error: impl Display) -> String {
    error.to_string()
}

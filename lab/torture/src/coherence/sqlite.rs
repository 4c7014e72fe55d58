//! A scenario on SQLite: three nodes on one file, which other programs write as well.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::Choices;
use lab_testkit::fast_dir;
use rusqlite::Connection;

use crate::coherence::context::{Context, Target};
use crate::coherence::database::{SqlConnection as _, open};
use crate::coherence::figures::FaultFigures;
use crate::coherence::inject::to_message;
use crate::coherence::log::Change;
use crate::coherence::node::{Link, Node};
use crate::coherence::reader::Visitor;
use crate::coherence::report::ScenarioReport;
use crate::coherence::rounds::{self, LASTING, LOOK, READING, RECOVERY};
use crate::coherence::scenario::{BOUNDS, Feed, Scenario, run_clients};
use crate::coherence::schema::{self, Thing, ThingKind};
use crate::coherence::transaction::{self, TransactionStep};
use base_clock::Boottime;

/// From one transaction of a writer to the next. Each ends all that is in memory, and between them
/// a page is as old as the forms leave it.
const PACE: Duration = Duration::from_millis(800);
/// How long the nodes are left alone after a fault, at most.
const BETWEEN_MS: usize = 3000;
/// Rows of a large transaction.
const LARGE: i64 = 20_000;

/// Fault of the nodes or of the file while pages are read.
#[derive(Clone, Copy, Debug)]
enum FileFault {
    /// A node is stopped for longer than the bound, perhaps with the lock of the file.
    NodeFrozen,
    /// A node is killed and started again.
    NodeKilled,
    /// Another program has the lock for longer than the bound, and its transaction writes.
    Locked,
    /// The write-ahead log is written back and cut off.
    Checkpointed,
    /// All rows are written again.
    Vacuumed,
    /// A table gets a column and loses it.
    TableAltered,
    /// A view says something else.
    ViewReplaced,
    /// A transaction of many rows that are gone again at its end.
    LargeTransaction,
}

const FAULTS: [(FileFault, &str); 8] = [
    (FileFault::NodeFrozen, "node frozen"),
    (FileFault::NodeKilled, "node killed"),
    (FileFault::Locked, "file locked"),
    (FileFault::Checkpointed, "log cut off"),
    (FileFault::Vacuumed, "file vacuumed"),
    (FileFault::TableAltered, "table altered"),
    (FileFault::ViewReplaced, "view replaced"),
    (FileFault::LargeTransaction, "large transaction"),
];

/// Runs the scenario on SQLite; by triggers, if that is its feed. Its packets do not matter.
///
/// # Errors
/// A sentence, if the file could not be made or a node could not be started.
pub fn run_on_sqlite(plan: &Scenario) -> Result<ScenarioReport, String> {
    let folder = fast_dir();
    let file = folder.path().join("site.db");
    let mut first = open(&file).map_err(to_message)?;
    let schema = schema::create_on_sqlite();
    first
        .batch("pragma journal_mode = wal")
        .and_then(|()| first.batch(&schema))
        .map_err(to_message)?;
    let start = |bound: &Duration| {
        let link = Link::File(file.clone());
        Node::start(&plan.program, link, plan.feed, *bound).map(Arc::new)
    };
    let nodes: Result<Vec<Arc<Node>>, _> = BOUNDS.iter().map(start).collect();
    let nodes = nodes.map_err(to_message)?;
    let targets = nodes.iter().cloned();
    let targets = targets.map(|node| Box::new(node) as Box<dyn Target>);
    let mut context = Context::new(targets.collect());
    context.forms_move = true;
    let write = |_, choices| write(&context, &file, choices);
    let mut report = run_clients(&context, plan, &write, |choices| {
        let mut injector = FileInjector {
            context: &context,
            nodes: &nodes,
            connection: first,
            labels: 0,
            report: ScenarioReport::default(),
        };
        injector.inject_all(plan, choices);
        let mut report = injector.report;
        report.lost = rounds::lost(&context, &mut report);
        report
    });
    for node in &nodes {
        node.stop().map_err(to_message)?;
    }
    report.feed = match plan.feed {
        Feed::Logical => "sqlite",
        Feed::Triggers => "sqlite-triggers",
    };
    Ok(report)
}

/// Another program: writes until the span is over.
fn write(context: &Context, file: &Path, mut choices: Choices<'_>) {
    let mut connection = None;
    while !context.span.pass(PACE) {
        let Some(mut open) = connection.take().or_else(|| open(file).ok()) else {
            continue;
        };
        // The end of the connection rolls back an open transaction.
        if write_once(context, &mut open, &mut choices).is_ok() {
            connection = Some(open);
        }
    }
}

fn write_once(
    context: &Context,
    client: &mut Connection,
    choices: &mut Choices<'_>,
) -> rusqlite::Result<()> {
    let steps = choices.below(4) + 1;
    let is_undone = choices.chance(20);
    let done = transact(context, client, |client, write| {
        let mut changes = Vec::new();
        for _ in 0..steps {
            if choices.chance(15) {
                // What it changes is undone, so it is not noted.
                client.batch("savepoint here")?;
                TransactionStep::any(choices).run(client, write, choices)?;
                client.batch("rollback to here")?;
            }
            changes.extend(TransactionStep::any(choices).run(client, write, choices)?);
        }
        Ok((changes, !is_undone))
    });
    // A taken seat and a lock that lasts are no reason for another connection.
    done.or_else(|error| match error {
        rusqlite::Error::SqliteFailure(..) => Ok(()),
        other => Err(other),
    })
}

/// A transaction, which is noted. It ends with COMMIT if `work` says so.
fn transact(
    context: &Context,
    client: &mut Connection,
    work: impl FnOnce(&mut Connection, u64) -> rusqlite::Result<(Vec<Change>, bool)>,
) -> rusqlite::Result<()> {
    let log = &context.log;
    client.batch("begin immediate")?;
    let write = log.begin();
    let noted = work(client, write).map(|(changes, is_kept)| {
        for change in changes {
            log.note(write, change);
        }
        is_kept
    });
    if !matches!(noted, Ok(true)) {
        let undone = client.batch("rollback");
        log.undone(write);
        return noted.map(drop).and(undone);
    }
    let done = client.batch("commit");
    match done {
        Ok(()) => log.acknowledged(write),
        Err(_) => {
            // It is open still, and its end is known: nothing of it was committed.
            log.unknown(write);
            let _ = client.batch("rollback");
        }
    }
    done
}

/// Thread that lets the faults of the file happen.
struct FileInjector<'f> {
    context: &'f Context,
    nodes: &'f [Arc<Node>],
    connection: Connection,
    /// Views that were replaced.
    labels: u64,
    report: ScenarioReport,
}

impl FileInjector<'_> {
    /// Every fault in turn until the time is over, each at least once, with quiet periods between.
    fn inject_all(&mut self, plan: &Scenario, choices: &mut Choices<'_>) {
        let began = Boottime::now();
        let is_over = || Boottime::now().since(began) >= plan.length;
        self.recover("the beginning");
        for round in 0.. {
            for (fault, name) in FAULTS {
                if round > 0 && is_over() {
                    break;
                }
                self.context.quiet_period.end();
                if let Err(reason) = self.inject(fault, choices) {
                    self.report.note(format!("{name}: {reason}"));
                }
                let time = self.recover(name);
                self.report.fault(name, FaultFigures::single(time));
                self.context.tally.fault_injected();
                let pause = u64::try_from(choices.below(BETWEEN_MS)).unwrap_or_default();
                self.context.span.pass(Duration::from_millis(pause));
            }
            if is_over() {
                break;
            }
        }
        let context = self.context;
        context.wait_until(READING, || context.tally.has_read(&plan.least));
        context.quiet_period.end();
    }

    fn inject(&mut self, fault: FileFault, choices: &mut Choices<'_>) -> Result<(), String> {
        let node = &self.nodes[choices.below(self.nodes.len())];
        match fault {
            FileFault::NodeFrozen => {
                node.freeze().map_err(to_message)?;
                self.context.span.pass(LASTING);
                node.thaw().map_err(to_message)
            }
            FileFault::NodeKilled => node.replace().map_err(to_message),
            FileFault::Locked => self.raise(|context, _| {
                context.span.pass(LASTING);
                Ok(())
            }),
            FileFault::Checkpointed => self.batch("pragma wal_checkpoint(truncate)"),
            FileFault::Vacuumed => self.batch("vacuum"),
            FileFault::TableAltered => self.batch(
                "alter table album add column extra int; alter table album drop column extra",
            ),
            FileFault::ViewReplaced => self.replace_view(),
            FileFault::LargeTransaction => self.raise(|_, client| {
                let many = format!(
                    "with recursive n (i) as (select 1 union all select i + 1 from n where i < {LARGE})
                     insert into bulk select i, 'filling' from n; delete from bulk"
                );
                client.batch(&many)
            }),
        }
    }

    fn batch(&mut self, statements: &str) -> Result<(), String> {
        self.connection.batch(statements).map_err(to_message)
    }

    /// Raises account 1 in a transaction with other work.
    fn raise(
        &mut self,
        work: impl FnOnce(&Context, &mut Connection) -> rusqlite::Result<()>,
    ) -> Result<(), String> {
        let context = self.context;
        let done = transact(context, &mut self.connection, |client, write| {
            let change = transaction::raise(client, 1, 0, None, write)?;
            work(context, client)?;
            Ok((vec![change], true))
        });
        done.map_err(to_message)
    }

    fn replace_view(&mut self) -> Result<(), String> {
        self.labels += 1;
        let version = self.labels;
        let done = transact(self.context, &mut self.connection, |client, _| {
            client.batch(&schema::label_on_sqlite(version))?;
            let thing = Thing(ThingKind::Label, 0);
            let place = None;
            let change = Change {
                thing,
                version,
                place,
            };
            Ok((vec![change], true))
        });
        done.map_err(to_message)
    }

    /// Writes, and waits until each node gives a later page from memory; the time until then. A
    /// quiet period follows.
    fn recover(&mut self, after: &str) -> Option<Duration> {
        let began = Boottime::now();
        let thing = Thing(ThingKind::Account, 1);
        if let Err(reason) = self.raise(|_, _| Ok(())) {
            self.report.note(format!("after {after}: {reason}"));
            return None;
        }
        let now = Boottime::now();
        let version = self.context.log.due(thing, now, 0, now);
        let mut visitor = Visitor::new(self.context);
        let mut waiting: Vec<usize> = (0..self.nodes.len()).collect();
        loop {
            waiting.retain(|node| !visitor.has_kept(*node, 1, version));
            let time = Boottime::now().since(began);
            if waiting.is_empty() || time > RECOVERY {
                break;
            }
            self.context.span.pass(LOOK);
        }
        self.report.add(visitor.report);
        if waiting.is_empty() {
            self.context.quiet_period.begin();
            return Some(Boottime::now().since(began));
        }
        let note = format!("after {after}: no hit of nodes {waiting:?}");
        self.report.note(note);
        None
    }
}

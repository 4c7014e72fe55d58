//! Reads on standbys that the owner has named, to relieve the primary (coherence.md, rule 18).
//!
//! A replica helps where it can and costs nothing where it cannot: connections are opened while the
//! primary answers, one that is away, behind or something else than it was taken for is left alone
//! for growing pauses, and a read that fails there is done on the primary.
//!
//! A read is three statements' worth of trust around the owner's. Before the snapshot, in a
//! transaction of its own, how far the log has been replayed: the snapshot that is taken afterwards
//! sees at least that, and that is what the fence is told ([`Snapshot::Applied`]). Counterexample:
//! *Asked in the snapshot's own transaction: the place may be later than the snapshot, and what
//! lies between is taken for seen.* Within the snapshot, that it is still a standby's. At the end,
//! that it has followed the same timeline through the same receiver all the while, and up to where
//! it has received the log: all that the snapshot saw lies before that.

mod attempt;
mod connection;
mod excluded;
mod lateness;
mod probe;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;
use tokio_postgres::Client;

use super::analysis::Found;
use super::backoff::Backoff;
use super::connect::connect;
use super::context::DatabaseContext;
use super::options::ConnectionTarget;
use super::read::check_values;
use super::replay::{LONGEST_LAG, Needed};
use super::statement::{Statement, StatementAnalysis};
use crate::{Call, Error, ReadResult, Requirement};
use attempt::{ReplicaFailure, attempt};
use connection::{Lease, ReplicaPermit, ReplicaPermits, SYSTEM};
use excluded::ExcludedStatements;
use lateness::ReplicaLateness;

/// A replica that does not answer a question about itself by then is left alone.
const PROBE: Duration = Duration::from_millis(500);
/// One that has just been connected to has longer, as only the owner at a check waits for it.
const GREETING: Duration = Duration::from_secs(2);
/// A read that a replica has not answered by then is the primary's. Short, however long a statement
/// may run: one that starves would hold up every page by as much.
const ATTEMPT: Duration = Duration::from_secs(1);
/// A statement that takes longer is ended by the replica itself, in time for its answer to come
/// before the read is given up.
const STATEMENT: Duration = Duration::from_millis(600);
const _: () = assert!(STATEMENT.as_millis() < ATTEMPT.as_millis());
/// How often one that is behind is asked, and the pause between: replaying takes a moment longer
/// than telling the feed.
const LOOKS: usize = 4;
const PAUSE: Duration = Duration::from_millis(3);

/// Makes the context that all threads share for a replica: its place, and how it is reached.
pub(super) fn shared(primary: &DatabaseContext, host: &str) -> Result<DatabaseContext, Error> {
    let target = ConnectionTarget::replica(&primary.options.url, host)?;
    let (tls, link) = (primary.tls.clone(), Arc::clone(&primary.link));
    let (options, node) = (primary.options.clone(), primary.node.clone());
    Ok(DatabaseContext::new(options, target, tls, link, node))
}

/// The replicas as one thread uses them.
pub(super) struct Replicas {
    all: Vec<Rc<Replica>>,
    next: Cell<usize>,
}

/// One of them.
struct Replica {
    shared: Arc<DatabaseContext>,
    idle: RefCell<Vec<Lease>>,
    places: ReplicaPermits,
    backoff: RefCell<Backoff>,
    excluded: RefCell<ExcludedStatements>,
    lateness: RefCell<ReplicaLateness>,
    /// Last fault, until the replica helps again.
    last_note: RefCell<String>,
    /// The number of the newest catalog that it was seen to have.
    replayed: Cell<u64>,
}

/// The right to use a replica, which after a failure one has at a time. It is given back by being
/// dropped, so that neither a panic nor a caller who has gone keeps it.
struct Trial(Rc<Replica>);

impl Drop for Trial {
    fn drop(&mut self) {
        // After what has become of it was noted, this changes nothing.
        self.0.backoff.borrow_mut().undecided();
    }
}

/// A read that a replica is to be asked for. There are as many at a time as there are
/// [`ReplicaPermits`].
pub(super) struct ReplicaRead {
    trial: Trial,
    lease: Lease,
    needed: Needed,
    found: Vec<StatementAnalysis>,
    started: Boottime,
}

impl Replicas {
    /// With at most `connections` to each.
    pub(super) fn new(primary: &DatabaseContext, connections: usize) -> Self {
        let replica = |shared: &Arc<DatabaseContext>| {
            Rc::new(Replica {
                shared: Arc::clone(shared),
                idle: RefCell::default(),
                places: ReplicaPermits::new(connections),
                backoff: RefCell::default(),
                excluded: RefCell::default(),
                lateness: RefCell::default(),
                last_note: RefCell::default(),
                replayed: Cell::default(),
            })
        };
        Self {
            all: primary.replicas.iter().map(replica).collect(),
            next: Cell::default(),
        }
    }

    /// Returns the read for a replica, if there is one that may answer; `None` leaves it to the
    /// primary.
    pub(super) fn replica_read(&self, calls: &[Call]) -> Option<ReplicaRead> {
        let first = self.all.first()?;
        let link = &first.shared.link;
        let started = Boottime::now();
        let schema = link.schema();
        let found: Vec<StatementAnalysis> = calls
            .iter()
            .map(|call| known(call, schema))
            .collect::<Option<_>>()?;
        // After the fill has begun, and after the statements were looked at.
        let lag = first.shared.options.max_staleness.min(LONGEST_LAG);
        let needed = link.replay.needed(started, lag)?;
        let (trial, mut lease) = self.take(&found)?;
        lease.connection.keep_up_with(schema);
        Some(ReplicaRead {
            trial,
            lease,
            needed,
            found,
            started,
        })
    }

    /// A connection of the next replica that has one, and that does not fail at what is asked for.
    fn take(&self, found: &[StatementAnalysis]) -> Option<(Trial, Lease)> {
        let count = self.all.len();
        let from = self.next.get();
        self.next.set((from + 1) % count);
        (from..from + count).find_map(|at| {
            let replica = &self.all[at % count];
            if replica.excludes(found) {
                None
            } else {
                replica.take()
            }
        })
    }

    /// Lists the faults that keep each replica from being read, for `millpond check`; `primary` is
    /// a session there.
    pub(super) async fn missing_requirements(&self, primary: &Client) -> Vec<Requirement> {
        let mut all = Vec::new();
        if self.all.is_empty() {
            return all;
        }
        let row = primary.query_one(SYSTEM, &[]).await;
        let system: Option<String> = row.and_then(|row| row.try_get(0)).ok();
        for replica in &self.all {
            let place = &replica.shared.place;
            let requirement = |missing: String| {
                Requirement::new(
                    missing,
                    format!("the replica {place} answers nothing; pages are read from the primary"),
                )
            };
            match replica.examine(system.as_deref()).await {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => all.push(fault.requirement(requirement(fault.to_string()))),
                Err(why) => all.push(requirement(why)),
            }
        }
        all
    }

    /// Takes leave of the servers.
    pub(super) async fn close(&self) {
        for replica in &self.all {
            while let Some(lease) = replica.pop() {
                lease.connection.close().await;
            }
        }
    }
}

/// Returns the analysis of a call in the catalog of the number `schema`: found out on the primary,
/// as a standby takes no temporary function. `None` leaves what is wrong with it for the primary to
/// say, and what no feed reports for it to read. Counterexample: *a table that is not published has
/// been written through a node whose feed is down; a sequence runs ahead on a standby; its settings
/// and statistics are its own.*
fn known(call: &Call, schema: u64) -> Option<StatementAnalysis> {
    let statement: &Statement = call.query.prepared().ok()?;
    let found = statement.at(schema)?;
    let fits = check_values(&call.query, &found.shape.params, &call.params).is_ok();
    let is_reported = || {
        found
            .analysis
            .deps(&call.params, &Found::default())
            .uncacheable
            .is_none()
    };
    (found.analysis.facts.readonly && fits && is_reported()).then_some(found)
}

impl ReplicaRead {
    /// Reads the calls on the replica; `None` leaves them to the primary.
    pub(super) async fn run(mut self, calls: &[Call]) -> Option<ReadResult> {
        let outcome = attempt(&mut self.lease, &self.needed, calls, &self.found).await;
        let replica = &self.trial.0;
        if let Err(refused) = &outcome {
            replica.exclude(refused.blamed(&self.found));
        }
        let mut read = replica.done(self.lease, self.started, outcome)?;
        read.elapsed = Boottime::now().since(self.started);
        Some(read)
    }
}

impl Replica {
    /// A connection that is idle. If there is none, one is opened for the reads that follow; this
    /// read does not wait for it.
    fn take(self: &Rc<Self>) -> Option<(Trial, Lease)> {
        self.backoff.borrow_mut().ask(Boottime::now()).ok()?;
        let trial = Trial(Rc::clone(self));
        while let Some(lease) = self.pop() {
            if !lease.connection.is_dead() {
                return Some((trial, lease));
            }
        }
        if let Some(place) = self.places.take() {
            tokio::task::spawn_local(async move {
                let replica = &trial.0;
                match replica.open(place).await {
                    Ok(lease) => replica.keep(lease),
                    Err(why) => replica.failed(&why),
                }
            });
        }
        None
    }

    async fn open(&self, place: ReplicaPermit) -> Result<Lease, String> {
        let began = self.replayed.get();
        let connection = connect(&self.shared).await;
        let connection = connection.map_err(|error| error.to_string())?;
        let connection = connection.on_replica(began);
        let limit = self.shared.options.statement_timeout.min(STATEMENT);
        Lease::new(connection, place, limit).await
    }

    fn pop(&self) -> Option<Lease> {
        self.idle.borrow_mut().pop()
    }

    /// For the next read: whether the replica helps is not known before it has answered one.
    /// Counterexample: *One that answers no read in time, or is no standby any more, is connected
    /// to without trouble: taken for well again, it is left alone for no longer than the first
    /// pause.*
    fn keep(&self, lease: Lease) {
        self.idle.borrow_mut().push(lease);
        self.backoff.borrow_mut().undecided();
    }

    /// It is away, or none that may be read; its other connections are worth no more than the one
    /// that has found it out.
    fn failed(&self, why: &str) {
        self.idle.borrow_mut().clear();
        self.suspend(why);
    }

    /// A read that began at `started` was not answered in time.
    fn note_late(&self, started: Boottime) {
        if self.lateness.borrow_mut().late(started, Boottime::now()) {
            self.suspend(&format!(
                "a read takes longer than {STATEMENT:?}, as did the one before"
            ));
        } else {
            self.backoff.borrow_mut().undecided();
        }
    }

    /// Nothing is asked of it for a pause.
    fn suspend(&self, why: &str) {
        let sentence = format!("the replica {}: {why}", self.shared.place);
        // Once: a standby that was promoted is asked for ever, and what is wrong elsewhere must not
        // be lost behind that.
        if *self.last_note.borrow() != sentence {
            self.shared.link.failures.count(&sentence);
            self.last_note.replace(sentence.clone());
        }
        let error = Error::unavailable(sentence);
        self.backoff.borrow_mut().failed(error, Boottime::now());
    }

    fn exclude(&self, statements: &[StatementAnalysis]) {
        let now = Boottime::now();
        for found in statements {
            self.excluded.borrow_mut().add(found.shape.id, now);
        }
    }

    fn excludes(&self, statements: &[StatementAnalysis]) -> bool {
        let (excluded, now) = (self.excluded.borrow(), Boottime::now());
        statements
            .iter()
            .any(|found| excluded.has(found.shape.id, now))
    }

    /// Gives the connection back after a read, notes the state of the replica, and returns the
    /// result if there is one.
    fn done(
        &self,
        lease: Lease,
        started: Boottime,
        outcome: Result<ReadResult, ReplicaFailure>,
    ) -> Option<ReadResult> {
        match outcome {
            Ok(read) => {
                self.keep(lease);
                self.backoff.borrow_mut().succeeded();
                self.lateness.borrow_mut().answered();
                self.last_note.borrow_mut().clear();
                self.shared.link.replay.count_read();
                return Some(read);
            }
            Err(
                ReplicaFailure::Failed(_) | ReplicaFailure::Rewritten | ReplicaFailure::Outdated,
            ) => {
                self.keep(lease);
            }
            // Its successor begins in that catalog.
            Err(ReplicaFailure::Older(schema)) => self.replayed.set(schema),
            Err(ReplicaFailure::Unread(_)) => {
                // The server is well, and so are its other connections.
                lease.connection.abandon(&self.shared);
                self.backoff.borrow_mut().undecided();
            }
            Err(ReplicaFailure::Behind) => {
                self.idle.borrow_mut().push(lease);
                let behind = Error::unavailable("a replica is behind");
                self.backoff.borrow_mut().failed(behind, Boottime::now());
            }
            Err(ReplicaFailure::Slow(_)) => {
                self.idle.borrow_mut().push(lease);
                self.note_late(started);
            }
            Err(ReplicaFailure::Late { .. }) => {
                lease.connection.abandon(&self.shared);
                self.note_late(started);
            }
            Err(ReplicaFailure::Broken(why)) => {
                // Something may still run on it.
                lease.connection.abandon(&self.shared);
                self.failed(&why);
            }
        }
        None
    }

    /// Returns the fault of the server as a replica of `system`, if that is known; an error if it
    /// cannot be reached.
    async fn examine(
        &self,
        system: Option<&str>,
    ) -> Result<Result<(), probe::ReplicaMismatch>, String> {
        let place = ReplicaPermits::new(1).take();
        let place = place.ok_or("no connection is free")?;
        let mut lease = self.open(place).await?;
        let probe = lease.probe(GREETING).await?;
        let is_copy = system.is_none_or(|system| system == lease.system);
        let fault = if is_copy {
            probe.fault(&lease.system, None)
        } else {
            Some(probe::ReplicaMismatch::Stranger)
        };
        lease.connection.close().await;
        Ok(fault.map_or(Ok(()), Err))
    }
}

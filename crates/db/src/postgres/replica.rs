//! Reads on standbys that the owner has named, to relieve the primary (COHERENCE, rule 18).
//!
//! A replica helps where it can and costs nothing where it cannot: connections are opened while the primary answers, one
//! that is away, behind or something else than it was taken for is left alone for growing pauses, and whatever goes
//! wrong in a read there, the read is done on the primary.
//!
//! A read is three statements' worth of trust around the owner's. Before the snapshot, in a transaction of its own, how far the log has been
//! replayed: the snapshot that is taken afterwards sees at least that, and that is what the fence is told
//! ([`Snapshot::Applied`]). ✗ *Asked in the snapshot's own transaction: the place may be later than the snapshot, and what lies between is
//! taken for seen.* Within the snapshot, that it is still a standby's. At the end, that it has followed the same timeline through the
//! same receiver all the while, and up to where it has received the log: all that the snapshot saw lies before that.

mod connection;
mod probe;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use millpond_store::clock::Boottime;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

use super::backoff::Backoff;
use super::connect::connect;
use super::options::Target;
use super::read::{Table, check_values, limit, statement};
use super::replay::{LONGEST_LAG, Needed};
use super::requirements::Requirement;
use super::run::Failure;
use super::seen::{self, Seen};
use super::statement::{Catalogs, Found};
use super::wire::{Failed, Item, Wrong};
use super::{FeedKind, Shared};
use crate::{Call, Deps, Error, Read, Rows, Snapshot};
use connection::{Lease, Places, SYSTEM};
use probe::Probe;

/// A replica that does not answer a question about itself by then is left alone.
const PROBE: Duration = Duration::from_millis(500);
/// How often one that is behind is asked, and the pause between: replaying takes a moment longer than telling the feed.
const LOOKS: usize = 4;
const PAUSE: Duration = Duration::from_millis(3);

/// What all threads know of a replica: where it is, and how it is reached.
pub(super) fn shared(primary: &Shared, host: &str) -> Result<Shared, Error> {
    let target = Target::replica(&primary.options.url, host)?;
    Ok(Shared {
        place: target.place(),
        tls: primary.tls.clone(),
        target,
        link: Arc::clone(&primary.link),
        catalogs: Catalogs::default(),
        waiting: super::lane::Waiting::default(),
        rehearsing: false.into(),
        node: primary.node.clone(),
        options: primary.options.clone(),
        replicas: Vec::new(),
    })
}

/// The replicas as one thread uses them.
pub(super) struct Replicas {
    all: Vec<Rc<Replica>>,
    next: Cell<usize>,
}

/// One of them.
struct Replica {
    shared: Arc<Shared>,
    idle: RefCell<Vec<Lease>>,
    places: Places,
    backoff: RefCell<Backoff>,
}

/// Why a replica has not answered.
enum Refused {
    /// It has not replayed enough.
    Behind,
    /// The read failed there; it may be the read's own fault, and the connection is good.
    Failed,
    /// The connection is not to be used again.
    Broken(String),
}

impl Replicas {
    /// With at most `connections` to each.
    pub(super) fn new(primary: &Shared, connections: usize) -> Self {
        let replica = |shared: &Arc<Shared>| {
            Rc::new(Replica {
                shared: Arc::clone(shared),
                idle: RefCell::default(),
                places: Places::new(connections),
                backoff: RefCell::default(),
            })
        };
        Self {
            all: primary.replicas.iter().map(replica).collect(),
            next: Cell::default(),
        }
    }

    /// What a replica reads, if there is one that may answer; `None` leaves it to the primary.
    pub(super) async fn read(&self, calls: &[Call]) -> Option<Read> {
        let first = self.all.first()?;
        let link = &first.shared.link;
        let started = Boottime::now();
        let schema = link.schema();
        let found: Vec<Found> = calls
            .iter()
            .map(|call| known(call, schema))
            .collect::<Option<_>>()?;
        // After the fill has begun, and after the statements were looked at.
        let lag = first.shared.options.max_staleness.min(LONGEST_LAG);
        let needed = link.replay.needed(started, lag)?;
        let (replica, mut lease) = self.take()?;
        lease.connection.keep_up_with(schema);
        let outcome = replica.attempt(&mut lease, &needed, calls, &found).await;
        let mut read = replica.done(lease, outcome)?;
        read.elapsed = Boottime::now().since(started);
        Some(read)
    }

    /// A connection of the next replica that has one.
    fn take(&self) -> Option<(&Rc<Replica>, Lease)> {
        let count = self.all.len();
        let from = self.next.get();
        self.next.set((from + 1) % count);
        (from..from + count).find_map(|at| {
            let replica = &self.all[at % count];
            Some((replica, replica.take()?))
        })
    }

    /// What keeps each replica from being read, for `millpond check`; `primary` is a session there.
    pub(super) async fn lacks(&self, primary: &Client) -> Vec<Requirement> {
        let mut all = Vec::new();
        if self.all.is_empty() {
            return all;
        }
        let row = primary.query_one(SYSTEM, &[]).await;
        let system: Option<String> = row.and_then(|row| row.try_get(0)).ok();
        for replica in &self.all {
            let place = &replica.shared.place;
            let lacks = |missing: String| {
                Requirement::new(
                    missing,
                    format!("the replica {place} answers nothing; pages are read from the primary"),
                )
            };
            match replica.examine(system.as_deref()).await {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => all.push(fault.requirement(lacks(fault.to_string()))),
                Err(why) => all.push(lacks(why)),
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

/// What a call is in the catalog of the number `schema`: found out on the primary, as a standby takes no temporary function. `None` leaves
/// what is wrong with it for the primary to say, and what no feed tells of for it to read: ✗ *a table that is not published has been written
/// through a node whose feed is down; a sequence runs ahead on a standby; its settings and statistics are its own.*
fn known(call: &Call, schema: u64) -> Option<Found> {
    let found = statement(&call.query).ok()?.at(schema)?;
    let fits = check_values(&call.query, &found.shape.params, &call.params).is_ok();
    let told = || found.analysis.deps(&call.params).uncacheable.is_none();
    (found.analysis.readonly && fits && told()).then_some(found)
}

impl Replica {
    /// A connection that is idle. If there is none, one is opened for the reads that follow: nobody waits for it.
    fn take(self: &Rc<Self>) -> Option<Lease> {
        self.backoff.borrow_mut().ask(Boottime::now()).ok()?;
        while let Some(lease) = self.pop() {
            if !lease.connection.is_dead() {
                return Some(lease);
            }
        }
        if let Some(place) = self.places.take() {
            let replica = Rc::clone(self);
            tokio::task::spawn_local(async move {
                match connect(&replica.shared).await {
                    Ok(connection) => match Lease::new(connection, place).await {
                        Ok(lease) => replica.opened(lease),
                        Err(why) => replica.failed(&why),
                    },
                    Err(error) => replica.failed(&error.to_string()),
                }
            });
        }
        None
    }

    fn pop(&self) -> Option<Lease> {
        self.idle.borrow_mut().pop()
    }

    fn opened(&self, lease: Lease) {
        self.idle.borrow_mut().push(lease);
        self.backoff.borrow_mut().succeeded();
    }

    fn failed(&self, why: &str) {
        self.idle.borrow_mut().clear();
        let sentence = format!("the replica {}: {why}", self.shared.place);
        self.shared.link.count_failure(&sentence);
        let error = Error::unavailable(sentence);
        self.backoff.borrow_mut().failed(error, Boottime::now());
    }

    /// What becomes of the connection, and of the replica.
    fn done(&self, lease: Lease, outcome: Result<Read, Refused>) -> Option<Read> {
        match outcome {
            Ok(read) => {
                self.opened(lease);
                self.shared.link.replay.count_read();
                Some(read)
            }
            Err(Refused::Failed) => {
                self.opened(lease);
                None
            }
            Err(Refused::Behind) => {
                self.idle.borrow_mut().push(lease);
                let behind = Error::unavailable("a replica is behind");
                self.backoff.borrow_mut().failed(behind, Boottime::now());
                None
            }
            Err(Refused::Broken(why)) => {
                // Something may still run on it.
                lease.connection.abandon(&self.shared);
                self.failed(&why);
                None
            }
        }
    }

    /// Runs the calls, if the replica has replayed what is needed.
    async fn attempt(
        &self,
        lease: &mut Lease,
        needed: &Needed,
        calls: &[Call],
        found: &[Found],
    ) -> Result<Read, Refused> {
        let before = self.replayed(lease, needed).await?;
        let mut items = Vec::with_capacity(calls.len() + 2);
        items.push(Item {
            shape: seen::shape(FeedKind::Logical),
            params: &[],
        });
        items.extend(calls.iter().zip(found).map(|(call, found)| Item {
            shape: &found.shape,
            params: &call.params,
        }));
        items.push(Item {
            shape: probe::shape(),
            params: &[],
        });
        let limit = limit(&self.shared, calls.len());
        let tables = match timeout(limit, lease.connection.read(&items)).await {
            Ok(Ok(tables)) => tables,
            Ok(Err(failed)) => {
                if failed.is_outdated() {
                    lease.connection.forget_all();
                }
                return Err(sort(failed));
            }
            Err(_) => return Err(Refused::Broken("a read takes too long".to_owned())),
        };
        let broken = |why: &str| Refused::Broken(why.to_owned());
        let mut tables = tables.into_iter();
        let seen = Seen::read(&tables.next().unwrap_or_default()).map_err(Refused::Broken)?;
        let after = Probe::read(&tables.next_back().unwrap_or_default());
        let (Some(seen), Some(after)) = (seen, after) else {
            return Err(broken("it does not say what it is"));
        };
        // A place where the log is written is what a primary has.
        if seen.position.is_some() || !after.follows(&before) {
            return Err(broken("it has become another server while it was read"));
        }
        Ok(assemble(calls, found, tables, &before, &after))
    }

    /// How far it is, once that is far enough, or not at all after a moment.
    async fn replayed(&self, lease: &mut Lease, needed: &Needed) -> Result<Probe, Refused> {
        for look in 1.. {
            let probe = lease.probe(PROBE).await.map_err(Refused::Broken)?;
            let fault = probe.fault(&lease.system, Some(&needed.source));
            if let Some(fault) = fault {
                return Err(Refused::Broken(fault.to_string()));
            }
            if probe.replayed >= needed.at {
                return Ok(probe);
            }
            if look >= LOOKS {
                return Err(Refused::Behind);
            }
            sleep(PAUSE).await;
        }
        Err(Refused::Behind)
    }

    /// What is wrong with it as a replica of `system`, if that is known; an error if it cannot be reached.
    async fn examine(&self, system: Option<&str>) -> Result<Result<(), probe::Fault>, String> {
        let connection = connect(&self.shared)
            .await
            .map_err(|error| error.to_string())?;
        let place = Places::new(1).take();
        let place = place.ok_or("no connection is free")?;
        let mut lease = Lease::new(connection, place).await?;
        let probe = lease.probe(PROBE.saturating_mul(4)).await?;
        let is_copy = system.is_none_or(|system| system == lease.system);
        let fault = if is_copy {
            probe.fault(&lease.system, None)
        } else {
            Some(probe::Fault::Stranger)
        };
        lease.connection.close().await;
        Ok(fault.map_or(Ok(()), Err))
    }
}

/// What was read, as the primary's would be given: what it depends on was found out there.
fn assemble(
    calls: &[Call],
    found: &[Found],
    tables: impl Iterator<Item = Table>,
    before: &Probe,
    after: &Probe,
) -> Read {
    let deps = calls.iter().zip(found);
    let deps = deps.map(|(call, found)| -> Deps { found.analysis.deps(&call.params) });
    let rows = found.iter().zip(tables).map(|(found, rows)| Rows {
        columns: Arc::clone(&found.shape.columns),
        rows,
    });
    Read {
        deps: deps.collect(),
        results: rows.collect(),
        snapshot: Snapshot::Applied(before.replayed),
        position: after.received.max(after.replayed),
        elapsed: Duration::ZERO,
    }
}

/// What failed in a batch: the primary is asked, and its answer told.
fn sort(failed: Failed) -> Refused {
    match failed.wrong {
        Wrong::Failed(Failure::Database(trouble)) if trouble.is_lost() => {
            Refused::Broken(trouble.sentence())
        }
        // Also what replaying had to cancel.
        Wrong::Failed(Failure::Database(_) | Failure::Unreadable(_))
        | Wrong::Unparsed(_)
        | Wrong::Changed => Refused::Failed,
        _ => Refused::Broken("it has not answered as the primary does".to_owned()),
    }
}

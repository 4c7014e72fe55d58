//! The feed of PostgreSQL: logical replication, or triggers where that cannot be had
//! ([`triggers`]), on one thread of its own (coherence.md, rules 2, 3, 6, 7, 9, 12, 19 and 20).
//!
//! By logical replication it has two connections to the primary. One streams what the output plugin
//! `pgoutput` makes of the log, from a slot that goes with the connection, so that a Millpond that
//! is gone keeps no log on the server. The other asks: for the catalog, and with heartbeats how old
//! the stream is. One thread polls both; nothing it does can wait for anything else.
//!
//! # Why nothing is missed
//! A *life* begins with steps in this order, each after the one before is answered:
//!
//! 1. The slot is made. From its starting point C on, the stream has every transaction whose commit
//!    record lies behind C, in the order of these records.
//! 2. The fingerprint of the catalog is read, then the tables, which are at least as new.
//! 3. N = `pg_current_xact_id()` is taken. A transaction whose commit record lies before C had its
//!    id before C was found, so before N was given: its id is less than N.
//! 4. N becomes the floor, then the epoch begins ([`FeedLink::began`]). Only now the stream is
//!    read.
//!
//! Take a result that is kept, read in a snapshot S with `xmin` ≥ N by a fill that began in this
//! epoch. A transaction whose commit record lies before C has ended in S: what it wrote is in the
//! result. Counterexample: *Without the floor: it hangs between its commit record and the moment
//! when others see it, because it waits for a standby. S does not see it, and the stream will never
//! bring it.* A transaction whose commit record lies behind C comes through the stream and is
//! applied after step 4, so after the epoch began: before the result is kept, and then the fence
//! holds it against S, or after, and then it finds the result. That it may come before others see
//! it (rule 2) is why the fence asks S.
//!
//! The old life's floor is taken away when it ends ([`FeedLink::lost`]), so nothing is kept between
//! two lives. What was kept before may still be given while the server cannot be reached, until the
//! bound is over: all that was committed before the last heartbeat was sent has been applied, and
//! that stays so. Its epoch ends with the first answer of a primary ([`FeedLink::reached`]), before
//! a write of this node that no feed brings is answered, and where a life ends because something
//! makes no sense, as its heartbeats are not believed then. Counterexample: *the next life goes on
//! with the epoch. What was committed between the two is in no stream.*
//!
//! # Why the tags are complete
//!
//! Tags are made from what queries select by and from the catalog, as both are when a transaction
//! begins to arrive. At its end, under the lock of the delivery, both are compared with what holds
//! now. If either has changed, the change is applied and a new epoch begins in the same step. It is
//! applied all the same, because its mark must stay until all snapshots see it.
//!
//! A catalog that has changed is found out by the next heartbeat, which does not count; the promise
//! holds with the one before. Then the tables are read again, *then* what was found out about
//! statements is declared void: an analysis after that finds a catalog at least as new as the
//! feed's. Between the two a new floor is taken, as when a life begins. Counterexample: *A table is
//! added to the publication while a transaction that has written to it is open: the stream decides
//! by the catalog as it was at each change, so it never brings that one, and a result that was read
//! before it ended would be stale for ever.*
//!
//! # What it costs
//!
//! Of many transactions that come one after another several are taken at a look ([`pace`]), so that
//! a database in which much is written elsewhere does not slow those who are answered from memory.
//!
//! A heartbeat takes one transaction id, writes about 200 bytes of log and waits for the primary's
//! disk once. With a bound of 1 s there are ten in a second; a database reaches the 200 million ids
//! after which PostgreSQL freezes old rows in 230 days by them alone.

mod catalog_checks;
mod heartbeat;
mod login;
mod messages;
mod opening;
mod pace;
pub(crate) mod pgoutput;
pub(super) mod reader;
pub(crate) mod relations;
mod replication;
mod session;
mod settings;
mod setup;
mod socket;
#[cfg(test)]
mod tests;
mod tls;
pub(crate) mod touched;
mod transactions;
pub(crate) mod triggers;
mod wait;
mod wire;

pub(super) use self::settings::{FeedSettings, heartbeat_for};
pub(super) use self::setup::{STARTED, makes_slots};
pub(super) use self::socket::{HostAddress, ServerHost, places};
use std::any::Any;
use std::hash::BuildHasher as _;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use foldhash::quality::FixedState;
use parking_lot::Mutex;

use self::session::FeedSession;
use self::wait::{FeedEnd, Stop};
use super::link::FeedLink;
use crate::FeedKind;

/// Between two lives, at first and at most.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A feed that runs. It ends with this value.
pub(crate) struct FeedHandle {
    running: Mutex<Option<(UnixStream, JoinHandle<()>)>>,
}

impl FeedHandle {
    /// Ends it, and waits until it has ended. The server drops the slot when it notices that the
    /// connection is gone.
    pub(crate) fn stop(&self) {
        if let Some((stop, thread)) = self.running.lock().take() {
            drop(stop);
            // What panics there is caught and counted there.
            let _ = thread.join();
        }
    }
}

impl Drop for FeedHandle {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts the feed.
///
/// # Errors
/// If the system gives neither a pair of sockets nor a thread.
pub(crate) fn start(settings: FeedSettings, link: Arc<FeedLink>) -> std::io::Result<FeedHandle> {
    let (ours, its) = UnixStream::pair()?;
    let thread = std::thread::Builder::new()
        .name("millpond-db-feed".to_owned())
        .spawn(move || supervise(&settings, &link, &Stop(its)))?;
    Ok(FeedHandle {
        running: Mutex::new(Some((ours, thread))),
    })
}

/// One life after the other.
fn supervise(settings: &FeedSettings, link: &FeedLink, stop: &Stop) {
    let mut system = None;
    let mut failed = 0;
    for number in 1_u64.. {
        let mut began = false;
        let life = AssertUnwindSafe(|| match settings.kind {
            FeedKind::Logical => live(settings, link, stop, number, &mut system, &mut began),
            FeedKind::Triggers => {
                triggers::live(settings, link, stop, number, &mut system, &mut began)
            }
        });
        let end =
            catch_unwind(life).unwrap_or_else(|panic| FeedEnd::Lost(panicked(panic.as_ref())));
        if began {
            failed = 0;
            link.lost(&end.to_string(), end.is_disconnection());
        } else if !end.is_disconnection() {
            link.reached();
        }
        if end == FeedEnd::Stopped {
            return;
        }
        link.failures.count(&format!("the feed of changes: {end}"));
        let pause = pause(&settings.node, number, failed);
        failed += 1;
        if stop.sleep(pause).is_err() {
            return;
        }
    }
}

fn live(
    settings: &FeedSettings,
    link: &FeedLink,
    stop: &Stop,
    number: u64,
    system: &mut Option<String>,
    began: &mut bool,
) -> FeedEnd {
    let slot = format!("millpond_{}_{number}", settings.node);
    let opened = match opening::open(settings, link, stop, &slot) {
        Ok(opened) => opened,
        Err(end) => return end,
    };
    let sleeper = match link.wake.sleeper() {
        Ok(sleeper) => sleeper,
        Err(error) => return error.into(),
    };
    let reason = reason(system.replace(opened.system.clone()), &opened.system);
    // Every statement was analysed while the catalog was not watched.
    link.schema_changed(&reason);
    link.replay.began(&opened.system);
    link.began(opened.floor, &opened.started, &reason);
    // A reader that finds a position of this system passed also finds the new epoch.
    link.passed.began(&opened.system);
    *began = true;
    FeedSession::new(settings, link, opened, sleeper).run(stop)
}

/// Why an epoch begins with a life on `system`, if the one before was on `old`.
fn reason(old: Option<String>, system: &str) -> String {
    match old {
        Some(old) if old != system => {
            format!("the feed starts on system {system} instead of {old}")
        }
        _ => "the feed starts".to_owned(),
    }
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a panic: {}", said.unwrap_or("without a word"))
}

/// Twice as long after each failure, and not at the same moment in all nodes: between a half and
/// the whole.
fn pause(node: &str, number: u64, failed: u32) -> Duration {
    let longest = PAUSE.saturating_mul(1 << failed.min(10)).min(LONGEST_PAUSE);
    let share = FixedState::with_seed(number).hash_one(node) % 1_000;
    longest / 2 + longest / 2 * (share as u32) / 1_000
}

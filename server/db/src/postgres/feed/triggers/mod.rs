//! The feed where logical replication cannot be had: triggers record changes in a table, and the
//! nodes read it (coherence.md, rules 1, 2, 4, 6, 7, 9, 12, 13 and 19).
//!
//! Managed servers often refuse `wal_level = logical`, or the right to replicate. Then triggers of
//! statements on each table write what came and went into `_millpond_change`, with the id of their
//! transaction ([`objects`], [`function`]). A node looks at that table several times in a second,
//! and at once when NOTIFY or a write of its own wakes it. NOTIFY only shortens the wait; nothing
//! depends on it.
//!
//! One look is one statement, so one snapshot S: it gives S itself, and the changes of all
//! transactions that S sees and that the snapshot P of the look before did not. Behind it, in the
//! same round trip, come a counter and at times the fingerprint of the catalog. A transaction
//! becomes visible as a whole, so it is delivered once and as a whole. There is no order among
//! those of one look; nothing needs one, as no position lies between them.
//!
//! # Why nothing is missed
//! A *life* begins with steps in this order, each after the one before is answered and committed:
//!
//! 1. The node registers in `_millpond_node`.
//! 2. The counter of lost changes is read, then the fingerprint of the catalog, then the tables.
//! 3. N = `pg_current_xact_id()` is taken. A transaction that gets an id after that begins to write
//!    after all of step 2.
//! 4. The first P is taken, then N becomes the floor and the epoch begins ([`FeedLink::began`]).
//!
//! Take a result that is kept, read in a snapshot F with `xmin` ≥ N by a fill that began in this
//! epoch, so after the first P; and a transaction T that commits, touches what the result depends
//! on, and is not seen by F. Its id is N or greater, so all its statements ran after step 2.
//! Snapshots of one server only grow, so P did not see T either, and the first look that sees it
//! delivers it. If that is before the result is kept, the log has T and the fence asks F; if it is
//! after, it finds the result. A fill that is newer than the feed, and has seen T before the feed
//! has, is kept and then dropped for nothing, which costs a read and is never wrong.
//!
//! For T to be delivered, its triggers must have fired and what they wrote must still be there:
//!
//! * *A trigger is missing, disabled or edited.* The catalog says which tables have theirs as they
//!   must be; queries on others are not kept (`catalog::recording`). It is read after the
//!   fingerprint, and T's statements ran later, so T ran under those triggers or the fingerprint is
//!   another one by the time that T is visible, and so in the next look at the catalog. Rows of
//!   `pg_trigger` count by their `xmin`. Counterexample: *a trigger that is disabled and enabled
//!   again between two looks is as it was.* A new floor is taken whenever the catalog has changed.
//!   Counterexample: *a function that was emptied and put back while T ran.* CREATE TRIGGER and
//!   ENABLE TRIGGER wait for transactions that have written to the table, until all others see it.
//! * *The table of changes was too large* ([`objects::MAX_BYTES`]). Then the trigger counts up a
//!   sequence, which is no part of T. The counter is read after the rows of each look, so a T that
//!   was seen has counted before. It ends the life, and the next one has a floor above T.
//! * *The rows were removed.* A node says once a second from which id on it still needs rows
//!   (`xmin` of its P), and the node that tidies removes only what all registered nodes have seen.
//!   Who was silent for a minute is struck off in the same transaction that no longer minds him.
//!   Each look asks in its own snapshot whether the node is still registered; if not, its life
//!   ends. A node that registers while another node tidies without knowing of it needs nothing that
//!   is removed then: that was visible to another node before this one was registered, so it is
//!   visible to this one's first P.
//! * *Another session has removed them.* TRUNCATE gives the table another file, which is part of
//!   the fingerprint. DELETE is not noticed; only owners and nodes may do that.
//! * *The server has crashed.* The tables are unlogged, so they are empty then; but every life has
//!   ended with its connection, and a transaction that outlives a crash (PREPARE TRANSACTION) has
//!   an id below the next floor.
//!
//! # The bound, and one state
//!
//! The age counts from the moment at which the last look was sent that found the catalog as it is
//! known: every write acknowledged before it is visible to it, so it was applied.
//!
//! Positions are transaction ids, because a place in the log does not say what a snapshot sees.
//! *Counterexample: T's commit record lies before the position of a look, and T is visible only
//! after it: a read that has seen T would be placed before a feed that has not.* A read lies at the
//! upper bound of its snapshot (`xmax`: it has seen nothing from there on) and the feed at the
//! lower bound of its own (`xmin`: it has seen everything below). So when the feed has passed the
//! read, it has seen all that the read has seen. A transaction that stays open holds that up, and
//! pages are then read in one snapshot instead of combined; it holds up no change. The mark of T
//! lies at T + 1, which a feed has passed just when its `xmin` is above T.
//!
//! The answer to a write is sent when a look has seen it that has found the catalog as it is known,
//! or after the epoch that begins because it was not: the write may be one that was not recorded.
//! So who waits for a write asks for a look at the catalog too. The answer tells other nodes the
//! `xmax` of the newest look, S. A node whose `xmin` is no less has applied all that S sees, as it
//! has an id below `xmax`: the write itself, and all that this node has answered before.
//! Counterexample: *The id of the write: of two that a browser has made at once the last answer
//! counts, and a node can have seen the one and not the other.* A form that has written nothing has
//! no id; it tells the `xmax` of its own last snapshot, which is no less than what its visitor came
//! with. A node whose newest look lies across the position (`xmin` below it, `xmax` not) does not
//! wait: what is open may stay so, and a fresh read shows the write until a look that is sent later
//! is back ([`Passed`](super::super::passed)).
//!
//! Such positions are of one server and one timeline, and are told apart from places in the log by
//! their source: nodes with different feeds cannot tell each other anything, and read afresh.
//!
//! # What it costs, and what escapes
//!
//! Each changed row is written twice (old and new) in a small form; NOTIFY, as [`function`] has it.
//! A look that finds nothing is one probe of an index. What writes without firing triggers of
//! statements escapes: subscriptions of logical replication (their tables are known and not kept),
//! and extensions that write into the files of a table.

pub(crate) mod function;
pub(crate) mod objects;
mod opening;
mod poll;
mod rows;
mod session;

use self::session::TriggerFeedSession;
use super::settings::FeedSettings;
use super::wait::{FeedEnd, Stop};
use crate::postgres::link::FeedLink;

/// One life, from the connection to what ends it.
pub(super) fn live(
    settings: &FeedSettings,
    link: &FeedLink,
    stop: &Stop,
    number: u64,
    system: &mut Option<String>,
    began: &mut bool,
) -> FeedEnd {
    let opened = match opening::open(settings, link, stop, number) {
        Ok(opened) => opened,
        Err(end) => return end,
    };
    let sleeper = match link.wake.sleeper() {
        Ok(sleeper) => sleeper,
        Err(error) => return error.into(),
    };
    let reason = super::reason(system.replace(opened.system.clone()), &opened.system);
    // Every statement was analysed while the catalog was not watched.
    link.schema_changed(&reason);
    link.began(opened.floor, &opened.started, &reason);
    // A reader that finds a position of this system passed also finds the new epoch.
    link.passed.began(&opened.system);
    link.seen(&opened.seen);
    *began = true;
    TriggerFeedSession::new(settings, link, opened, sleeper).run(stop)
}

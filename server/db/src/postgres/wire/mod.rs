//! Reads on a connection: all statements in one write, and one answer.
//!
//! The driver `tokio-postgres` ends every statement with a Sync, so that the server ends a
//! transaction, answers and flushes for each of the eight queries of a page, and each goes through
//! channels of the driver's. Here a *batch* is a Bind and an Execute for each statement and one
//! Sync behind them all. A statement that the connection has not met is parsed in the same batch,
//! so it costs no round trip more; what its parameters and columns are is known from when it was
//! described ([`super::shape`]), and the server describes it once more then, which must be the
//! same.
//!
//! # One connection for both
//!
//! Logging in, descriptions, analysis, writes and migrations stay with the driver, on the same
//! connection: it is opened over a socket of ours ([`dial`]), which is the driver's but while a
//! batch has it ([`share`]). So a pool of eight is eight sessions of the server, and everything
//! that the URL may ask for is done once, for both. Two sessions for each place in the pool, or a
//! pool split in two, would cost memory in the server and keep writes from the connections of
//! reads.
//!
//! # Why a batch is one snapshot
//!
//! Between two Syncs the server runs everything in one implicit transaction (PostgreSQL, "Message
//! Flow", "Pipelining"): behind an Execute `exec_execute_message` ends the transaction only after a
//! statement that controls transactions, or one that cannot run inside of one, and else counts
//! commands. Its isolation is the session's default, repeatable read, whose first snapshot, that of
//! the first Parse or Bind, serves all statements. What could break this is looked at in every
//! batch:
//!
//! * The analysis takes queries only. Where it cannot look (a role that may make no temporary
//!   objects), the end of each statement says what it was ([`answers`]). Counterexample: *a page
//!   whose second query is a `call` that commits sees two states.*
//! * The last statement says, besides the snapshot, in which isolation it ran ([`super::seen`]).
//!   *Counterexample: a function of the owner's has set another default for its session.* The
//!   snapshot that it names is that of all only because none of those in front has ended the
//!   transaction, which their ends say.
//!
//! # When it goes wrong
//!
//! At the first error the server skips the rest up to the Sync; that error is the batch's, and the
//! connection is good. A batch that is given up, or an answer that is not PostgreSQL's protocol,
//! closes the connection. A message's length is looked at before it is read, and rows become values
//! as they come, so a result is in memory once.

mod answers;
mod batch;
mod dial;
mod frame;
pub(super) mod open;
mod share;
#[cfg(test)]
mod share_tests;
mod stream;
#[cfg(test)]
mod tests;

pub(super) use answers::StatementRows;
pub(super) use batch::{BatchError, FailedBatch, Item, Wire};

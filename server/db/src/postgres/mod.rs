//! PostgreSQL: threads with connections that read and write, the feed by logical replication or by
//! triggers, and what they share.
//!
//! A read takes its queries and `pg_current_snapshot()` in one snapshot and one round trip (`read`,
//! `wire`). A write leaves a token in its transaction, or notes its id, and is answered once the
//! feed has brought it (`write`, `pending`). What a statement depends on is found out for one state
//! of the catalog, whose changes the feed notices (`statement`).

pub(crate) mod analysis;
mod backoff;
pub(crate) mod catalog;
mod connect;
mod connection_permits;
mod connection_thread;
mod context;
mod database;
mod failure;
pub(crate) mod families;
pub(crate) mod feed;
pub(crate) mod feed_progress;
pub(crate) mod file_rows;
mod files;
pub(crate) mod interest;
mod key_owners;
pub(crate) mod link;
mod liveness;
mod migrate;
mod options;
mod order;
pub(crate) mod pending_writes;
mod pool;
mod prepare;
mod read;
mod read_snapshot;
mod refused_row;
mod rehearsal;
mod replay;
mod replica;
pub(crate) mod requirements;
mod run;
mod server_error;
mod session;
mod shape;
mod sql;
pub(crate) mod statement;
pub(crate) mod tags;
mod tls;
mod types;
pub(crate) mod wake;
mod wire;
mod write;

pub(crate) use database::Postgres;
pub use options::PostgresOptions;
pub use rehearsal::Rehearsal;
pub use session::{PostgresSession, TextRow};

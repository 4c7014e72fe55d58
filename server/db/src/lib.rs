//! Databases: prepared queries, snapshots, transactions, and the feed of what changes.
//!
//! This crate knows SQL, SQLite and PostgreSQL. It must not know HTTP, nor what the cache keeps of
//! its results. It reports on what each result depends ([`Deps`]), and notifies a
//! [`millpond_store::Sink`] of what every commit touches: its own commits and those of other
//! programs.
//!
//! The parts, from the caller down:
//!
//! * [`Database`] is the interface, for both databases.
//! * `feed` defines the order of changes and snapshots that makes it safe to keep a result.
//! * `sqlite` hands work to threads: some read, one writes. `sqlite::analysis` finds what a
//!   statement depends on, from SQLite's authorizer and the statement's text. `sqlite::writer` runs
//!   transactions and polls. The preupdate hook collects what they touch into `sqlite::tags`.
//! * `postgres` has threads with connections, a feed by logical replication, and what the two
//!   share.
//!
//! `docs/reference/coherence/` has the rules that this crate follows: rules 9 to 14 and 17 for
//! SQLite, rules 7 and 18 to 20 for PostgreSQL.

#![warn(missing_docs)]

mod advice;
mod bind;
mod block_on;
mod column_set;
mod data_file;
mod database;
mod error;
mod feed;
mod file_set;
mod file_target;
mod foreign_key;
mod health;
mod migration;
mod named_constraints;
mod order;
mod position;
mod postgres;
mod precision;
mod query;
mod queue;
mod random;
mod requirement;
mod seen_writes;
pub mod sql;
mod sqlite;
mod stored_rows;
mod value;
mod violated;
mod written;
mod written_schema;

pub use advice::{Advice, Remedy};
pub use block_on::block_on;
pub use data_file::{
    AppliedFile, FILE_COLUMN, FileChange, FileContent, FileOutcome, FileState, GoneFile,
    KEY_COLUMN, RowCounts, RowSource, TableColumn, TableColumnKind,
};
pub use database::Database;
pub use error::{ConstraintKind, Error, SqlError};
pub use feed::{DatabaseFeed, FeedKind, Mark, Snapshot, Transactions};
pub use health::Health;
pub use migration::Migration;
pub use position::Position;
pub use postgres::{PostgresOptions, PostgresSession, Rehearsal, TextRow};
pub use query::{
    Bind, Call, Deps, Expect, HeldByRead, Param, Query, ReadResult, ReadTerms, WriteResult,
    WriteStep,
};
pub use requirement::Requirement;
pub use sqlite::backup::back_up;
pub use sqlite::options::SqliteOptions;
pub use sqlite::row_copy::copy_rows;
pub use sqlite::schema_copy::copy_schema;
pub use sqlite::triggers::requirements::{recorded_as_whole, repair_sqlite, sqlite_requirements};
pub use stored_rows::{RefusedRow, StoredLimits, StoredRows};
pub use value::{ResultRows, Value, ValueKind};
pub use violated::Violated;
pub use written::written_columns;
pub use written_schema::WrittenSchema;

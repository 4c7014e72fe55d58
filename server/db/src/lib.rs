//! Databases: prepared queries, snapshots, transactions, and the feed of what changes.
//!
//! This crate knows SQL, SQLite and PostgreSQL. It knows neither HTTP nor what is kept of its results: it says on what each result
//! depends ([`Deps`]), and tells a [`millpond_store::Sink`] what every commit touches, its own and those of other programs.
//!
//! The parts, from the caller down:
//!
//! * [`Database`] is the front, whichever database stands behind it.
//! * `feed` has the notion of time that makes it safe to keep a result.
//! * `sqlite` hands work to threads: some read, one writes. `sqlite::analysis` finds what a statement depends on, from
//!   SQLite's authorizer and the statement's text; `sqlite::writer` runs transactions and polls; the preupdate hook
//!   collects what they touch into `sqlite::tags`.
//! * `postgres` has threads with connections, a feed by logical replication, and what the two share.
//!
//! `docs/reference/coherence.md` has the rules that this follows; those of SQLite are 9 to 14 and 17, those of PostgreSQL 7 and 18 to 20.

#![warn(missing_docs)]

mod advice;
mod bind;
mod database;
mod error;
mod feed;
mod met;
mod migration;
mod position;
mod postgres;
mod query;
mod queue;
mod random;
mod sqlite;
mod value;

pub use advice::{Advice, Remedy};
pub use database::{Database, Health};
pub use error::{ConstraintKind, Error, SqlError};
pub use feed::{DatabaseFeed, Mark, Snapshot, Transactions};
pub use migration::Migration;
pub use position::Position;
pub use postgres::requirements::Requirement;
pub use postgres::{FeedKind, PostgresOptions, PostgresSession, Rehearsal, TextRow};
pub use query::{Bind, Call, Deps, Expect, Param, Query, Read, Step, Written};
pub use sqlite::database::Options;
pub use sqlite::scratch::copy_schema;
pub use value::{Kind, Rows, Value};

//! Connections to one SQLite file: the readers, the writer, and the detection of changes.

pub(crate) mod admission;
pub(crate) mod analysis;
pub(crate) mod backup;
pub(crate) mod catalog;
pub(crate) mod clockwatch;
pub(crate) mod collector;
pub(crate) mod connection;
pub(crate) mod database;
mod documents;
mod failure;
pub(crate) mod file;
pub(crate) mod file_rows;
pub(crate) mod foreign;
pub(crate) mod heartbeats;
pub(crate) mod hint;
pub(crate) mod interest;
pub(crate) mod log;
pub(crate) mod log_file;
pub(crate) mod migrate;
pub(crate) mod options;
pub(crate) mod passed_positions;
pub(crate) mod preupdate;
pub(crate) mod reader;
pub(crate) mod recorder;
pub(crate) mod row_copy;
pub(crate) mod run;
pub(crate) mod schema_copy;
pub(crate) mod session;
mod shared;
pub(crate) mod statement;
pub(crate) mod tags;
pub(crate) mod ticks;
pub(crate) mod triggers;
pub(crate) mod writer;

pub(crate) use database::Sqlite;

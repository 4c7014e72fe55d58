//! Connections to one SQLite file: who reads, who writes, and how changes are noticed.

pub(crate) mod admission;
pub(crate) mod catalog;
pub(crate) mod clockwatch;
pub(crate) mod collector;
pub(crate) mod connection;
pub(crate) mod file;
pub(crate) mod interest;
pub(crate) mod preupdate;
pub(crate) mod reader;
pub(crate) mod recorder;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod writer;

//! Private PostgreSQL servers for tests. A test tool: other crates have it among their
//! dev-dependencies only.
//!
//! It knows where distributions put PostgreSQL's programs (`MILLPOND_POSTGRES_BIN` names another
//! folder), how a fresh cluster is made, and how to remove it. It must not know what the tests are
//! about. Each server is private: a new cluster in a temporary folder, on a port that the kernel
//! chose, run by an unprivileged account if the test is root (PostgreSQL refuses root). Servers
//! installed as services are not touched. A server ends with its value. If the test is killed, a
//! watchdog process ends the server and removes the folder.
//!
//! The cluster trusts every client of its loopback port, so store nothing of value in it. `fsync`
//! is off unless a test asks for it: a machine that loses power loses the test anyway.
//!
//! ```no_run
//! use lab_pgtest::Postgres;
//!
//! let server = Postgres::start()?;
//! let database = server.database()?;
//! let mut client = postgres::Client::connect(&database.url(), postgres::NoTls)?;
//! client.batch_execute("create table article (id int primary key)")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod account;
mod cluster;
mod database;
mod error;
mod options;
mod postmaster;
mod programs;
mod server;
mod watchdog;

pub use database::Database;
pub use error::Error;
pub use options::Options;
pub use server::Postgres;

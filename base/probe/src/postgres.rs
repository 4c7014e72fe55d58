//! A probe of PostgreSQL, versions 13 to 17: sessions, waits, counters and CPU, once a second.
//!
//! A [`PgProber`] samples on a thread and a connection of its own (`application_name` is
//! `millpond-probe`; read-only, one transaction for each sample, `statement_timeout` one second). A
//! value that the account may not see, or that only another machine could know, is never a zero:
//! [`PgProbe::unavailable`] names it with the reason. The probe reconnects after a lost connection;
//! the time without a connection is a [`PgGap`], about which nothing is known.
//!
//! Counters of `pg_stat_database` reach the views up to a second after the work: PostgreSQL's
//! backends add theirs at most once a second
//! (<https://www.postgresql.org/docs/current/monitoring-stats.html>). The position in the WAL and
//! the CPU times are those of the moment.

mod cpu;
mod error;
mod model;
mod queries;
mod sampler;
mod session;
mod summary;

pub use error::PgError;
pub use model::{PgCounters, PgGap, PgProbe, PgSample, PgServer, PgSessions};
pub use sampler::PgProber;
pub use summary::{MeanMax, PgPerRequest, PgSummary, PgWait};

//! Hostile clients and faults for tests. A test tool: other crates have it among their
//! dev-dependencies only.
//!
//! It knows what attackers of a web server do, and what the server promises. It must not know how
//! the server works: it has bytes, sockets, a program to start and a database, so a mistake of the
//! server cannot hide in it.
//!
//! - [`http`]: broken bytes for fuzz targets, and hostile clients over sockets, each answer judged;
//! - [`coherence`]: three nodes on PostgreSQL while feeds, server, nodes and network fail, each
//!   page judged;
//! - [`secure`]: attacks over TLS and HTTP/2, each with the end that it must have;
//! - [`Choices`]: the choices of both, from a fuzzing engine's bytes or from a seed.

mod choices;
pub mod coherence;
pub mod http;
pub mod secure;

pub use choices::Choices;

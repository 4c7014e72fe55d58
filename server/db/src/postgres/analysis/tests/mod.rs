//! The analysis against a real server.

mod advice;
mod behind;
mod catalogs;
mod changes;
mod derived;
mod fingerprint;
mod narrowing;
mod property;
mod requirements;
mod rights;
mod schema;
mod shapes;
mod statements;
mod support;
mod witness;

//! The analysis against a real server.

mod advice;
mod behind;
mod fingerprint;
mod narrowing;
mod property;
mod requirements;
mod rights;
mod schema;
mod statements;
mod support;

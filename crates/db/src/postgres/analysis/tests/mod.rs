//! The analysis against a real server.

mod cases;
mod fingerprint;
mod property;
mod requirements;
mod support;

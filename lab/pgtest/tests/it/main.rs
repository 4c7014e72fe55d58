//! Private servers on this machine's PostgreSQL.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the clock to give up waiting"
)]

mod end;
mod server;

//! Private servers on this machine's PostgreSQL.

mod end;
mod server;

//! Kept responses: what stands between the store and those who use it, a site and a program.
//!
//! A key leads to a hit, or to a flight whose leader makes the value for all who wait. This crate
//! knows prepared responses and the store; it must not know how a value is made, nor what is in a
//! key.
//!
//! - [`FillRequest::join`]: the flight of a key; [`FillRequest::begin`]: the way of every leader;
//! - [`Admission`]: which leader is next, and which work is refused;
//! - [`repeat`]: how long the connections may give a response again;
//! - [`request_coding`]: codings that are made later; [`CacheStatus`]: what a response says of it;
//! - [`stale`]: what is given while the database is away; [`Outage`]: how the owner learns of that;
//! - [`ProgramFeed`]: one feed of a program's own changes and those of its database.
//!
//! Who waits for the end of entries hears of it by [`millpond_store::Store::set_attendant`].

pub mod admission;
mod coding;
mod feed;
mod join;
mod outage;
pub mod repeat;
mod stale;
mod status;

pub use admission::{
    Admission, AdmissionStats, Arrival, Capacity, Priority, Refused, Turn, Writing,
};
pub use coding::request_coding;
pub use feed::{ChangeMark, DatabaseSink, Heard, ProgramFeed, SeenChanges};
pub use join::{FillRequest, JoinOutcome, need};
pub use outage::Outage;
pub use stale::{StaleAnswer, stale};
pub use status::{CacheStatus, Timing};

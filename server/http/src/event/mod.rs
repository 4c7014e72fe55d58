//! The parts of an event loop: connections, readiness, timers, and wakers. No HTTP.

mod deadline_timer;
mod mailbox;
mod poller;
mod slab;
mod spin;
mod timers;
mod wait;

pub(crate) use mailbox::Mailbox;
pub(crate) use poller::{Poller, Ready, SocketEnd, Wait};
pub(crate) use slab::{Slab, StreamToken, Token};
pub(crate) use spin::RecentClients;
pub(crate) use timers::Timers;

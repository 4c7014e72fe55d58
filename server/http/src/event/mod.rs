//! What an event loop is made of: who is there, what is ready, what is due, and who knocks. No HTTP.

mod alarm;
mod mailbox;
mod poller;
mod slab;
mod spin;
mod timers;
mod wait;

pub(crate) use mailbox::Mailbox;
pub(crate) use poller::{Poller, Ready, Wait};
pub(crate) use slab::{Slab, Token};
pub(crate) use spin::Talkers;
pub(crate) use timers::Timers;

//! What a site on PostgreSQL costs beside its hits: until a commit shows, while much is written elsewhere, and with much in memory.

mod client;
mod invalidation;
mod site;
mod updates;
mod visible;

pub(crate) use invalidation::run as invalidation;
pub(crate) use updates::run as updates;
pub(crate) use visible::run as visible;

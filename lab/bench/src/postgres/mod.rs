//! Costs of a site on PostgreSQL besides its hits: the time until a commit shows, many writes to
//! other tables, and many results in memory.

mod client;
mod invalidation;
mod site;
mod updates;
mod visible;

pub(crate) use invalidation::run as invalidation;
pub(crate) use updates::run as updates;
pub(crate) use visible::run as visible;

//! PostgreSQL: the feed by logical replication, and what it shares with those who read and write.

pub(crate) mod analysis;
pub(crate) mod catalog;
pub(crate) mod families;
pub(crate) mod interest;
pub(crate) mod link;
pub(crate) mod pending;
pub(crate) mod requirements;
pub(crate) mod tags;

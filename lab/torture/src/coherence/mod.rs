//! Tries to get a late or a mixed page out of Millpond on PostgreSQL and on SQLite.
//!
//! It knows the promise: *a response reflects every commit that was acknowledged to its writer more
//! than `max_staleness` before the request was sent; a write made through a node is in every
//! response of that node to a request sent after its answer, and in those of all nodes to the
//! visitor who wrote; a page shows one state of the database; a stream tells of each change, or
//! ends.* It must not know how Millpond keeps the promise: it has a program to start, sockets, and
//! a database, so a mistake of the server cannot hide in it.
//!
//! - [`enter_netns`] gives the scenario a network namespace of its own if the machine permits one.
//! - [`run`] starts a private PostgreSQL and three nodes, two with a bound of one second and one
//!   with ten minutes (`context`, `node`), each with a site whose pages depend on tables in all
//!   ways (`schema`, `site`).
//! - Writers carry out random transactions: several tables, keys that change, rows that move
//!   between pages, savepoints, rollbacks, prepared ones, TRUNCATE (`writer`, `transaction`);
//!   rows behind joins and the keys of these (`shop`); others send forms to the nodes (`reader`).
//! - Every write is in the log (`log`) with the versions that it gave under the rows' locks: noted
//!   before COMMIT is sent, acknowledged, rolled back, or unknown if the connection was lost during
//!   COMMIT.
//! - Readers request all pages from all nodes (`client`, `page`), and each page is judged at once
//!   (`judge`).
//! - Subscribers hold the streams of live pages and judge what these have told (`events`).
//! - What pages depend on besides rows changes too (`rules`): policies, rights, roles, search
//!   configurations, functions, schemas and paths, each with a version that pages show.
//! - Meanwhile the feed, the server, the nodes and the network between them fail in many ways
//!   (`fault`, `inject`, `packet_loss`): the kernel drops packets (`packets`), or else a relay
//!   falls silent (`relay`). An answer that is no page is counted; a wrong page is a finding.
//! - After a fault every node must, within a minute, serve writes after the fault from memory; the
//!   report says how long that took (`rounds`, `figures`). At the end no replication slot and no
//!   session may be left.
//! - Between the faults are quiet periods (`quiet_period`): in them the pages of the node with the
//!   long bound are judged by the short bound too, so a time-to-live cannot pass for coherence.
//! - [`run_on_sqlite`] does the same with three nodes on one file, which other programs write,
//!   lock, vacuum and alter (`sqlite`).
//! - It may last for hours: each minute the log forgets what no page can be compared with any more
//!   (`upkeep`).
//!
//! The tests check the judge too: they let it look at a fake node (`fake`) that keeps the promise,
//! and at fake nodes that break it, by a time-to-live or by reading a page's queries in two states.

mod client;
mod context;
mod database;
mod events;
#[cfg(test)]
mod fake;
mod fault;
mod figures;
mod inject;
mod judge;
mod log;
mod netns;
mod node;
mod packet_loss;
mod packets;
mod page;
mod quiet_period;
mod reader;
mod relay;
mod report;
mod rounds;
mod rules;
mod scenario;
mod schema;
mod shop;
mod site;
mod span;
mod sqlite;
mod transaction;
mod upkeep;
mod writer;

pub use figures::{FaultFigures, Pages, StreamFigures};
pub use log::Fates;
pub use netns::{Netns, enter_netns};
pub use packets::Packets;
pub use report::ScenarioReport;
pub use scenario::{Feed, LeastReads, Scenario, run};
pub use sqlite::run_on_sqlite;

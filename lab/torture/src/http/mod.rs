//! Hostile input for tests: broken bytes, and clients that misbehave.
//!
//! It knows what attackers of a web server do. It must not know how the server under attack works:
//! it has bytes and sockets, nothing else, so a mistake of the server cannot hide in it.
//!
//! - [`Choices`](crate::Choices), [`Corpus`] and [`mutate`]: inputs for fuzz targets, from the
//!   choices of a fuzzing engine and from kept seeds;
//! - [`smuggling`]: requests that two readers could read in two ways;
//! - [`Attack`] and [`attack`]: thousands or millions of hostile requests over sockets, each answer
//!   judged;
//! - [`BaselineClient`]: a well-behaved client beside them, which must notice nothing;
//! - [`site`]: a small site to attack.

mod attack;
mod baseline_client;
mod campaign;
mod corpus;
mod fetch;
mod messages;
mod mutate;
mod shapes;
pub mod site;
mod verdict;
pub mod words;

pub use attack::Attack;
pub use baseline_client::{BaselineClient, Visits};
pub use campaign::{AttackTally, Campaign, CampaignReport, attack};
pub use corpus::Corpus;
pub use mutate::{MAX_INPUT, mutate};
pub use shapes::smuggling;

//! Hostile input for tests: broken bytes, and clients that misbehave. A test tool: other crates have it among their
//! dev-dependencies only, and `bench` attacks with it.
//!
//! It knows what attackers of a web server do. It must not know how the server under attack works: it has bytes and
//! sockets, nothing else, so that no mistake of the server can hide in it.
//!
//! - [`Dice`], [`Corpus`] and [`mutate`]: inputs for fuzz targets, from the choices of a fuzzing engine and from kept seeds;
//! - [`smuggling`]: requests that two readers could read in two ways;
//! - [`Attack`] and [`attack`]: thousands or millions of hostile requests over sockets, each answer judged;
//! - [`Friend`]: a well-behaved client beside them, which must notice nothing;
//! - [`twice`]: ever new requests that come twice, for a server that keeps what it knows;
//! - [`site`]: a small site to attack.

mod attack;
mod campaign;
mod corpus;
mod dice;
mod friend;
mod line;
mod messages;
mod mutate;
mod shapes;
pub mod site;
mod twice;
mod verdict;
pub mod words;

pub use attack::Attack;
pub use campaign::{Campaign, Report, Tally, attack};
pub use corpus::Corpus;
pub use dice::Dice;
pub use friend::{Friend, Visits};
pub use mutate::{MAX_INPUT, mutate};
pub use shapes::smuggling;
pub use twice::twice;

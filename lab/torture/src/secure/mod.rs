//! Attacks over TLS and HTTP/2, each on one connection, with the end that a server should give it.
//!
//! - [`SecureAttack`]: what is done, and how the connection must end;
//! - [`SecureVisitor`]: a well-behaved client beside them, which must notice nothing;
//! - [`Frames`]: a client of HTTP/2 that sends any frame;
//! - [`SecureTarget`]: the address, and connections to it that trust any certificate.

mod attack;
pub mod frames;
mod records;
mod streams;
mod target;
mod visitor;

pub use attack::{AttackEnd, SecureAttack};
pub use frames::{Frame, Frames, ReadWrite};
pub use target::SecureTarget;
pub use visitor::SecureVisitor;

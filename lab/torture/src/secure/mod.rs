//! Attacks over TLS and HTTP/2, each on one connection, with the end that a server should give it.
//!
//! - [`SecureAttack`]: what is done, and how the connection must end;
//! - [`secure_visitor`]: a well-behaved client beside them, which must notice nothing;
//! - [`SecureTarget`]: the address, and connections to it that trust any certificate.

mod attack;
mod records;
mod streams;
mod target;
mod visitor;

pub use attack::{AttackEnd, SecureAttack};
pub use target::SecureTarget;
pub use visitor::secure_visitor;

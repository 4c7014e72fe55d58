//! The client against little servers that behave, and against some that do not.

mod auto;
mod counts;
mod hostile;
mod open;
mod plans;
mod stub;
mod sweep;
mod timing;
mod users;

//! The client against little servers that behave, and against some that do not.

mod counts;
mod hostile;
mod open;
mod postgres;
mod stub;
mod sweep;
mod timing;

//! The client against little servers that behave, and against some that do not.

mod calibration;
mod counts;
mod hostile;
mod lateness;
mod null;
mod open;
mod postgres;
mod stub;
mod sweep;
mod timing;

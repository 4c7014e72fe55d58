//! The server over real sockets: the basic first, then limits, then its end.

mod support;

mod exchange;
mod files;
mod lifecycle;
mod limits;
mod protocol;
mod repeats;
mod turns;

//! The program as its users meet it: on the command line, on the network, and by signals.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the clock to give up waiting"
)]

mod capacity;
mod cli;
mod compare;
mod gates;
mod lab;
mod ladders;
mod loops;
mod measuring;
mod postgres;
mod results;
mod spin;
mod streams;
mod studies;
mod support;
mod sweep;
mod throttled;
mod transport;
mod workload;

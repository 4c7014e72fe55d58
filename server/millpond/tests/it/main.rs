//! The program as its users meet it: on the command line, on the network, and by signals.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the clock to give up waiting"
)]

mod adversary;
mod awake;
mod cache;
mod capacity;
mod cli;
mod compare;
mod databases;
mod demo;
mod descriptors;
mod explain;
mod fixing;
mod gates;
mod hostile;
mod hosts;
mod lab;
mod ladders;
mod limits;
mod loops;
mod measuring;
mod postgres;
mod promise;
mod results;
mod rules;
mod serving;
mod signals;
mod spin;
mod support;
mod sweep;
mod syscalls;
mod throttled;
mod transport;
mod workload;

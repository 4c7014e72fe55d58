//! The program as its users meet it: on the command line, on the network, and by signals.

mod cache;
mod capacity;
mod cli;
mod compare;
mod demo;
mod limits;
mod measuring;
mod postgres;
mod promise;
mod serving;
mod signals;
mod support;
mod sweep;
mod throttled;

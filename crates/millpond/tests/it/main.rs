//! The program as its users meet it: on the command line, on the network, and by signals.

mod cache;
mod cli;
mod demo;
mod limits;
mod measuring;
mod promise;
mod serving;
mod signals;
mod support;

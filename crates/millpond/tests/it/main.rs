//! The program as its users meet it: on the command line, on the network, and by signals.

mod cli;
mod demo;
mod measuring;
mod serving;
mod signals;
mod support;

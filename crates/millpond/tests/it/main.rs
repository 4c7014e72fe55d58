//! The program as its users meet it: on the command line, on the network, and by signals.

mod adversary;
mod cache;
mod capacity;
mod cli;
mod compare;
mod demo;
mod descriptors;
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
mod support;
mod sweep;
mod syscalls;
mod throttled;
mod transport;
mod workload;

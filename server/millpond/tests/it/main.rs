//! The program as its users meet it: on the command line, on the network, and by signals.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the clock to give up waiting"
)]

mod acme;
mod acme_database;
mod adversary;
mod api;
mod backup;
mod cache;
mod cli;
mod console;
mod data;
mod databases;
mod descriptors;
mod dev;
mod dev_refusals;
mod explain;
mod fixing;
mod form_errors;
mod grafana;
mod guards;
mod hostile;
mod hostile_tls;
mod hosts;
mod https;
mod limits;
mod live;
mod live_browser;
mod log;
mod manual;
mod memory;
mod metrics;
mod new_from;
mod otlp;
mod page_redirects;
mod promise;
mod relay;
mod rights;
mod rules;
mod serving;
mod shop;
mod signals;
mod stats;
mod support;
mod syscalls;
mod systemd;
mod templates;
mod top;
mod unit;
mod upgrade;
mod visitors;

//! The `millpond` program: its commands, and how they are wired to the crates that do the work.
//!
//! Exit status: 0 is good, 1 failed, 2 is a mistake on the command line.

mod access;
mod acme;
mod admin;
mod certificate_storage;
mod commands;
mod console;
mod events;
mod failure;
mod https;
pub mod new_site;
mod nightly;
mod otlp;
mod output;
mod reminder;
mod rights;
mod server;
mod sockets;
mod tls_check;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match commands::Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.status())
        }
    }
}

//! The `millrace` program: its commands, and how they are wired to the crates that measure.
//!
//! It knows the command line, the terminal and files of results. It must not know any code of the
//! server that it measures.
//!
//! Exit status: 0 is good, 1 failed, 2 is a mistake on the command line, 3 is an objective that was
//! missed.

mod commands;
mod events;
mod failure;
mod flags;
mod live;
mod output;
mod stored;

use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::Cli::read().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}

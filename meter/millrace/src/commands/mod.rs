//! The commands, one module each.

mod calibration_options;
mod capacity;
mod compare;
mod fileset;
mod headings;
mod lab;
mod load;
mod loop_options;
mod null;
mod only_options;
mod pace_options;
mod postgres_options;
mod probe_options;
mod report;
mod request_options;
mod results;
mod single_options;
mod sweep;
mod transport_options;
mod values;
mod workload_options;

use clap::{Parser, Subcommand};

use crate::failure::Outcome;

/// A meter for web servers: load, sweeps, capacity, comparisons and experiments that say whether to
/// believe them.
#[derive(Parser)]
#[command(
    name = "millrace",
    version,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Load(Box<load::Load>),
    Sweep(Box<sweep::Sweep>),
    Capacity(Box<capacity::Capacity>),
    Compare(Box<compare::Compare>),
    Report(report::Report),
    Lab(lab::Lab),
    Null(null::Null),
}

impl Cli {
    /// Does what the command line says.
    pub(crate) fn run(self) -> Outcome {
        match self.command {
            Command::Load(command) => command.run(),
            Command::Sweep(command) => command.run(),
            Command::Capacity(command) => command.run(),
            Command::Compare(command) => command.run(),
            Command::Null(command) => command.run(),
            Command::Lab(command) => command.run(),
            Command::Report(command) => command.run(),
        }
    }
}

//! The commands, one module each.

mod calibration_options;
mod capacity;
mod check;
mod compare;
mod database_option;
mod demo;
mod explain;
mod fileset;
mod headings;
mod import;
mod lab;
mod load;
mod loop_options;
mod new;
mod null;
mod only_options;
mod pace_options;
mod postgres_options;
mod probe_options;
mod report;
mod request_options;
mod results;
mod serve;
mod single_options;
mod sweep;
mod transport_options;
mod values;
mod workload_options;

use clap::{Parser, Subcommand};

use crate::failure::Outcome;

/// A web server for sites on a database, with a cache that is never stale beyond a stated bound, and a tool that
/// measures both.
#[derive(Parser)]
#[command(
    name = "millpond",
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
    Serve(serve::Serve),
    New(new::New),
    Check(check::Check),
    Explain(explain::Explain),
    Import(import::Import),
    Load(Box<load::Load>),
    Sweep(Box<sweep::Sweep>),
    Capacity(Box<capacity::Capacity>),
    Compare(Box<compare::Compare>),
    Report(report::Report),
    Lab(lab::Lab),
    Null(null::Null),
    Demo(demo::Demo),
}

impl Cli {
    /// Does what the command line says.
    pub(crate) fn run(self) -> Outcome {
        match self.command {
            Command::Serve(command) => command.run(),
            Command::New(command) => command.run(),
            Command::Check(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::Import(command) => command.run(),
            Command::Load(command) => command.run(),
            Command::Sweep(command) => command.run(),
            Command::Capacity(command) => command.run(),
            Command::Compare(command) => command.run(),
            Command::Null(command) => command.run(),
            Command::Lab(command) => command.run(),
            Command::Demo(command) => command.run(),
            Command::Report(command) => command.run(),
        }
    }
}

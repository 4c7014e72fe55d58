//! The commands, one module each. The flags that they share are in [`crate::flags`].

mod arrivals;
mod calibration;
mod capacity;
mod compare;
mod fileset;
pub(crate) mod headings;
mod lab;
mod load;
mod null;
mod report;
mod results;
mod single;
mod sweep;
pub(crate) mod values;
mod workload;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::failure::CommandResult;

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
    Report(report::ReportCommand),
    Lab(lab::Lab),
    Null(null::Null),
}

impl Cli {
    /// The command line of this process. Ends the process with a message if it has a mistake.
    pub(crate) fn read() -> Self {
        let command = Self::command().mut_subcommand("load", load::refuse_beside_probe_only);
        let matches = command.get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Does what the command line says.
    pub(crate) fn run(self) -> CommandResult {
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    /// Among others: that every flag to which another one refers by its name exists.
    #[test]
    fn the_flags_of_every_command_fit_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn manuals_have_every_command_and_flag() {
        lab_testkit::write_manuals(Cli::command());
    }
}

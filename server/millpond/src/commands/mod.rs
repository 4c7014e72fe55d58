//! The commands, one module each.

mod admin_option;
mod backup;
mod check;
mod database_option;
mod explain;
mod new;
mod serve;
mod stats;
mod top;
mod unit;

use clap::{Parser, Subcommand};

use crate::failure::CommandResult;

/// A web server for sites on a database, with a cache that is never stale beyond a stated bound.
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
    Serve(serve::ServeArgs),
    New(new::NewArgs),
    Check(check::CheckArgs),
    Explain(explain::ExplainArgs),
    Top(top::TopArgs),
    Stats(stats::StatsArgs),
    Backup(backup::BackupArgs),
    Unit(unit::UnitArgs),
}

impl Cli {
    /// Does what the command line says.
    pub(crate) fn run(self) -> CommandResult {
        match self.command {
            Command::Serve(command) => command.run(),
            Command::New(command) => command.run(),
            Command::Check(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::Top(command) => command.run(),
            Command::Stats(command) => command.run(),
            Command::Backup(command) => command.run(),
            Command::Unit(command) => command.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn manuals_have_every_command_and_flag() {
        Cli::command().debug_assert();
        lab_testkit::write_manuals(Cli::command());
    }
}

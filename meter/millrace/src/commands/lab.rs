//! `millrace lab`: experiments with several servers, from files, and the studies that they belong
//! to.

mod catalogue;
mod check;
mod expected;
mod experiment;
mod list;
mod run;
mod site;
mod studies;

use clap::{Args, Subcommand};

use crate::failure::CommandResult;

/// Measure several servers alike: experiments from files, and studies of several
#[derive(Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list::List),
    Check(check::CheckCommand),
    Run(Box<run::Run>),
    Report(site::ReportSite),
}

impl Lab {
    pub(crate) fn run(self) -> CommandResult {
        match self.command {
            Command::List(list) => list.run(),
            Command::Check(check) => check.run(),
            Command::Run(run) => run.run(),
            Command::Report(report) => report.run(),
        }
    }
}

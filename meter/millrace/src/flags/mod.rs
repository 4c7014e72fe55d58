//! The flags that measuring commands share: one table (`table.rs`, its rows in a file for each
//! heading), and how it is applied.
//!
//! Each row has the flag's name, its help, the commands that take it, and what it sets in the plan
//! of a run. Flags of one command alone are fields of that command.

mod client;
mod kinds;
mod pace;
mod probe;
mod request;
mod table;
mod target;
mod workload;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use millrace_client::{Plan, ProbePlan, command_line};

use crate::failure::CommandResult;

/// `millrace load`.
pub(crate) const LOAD: u8 = 1;
/// `millrace sweep`.
pub(crate) const SWEEP: u8 = 2;
/// `millrace capacity`.
pub(crate) const CAPACITY: u8 = 4;
/// `millrace compare`.
pub(crate) const COMPARE: u8 = 8;

/// The commands that sample the host beside their runs.
const PROBING: u8 = LOAD | SWEEP | CAPACITY;
/// All that measure.
const ALL: u8 = LOAD | SWEEP | CAPACITY | COMPARE;

/// One row of the table.
struct Flag {
    /// Name behind `--`; other rows and commands refer to the flag by this name as well.
    name: &'static str,
    help: &'static str,
    /// The commands that take it.
    on: u8,
    /// Form of the flag's value.
    arg: fn(Arg) -> Arg,
    /// Sets its part of the plan. The rows set their parts in order.
    set: fn(&mut Plan, &Given<'_>) -> CommandResult,
}

impl Flag {
    fn to_arg(&self, heading: &'static str) -> Arg {
        let arg = Arg::new(self.name)
            .long(self.name)
            .help(self.help)
            .help_heading(heading);
        (self.arg)(arg)
    }
}

/// The values of one flag.
struct Given<'a> {
    name: &'static str,
    matches: &'a ArgMatches,
}

impl Given<'_> {
    /// The value, or the default of the flag.
    fn value<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.matches.get_one::<T>(self.name).cloned()
    }

    /// The values of a flag that may be repeated.
    fn values<T: Clone + Send + Sync + 'static>(&self) -> Vec<T> {
        let values = self.matches.get_many::<T>(self.name);
        values.into_iter().flatten().cloned().collect()
    }

    /// True if a flag without a value was given.
    fn is_on(&self) -> bool {
        self.matches.get_flag(self.name)
    }

    /// True if another flag was given.
    fn is_with(&self, other: &str) -> bool {
        self.matches.value_source(other) == Some(ValueSource::CommandLine)
    }
}

/// The flags of the table that one command takes, as they were given.
#[derive(Clone)]
pub(crate) struct PlanFlags<const COMMAND: u8>(ArgMatches);

impl<const COMMAND: u8> PlanFlags<COMMAND> {
    fn rows() -> impl Iterator<Item = (&'static str, &'static Flag)> {
        table::rows().filter(|(_, flag)| flag.on & COMMAND != 0)
    }

    /// A plan for `url` with these flags, and the defaults where no flag was given.
    pub(crate) fn plan(&self, url: &str) -> CommandResult<Plan> {
        let mut plan = Plan::new(url);
        plan.conditions.command = command_line("millrace");
        plan.conditions.probe = (COMMAND & PROBING != 0).then(ProbePlan::default);
        for (_, flag) in Self::rows() {
            let given = Given {
                name: flag.name,
                matches: &self.0,
            };
            (flag.set)(&mut plan, &given)?;
        }
        Ok(plan)
    }

    /// The value of a flag that sets nothing in the plan.
    pub(crate) fn value<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Option<T> {
        self.0.get_one::<T>(name).cloned()
    }

    /// True if a flag without a value was given.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.0.get_flag(name)
    }
}

impl<const COMMAND: u8> FromArgMatches for PlanFlags<COMMAND> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

impl<const COMMAND: u8> Args for PlanFlags<COMMAND> {
    fn augment_args(command: Command) -> Command {
        command.args(Self::rows().map(|(heading, flag)| flag.to_arg(heading)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

//! The options that say what lies between the requests of a visitor: the same in each measuring command.

use std::time::Duration;

use super::values;
use clap::Args;
use millrace_client::{Pace, Plan, Think};

use super::headings::LOOP;

/// Pauses and sessions.
#[derive(Args)]
#[command(next_help_heading = LOOP)]
pub(crate) struct PaceOptions {
    /// Pause after each answer: 500ms, exp:500ms (this mean) or uniform:100ms-1s
    #[arg(long, value_name = "TIME", conflicts_with = "cycle")]
    think: Option<Think>,
    /// Send the next request of a connection this long after the last one; at once if the answer came later
    #[arg(long, value_name = "TIME", value_parser = values::duration, hide_short_help = true)]
    cycle: Option<Duration>,
    /// Sessions of N requests, --think between them, arrive at the rate
    #[arg(long, value_name = "N")]
    session: Option<u64>,
}

impl PaceOptions {
    /// `plan` with these options.
    pub(crate) fn apply(&self, plan: Plan) -> Plan {
        let pace = match (self.think, self.cycle) {
            (Some(think), _) => Pace::Think(think),
            (None, Some(cycle)) => Pace::Cycle(cycle),
            (None, None) => Pace::AtOnce,
        };
        plan.with(|plan| {
            plan.load.pace = pace;
            plan.load.session = self.session;
        })
    }
}

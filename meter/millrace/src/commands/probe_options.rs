//! The options that say what is sampled on the host while a run lasts, or without one.

use std::time::Duration;

use super::values;
use base_probe::{Probe, Prober, ProberOptions};
use clap::Args;
use millrace_client::ProbePlan;

use super::headings::BESIDE;
use crate::events::Events;
use crate::failure::{Failure, Outcome};
use crate::output::Progress;

/// What is sampled on the machine of the server.
#[derive(Args)]
#[command(next_help_heading = BESIDE)]
pub(crate) struct ProbeOptions {
    /// The server's process, with its children; else who listens on the URL's port
    #[arg(long, value_name = "PID", conflicts_with = "no_probe")]
    pid: Vec<i32>,
    /// The server's processes, by a port that they listen on
    #[arg(long, value_name = "PORT", conflicts_with = "no_probe")]
    port: Vec<u16>,
    /// Sample nothing beside the run
    #[arg(long, hide_short_help = true)]
    no_probe: bool,
    /// Time between two samples of the host, from 100ms to 1s
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = values::duration, hide_short_help = true)]
    probe_interval: Duration,
    /// Do not count instructions, cycles and misses in the server's threads
    #[arg(long, hide_short_help = true)]
    no_perf: bool,
}

impl ProbeOptions {
    /// What a run samples beside it.
    pub(crate) fn plan(&self) -> Option<ProbePlan> {
        (!self.no_probe).then(|| ProbePlan {
            interval: self.probe_interval,
            pids: self.pid.clone(),
            ports: self.port.clone(),
            perf: !self.no_perf,
        })
    }

    /// Samples for `duration`, or until Ctrl-C.
    pub(crate) fn only(&self, duration: Duration, line: &Progress) -> Outcome<Probe> {
        let events = Events::listen()?;
        let prober = Prober::start(ProberOptions {
            interval: self.probe_interval,
            pids: self.pid.clone(),
            ports: self.port.clone(),
            required: true,
            own_threads: None,
            perf: !self.no_perf,
        })
        .map_err(|error| Failure::new(format!("the host cannot be probed: {error}")))?;
        line.show(format!("sampling for {duration:?}"));
        events.stopped_within(duration);
        line.clear();
        Ok(prober.stop())
    }
}

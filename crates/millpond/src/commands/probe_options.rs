//! The options that say what is sampled on the host while a run lasts, and `--probe-only`, which does nothing else.

use std::time::Duration;

use clap::Args;
use millpond_load::ProbePlan;
use millpond_site::Config;
use millpond_telemetry::probe::{Options, Probe, Prober};

use crate::events::Events;
use crate::failure::{Failure, Outcome};
use crate::output::Progress;

/// What is sampled on the machine of the server.
#[derive(Args)]
#[command(next_help_heading = "Host probe")]
pub(crate) struct ProbeOptions {
    /// Time between two samples of the host, from 100ms to 1s
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = Config::duration)]
    probe_interval: Duration,
    /// Sample nothing beside the run
    #[arg(long)]
    no_probe: bool,
    /// The server's process, with its children; may be repeated. Without it, and without --port, whoever listens on
    /// the URL's port on this machine
    #[arg(long, value_name = "PID", conflicts_with = "no_probe")]
    pid: Vec<i32>,
    /// The server's processes, by a port that they listen on; may be repeated
    #[arg(long, value_name = "PORT", conflicts_with = "no_probe")]
    port: Vec<u16>,
    /// Do not count instructions, cycles and misses in the server's threads
    #[arg(long)]
    no_perf: bool,
    /// Send nothing, only sample for --duration, on the server's machine; --json FILE keeps the samples
    #[arg(long, conflicts_with_all = ["url", "no_probe", "diagnose", "csv"])]
    pub(crate) probe_only: bool,
    /// Name what limits the server: four short runs, with 1, half, all and twice the connections, in --duration
    #[arg(long, conflicts_with_all = ["rate", "requests", "no_probe"])]
    pub(crate) diagnose: bool,
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
    pub(crate) fn only(&self, duration: Duration) -> Outcome<Probe> {
        let events = Events::listen()?;
        let prober = Prober::start(Options {
            interval: self.probe_interval,
            pids: self.pid.clone(),
            ports: self.port.clone(),
            required: true,
            own_threads: None,
            perf: !self.no_perf,
        })
        .map_err(|error| Failure::new(format!("the host cannot be probed: {error}")))?;
        let line = Progress::new();
        line.show(format!("sampling for {duration:?}"));
        events.stopped_within(duration);
        Ok(prober.stop())
    }
}

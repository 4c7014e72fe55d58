//! What the probe of a host adds to graphs: what a request costs there, CPU idle, and network use.

use millrace_runs::{Run, Sweep};

use crate::sweep_charts::{level_axis, over, ways};
use crate::{Axis, BarChart, Bars, LineChart, Scale, Section, Unit};

/// CPU time of a request by where it was spent, a bar for each run; `None` if no run has a probe.
pub(crate) fn cost(runs: &[(String, &Run)]) -> Option<Section> {
    let probed: Vec<&(String, &Run)> = runs
        .iter()
        .filter(|(_, run)| parts(run).iter().flatten().next().is_some())
        .collect();
    if probed.is_empty() {
        return None;
    }
    let names = [
        "server, user",
        "server, kernel",
        "interrupts of the machine",
        "client",
    ];
    let series = names.iter().enumerate().map(|(n, name)| Bars {
        name: (*name).to_owned(),
        values: probed.iter().map(|(_, run)| parts(run)[n]).collect(),
    });
    Some(Section::Stacks(BarChart {
        title: "CPU time of a request by where it is spent".to_owned(),
        note: "The server’s by the scheduler, divided into user and kernel as its ticks are. Interrupts are those of the whole \
               machine that was probed, the client’s too where it runs there."
            .to_owned(),
        unit: Unit::Micros,
        scale: Scale::Linear,
        groups: probed.iter().map(|(name, _)| name.clone()).collect(),
        series: series.collect(),
    }))
}

/// Microseconds of a request: server in user mode and in the kernel, interrupts, client.
fn parts(run: &Run) -> [Option<f64>; 4] {
    let summary = run.probe.as_ref().and_then(|probe| probe.summary.as_ref());
    let Some(summary) = summary else {
        return [None; 4];
    };
    let requests = run.achieved_rate * summary.span_s;
    let each = |seconds: f64| (requests > 0.0).then(|| seconds * 1e6 / requests);
    let server = summary.server.as_ref();
    let share = |of: f64, ticks: f64| if ticks > 0.0 { of / ticks } else { 0.0 };
    let split = server.map(|server| {
        let ticks = server.user_s + server.system_s;
        let user = server.cpu_s * share(server.user_s, ticks);
        [user, server.cpu_s - user]
    });
    let interrupts: f64 = summary
        .cores
        .iter()
        .map(|core| core.softirq + core.irq)
        .sum();
    let has_cores = !summary.cores.is_empty();
    [
        split.and_then(|[user, _]| each(user)),
        split.and_then(|[_, system]| each(system)),
        each(interrupts * summary.span_s).filter(|_| has_cores),
        run.client.cpu_us_per_request,
    ]
}

/// The graphs over the levels of a sweep whose steps were probed; none without a probe.
pub(crate) fn of_sweep(sweep: &Sweep) -> Vec<Section> {
    let is_probed = |run: &Run| {
        run.probe
            .as_ref()
            .is_some_and(|probe| probe.summary.is_some())
    };
    if !sweep
        .steps
        .iter()
        .any(|step| step.complete && is_probed(&step.run))
    {
        return Vec::new();
    }
    let first = sweep
        .steps
        .iter()
        .filter(|step| step.complete && step.repeat == 1);
    let steps: Vec<(String, &Run)> = first
        .map(|step| (crate::sweep::at(sweep, step.level), &step.run))
        .collect();
    let mut sections = vec![Section::Lines(idle(sweep))];
    let network = network(sweep);
    let moves = network.lines.iter().flat_map(|line| &line.points);
    if moves.into_iter().any(|(_, bytes)| bytes.is_some()) {
        sections.push(Section::Lines(network));
    }
    sections.extend(cost(&steps));
    sections
}

/// The share of time in which the cores had nothing to do.
fn idle(sweep: &Sweep) -> LineChart {
    let cores = |run: &Run| -> Option<Vec<f64>> {
        let summary = run.probe.as_ref()?.summary.as_ref()?;
        let idle = summary.cores.iter().map(|core| core.idle + core.iowait);
        Some(idle.collect()).filter(|cores: &Vec<f64>| !cores.is_empty())
    };
    let mut lines = ways(sweep, "all cores", |run| {
        let cores = cores(run)?;
        Some(cores.iter().sum::<f64>() / cores.len() as f64)
    });
    lines.extend(ways(sweep, "busiest core", |run| {
        cores(run)?.into_iter().reduce(f64::min)
    }));
    LineChart {
        title: over(sweep.by, "CPU idle"),
        note: "Of the machine that was probed, by clock ticks; waiting for a disk is idle too."
            .to_owned(),
        x: level_axis(sweep),
        y: Axis::linear("idle", Unit::Percent),
        lines,
    }
}

/// Bytes a second over the network.
fn network(sweep: &Sweep) -> LineChart {
    let rate = |run: &Run, of: fn(&[u64; 3]) -> u64| -> Option<f64> {
        let summary = run.probe.as_ref()?.summary.as_ref()?;
        let counts = &summary.network.as_ref()?.counts;
        let bytes = [
            counts.received_bytes,
            counts.sent_bytes,
            counts.loopback_bytes,
        ];
        (summary.span_s > 0.0).then(|| of(&bytes) as f64 / summary.span_s)
    };
    let mut lines = ways(sweep, "received", |run| rate(run, |bytes| bytes[0]));
    lines.extend(ways(sweep, "sent", |run| rate(run, |bytes| bytes[1])));
    lines.extend(ways(sweep, "loopback", |run| rate(run, |bytes| bytes[2])));
    LineChart {
        title: over(sweep.by, "Network use"),
        note: "Of the machine that was probed, over all interfaces; loopback is apart.".to_owned(),
        x: level_axis(sweep),
        y: Axis::linear("bytes per second", Unit::Bytes),
        lines,
    }
}

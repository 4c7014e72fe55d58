//! What limits a server: the findings, what a request takes of each resource, and the host's work.

use millrace_runs::{Capacity, Probe, Probed, Run, Summary, Sweep};
use millrace_stats::{Demand, Demands, Finding, PerRequest};

use crate::measured::{none, sentence};
use crate::number::{bytes, count, micros, percent, plain, rate, seconds};
use crate::{Column, Report, Section, Table, probed, text_table};

/// The sections of a run that was probed; none for others.
pub(crate) fn sections(run: &Run) -> Vec<Section> {
    let Some(probed) = &run.probe else {
        return Vec::new();
    };
    let mut sections = vec![Section::Heading("What limits the server".to_owned())];
    match &run.bottleneck {
        Some(found) if found.is_empty() => {
            sections.push(Section::Text(sentence(none_named(probed))))
        }
        Some(found) => sections.push(Section::Table(findings_table(found))),
        None => sections.push(Section::Text(sentence(TOO_SHORT))),
    }
    sections.extend(
        probed
            .demands
            .as_ref()
            .map(|demands| Section::Table(demands_table(demands))),
    );
    if let Some(summary) = &probed.summary {
        sections.extend(host_tables(summary).into_iter().map(Section::Table));
    }
    sections.push(Section::Table(probe_table(&probed.samples)));
    sections
}

const NOTHING: &str = "nothing that shows: the server was not at its limit, or waits in a way that one level of load \
                       does not tell (--diagnose does)";
const UNSEEN: &str = "not known: the server's processes were not seen, and nothing else on the machine shows a limit";
const TOO_SHORT: &str = "the measured part was too short for two samples of the host";

/// Why there is no finding: a server without a probe cannot be called idle.
fn none_named(probed: &Probed) -> &'static str {
    let is_seen = |summary: &Summary| summary.server.is_some();
    if probed.summary.as_ref().is_some_and(is_seen) {
        NOTHING
    } else {
        UNSEEN
    }
}

/// Lists the limits of the server, as lines after the table of a run. Empty without a probe.
pub fn limits_text(run: &Run) -> String {
    let Some(probed) = &run.probe else {
        return String::new();
    };
    let samples = &probed.samples;
    let mut text = match &run.bottleneck {
        Some(found) if found.is_empty() => {
            format!("limited by: {}\n", none_named(probed))
        }
        Some(found) => findings_text(found),
        None => format!("limited by: not known, for {TOO_SHORT}\n"),
    };
    let names: Vec<String> = samples
        .processes
        .iter()
        .filter(|process| process.found != "child")
        .map(|process| format!("{} ({}), {}", process.pid, process.name, process.found))
        .collect();
    match samples.unavailable.get("processes") {
        Some(why) if names.is_empty() => text.push_str(&format!("server process: {why}\n")),
        _ => text.push_str(&format!("server process: {}\n", names.join("; "))),
    }
    for note in &samples.notes {
        text.push_str(&format!("  {note}\n"));
    }
    text
}

/// The likeliest limit with what speaks for it, and the names of the others. The report and the
/// JSON have the evidence of all.
fn findings_text(found: &[Finding]) -> String {
    let named = |finding: &Finding| match finding.bound_per_s {
        Some(bound) => format!("{} (at most {})", finding.name, rate(bound)),
        None => finding.name.to_string(),
    };
    let Some((first, others)) = found.split_first() else {
        return String::new();
    };
    let bound = first.bound_per_s.map(rate);
    let bound = bound.map_or_else(String::new, |bound| format!(", at most {bound}"));
    let mut text = format!("limited by: {}{bound}\n", first.name);
    for evidence in &first.evidence {
        text.push_str(&format!("    {evidence}\n"));
    }
    if !others.is_empty() {
        let others: Vec<String> = others.iter().map(named).collect();
        text.push_str(&format!("  then by: {}\n", others.join(", ")));
    }
    text
}

/// Lists the limits of the server over the steps of a sweep, for a terminal; none if nothing was
/// sampled.
pub fn sweep_limits_text(sweep: &Sweep) -> Option<String> {
    let is_probed = sweep.steps.iter().any(|step| step.run.probe.is_some());
    is_probed.then(|| {
        let found = sweep.bottleneck.as_deref().unwrap_or_default();
        levels_text(found, &sweep.remarks, sweep.demands.as_ref())
    })
}

/// The sections of a sweep whose steps were probed; none for others.
pub(crate) fn sweep_sections(sweep: &Sweep) -> Vec<Section> {
    if sweep.steps.iter().all(|step| step.run.probe.is_none()) {
        return Vec::new();
    }
    let found = sweep.bottleneck.as_deref().unwrap_or_default();
    let mut sections = levels_sections(found, &sweep.remarks, sweep.demands.as_ref());
    sections.extend(probed::of_sweep(sweep));
    let fastest = sweep.steps.iter().filter(|step| step.complete);
    let fastest = fastest.max_by(|a, b| a.run.achieved_rate.total_cmp(&b.run.achieved_rate));
    let probed = fastest.and_then(|step| step.run.probe.as_ref());
    sections.extend(probed.map(|probed| Section::Table(probe_table(&probed.samples))));
    sections
}

/// Lists the limits of the server at its capacity, for a terminal; none if nothing was sampled
/// there.
pub fn capacity_limits_text(capacity: &Capacity) -> Option<String> {
    let found = capacity.bottleneck.as_deref()?;
    let demands = capacity.demands.as_ref();
    Some(levels_text(found, &capacity.remarks, demands))
}

/// The sections of a search that was sampled at its end; none for others.
pub(crate) fn capacity_sections(capacity: &Capacity) -> Vec<Section> {
    let found = capacity.bottleneck.as_deref();
    found.map_or_else(Vec::new, |found| {
        levels_sections(found, &capacity.remarks, capacity.demands.as_ref())
    })
}

/// Makes the sections of the limits over several levels of load, for a page.
fn levels_sections(
    found: &[Finding],
    remarks: &[String],
    demands: Option<&Demands>,
) -> Vec<Section> {
    let mut sections = vec![Section::Heading("What limits the server".to_owned())];
    sections.push(match found {
        [] => Section::Text(sentence(NOWHERE)),
        _ => Section::Table(findings_table(found)),
    });
    let remarks = remarks.iter();
    sections.extend(remarks.map(|remark| Section::Text(sentence(remark))));
    let demands = demands.into_iter();
    sections.extend(demands.map(|demands| Section::Table(demands_table(demands))));
    sections
}

const NOWHERE: &str = "nothing that shows at these levels";

/// Lists the limits over several levels of load.
pub(crate) fn levels_text(
    found: &[Finding],
    remarks: &[String],
    demands: Option<&Demands>,
) -> String {
    let mut text = match found {
        [] => format!("limited by: {NOWHERE}\n"),
        _ => findings_text(found),
    };
    for remark in remarks {
        text.push_str(&format!("remark: {remark}\n"));
    }
    if let Some(demands) = demands {
        text.push_str(&text_table(&demands_table(demands)));
    }
    text
}

pub(crate) fn findings_table(found: &[Finding]) -> Table {
    let row = |finding: &Finding| {
        vec![
            finding.name.to_string(),
            finding.bound_per_s.map_or_else(none, rate),
            finding.evidence.join("; "),
        ]
    };
    Table {
        caption: "Limits, the likeliest first".to_owned(),
        columns: Column::all("limit|#at most|evidence"),
        rows: found.iter().map(row).collect(),
        note: String::new(),
    }
}

pub(crate) fn demands_table(demands: &Demands) -> Table {
    let amount = |demand: &Demand| match demand.unit {
        PerRequest::Microseconds => micros(demand.per_request),
        PerRequest::Bytes => bytes(demand.per_request),
        PerRequest::Count => plain(demand.per_request),
    };
    let row = |demand: &Demand| {
        vec![
            demand.resource.clone(),
            amount(demand),
            demand.utilisation.map_or_else(none, percent),
            demand.bound_per_s.map_or_else(none, rate),
        ]
    };
    Table {
        caption: format!("What a request takes, at {}", rate(demands.rate_per_s)),
        columns: Column::all("resource|#per request|#in use|#full at"),
        rows: demands.resources.iter().map(row).collect(),
        note: "By the demand law D = U·T/C. The client's share of a machine that it shares is not the server's."
            .to_owned(),
    }
}

fn host_tables(summary: &Summary) -> Vec<Table> {
    let cores = summary.cores.iter().enumerate().map(|(n, core)| {
        let shares = [
            core.user,
            core.system,
            core.softirq,
            core.irq,
            core.steal,
            core.iowait,
            core.idle,
        ];
        std::iter::once(count(n as u64))
            .chain(shares.map(percent))
            .collect()
    });
    let threads = summary.threads.iter().map(|thread| {
        vec![
            format!("{} ({})", thread.name, thread.tid),
            percent(thread.busy),
            percent(thread.run_delay),
        ]
    });
    let titles = [
        "core",
        "user",
        "system",
        "softirq",
        "irq",
        "steal",
        "waiting for a disk",
        "idle",
    ];
    vec![
        Table {
            caption: "Cores of the host".to_owned(),
            columns: titles.map(Column::number).to_vec(),
            rows: cores.collect(),
            note: format!(
                "Counted in clock ticks: exact to {}.",
                percent(summary.tick_error)
            ),
        },
        Table {
            caption: "Busiest threads of the server".to_owned(),
            columns: Column::all("thread|#runs|#waits for a core"),
            rows: threads.collect(),
            note: String::new(),
        },
    ]
}

/// Makes the table of the watched processes, of figures that could not be read, and of the cost of
/// sampling.
pub fn probe_table(probe: &Probe) -> Table {
    let mut rows: Vec<Vec<String>> = probe
        .processes
        .iter()
        .map(|process| {
            let name = format!("process {} ({})", process.pid, process.name);
            vec![name, process.found.clone()]
        })
        .collect();
    rows.extend(
        probe
            .unavailable
            .iter()
            .map(|(name, why)| vec![format!("not available: {name}"), why.clone()]),
    );
    let notes = probe.notes.iter();
    rows.extend(notes.map(|note| vec!["note".to_owned(), note.clone()]));
    let cost = &probe.cost;
    rows.push(vec![
        "sampling".to_owned(),
        format!(
            "{} samples, one every {}, for {} of CPU ({} of a core)",
            count(cost.samples),
            seconds(probe.interval_ms / 1e3),
            micros(cost.cpu_ms * 1e3),
            percent(cost.core_share)
        ),
    ]);
    Table {
        caption: "The host probe".to_owned(),
        columns: vec![Column::text(""), Column::text("")],
        rows,
        note: String::new(),
    }
}

/// Samples without a run as a report of their own.
pub fn probe_report(probe: &Probe) -> Report {
    let mut report = Report::new("Samples of a host", "Without a run beside them");
    let (first, last) = (probe.samples.first(), probe.samples.last());
    let all = first.zip(last).and_then(|(first, last)| {
        let at = millrace_runs::Moment::Monotonic;
        probe.within(at(first.mono_ns), at(last.mono_ns))
    });
    if let Some(summary) = &all {
        for table in host_tables(summary) {
            report.push(Section::Table(table));
        }
    }
    report.push(Section::Table(probe_table(probe)));
    report
}

#[cfg(test)]
mod tests {
    use millrace_runs::{Probed, Summary};
    use millrace_stats::{Finding, Limit};

    use super::{NOTHING, UNSEEN, findings_text, none_named};

    #[test]
    fn the_likeliest_limit_has_its_evidence_and_the_others_their_names() {
        let finding = |name, bound_per_s, evidence: &[&str]| Finding {
            name,
            weight: 1.0,
            evidence: evidence.iter().map(ToString::to_string).collect(),
            bound_per_s,
        };
        let found = [
            finding(Limit::Cores, Some(161e3), &["idle 3 %", "and shared"]),
            finding(Limit::Client, Some(170e3), &["busy"]),
            finding(Limit::Neighbours, None, &["others use 0.4"]),
        ];
        let text = findings_text(&found).replace('\u{a0}', " ");
        assert_eq!(
            text,
            "limited by: the CPU of all cores, at most 161 k/s\n    idle 3 %\n    and shared\n  \
             then by: the client itself (at most 170 k/s), other programs on its cores\n"
        );
        assert_eq!(findings_text(&found[2..]).lines().count(), 2);
    }

    #[test]
    fn an_unseen_server_gets_no_statement() {
        let mut probed = Probed {
            summary: Some(Summary::default()),
            ..Probed::default()
        };
        assert_eq!(none_named(&probed), UNSEEN);
        probed.summary = Some(Summary {
            server: Some(Default::default()),
            ..Summary::default()
        });
        assert_eq!(none_named(&probed), NOTHING);
    }
}

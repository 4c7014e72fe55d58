//! `millrace report`: stored results as one page, as graphs, as a table, or merged into one run.

use std::path::{Path, PathBuf};

use base_probe::{Moment, Probe};
use clap::Args;
use millrace_client::command_line;
use millrace_report::{
    StoredResult, collection_report, collection_table, run_csv, run_report, run_table, summary_csv,
    text_table,
};
use millrace_runs::Run;
use millrace_stats::Verdict;

use super::headings::OUTPUT;
use super::results::{FileOptions, write_to};
use crate::failure::{CommandResult, Failure};
use crate::stored;

/// Make one page, graphs or a table of stored results
///
/// The files are those of --json of load (with --diagnose too), sweep, capacity, compare and lab;
/// what each one is, is seen from its content.
///
/// With --merge runs become one: generators that ran at the same time on several machines, whose
/// rates add up, or repeats one after the other, which are averaged. Their histograms are added, so
/// that percentiles are those of all samples together.
///
/// Exit status: 0 when all was read and written, 1 when it was not, or the merged run is INVALID.
#[derive(Args)]
pub(crate) struct ReportCommand {
    /// Files that --json of a measuring command has written
    #[arg(value_name = "FILE.json", required = true)]
    files: Vec<PathBuf>,
    /// Merge the runs into one
    #[arg(long)]
    merge: bool,
    /// Write the merged run as JSON; - is standard output
    #[arg(long, value_name = "FILE", requires = "merge", help_heading = OUTPUT)]
    json: Option<PathBuf>,
    /// File that `load --probe-only --json` has stored on the machine of the server while the runs
    /// were made
    #[arg(long, value_name = "PROBE.json", conflicts_with = "merge")]
    probe: Option<PathBuf>,
    #[command(flatten)]
    results: FileOptions,
}

impl ReportCommand {
    pub(crate) fn run(self) -> CommandResult {
        let tell = self.results.teller(self.json.as_deref())?;
        let mut found = Vec::new();
        for path in &self.files {
            found.push((name(path), stored::read(path)?));
        }
        if self.merge {
            return self.merged(found, tell);
        }
        if let Some(path) = &self.probe {
            attach(&mut found, path)?;
        }
        number_same_names(&mut found);
        tell(text_table(&collection_table(&found)).trim_end());
        self.results
            .write(|| summary_csv(&found), || collection_report(&found))
    }

    fn merged(&self, found: Vec<(String, StoredResult)>, tell: fn(&str)) -> CommandResult {
        let mut runs = Vec::new();
        for ((_, found), path) in found.into_iter().zip(&self.files) {
            match found {
                StoredResult::Run(run) => runs.push(*run),
                other => {
                    let (path, kind) = (path.display(), other.kind());
                    return Err(Failure::new(format!(
                        "{path} is a {kind}, and only runs can be merged"
                    ))
                    .hint("leave out --merge to have them beside each other on one page"));
                }
            }
        }
        let command = command_line("millrace");
        let run = Run::merge(&runs, &command).map_err(|error| self.why_not(&error))?;
        tell(text_table(&run_table(&run)).trim_end());
        if let Some(path) = &self.json {
            let json = serde_json::to_string_pretty(&run).map_err(Failure::new)?;
            write_to(path, &json)?;
        }
        self.results.write(|| run_csv(&run), || run_report(&run))?;
        match run.verdict {
            // The table has the reasons.
            Verdict::Invalid => Err(Failure::Said),
            Verdict::Valid | Verdict::Suspect => Ok(()),
        }
    }

    /// Runs are numbered in the order of the files.
    fn why_not(&self, error: &millrace_runs::MergeError) -> Failure {
        let files = self.files.iter().enumerate();
        let names: Vec<String> = files
            .map(|(n, path)| format!("{} is {}", n + 1, path.display()))
            .collect();
        Failure::new(error).hint(format!(
            "run {}; leave out --merge to have them beside each other on one page",
            names.join(", run ")
        ))
    }
}

/// Attaches a probe to each run and step during which it sampled.
fn attach(found: &mut [(String, StoredResult)], path: &Path) -> CommandResult {
    let probe = stored::read_probe(path)?;
    let mut attached = 0;
    for (_, one) in found {
        let runs: Vec<&mut Run> = match one {
            StoredResult::Run(run) => vec![run],
            StoredResult::Sweep(sweep) => {
                sweep.steps.iter_mut().map(|step| &mut step.run).collect()
            }
            // These keep none of their runs, or have their own probes.
            StoredResult::Capacity(_)
            | StoredResult::Comparison(_)
            | StoredResult::Lab(_)
            | StoredResult::Diagnosis(_) => Vec::new(),
        };
        for run in runs {
            attached += u64::from(attach_to(run, &probe));
        }
        if let StoredResult::Sweep(sweep) = one {
            sweep.find_limits();
        }
    }
    if attached == 0 {
        let message = format!(
            "{} has no two samples from the time of any of these runs",
            path.display()
        );
        return Err(Failure::new(message)
            .hint("the clocks of both machines must agree to a fraction of a second"));
    }
    Ok(())
}

/// Attaches the part of a probe that lies within a run. False if there is none.
fn attach_to(run: &mut Run, probe: &Probe) -> bool {
    let start = run.started_unix_us.saturating_mul(1000);
    let end = start.saturating_add((run.duration_s.max(0.0) * 1e9) as u64);
    let mut within = probe.clone();
    within
        .samples
        .retain(|sample| (start..=end).contains(&sample.wall_ns));
    if within.samples.len() < 2 {
        return false;
    }
    run.attach_probe(within, Moment::Wall(start), Moment::Wall(end));
    true
}

/// The name of a result: its file name without the ending.
fn name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or(path.as_os_str());
    stem.to_string_lossy().into_owned()
}

/// Adds the number of the file to names that occur more than once.
fn number_same_names(found: &mut [(String, StoredResult)]) {
    let names: Vec<String> = found.iter().map(|(name, _)| name.clone()).collect();
    for (number, (name, _)) in found.iter_mut().enumerate() {
        if names.iter().filter(|other| *other == name).count() > 1 {
            name.push_str(&format!(" ({})", number + 1));
        }
    }
}

//! `millpond stats`: the figures of access logs, or of the history of a server.

use std::path::{Path, PathBuf};
use std::{fs, io};

use base_chart::Report;
use clap::Args;
use millpond_console::HistoryReport;
use millpond_site::Config;
use millpond_statistics::{Filters, Options, Period, count};
use serde_json::Value;

use crate::failure::{CommandFailure, CommandResult};
use crate::output::{note, replace_file, write_out};

/// Show the figures of access logs: days, addresses, visitors, answers, peaks and where they came
/// from; or of the server's history
#[derive(Args)]
pub(crate) struct StatsArgs {
    /// Logs in the combined, common or a JSON format, plain, gzip or zstd; - is standard input.
    /// Without any, the access log of the site with the logs that were rotated from it
    files: Vec<PathBuf>,
    /// The site whose log is read if no file is given
    #[arg(long, default_value = ".", value_name = "DIR")]
    site: PathBuf,
    /// Show the history of figures that the console of the site's server keeps: every request by
    /// day, hour and route, also without an access log
    #[arg(long, conflicts_with_all = ["files", "filters", "query"])]
    history: bool,
    /// Count from this day or time on, by the clock of the log: 2026-11-29, 2026-11-29T12:30
    #[arg(long, value_name = "TIME")]
    from: Option<Period>,
    /// Count up to this day or time, with all of it
    #[arg(long, value_name = "TIME")]
    to: Option<Period>,
    /// Count only requests whose field has this value: path, url, status, method, referrer, agent,
    /// class (people, bots, programs, unknown) or client. A ! before the value excludes it, * is
    /// any text; may be repeated
    #[arg(long = "filter", value_name = "FIELD=VALUE")]
    filters: Vec<String>,
    /// Rows of each list of addresses, referrers, minutes
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// Count addresses with their queries
    #[arg(long)]
    query: bool,
    /// Write JSON
    #[arg(long, conflicts_with = "report")]
    json: bool,
    /// Write a page with charts to this file
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

impl StatsArgs {
    pub(crate) fn run(self) -> CommandResult {
        match self.history {
            true => self.of_history(),
            false => self.of_logs(),
        }
    }

    fn of_history(&self) -> CommandResult {
        let site = self.site.display();
        let file = Config::read(&self.site)?.history(&self.site);
        let file = file
            .ok_or_else(|| CommandFailure::new(format!("{site}: admin.history is off")))?
            .canonicalize()
            .map_err(|error| {
                CommandFailure::new(format!("{site} has no history of figures yet: {error}"))
                    .hint("a server keeps one if its millpond.toml has [admin] and listen = \"127.0.0.1:9180\"")
            })?;
        let period = Period::new(self.from, self.to).seconds();
        let read = HistoryReport::read(&file, period, self.top).map_err(CommandFailure::new)?;
        let read = read.ok_or_else(|| {
            CommandFailure::new(format!("{} has no figures of that time", file.display()))
        })?;
        self.write(|| read.json().clone(), || read.report())
    }

    fn of_logs(self) -> CommandResult {
        let mut filters = Filters::default();
        for filter in &self.filters {
            filters.add(filter).map_err(|error| {
                CommandFailure::usage(error)
                    .hint("for example: --filter 'path=/blog/*' --filter 'status=!404'")
            })?;
        }
        let options = Options {
            with_query: self.query,
            period: Period::new(self.from, self.to),
            filters,
        };
        let files = if self.files.is_empty() {
            logs_of(&self.site)?
        } else {
            self.files.clone()
        };
        let whole = |path: &PathBuf| path.canonicalize().ok();
        let report = self.report.as_ref().and_then(whole);
        if report.is_some() && files.iter().any(|log| whole(log) == report) {
            return Err(CommandFailure::usage("--report would overwrite a log"));
        }
        let statistics = count(&files, &options).map_err(|(path, error)| {
            CommandFailure::new(format!("cannot read {}: {error}", path.display()))
        })?;
        let remarks = statistics.damage().into_iter();
        for remark in remarks.chain(statistics.problems.iter().cloned()) {
            note(format_args!("note: {remark}"));
        }
        self.write(|| statistics.json(self.top), || statistics.report(self.top))?;
        let broken = || CommandFailure::new("a log breaks off, see the note");
        statistics.is_whole.then_some(()).ok_or_else(broken)
    }

    /// Writes the figures as it is asked for.
    fn write(&self, json: impl Fn() -> Value, report: impl Fn() -> Report) -> CommandResult {
        match &self.report {
            _ if self.json => {
                let mut text = format!("{:#}", json());
                // A terminal would obey these, which JSON permits.
                for c in '\u{7f}'..='\u{9f}' {
                    text = text.replace(c, &format!("\\u{:04x}", u32::from(c)));
                }
                write_out(&text)
            }
            None => write_out(report().to_text().trim_end()),
            Some(path) => replace_file(path, &report().to_html()).map_err(|error| {
                CommandFailure::new(format!("cannot write {}: {error}", path.display()))
            }),
        }
    }
}

/// The access log of a site and those that were rotated from it, the oldest first.
fn logs_of(site: &Path) -> CommandResult<Vec<PathBuf>> {
    let none = |message: &str| {
        CommandFailure::new(format!("{}: {message}", site.display())).hint(
            "give the files: millpond stats /var/log/nginx/access.log*; or - for standard input",
        )
    };
    if !site.join("millpond.toml").exists() && !site.join("pages").exists() {
        return Err(none("no site, and no log was given"));
    }
    let log = Config::read(site)?.access_log;
    let log = log.filter(|path| path != Path::new("-"));
    let log = log.ok_or_else(|| none("log.access in millpond.toml names no file"))?;
    let name = log.file_name().unwrap_or_default();
    let is_rotated = |path: &PathBuf| {
        let other = path.file_name().unwrap_or_default().as_encoded_bytes();
        let rest = other.strip_prefix(name.as_encoded_bytes());
        rest.is_some_and(|rest| rest.is_empty() || b".-".contains(&rest[0])) && path.is_file()
    };
    let folder = log.parent().unwrap_or(site);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        entries => entries.and_then(Iterator::collect).map_err(|error| {
            CommandFailure::new(format!("cannot read {}: {error}", folder.display()))
        })?,
    };
    let entries = entries.iter().map(fs::DirEntry::path);
    let mut logs: Vec<PathBuf> = entries.filter(is_rotated).collect();
    logs.sort_by_key(|path| path.metadata().and_then(|file| file.modified()).ok());
    if logs.is_empty() {
        return Err(none("its access log is not there yet"));
    }
    Ok(logs)
}

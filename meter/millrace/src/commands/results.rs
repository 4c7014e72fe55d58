//! Where a measuring command writes its result: the same flags in each command.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use millrace_report::Report;
use serde::Serialize;

use super::headings::OUTPUT;
use crate::failure::{CommandResult, Failure};
use crate::live::{Live, LiveOptions};
use crate::output::{Progress, note, say, write_out};

/// Files for the result that are no JSON.
#[derive(Args)]
#[command(next_help_heading = OUTPUT)]
pub(crate) struct FileOptions {
    /// Write the result as one self-contained HTML file
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write the result as comma-separated values; - is standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write each graph as an SVG file into this folder
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

impl FileOptions {
    /// Returns the function that writes text: to standard output, unless a file goes there. Fails
    /// before the measurement if a file cannot be written.
    pub(crate) fn teller(&self, json: Option<&Path>) -> CommandResult<fn(&str)> {
        let (csv, report) = (self.csv.as_deref(), self.report.as_deref());
        for path in [json, csv, report].into_iter().flatten() {
            has_folder(path)?;
        }
        is_folder(self.svg.as_deref())?;
        match (is_stdout(json), is_stdout(csv)) {
            (true, true) => {
                let message = "JSON and comma-separated values cannot both go to standard output";
                Err(Failure::new(message).hint("name a file for one of them"))
            }
            (false, false) => Ok(|line| say(line)),
            _ => Ok(|line| note(line)),
        }
    }

    /// Writes the files that the user asks for.
    pub(crate) fn write(
        &self,
        csv: impl FnOnce() -> String,
        report: impl FnOnce() -> Report,
    ) -> CommandResult {
        if let Some(path) = &self.csv {
            write_to(path, csv().trim_end())?;
        }
        if self.report.is_none() && self.svg.is_none() {
            return Ok(());
        }
        let report = report();
        if let Some(path) = &self.report {
            write_to(path, report.to_html().trim_end())?;
        }
        match &self.svg {
            Some(folder) => write_graphs(folder, &report),
            None => Ok(()),
        }
    }
}

/// Files for the result of a measurement, and what is shown during it.
#[derive(Args)]
#[command(next_help_heading = OUTPUT)]
pub(crate) struct ResultOptions {
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    files: FileOptions,
    #[command(flatten)]
    live: LiveOptions,
}

impl ResultOptions {
    /// Returns the function that writes text: to standard output, unless a file goes there. Fails
    /// before the measurement if a file cannot be written.
    pub(crate) fn teller(&self) -> CommandResult<fn(&str)> {
        self.files.teller(self.json.as_deref())
    }

    /// The view during the measurement; `title` says what is measured.
    pub(crate) fn live(&self, title: String) -> Live {
        let paths = [self.json.as_deref(), self.files.csv.as_deref()];
        Live::start(&self.live, title, paths.into_iter().any(is_stdout))
    }

    /// A line of progress for a part without a screen; nothing with `--quiet`.
    pub(crate) fn line(&self) -> Progress {
        self.live.line()
    }

    /// True if the user asks for a file of the result.
    pub(crate) fn has_files(&self) -> bool {
        let files = [
            &self.json,
            &self.files.csv,
            &self.files.report,
            &self.files.svg,
        ];
        files.into_iter().any(Option::is_some)
    }

    /// True if only the result is shown.
    pub(crate) fn is_quiet(&self) -> bool {
        self.live.is_quiet()
    }

    /// Prints `text`, to standard output unless a file goes there, and writes the files.
    pub(crate) fn write<T: Serialize>(
        &self,
        found: &T,
        text: &str,
        csv: impl FnOnce(&T) -> String,
        report: impl FnOnce(&T) -> Report,
    ) -> CommandResult {
        self.teller()?(text.trim_end());
        self.files(found, csv, report)
    }

    /// Writes the files that the user asks for.
    pub(crate) fn files<T: Serialize>(
        &self,
        found: &T,
        csv: impl FnOnce(&T) -> String,
        report: impl FnOnce(&T) -> Report,
    ) -> CommandResult {
        if let Some(path) = &self.json {
            let json = serde_json::to_string_pretty(found).map_err(Failure::new)?;
            write_to(path, &json)?;
        }
        self.files.write(|| csv(found), || report(found))
    }
}

fn is_stdout(path: Option<&Path>) -> bool {
    path == Some(Path::new("-"))
}

/// Checks that the folder of a file exists: hours of measuring should not end with a file that
/// cannot be written.
fn has_folder(path: &Path) -> CommandResult {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            Err(Failure::new(format!(
                "cannot write {}: there is no folder {}",
                path.display(),
                folder.display()
            )))
        }
        _ if path.is_dir() => Err(Failure::new(format!(
            "cannot write {}: it is a folder",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Checks that graphs can go into this folder. A missing folder is created later.
fn is_folder(path: Option<&Path>) -> CommandResult {
    match path {
        Some(path) if path.exists() && !path.is_dir() => Err(Failure::new(format!(
            "cannot write graphs into {}: it is no folder",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Writes a text with a line feed at its end; `-` is standard output.
pub(super) fn write_to(path: &Path, text: &str) -> CommandResult {
    if path == Path::new("-") {
        return write_out(text);
    }
    fs::write(path, format!("{text}\n")).map_err(|error| cannot(path, &error))
}

fn write_graphs(folder: &Path, report: &Report) -> CommandResult {
    fs::create_dir_all(folder).map_err(|error| cannot(folder, &error))?;
    for graph in report.to_svg_files() {
        let path = folder.join(&graph.name);
        fs::write(&path, &graph.svg).map_err(|error| cannot(&path, &error))?;
    }
    Ok(())
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}

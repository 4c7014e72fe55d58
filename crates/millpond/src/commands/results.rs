//! Where a measuring command leaves what it found: the same options in each.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use millpond_report::Report;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{note, say, write_out};

/// Files for the result.
#[derive(Args)]
pub(crate) struct ResultOptions {
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the result as one self-contained HTML file
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

impl ResultOptions {
    /// Says `text` on standard output, unless the JSON goes there, and writes the files that are asked for.
    pub(crate) fn write<T: Serialize>(
        &self,
        found: &T,
        text: &str,
        report: impl FnOnce(&T) -> Report,
    ) -> Outcome {
        let text = text.trim_end();
        match &self.json {
            Some(path) => {
                let json = serde_json::to_string_pretty(found).map_err(Failure::new)?;
                if path == Path::new("-") {
                    // Standard output is the JSON and nothing else.
                    note(text);
                    write_out(&json)?;
                } else {
                    say(text);
                    write_file(path, &(json + "\n"))?;
                }
            }
            None => say(text),
        }
        match &self.report {
            Some(path) => write_file(path, &report(found).to_html()),
            None => Ok(()),
        }
    }
}

fn write_file(path: &Path, text: &str) -> Outcome {
    fs::write(path, text)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}

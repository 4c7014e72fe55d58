//! `millpond backup`: a copy of a site in one state, also while it is served.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base_chart::number;
use clap::Args;
use millpond_process::SignalListener;

use super::database_option::DatabaseOption;
use crate::failure::{CommandFailure, CommandResult};
use crate::output::{note, say};

/// Copy a site with its SQLite database, uploads and keys, also while it is served
#[derive(Args)]
pub(crate) struct BackupArgs {
    /// The site's folder
    #[arg(default_value = ".")]
    site: PathBuf,
    /// The folder to make, which must not exist: a site that `millpond serve` serves, with a
    /// database that has all that was committed before the command
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    #[command(flatten)]
    database: DatabaseOption,
}

impl BackupArgs {
    pub(crate) fn run(self) -> CommandResult {
        let stop = Arc::<AtomicBool>::default();
        let stopping = Arc::clone(&stop);
        let on_signal = move |_| stopping.store(true, Ordering::Relaxed);
        SignalListener::start(false, on_signal, |_| std::process::exit(1))
            .map_err(|error| CommandFailure::new(format!("cannot listen for signals: {error}")))?;
        let config = self.database.read(&self.site)?;
        let report = millpond_site::back_up(&self.site, &config, &self.to, &stop)?;
        for folder in &report.outside {
            note(format_args!(
                "note: {} is outside of the site, so it is not in the backup",
                folder.display()
            ));
        }
        say(format_args!(
            "{}: {} files, {}; serve it to try it: millpond serve --listen 127.0.0.1:0 {0}",
            self.to.display(),
            number::count(report.files),
            number::bytes(report.bytes as f64)
        ));
        Ok(())
    }
}

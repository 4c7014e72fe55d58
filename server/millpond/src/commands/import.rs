//! `millpond import`: texts into the tables of an article site.

use std::path::{Path, PathBuf};

use clap::Args;
use millpond_site::{Config, Options, Site};

use super::database_option::DatabaseOption;
use crate::failure::{Failure, Outcome};
use crate::import::{self, Summary, Target};
use crate::output::{Progress, note, say};

/// Bring a folder of Markdown files into a site with the tables of the article example
#[derive(Args)]
#[command(
    override_usage = "millpond import <DIR> [--site <SITE>]\n       millpond import --crates <Cargo.toml> [--site <SITE>]"
)]
pub(crate) struct Import {
    /// The folder with Markdown files (front matter between lines of ---)
    #[arg(required_unless_present = "crates", conflicts_with = "crates")]
    dir: Option<PathBuf>,
    /// Instead of Markdown: the crates that this workspace is built from
    #[arg(long, value_name = "Cargo.toml")]
    crates: Option<PathBuf>,
    /// The site whose database gets them
    #[arg(long, default_value = ".")]
    site: PathBuf,
    #[command(flatten)]
    database: DatabaseOption,
}

impl Import {
    pub(crate) fn run(self) -> Outcome {
        let config = self.database.read(&self.site)?;
        migrate(&self.site, &config)?;
        let mut database = Target::open(&config.database).map_err(Failure::new)?;
        let progress = Progress::new();
        let mut tell = |what: &str| progress.show(what);
        let summary = match (&self.crates, &self.dir) {
            (Some(manifest), _) => import::crates(&mut database, manifest, &mut tell),
            (None, Some(dir)) => import::markdown(&mut database, dir, &mut tell),
            (None, None) => return Err(Failure::new("nothing to import was named")),
        };
        let summary = summary.map_err(Failure::new)?;
        progress.clear();
        tell_skipped(&summary);
        say(&summary);
        Ok(())
    }
}

/// Brings the tables of the site up to date, as serving it would.
fn migrate(dir: &Path, config: &Config) -> Outcome {
    let options = Options {
        cache: false,
        readers: Some(1),
        ..Options::default()
    };
    Site::open(dir, config, options)?.stop();
    Ok(())
}

/// What was left out, and why.
fn tell_skipped(summary: &Summary) {
    for skipped in &summary.skipped {
        note(format_args!("skipped: {skipped}"));
    }
}

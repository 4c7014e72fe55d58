//! `--database URL`, for the commands that open a site.

use std::path::Path;

use clap::Args;
use millpond_site::{Config, DatabaseUrl};

use crate::failure::{CommandFailure, CommandResult};

/// Database, if it is not that of the configuration.
#[derive(Args, Clone)]
pub(crate) struct DatabaseOption {
    /// Use this database instead of database.url: sqlite:FILE (from the current folder),
    /// postgres://… or env:NAME
    #[arg(long = "database", value_name = "URL")]
    url: Option<String>,
}

impl DatabaseOption {
    /// The configuration of the site in `dir`, with this database.
    pub(crate) fn read(&self, dir: &Path) -> CommandResult<Config> {
        let mut config = Config::read(dir)?;
        let Some(url) = &self.url else {
            return Ok(config);
        };
        if config.has_hosts() {
            return Err(CommandFailure::new(
                "--database is for one site, and this folder names several",
            )
            .hint("set database.url in the millpond.toml of each site"));
        }
        let here = std::env::current_dir()
            .map_err(|error| CommandFailure::new(format!("the current folder is gone: {error}")))?;
        config.database = DatabaseUrl::parse(url, &here).map_err(|message| {
            CommandFailure::new(format!("--database: {message}"))
                .hint("for example: --database sqlite:site.db or --database env:DATABASE_URL")
        })?;
        Ok(config)
    }
}

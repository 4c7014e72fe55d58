//! `millpond new`: a site to start from.

use std::path::PathBuf;

use clap::Args;
use millpond_site::DatabaseUrl;

use crate::failure::{CommandFailure, CommandResult};
use crate::new_site::{self, Template};
use crate::output::say;

/// Make a site to start from
#[derive(Args)]
pub(crate) struct NewArgs {
    /// The folder to make; it may exist if it is empty
    dir: PathBuf,
    /// The kind of site
    #[arg(long, value_enum, default_value_t, value_name = "NAME")]
    template: Template,
    /// Its database, if not a file in the folder: postgres://… or env:NAME
    #[arg(long, value_name = "URL")]
    database: Option<String>,
}

impl NewArgs {
    pub(crate) fn run(self) -> CommandResult {
        let dir = self.dir.display();
        if let Some(url) = &self.database {
            // A variable may be set later, where the site is served.
            let later = url.starts_with("env:");
            let here = std::path::Path::new("/");
            if let (Err(message), false) = (DatabaseUrl::parse(url, here), later) {
                return Err(CommandFailure::new(format!("--database: {message}")));
            }
        }
        let files = new_site::create(&self.dir, self.template, self.database.as_deref())
            .map_err(CommandFailure::new)?;
        say(format_args!(
            "{dir}: a site of {} files. Serve it:\n\n    cd {dir} && millpond serve\n",
            files.len()
        ));
        Ok(())
    }
}

//! `millpond new`: a site to start from.

use std::path::{Path, PathBuf};

use clap::Args;
use millpond_site::{Config, DatabaseUrl};

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
    /// The folder of a blog of Jekyll, Hugo, Zola, Eleventy or MkDocs, whose posts and old
    /// addresses are taken; with --template blog
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
}

impl NewArgs {
    pub(crate) fn run(self) -> CommandResult {
        let dir = self.dir.display();
        if let Some(url) = &self.database {
            // A variable may be set later, where the site is served.
            let later = url.starts_with("env:");
            let here = Path::new("/");
            if let (Err(message), false) = (DatabaseUrl::parse(url, here), later) {
                return Err(CommandFailure::new(format!("--database: {message}")));
            }
        }
        if self.from.is_some() && self.template != Template::Blog {
            return Err(CommandFailure::new(
                "--from is for --template blog".to_owned(),
            ));
        }
        let origin = self.from.as_deref().map(new_site::origin).transpose();
        let origin = origin.map_err(CommandFailure::new)?;
        let database = self.database.as_deref();
        let has_examples = origin.is_none();
        let files = new_site::create(&self.dir, self.template, database, has_examples)
            .map_err(CommandFailure::new)?;
        if let (Some(origin), Some(from)) = (origin, &self.from) {
            let import = new_site::import(origin, from, &self.dir).map_err(CommandFailure::new)?;
            say(format_args!("{}", import.report()));
            if database.is_none() {
                refused(&self.dir);
            }
        }
        say(format_args!(
            "{dir}: a site of {} files. Serve it:\n\n    cd {dir} && millpond serve\n",
            files.len()
        ));
        Ok(())
    }
}

/// Says which posts have a fault, as `check` finds it.
fn refused(dir: &Path) {
    let problems = match Config::read(dir) {
        Ok(config) => millpond_site::check(dir, &config).err().unwrap_or_default(),
        Err(problem) => vec![problem],
    };
    if problems.is_empty() {
        return;
    }
    let first = |problem: &millpond_site::Problem| {
        let text = problem.to_string();
        text.lines().next().unwrap_or_default().to_owned()
    };
    let lines: Vec<String> = problems.iter().map(first).collect();
    say(format_args!(
        "Files with a fault, which `millpond check` explains:"
    ));
    say(new_site::listed(&lines).join("\n"));
}

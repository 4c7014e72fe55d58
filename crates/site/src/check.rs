//! `millpond check`: everything that `serve` would find wrong, and what each query depends on.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::{
    Config, Problem,
    compile::compile,
    folder::{Folder, migrations},
    site::open_database,
    statics::Statics,
};

/// What one query of a page depends on.
#[derive(Clone, Debug)]
pub struct QueryReport {
    /// The `.sql` file, relative to the site folder.
    pub file: PathBuf,
    /// The query's name.
    pub name: String,
    /// One line for each thing that it depends on.
    pub dependencies: Vec<String>,
}

impl fmt::Display for QueryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.file.display(), self.name)?;
        self.dependencies
            .iter()
            .try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// Checks a site without serving it. The migrations are applied to a scratch database and the queries prepared there, so the site's own
/// is neither needed nor touched; tables that no migration makes are looked up in a copy of the site's schema.
///
/// # Errors
/// Everything that is wrong.
pub fn check(dir: &Path, config: &Config) -> Result<Vec<QueryReport>, Vec<Problem>> {
    migrations(dir)?;
    let folder = Folder::read(dir)?;
    Statics::load(&dir.join("static"), None).map_err(|problem| vec![problem])?;
    let scratch = Scratch::new().map_err(|error| {
        vec![Problem::new(
            ".",
            format!("no scratch database can be made: {error}"),
        )]
    })?;
    if config.database.exists() {
        millpond_db::copy_schema(&config.database, &scratch.0.join("check.db")).map_err(
            |error| {
                vec![Problem::new(
                    config
                        .database
                        .strip_prefix(dir)
                        .unwrap_or(&config.database),
                    error.to_string(),
                )]
            },
        )?;
    }
    let database = open_database(dir, &scratch.0.join("check.db"), 1)?;
    let pages = compile(&folder, &database);
    let reports = pages.map(|pages| {
        let queries = pages
            .endpoints
            .iter()
            .filter_map(|endpoint| endpoint.page.as_ref())
            .flat_map(|page| &page.queries);
        queries
            .map(|query| QueryReport {
                file: query.file.clone(),
                name: query.name.clone(),
                dependencies: query.query.describe(),
            })
            .collect()
    });
    database.stop();
    reports
}

/// A folder of its own, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("millpond-check-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

//! The example magazine, filled and served.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Result,
    server::{self, BenchServer},
};

/// The number of the first article.
pub(crate) const FIRST: u64 = 50_000_001;

/// The project's folder.
fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The page of an article.
pub(crate) fn page(article: u64) -> String {
    format!("/read?id={article}")
}

/// The magazine on a PostgreSQL database, without the cache: Millpond makes its tables, SQL its
/// rows; the page of its first article was requested once. `settings` are further lines of
/// `[database]`.
pub(crate) fn on_postgres(
    millpond: &Path,
    folder: &Path,
    database: &str,
    settings: &str,
    articles: u64,
) -> Result<BenchServer> {
    let site = copy(folder)?;
    let text = format!("[database]\nurl = \"{database}\"\n{settings}");
    write(&site.join("millpond.toml"), &text)?;
    let server = server::millpond(millpond, &site, &page(FIRST), false)?;
    let mut fill = Command::new("psql");
    fill.args(["--quiet", "-v", "ON_ERROR_STOP=1", "-v"])
        .arg(format!("articles={articles}"))
        .arg("-f")
        .arg(project().join("lab/magazine-php/fill.sql"))
        .arg(database);
    output(&mut fill)?;
    server::fetch(&server)?;
    Ok(server)
}

/// Its pages, without a database from an earlier trial.
fn copy(folder: &Path) -> Result<PathBuf> {
    let site = folder.join("site");
    let mut copy = Command::new("cp");
    copy.arg("-R")
        .arg(project().join("examples/articles"))
        .arg(&site);
    output(&mut copy)?;
    for name in ["site.db", "site.db-wal", "site.db-shm"] {
        // It may not be there.
        let _ = fs::remove_file(site.join(name));
    }
    Ok(site)
}

/// Writes a file.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the output of a command, if the command succeeded.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}\n{said}", output.status))
}

//! `millpond new DIR`: a site to start from.
//!
//! The files are in `files/` beside this module, and for the shop in `examples/shop`, as they are
//! written, and are part of the binary. This module knows nothing of the server.

mod import;
mod templates;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use import::{import, listed, origin};
pub use templates::Template;

/// How the line of `millpond.toml` begins that another database replaces.
const DATABASE: &str = "url = \"sqlite:site.db\"";

/// Writes the files of `template` into `dir`, which is made if it is missing, and returns their
/// paths in order. `database` is the URL of the database; `None` is a file in `dir`. The posts of
/// a blog are only examples, which `has_examples` wants.
///
/// # Errors
/// `dir` is not empty, and then nothing is written, or a file cannot be written. No file is ever
/// replaced.
pub fn create(
    dir: &Path,
    template: Template,
    database: Option<&str>,
    has_examples: bool,
) -> Result<Vec<PathBuf>, String> {
    if !is_free(dir)? {
        return Err(format!(
            "{} is there already and is not an empty folder: choose another name",
            dir.display()
        ));
    }
    let mut written = Vec::new();
    let is_wanted = |name: &str| has_examples || !name.starts_with("data/posts/");
    for (name, contents) in template.files().filter(|(name, _)| is_wanted(name)) {
        let path = dir.join(name);
        let contents = match database {
            Some(url) if name == "millpond.toml" => with_database(contents, url),
            _ => contents.to_owned(),
        };
        write(&path, &contents).map_err(|error| format!("{}: {error}", path.display()))?;
        written.push(path);
    }
    Ok(written)
}

/// The settings with another database.
fn with_database(settings: &str, url: &str) -> String {
    let lines = settings
        .lines()
        .map(|line| match line.starts_with(DATABASE) {
            true => format!("url = {}\n", quoted(url)),
            false => format!("{line}\n"),
        });
    lines.collect()
}

/// A text in TOML.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// True if there is nothing at `dir`, or an empty folder.
fn is_free(dir: &Path) -> Result<bool, String> {
    match fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(format!("{}: {error}", dir.display())),
    }
}

fn write(path: &Path, contents: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)?
        .write_all(contents.as_bytes())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn a_new_folder_gets_every_file() {
        let temporary = lab_testkit::fast_dir();
        let dir = temporary.path().join("a/blog");
        let written = create(&dir, Template::default(), None, true).unwrap();
        assert_eq!(written.len(), Template::Notes.files().count());
        for path in &written {
            assert!(fs::metadata(path).unwrap().len() > 0, "{}", path.display());
        }
        assert!(dir.join("pages/notes/[id].html").is_file());
    }

    #[test]
    fn another_database_is_in_the_settings() {
        for template in Template::value_variants() {
            let temporary = lab_testkit::fast_dir();
            let dir = temporary.path().join("blog");
            create(&dir, *template, Some("env:DATABASE_URL"), true).unwrap();
            let settings = fs::read_to_string(dir.join("millpond.toml")).unwrap();
            let url = "\nurl = \"env:DATABASE_URL\"\n";
            assert!(settings.contains(url), "{template:?}: {settings}");
        }
    }

    #[test]
    fn an_empty_folder_will_do_and_any_other_is_left_alone() {
        let temporary = lab_testkit::fast_dir();
        create(temporary.path(), Template::Notes, None, true).unwrap();
        let error = create(temporary.path(), Template::Notes, None, true).unwrap_err();
        assert!(error.contains("choose another name"));

        let file = temporary.path().join("README.md");
        let before = fs::read(&file).unwrap();
        let error = create(&file, Template::Notes, None, true).unwrap_err();
        assert!(error.contains("choose another name"));
        assert_eq!(fs::read(&file).unwrap(), before);
    }

    fn is_for_postgres(name: &str) -> bool {
        name.ends_with(".postgres.sql")
    }

    #[test]
    fn the_migration_and_the_queries_are_good_sql() {
        let db = rusqlite::Connection::open_in_memory().unwrap();
        for (name, contents) in Template::Notes
            .files()
            .filter(|(name, _)| name.starts_with("migrations/") && !is_for_postgres(name))
        {
            db.execute_batch(contents)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        for (name, contents) in Template::Notes
            .files()
            .filter(|(name, _)| name.starts_with("pages/") && name.ends_with(".sql"))
            .filter(|(name, _)| !is_for_postgres(name))
        {
            for query in contents.split("-- name: ").skip(1) {
                let sql = query.split_once('\n').unwrap().1;
                db.prepare(sql)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
        assert_eq!(
            db.query_row("select count(*) from note", [], |row| row.get::<_, i64>(0))
                .unwrap(),
            1
        );
    }
}

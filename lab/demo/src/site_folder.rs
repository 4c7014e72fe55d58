//! The folder of the article site: a copy of `examples/articles` to be served, with its articles.

use std::env;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::failure::{DemoFailure, DemoResult};
use crate::programs::workspace;

/// File that marks a folder as one that the demo made earlier.
const MARK: &str = "migrations/0001_magazine.sql";
/// The migration that writes the articles.
const ARTICLES: &str = "migrations/0003_articles.sql";

pub(crate) struct SiteFolder {
    path: PathBuf,
    is_temporary: bool,
}

impl SiteFolder {
    /// Writes the site into `dir`, or into a temporary folder, with a migration of its articles. A
    /// folder from an earlier demo keeps its content.
    pub(crate) fn prepare(dir: Option<&Path>, articles: &str) -> DemoResult<Self> {
        let folder = match dir {
            Some(dir) => {
                check_free(dir, articles)?;
                Self {
                    path: dir.to_owned(),
                    is_temporary: false,
                }
            }
            None => Self {
                path: temporary()
                    .map_err(|error| DemoFailure::new(format!("no temporary folder: {error}")))?,
                is_temporary: true,
            },
        };
        let example = workspace().join("examples/articles");
        let migration = folder.path.join(ARTICLES);
        copy(&example, &folder.path)
            .and_then(|()| write_new(&migration, articles.as_bytes()))
            .map_err(|error| {
                DemoFailure::new(format!(
                    "cannot copy {} to {}: {error}",
                    example.display(),
                    folder.path.display()
                ))
            })?;
        Ok(folder)
    }

    /// Returns the path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True if it goes when this is dropped.
    pub(crate) fn is_temporary(&self) -> bool {
        self.is_temporary
    }
}

impl Drop for SiteFolder {
    fn drop(&mut self) {
        if self.is_temporary {
            // The system cleans its temporary folder in any case.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Refuses `dir` unless it is missing, empty, or the demo's own with these articles.
fn check_free(dir: &Path, articles: &str) -> DemoResult {
    let shown = dir.display();
    match fs::read_dir(dir) {
        Ok(_) if dir.join(MARK).is_file() => match fs::read_to_string(dir.join(ARTICLES)) {
            Ok(written) if written != articles => Err(DemoFailure::new(format!(
                "{shown} has the articles of another version of the demo"
            ))
            .hint("name another folder, or remove this one")),
            _ => Ok(()),
        },
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(DemoFailure::new(format!(
                "{shown} has something else in it than the demo's site"
            ))
            .hint("name an empty folder, or one that does not exist")),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(DemoFailure::new(format!("{shown}: {error}"))),
    }
}

/// A new folder that only this user may look into.
fn temporary() -> io::Result<PathBuf> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    for number in 0..100 {
        let name = format!("millpond-demo-{}-{number}", std::process::id());
        let path = env::temp_dir().join(name);
        match builder.create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Copies the files below `from` that `to` lacks, without databases and logs, which serving the
/// example leaves there.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let (path, copied) = (entry.path(), to.join(&name));
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            copy(&path, &copied)?;
        } else if !(name.starts_with('.') || name.contains(".db") || name.ends_with(".log")) {
            write_new(&copied, &fs::read(&path)?)?;
        }
    }
    Ok(())
}

/// Writes a file unless there is one.
fn write_new(path: &Path, contents: &[u8]) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(contents),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_whole_and_a_temporary_one_goes() {
        let folder =
            SiteFolder::prepare(None, "select 1;").unwrap_or_else(|_| panic!("not written"));
        let path = folder.path().to_owned();
        for name in [
            "millpond.toml",
            MARK,
            ARTICLES,
            "pages/read.html",
            "pages/brief.sql",
        ] {
            assert!(path.join(name).is_file(), "{name}");
        }
        assert!(!path.join("site.db").exists());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_of_the_demo_is_kept_and_any_other_refused() {
        let parent = lab_testkit::fast_dir();
        let dir = parent.path().join("magazine");
        assert!(SiteFolder::prepare(Some(&dir), "select 1;").is_ok());
        fs::write(dir.join("millpond.toml"), "# mine").unwrap();
        assert!(SiteFolder::prepare(Some(&dir), "select 1;").is_ok());
        assert_eq!(fs::read(dir.join("millpond.toml")).unwrap(), b"# mine");
        assert!(SiteFolder::prepare(Some(&dir), "select 2;").is_err());
        assert!(SiteFolder::prepare(Some(parent.path()), "select 1;").is_err());
    }
}

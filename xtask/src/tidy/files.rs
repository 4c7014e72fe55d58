//! The project's text files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A file, by its path in the workspace.
pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl File {
    /// True if its name ends in one of these.
    pub(crate) fn has_extension(&self, extensions: &[&str]) -> bool {
        let extension = self
            .path
            .extension()
            .and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extensions.contains(&extension))
    }
}

/// Names of files that are made and not written: `.gitignore` has the same names.
const MADE: [&str; 4] = ["target", ".git", "Cargo.lock", "report.html"];

/// Every text file below `root`, by path. What is not UTF-8 is no text.
pub(crate) fn all(root: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if MADE.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(entry.path())
            {
                let path = entry.path();
                let path = path.strip_prefix(root).map_or(path.clone(), PathBuf::from);
                files.push(File { path, text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

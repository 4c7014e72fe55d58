//! `pages/[lang]/_folder.sql`: the parameters of a folder's path, declared once for all files in it
//! and below.
//!
//! The lines count as if each of these files had them, so every part of the program that looks at a
//! parameter sees the same. A file's own line, or that of a nearer folder, takes their place.

use std::collections::BTreeMap;

use super::parameters::{SqlFile, fits_path};
use millpond_site_format::{
    Problem,
    dialect::{Dialect, Text},
    folder::Folder,
    route::Pattern,
    script::{Declaration, Script},
    time_zone::SiteZone,
};

const NAME: &str = "_folder";
const FILE_NAME: &str = "_folder.sql";

/// The lines of all folders, by their paths below `pages/`.
#[derive(Debug, Default)]
pub(super) struct FolderParams(BTreeMap<String, Vec<Declaration>>);

impl FolderParams {
    /// True if a file below `pages/` is a folder's own; one of another ending is a fault.
    pub(super) fn takes(path: &str, problems: &mut Vec<Problem>) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_own = name.split('.').next() == Some(NAME);
        if is_own && name != FILE_NAME {
            let problem = Problem::new(format!("pages/{path}"), "a folder has no page of its own");
            problems.push(problem.hint("`_folder.sql` has the `-- param:` lines of its folder"));
        }
        is_own
    }

    /// Reads the files of all folders; what is wrong with them goes to `problems`.
    pub(super) fn read(
        folder: &Folder,
        (dialect, zone): (Dialect, SiteZone),
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut all = BTreeMap::new();
        for (name, text) in &folder.pages {
            let path = match name.strip_suffix(FILE_NAME) {
                Some(path) if path.is_empty() || path.ends_with('/') => path,
                _ => continue,
            };
            match read(text, &format!("{path}{NAME}"), (dialect, zone)) {
                Ok(lines) => drop(all.insert(path.trim_end_matches('/').to_owned(), lines)),
                Err(problem) => problems.push(problem),
            }
        }
        Self(all)
    }

    /// Adds the lines of its folders to a file.
    pub(super) fn add_to(&self, stem: &str, script: &mut Script) {
        let mut rest = stem;
        while let Some((folder, _)) = rest.rsplit_once('/') {
            for line in self.0.get(folder).into_iter().flatten() {
                if script.params.iter().all(|known| known.name != line.name) {
                    script.params.push(line.clone());
                }
            }
            rest = folder;
        }
    }
}

fn read(
    text: &Text,
    stem: &str,
    (dialect, zone): (Dialect, SiteZone),
) -> Result<Vec<Declaration>, Problem> {
    let file = &text.page();
    let script = Script::parse_in(file, &text.text, zone)?;
    let mut pattern = Pattern::parse(file, stem)?;
    pattern.segments.pop();
    let source = SqlFile {
        file,
        text: &text.text,
        pattern: &pattern,
        script: &script,
        dialect,
    };
    let lines = Script {
        params: script.params.clone(),
        zone,
        ..Script::default()
    };
    if script != lines {
        let problem = Problem::new(file, "the file of a folder has `-- param:` lines alone");
        return Err(problem.hint("who may enter a folder is said in millpond.toml: [[require]]"));
    }
    for declared in &script.params {
        let name = &declared.name;
        if source.in_path(name).is_none() {
            let message = format!("`{name}` is no part of this folder's path");
            let problem = Problem::new(file, message).at(declared.line, 1);
            return Err(problem.hint("declare it in the files that use it"));
        }
        fits_path(source, declared)?;
    }
    let lines = lines.params.into_iter();
    Ok(lines.map(|line| Declaration { line: 0, ..line }).collect())
}

//! `pages/[lang]/_folder.sql`: the parameters of a folder's path and the sentences of its forms,
//! written once for all files in it and below.
//!
//! The lines count as if each of these files had them, so every part of the program that looks at a
//! parameter sees the same. A file's own line, or that of a nearer folder, takes their place.

use std::collections::BTreeMap;

use millpond_db::Value;

use super::parameters::{SqlFile, fits_path};
use crate::refusal::fault_kind;
use millpond_site_format::{
    Problem,
    dialect::{Dialect, Text},
    folder::Folder,
    route::Pattern,
    script::{ANY_FIELD, Declaration, MessageLine, Script},
    suggest::closest,
    time_zone::SiteZone,
};

const NAME: &str = "_folder";
const FILE_NAME: &str = "_folder.sql";

/// The lines of all folders, by their paths below `pages/`.
#[derive(Debug, Default)]
pub(super) struct FolderParams(BTreeMap<String, FolderLines>);

/// The lines of one folder.
#[derive(Debug, Default)]
struct FolderLines {
    params: Vec<Declaration>,
    /// Sentences for any field of the forms in the folder.
    messages: Vec<MessageLine>,
}

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

    /// Adds the parameters of its folders to a file.
    pub(super) fn add_to(&self, stem: &str, script: &mut Script) {
        for lines in self.around(stem) {
            for line in &lines.params {
                if script.params.iter().all(|known| known.name != line.name) {
                    script.params.push(line.clone());
                }
            }
        }
    }

    /// Adds the lines of its folders to the file of a form.
    pub(super) fn add_to_form(&self, stem: &str, script: &mut Script) {
        self.add_to(stem, script);
        let lines = self.around(stem).flat_map(|lines| &lines.messages);
        script.messages.extend(lines.cloned());
    }

    /// The folders in which a file is, the nearest first.
    fn around<'f>(&'f self, stem: &'f str) -> impl Iterator<Item = &'f FolderLines> {
        let folders = std::iter::successors(Some(stem), |path| {
            path.rsplit_once('/').map(|(folder, _)| folder)
        });
        folders.skip(1).filter_map(|folder| self.0.get(folder))
    }
}

fn read(
    text: &Text,
    stem: &str,
    (dialect, zone): (Dialect, SiteZone),
) -> Result<FolderLines, Problem> {
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
        messages: script.messages.clone(),
        zone,
        ..Script::default()
    };
    if script != lines {
        let message = "the file of a folder has `-- param:` and `-- message:` lines alone";
        let problem = Problem::new(file, message);
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
    for line in &script.messages {
        of_any_field(line, &script)
            .map_err(|(message, hint)| Problem::new(file, message).at(line.line, 1).hint(hint))?;
    }
    let params = lines.params.into_iter();
    let messages = lines.messages.into_iter();
    Ok(FolderLines {
        params: params.map(|line| Declaration { line: 0, ..line }).collect(),
        messages: messages
            .map(|line| MessageLine { line: 0, ..line })
            .collect(),
    })
}

/// Checks a sentence of a folder: it is for any field, and of a value of the folder's path.
fn of_any_field(line: &MessageLine, script: &Script) -> Result<(), (String, String)> {
    if line.of != ANY_FIELD {
        let message = format!("`{}` is a field of one form", line.of);
        return Err((
            message,
            "a folder has sentences for any field: -- message: * missing = \"…\"".into(),
        ));
    }
    let kinds = fault_kind::ALL;
    if let Some(about) = line.about.as_deref().filter(|about| !kinds.contains(about)) {
        let hint = match closest(about, kinds.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("one of {}", kinds.join(", ")),
        };
        return Err((format!("there is no fault `{about}`"), hint));
    }
    let mut values = script.params.iter().flat_map(|param| &param.choices);
    let language = line.language.as_deref();
    let is_known = language.is_none_or(|text| values.any(|value| *value == Value::from(text)));
    if is_known {
        return Ok(());
    }
    let language = language.unwrap_or_default();
    let message = format!("`[{language}]` is no value of a part of this folder's path");
    let hint = format!("declare the part here: -- param: lang text in (en, {language})");
    Err((message, hint))
}

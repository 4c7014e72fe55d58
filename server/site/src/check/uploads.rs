//! What `millpond check` says of uploads: folders that cannot be written, and forms in templates
//! that send the name of a file instead of the file.

use std::path::Path;

use rustix::fs::{Access, access};

use millpond_site_compile::{
    compile::Pages,
    filters::{Piece, TagText, Tags},
    markup::{attribute, without_comments},
    template::{self, file_of},
};
use millpond_site_format::{Problem, script::FilePlace};

/// Lists the faults that the uploads of a site in `dir` would have.
pub(crate) fn notes(dir: &Path, pages: &Pages) -> Vec<Problem> {
    let mut notes = Vec::new();
    let forms = pages.endpoints.iter().flat_map(|endpoint| &endpoint.forms);
    for form in forms {
        for field in &form.uploads {
            let FilePlace::Folder(folder) = &field.line.place else {
                continue;
            };
            if let Some(hidden) = hidden(pages, folder) {
                notes.push(
                    Problem {
                        file: form.file.clone(),
                        ..hidden
                    }
                    .at(field.line.line, 1),
                );
            }
            if let Some((message, hint)) = unwritable(dir, folder) {
                let problem = Problem::new(&form.file, message).at(field.line.line, 1);
                notes.push(problem.hint(hint));
            }
        }
    }
    for (name, source) in template::sources(&pages.environment) {
        let text = without_comments(&source);
        for (at, message, hint) in file_forms(&text) {
            let problem = Problem::new(file_of(&name), message).at_offset(&text, at);
            notes.push(problem.hint(hint));
        }
    }
    notes
}

/// The page that answers in the place of the files of a folder.
fn hidden(pages: &Pages, folder: &str) -> Option<Problem> {
    let path = format!("/{folder}/file.png");
    let found = pages.router.find(&path)?;
    let page = &pages.endpoints[found.page].pattern;
    let message = format!("no file in `{folder}` answers: the page {page} comes first");
    Some(Problem::new("", message).hint(
        "say which values the page takes, for example: -- param: lang text in (en, de); or name another folder",
    ))
}

/// Why a folder cannot be made or written, and what to do.
fn unwritable(dir: &Path, folder: &str) -> Option<(String, &'static str)> {
    let wanted = dir.join(folder);
    let mut ancestors = wanted.ancestors();
    let there = ancestors.find(|folder| folder.exists())?;
    let shown = there.strip_prefix(dir).unwrap_or(there).display();
    let shown = match shown.to_string() {
        shown if shown.is_empty() => "the site's folder".to_owned(),
        shown => format!("`{shown}`"),
    };
    if !there.is_dir() {
        return Some((
            format!("{shown} is a file, so no upload can be stored in `{folder}`"),
            "move it away: the folder is made when the first file comes",
        ));
    }
    access(there, Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some((
        format!("{shown} cannot be written, so no upload can be stored in `{folder}`"),
        "let the user that runs millpond write it",
    ))
}

/// A place, a message and a hint.
type FormRemark = (usize, &'static str, &'static str);

/// Forms that have a field for a file and do not send it. What a template puts into the tag besides
/// the values of attributes is not known.
fn file_forms(text: &str) -> Vec<FormRemark> {
    let mut remarks = Vec::new();
    let mut open: Option<FormRemark> = None;
    for piece in Tags::with_fields(text) {
        match piece {
            Piece::Start(tag) if tag.name == "form" => {
                let at = tag.written.as_ptr() as usize - text.as_ptr() as usize;
                open = wrong_with(&tag).map(|(message, hint)| (at - 1, message, hint));
            }
            Piece::End(name) if name == "form" => open = None,
            Piece::Start(tag) if tag.name == "input" => {
                let kind = attribute(&tag, "type").unwrap_or_default();
                if kind.trim().eq_ignore_ascii_case("file") {
                    remarks.extend(open.take());
                }
            }
            _ => {}
        }
    }
    remarks
}

/// Why a form would not send a file.
fn wrong_with(form: &TagText<'_>) -> Option<(&'static str, &'static str)> {
    let mut names = form.attributes.iter().map(|(name, _)| name);
    let method = attribute(form, "method").unwrap_or_default().trim();
    let encoding = attribute(form, "enctype").unwrap_or_default().trim();
    if names.any(|name| name.contains(['{', '%'])) || encoding.contains('{') {
        return None;
    }
    if !encoding.eq_ignore_ascii_case("multipart/form-data") {
        return Some((
            "this form has a file, and sends only the file's name",
            "add enctype=\"multipart/form-data\" to its <form …>",
        ));
    }
    let is_post = method.contains('{') || method.eq_ignore_ascii_case("post");
    (!is_post).then_some((
        "this form has a file, and is sent with GET, which has no place for it",
        "write <form method=\"post\" …>",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_says_how_it_sends_a_file() {
        for (source, expected) in [
            (
                "<form method=post><input type=file name=a></form>",
                &[0][..],
            ),
            ("x<FORM>\n<input name=a TYPE=\"file\">", &[1]),
            (
                "<form method=post enctype='multipart/form-data'><input type='file'></form>",
                &[],
            ),
            ("<form {{ attributes }}><input type=file></form>", &[]),
            ("<form><input type=text></form><input type=file>", &[]),
            ("<form", &[]),
            (
                "<form method=post action='/a/{{ b > c }}'><input type=file name=a></form>",
                &[0],
            ),
            (
                "<form action='{{ here }}' enctype=multipart/form-data><input type=file></form>",
                &[0],
            ),
        ] {
            let found: Vec<usize> = file_forms(source).iter().map(|(at, ..)| *at).collect();
            assert_eq!(found, expected, "{source}");
        }
    }
}

//! What `millpond check` says of uploads: folders that cannot be written, and forms in templates
//! that send the name of a file instead of the file.

use std::path::Path;

use rustix::fs::{Access, access};

use crate::{
    Problem,
    compile::Pages,
    script::FilePlace,
    template::{self, file_of},
};

/// What would go wrong with the uploads of a site in `dir`.
pub(crate) fn notes(dir: &Path, pages: &Pages) -> Vec<Problem> {
    let mut notes = Vec::new();
    let forms = pages.endpoints.iter().flat_map(|endpoint| &endpoint.forms);
    for form in forms {
        for field in &form.uploads {
            if let FilePlace::Folder(folder) = &field.line.place
                && let Some((message, hint)) = unwritable(dir, folder)
            {
                let problem = Problem::new(&form.file, message).at(field.line.line, 1);
                notes.push(problem.hint(hint));
            }
        }
    }
    for (name, source) in template::sources(&pages.environment) {
        for at in forms_without_encoding(&source) {
            let message = "this form has a file, and sends only the file's name";
            let problem = Problem::new(file_of(&name), message).at_offset(&source, at);
            notes.push(problem.hint("add enctype=\"multipart/form-data\" to its <form …>"));
        }
    }
    notes
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

/// Where forms begin that have a field for a file and do not say how to send it. What a template
/// puts into the tag is not known.
fn forms_without_encoding(source: &str) -> Vec<usize> {
    let lower = source.to_ascii_lowercase();
    let begins = lower.match_indices("<form");
    let found = begins.filter(|(at, _)| {
        let rest = &lower[*at..];
        let rest = &rest[..rest.find("</form").unwrap_or(rest.len())];
        let Some((tag, inside)) = rest.split_once('>') else {
            return false;
        };
        let has_file = ["type=\"file\"", "type='file'", "type=file"];
        let has_file = has_file.iter().any(|field| inside.contains(field));
        has_file && !tag.contains("multipart/form-data") && !tag.contains('{')
    });
    found.map(|(at, _)| at).collect()
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
                "<form enctype='multipart/form-data'><input type='file'></form>",
                &[],
            ),
            ("<form {{ attributes }}><input type=file></form>", &[]),
            ("<form><input type=text></form><input type=file>", &[]),
            ("<form", &[]),
        ] {
            assert_eq!(forms_without_encoding(source), expected, "{source}");
        }
    }
}

//! Fields in the HTML of forms whose names are probably misspelt.

use std::path::PathBuf;

use millpond_http::path;

use super::Pages;
use crate::{
    Problem,
    filters::{Piece, TagText, Tags},
    folder::Folder,
    methods::WriteMethod,
    page::Form,
    suggest::closest,
    template,
};

/// Fields that no parameter of the form takes, and whose names are nearly those of one. What a name
/// in braces comes to is not known.
pub(super) fn misspelt(folder: &Folder, pages: &Pages) -> Vec<Problem> {
    let own = folder.pages.iter();
    let own = own.filter_map(|(name, text)| {
        let stem = name.strip_suffix(".html")?;
        Some((
            PathBuf::from(format!("pages/{name}")),
            &*text.text,
            Some(stem),
        ))
    });
    let shared = folder.templates.iter();
    let shared = shared.map(|(name, text)| (template::file_of(name).into(), &**text, None));
    let mut notes = Vec::new();
    for (file, text, stem) in own.chain(shared) {
        let mut form = None;
        for piece in Tags::new(text) {
            match piece {
                Piece::Start(tag) if tag.name == "form" => form = target(pages, &tag, stem),
                Piece::End(name) if name == "form" => form = None,
                Piece::Start(tag) => {
                    let note = form.and_then(|form| of_field(form, &tag, text));
                    notes.extend(note.map(|problem| Problem {
                        file: file.clone(),
                        ..problem
                    }));
                }
                Piece::End(_) | Piece::Text(_) => {}
            }
        }
    }
    notes
}

/// The form that a `<form>` sends to. `stem` is the name of the page that has it.
fn target<'p>(pages: &'p Pages, tag: &TagText<'_>, stem: Option<&str>) -> Option<&'p Form> {
    if !attribute(tag, "method")?.eq_ignore_ascii_case("post") {
        return None;
    }
    let own;
    let action = match attribute(tag, "action") {
        Some(action) => action,
        None => {
            let stem = stem?;
            own = format!("/{}", stem.strip_suffix("index").unwrap_or(stem));
            &own
        }
    };
    let action = with_samples(action)?;
    let place = action.split(['?', '#']).next()?;
    let place = path::normalize(place).ok()?;
    let found = pages.router.find(&place)?;
    let form = pages.endpoints[found.page].form(WriteMethod::Post)?;
    Some(form)
}

/// The address with something in place of each value; none if parts of it are chosen.
fn with_samples(action: &str) -> Option<String> {
    let mut sample = String::with_capacity(action.len());
    let mut rest = action;
    while let Some((before, value)) = rest.split_once("{{") {
        sample.push_str(before);
        sample.push('1');
        rest = value.split_once("}}")?.1;
    }
    sample.push_str(rest);
    (!sample.contains("{%")).then_some(sample)
}

fn of_field(form: &Form, tag: &TagText<'_>, text: &str) -> Option<Problem> {
    // The reader leaves out `select` and `textarea` with their content.
    if !matches!(&*tag.name, "input" | "button") {
        return None;
    }
    let name = attribute(tag, "name").filter(|name| !name.contains('{'))?;
    let known = form.params.iter().map(|param| param.name.as_str());
    let files = form.uploads.iter().map(|field| field.line.name.as_str());
    let known: Vec<&str> = known.chain(files).collect();
    if known.contains(&name) {
        return None;
    }
    let plain = name.strip_suffix("[]").unwrap_or(name);
    let near = match known.contains(&plain) {
        true => plain,
        false => closest(plain, known.iter().copied())?,
    };
    let message = format!("{form} has no parameter `{name}`");
    let at = name.as_ptr() as usize - text.as_ptr() as usize;
    Some(
        Problem::new("", message)
            .at_offset(text, at)
            .hint(format!("did you mean `{near}`?")),
    )
}

fn attribute<'t>(tag: &TagText<'t>, name: &str) -> Option<&'t str> {
    let mut all = tag.attributes.iter();
    all.find(|(known, _)| known == name)
        .map(|(_, value)| *value)
}

//! Links in templates: to addresses at which nothing answers, and with parameters that the page
//! there does not take.

use std::path::Path;

use super::{HintedNote, targets};
use crate::core::Generation;
use millpond_site_compile::{
    compile::may_be_at::endpoint_at,
    filters::{Piece, TagText, Tags},
    markup::{VALUE, address, attribute, misfit, without_comments},
    page::Page,
    template::{file_of, sources},
};
use millpond_site_format::{Problem, config::UPLOAD_FOLDER, suggest::closest};

/// Notes on all of them.
pub(super) fn notes(generation: &Generation) -> Vec<Problem> {
    let mut notes = Vec::new();
    for (name, source) in sources(&generation.pages.environment) {
        let text = without_comments(&source);
        let own = own_page(generation, &name);
        for piece in Tags::new(&text) {
            let Piece::Start(tag) = piece else { continue };
            let Some(link) = link(&tag) else { continue };
            if let Some((message, hint)) = of_link(generation, own, link) {
                let at = link.as_ptr() as usize - text.as_ptr() as usize;
                let note = Problem::new(file_of(&name), message).at_offset(&text, at);
                notes.push(note.hint(hint));
            }
        }
    }
    notes
}

/// The page whose template has this name.
fn own_page<'g>(generation: &'g Generation, name: &str) -> Option<&'g Page> {
    let endpoints = generation.pages.endpoints.iter();
    let mut pages = endpoints.filter_map(|endpoint| endpoint.page.as_deref());
    pages.find(|page| page.template.as_deref() == Some(name))
}

/// The address to which a tag leads with GET.
fn link<'t>(tag: &TagText<'t>) -> Option<&'t str> {
    let name = match &*tag.name {
        "a" | "area" | "link" => "href",
        "img" => "src",
        _ => return None,
    };
    attribute(tag, name)
}

fn of_link(generation: &Generation, own: Option<&Page>, link: &str) -> Option<HintedNote> {
    let target = address(link)?;
    let target = target.split('#').next()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if path.is_empty() {
        return of_query(generation, own?, query);
    }
    let is_of_site = path.starts_with('/') && !path.starts_with("//");
    if !is_of_site || is_upload(path) {
        return None;
    }
    if let Some(nowhere) = targets::unanswered(generation, path) {
        return Some(nowhere);
    }
    of_query(generation, page_at(generation, path)?, query)
}

/// True if a template asks for `request.query.NAME`.
fn is_read(generation: &Generation, name: &str) -> bool {
    let environment = &generation.pages.environment;
    let written = [
        format!("query.{name}"),
        format!("query['{name}'"),
        format!("query[\"{name}\""),
    ];
    let mut templates = environment.templates();
    templates.any(|(_, template)| {
        let source = template.source();
        written.iter().any(|written| source.contains(written))
    })
}

/// Files of visitors are not those of the folder.
pub(super) fn is_upload(path: &str) -> bool {
    Path::new(path).starts_with(Path::new("/").join(UPLOAD_FOLDER))
}

/// The page that answers at a path, in which values may stand for parts.
pub(super) fn page_at<'g>(generation: &'g Generation, target: &str) -> Option<&'g Page> {
    endpoint_at(&generation.pages, target)?.page.as_deref()
}

/// Finds the fault in the first parameter of an address that its page does not take. Other names
/// than those of parameters are allowed, unless one is nearly that of a parameter.
pub(super) fn of_query(generation: &Generation, page: &Page, query: &str) -> Option<HintedNote> {
    let route = &page.route;
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find_map(|(name, value)| {
        let mut params = page.params.iter().filter(|param| param.in_path.is_none());
        if let Some(param) = params.clone().find(|param| param.name == *name) {
            let is_written = !value.contains(VALUE);
            let wrong = is_written.then(|| misfit(param, &value)).flatten()?;
            let message = format!("the page {route} does not take `{name}={value}`");
            return Some((message, format!("`{name}` {wrong}")));
        }
        let near = closest(&name, params.by_ref().map(|param| param.name.as_str()))?;
        // `tab` beside `tag` is a name of its own, as is one that a template or a script may read.
        let is_own = name.chars().count() <= 3 && near.chars().count() <= 3;
        if is_own || is_read(generation, &name) {
            return None;
        }
        let message = format!("the page {route} has no parameter `{name}`");
        Some((message, format!("did you mean `{near}`?")))
    })
}

//! Addresses to which forms and `-- require:` lines lead, and at which nothing answers.

use std::path::PathBuf;

use millpond_http::path;

use super::links;
use crate::core::Generation;
use millpond_site_compile::{
    compile::{
        may_be_at::{candidates, may_be_file},
        redirect, sign_in,
    },
    markup::VALUE,
    page::{
        Endpoint, Form, FormAnswer, Page,
        guard::Guard,
        redirect_target::{ArgumentSource, RedirectPiece},
    },
};
use millpond_site_format::{
    Problem, access::SessionRequirements, problem::SETTINGS, route::Pattern, suggest::closest,
};

/// Notes on all of them.
pub(super) fn nowhere(generation: &Generation) -> Vec<Problem> {
    let mut notes = Vec::new();
    for endpoint in &generation.pages.endpoints {
        if let Some(page) = &endpoint.page {
            let file = page.queries.first().map(|query| query.file.clone());
            let file = file.unwrap_or_else(|| PathBuf::from(format!("pages ({})", page.route)));
            notes.extend(of_needs(
                generation,
                (&page.needs, &page.guards),
                (&file, &endpoint.pattern),
            ));
            notes.extend(of_page(generation, page));
        }
        for form in &endpoint.forms {
            notes.extend(of_needs(
                generation,
                (&form.needs, &form.guards),
                (&form.file, &endpoint.pattern),
            ));
            notes.extend(of_form(generation, form));
        }
    }
    notes
}

fn of_needs(
    generation: &Generation,
    (needs, guards): (&SessionRequirements, &[Guard]),
    (file, pattern): (&PathBuf, &Pattern),
) -> Vec<Problem> {
    let targets = needs.require.iter();
    let targets = targets.filter_map(|require| require.otherwise.as_deref());
    let of_guards = guards.iter().filter_map(|guard| guard.otherwise.as_deref());
    let targets = targets.chain(of_guards);
    let targets = targets.map(|target| sign_in::pieces(target, pattern));
    targets
        .filter_map(|pieces| note(generation, &pieces, file))
        .collect()
}

/// A note, if nothing answers at the path to which an entry of the settings leads.
pub(super) fn led_nowhere(generation: &Generation, target: &str) -> Option<Problem> {
    let pieces = redirect(target, |_| Some(ArgumentSource::Param(0))).ok()?;
    note(generation, &pieces, &PathBuf::from(SETTINGS))
}

fn of_page(generation: &Generation, page: &Page) -> Option<Problem> {
    let redirect = page.redirect.as_ref()?;
    let note = note(generation, redirect.pieces.as_ref()?, &redirect.file)?;
    Some(note.at(redirect.line, 1))
}

fn of_form(generation: &Generation, form: &Form) -> Vec<Problem> {
    let verify = form.signing.verify.as_ref();
    let otherwise = verify.and_then(|verify| verify.otherwise.as_ref());
    let after = match &form.answer {
        FormAnswer::Redirect(pieces) => Some(pieces),
        FormAnswer::Json { .. } => None,
    };
    let targets = otherwise.into_iter().chain(after);
    targets
        .filter_map(|pieces| note(generation, pieces, &form.file))
        .collect()
}

/// A note, if nothing answers GET at the target, or if the page there does not take what stands
/// behind the path. Values in the path could be anything.
fn note(generation: &Generation, pieces: &[RedirectPiece], file: &PathBuf) -> Option<Problem> {
    let pieces = pieces.iter().map(|piece| match piece {
        RedirectPiece::Text(text) => text.clone(),
        RedirectPiece::Value(_) | RedirectPiece::Slug(_) => VALUE.to_string(),
    });
    let target: String = pieces.collect();
    let target = target.split('#').next()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let found = unanswered(generation, path);
    let found =
        found.or_else(|| links::of_query(generation, links::page_at(generation, path)?, query));
    let (message, hint) = found?;
    Some(Problem::new(file, message).hint(hint))
}

/// Why nothing answers GET at a path, in which values may stand for parts: a message and a hint.
pub(super) fn unanswered(generation: &Generation, target: &str) -> Option<(String, String)> {
    let sample = target.replace(VALUE, "1");
    let path = path::normalize(&sample).ok()?;
    let shown = target.replace(VALUE, "…");
    match answers(generation, &path) {
        Answer::Page => None,
        Answer::OnlyForm if candidates(&generation.pages, target).any(|it| it.page.is_some()) => {
            None
        }
        Answer::OnlyForm => Some((
            format!("leads to {shown}, which answers POST only"),
            "what leads there asks with GET".to_owned(),
        )),
        Answer::Nothing if may_answer(generation, target) => None,
        Answer::Nothing => {
            let message = format!("leads to {shown}, and there is no such page");
            let hint = nearest(generation, &shown, |endpoint| endpoint.page.is_some());
            Some((message, hint))
        }
    }
}

/// Returns the address that was probably meant by one at which nothing answers.
pub(super) fn nearest(
    generation: &Generation,
    shown: &str,
    may_be_meant: impl Fn(&Endpoint) -> bool,
) -> String {
    let endpoints = generation.pages.endpoints.iter();
    let routes = endpoints.filter(|endpoint| may_be_meant(endpoint));
    // A value of the address stands where the page has a parameter.
    let routes = routes.map(|it| (it.pattern.with("…"), it.pattern.in_lines()));
    let routes: Vec<(String, String)> = routes.collect();
    let near = closest(shown, routes.iter().map(|(shape, _)| shape.as_str()));
    let near = near.and_then(|near| routes.iter().find(|(shape, _)| shape == near));
    match near {
        Some((_, route)) => format!("did you mean {route}?"),
        None => "no page, file or rule has this address".to_owned(),
    }
}

/// True if a page, a form or a file answers at a target with some values in its path.
pub(super) fn may_answer(generation: &Generation, target: &str) -> bool {
    let has_page = candidates(&generation.pages, target).next().is_some();
    let mut files = generation.statics.files();
    has_page || target.contains(VALUE) && files.any(|(path, _)| may_be_file(path, target))
}

enum Answer {
    Page,
    OnlyForm,
    Nothing,
}

fn answers(generation: &Generation, path: &str) -> Answer {
    if let Some(rules) = &generation.rules
        && rules.before(path).is_some()
    {
        return Answer::Page;
    }
    if let Some(found) = generation.pages.router.find(path) {
        return match &generation.pages.endpoints[found.page].page {
            Some(_) => Answer::Page,
            None => Answer::OnlyForm,
        };
    }
    let is_file = generation
        .addresses
        .find(&generation.statics, path)
        .is_some();
    match is_file || generation.moved_to(path).is_some() {
        true => Answer::Page,
        false => Answer::Nothing,
    }
}

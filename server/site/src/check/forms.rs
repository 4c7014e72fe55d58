//! Forms in templates that are sent to where nothing takes them, and those that lack a field.

use millpond_http::path;

use super::{HintedNote, targets};
use crate::core::Generation;
use millpond_site_compile::{
    compile::may_be_at::{candidates, endpoint_at},
    form_tags::FormTag,
    markup::{VALUE, without_comments},
    page::{Endpoint, Form},
    template::{SetAddresses, file_of, sources},
};
use millpond_site_format::{
    Problem, params::Param, route::address_of, suggest::closest, write_method::WriteMethod,
};

/// Notes on all of them.
pub(super) fn notes(generation: &Generation) -> Vec<Problem> {
    let mut notes = Vec::new();
    let set = SetAddresses::new(sources(&generation.pages.environment));
    for (name, source) in sources(&generation.pages.environment) {
        let text = without_comments(&source);
        let stem = name.strip_prefix("pages/");
        let own = stem.and_then(|stem| stem.strip_suffix(".html"));
        for form in set.forms(&name, &text) {
            if let Some((message, hint)) = of_form(generation, own, &form) {
                let note = Problem::new(file_of(&name), message).at_offset(&text, form.at);
                notes.push(note.hint(hint));
            }
        }
    }
    notes
}

/// `own` is the name of the page that has the form; none in a template that several pages show.
fn of_form(generation: &Generation, own: Option<&str>, form: &FormTag<'_>) -> Option<HintedNote> {
    let action = form.action.clone().or(own.map(address_of))?;
    let target = action.split('#').next()?;
    let (place, query) = target.split_once('?').unwrap_or((target, ""));
    let is_of_site = place.starts_with('/') && !place.starts_with("//");
    if !is_of_site {
        return None;
    }
    let sample = place.replace(VALUE, "1");
    let path = path::normalize(&sample).ok()?;
    let rules = generation.rules.as_ref();
    if rules.is_some_and(|rules| rules.before(&path).is_some()) {
        return None;
    }
    let Some(endpoint) = endpoint_at(&generation.pages, place) else {
        let is_file = generation.addresses.find(&generation.statics, &path);
        let is_there = is_file.is_some() || generation.moved_to(&path).is_some();
        let is_there = is_there || targets::may_answer(generation, place);
        let is_nowhere = !is_there && form.action.is_some();
        return is_nowhere.then(|| {
            let shown = place.replace(VALUE, "…");
            let hint = targets::nearest(generation, &shown, |_| true);
            (
                format!("this form is sent to {shown}, where nothing answers"),
                hint,
            )
        });
    };
    let takes_post = |endpoint: &Endpoint| endpoint.form(WriteMethod::Post).is_some();
    match &*form.method {
        "get" => of_get(endpoint, form),
        "post" => match endpoint.form(WriteMethod::Post) {
            Some(post) => lacking(post, form, query),
            None if candidates(&generation.pages, place).any(takes_post) => None,
            None => {
                let route = endpoint.pattern.to_string();
                let message = format!("{route} does not answer POST, with which this form is sent");
                let file = route.replace('{', "[").replace('}', "]");
                Some((message, format!("it needs pages{file}.post.sql")))
            }
        },
        _ => None,
    }
}

/// A form that is sent with GET, and probably meant for POST.
fn of_get(endpoint: &Endpoint, form: &FormTag<'_>) -> Option<HintedNote> {
    let post = endpoint.form(WriteMethod::Post)?;
    let route = &endpoint.pattern;
    let hint = "write <form method=\"post\" …>".to_owned();
    let Some(page) = &endpoint.page else {
        let message = format!("this form is sent with GET, and {route} answers POST only");
        return Some((message, hint));
    };
    let takes = |params: &[Param], name: &str| params.iter().any(|param| param.name == name);
    let mut names = form.names();
    let name = names.find(|name| !takes(&page.params, name) && takes(&post.params, name))?;
    let message = format!(
        "this form is sent with GET, and the page {route} has no parameter `{name}`; {post} has"
    );
    Some((message, hint))
}

/// A parameter that must be given, and that no field of the form sends.
fn lacking(post: &Form, form: &FormTag<'_>, query: &str) -> Option<HintedNote> {
    let names: Vec<&str> = form.names().collect();
    let is_chosen = |name: &&str| name.contains(['{', VALUE]);
    let in_query = query.split('&').filter_map(|pair| pair.split('=').next());
    let in_query: Vec<&str> = in_query.collect();
    let is_unknown = names.iter().chain(&in_query).any(is_chosen);
    if is_unknown || !form.is_whole() {
        return None;
    }
    let is_file = |name: &str| {
        let mut files = post.uploads.iter();
        files.any(|file| file.line.name == name || file.line.gives_also(name))
    };
    let lacks = post.params.iter().find(|param| {
        let name = &*param.name;
        let is_needed = param.default.is_none() && !param.is_list && param.in_path.is_none();
        is_needed && !is_file(name) && !names.contains(&name) && !in_query.contains(&name)
    })?;
    let name = &lacks.name;
    let message = format!("no field of this form is called `{name}`, which {post} needs");
    // A field whose name is misspelt is noted where it stands.
    let is_misspelt = closest(name, names.iter().copied()).is_some();
    let hint = format!("add a field, or a default: -- param: {name} text = ''");
    (!is_misspelt).then_some((message, hint))
}

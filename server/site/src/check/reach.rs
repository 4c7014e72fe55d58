//! What each `[[require]]` entry reaches, and those that cannot do what they are there for.

use std::{collections::BTreeSet, path::PathBuf};

use super::targets;
use crate::{core::Generation, opening::open_addresses::addresses};
use millpond_site_compile::page::UploadField;
use millpond_site_format::{
    Problem,
    problem::SETTINGS,
    rules::{RequireRule, RequireRules, WORD},
    script::FilePlace,
    suggest::closest,
};

/// Reach of a `[[require]]` entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachReport {
    /// The file of the entry, relative to the folder that is checked.
    pub file: PathBuf,
    /// Its line there.
    pub line: usize,
    /// The paths for which it is.
    pub path: String,
    /// Claims that the entry requires.
    pub claims: String,
    /// The pages and forms, such as `POST /editor/posts`; those that it reaches for some values of
    /// their parameters only say so.
    pub addresses: Vec<String>,
    /// How many files in `static/` it reaches.
    pub files: usize,
    /// True if it reaches files that visitors send.
    pub uploads: bool,
}

impl ReachReport {
    fn is_empty(&self) -> bool {
        self.files == 0 && !self.uploads && self.addresses.is_empty()
    }
}

/// Behind an address that is reached for some values in its path.
const SOME: &str = " (some)";

fn guards(generation: &Generation) -> Option<&RequireRules> {
    generation.rules.as_ref()?.guards.as_ref()
}

/// Lists the reach of the entries, in their order.
pub(super) fn reached(generation: &Generation) -> Vec<ReachReport> {
    let rules = guards(generation).map_or(&[][..], |guards| &guards.rules);
    rules.iter().map(|rule| reach(generation, rule)).collect()
}

fn reach(generation: &Generation, rule: &RequireRule) -> ReachReport {
    let endpoints = 0..generation.pages.endpoints.len();
    let addresses = endpoints.flat_map(|at| of_endpoint(generation, rule, at));
    let files = generation.statics.files();
    let endpoints = generation.pages.endpoints.iter();
    let forms = endpoints.flat_map(|endpoint| &endpoint.forms);
    let mut uploads = forms.flat_map(|form| &form.uploads);
    let is_reached = |field: &UploadField| match &field.line.place {
        FilePlace::Folder(folder) => rule.holds_at(&format!("/{folder}/{WORD}")),
        FilePlace::Bytes => false,
    };
    let mut addresses: Vec<String> = addresses.collect();
    addresses.sort_by_key(|address| address.ends_with(SOME));
    ReachReport {
        file: SETTINGS.into(),
        line: rule.place.line,
        path: rule.path.pattern.to_string(),
        claims: rule.require.condition.to_string(),
        addresses,
        files: files.filter(|(path, _)| rule.holds_at(path)).count(),
        uploads: rule.holds_for("GET") && uploads.any(is_reached),
    }
}

/// The methods of an endpoint that a rule reaches, with its address.
fn of_endpoint(generation: &Generation, rule: &RequireRule, at: usize) -> Vec<String> {
    let endpoint = &generation.pages.endpoints[at];
    let patterns: Vec<_> = rule.except.iter().chain([&rule.path]).collect();
    let all = addresses(generation, at, &patterns);
    let note = match all.iter().filter(|path| rule.holds_at(path)).count() {
        0 => return Vec::new(),
        count if count == all.len() => "",
        _ => SOME,
    };
    let page = endpoint.page.iter().map(|_| "GET");
    let methods = page.chain(endpoint.forms.iter().map(|form| form.method.name()));
    let methods = methods.filter(|method| rule.holds_for(method));
    let address = |method: &str| match method {
        "GET" => format!("{}{note}", endpoint.pattern),
        method => format!("{method} {}{note}", endpoint.pattern),
    };
    methods.map(address).collect()
}

/// Notes on entries that reach nothing, name a claim that no form gives, or lead to nothing.
pub(super) fn notes(generation: &Generation, reached: &[ReachReport]) -> Vec<Problem> {
    let rules = guards(generation).map_or(&[][..], |guards| &guards.rules);
    let mut notes = Vec::new();
    for (rule, reached) in rules.iter().zip(reached) {
        if reached.is_empty() {
            notes.push(reaches_nothing(generation, rule));
        }
        notes.extend(claim_that_no_form_gives(generation, rule));
        let target = rule.require.otherwise.as_deref();
        let led = target.and_then(|target| targets::led_nowhere(generation, target));
        notes.extend(led.map(|found| Problem {
            at: Some((rule.place.line, rule.place.column)),
            ..found
        }));
    }
    notes
}

fn reaches_nothing(generation: &Generation, rule: &RequireRule) -> Problem {
    let path = rule.path.pattern.to_string();
    let note = fault(rule, format!("the rule for `{path}` reaches nothing"));
    let endpoints = generation.pages.endpoints.iter();
    let pages = endpoints.map(|endpoint| endpoint.pattern.in_lines());
    let files = generation.statics.files().map(|(path, _)| path.to_owned());
    let known: BTreeSet<String> = pages.chain(files).flat_map(with_folders).collect();
    match closest(&path, known.iter().map(String::as_str)) {
        Some(near) => note.hint(format!("did you mean `{near}`?")),
        None => {
            note.hint("no page, file or upload is at these paths, or an exception takes them all")
        }
    }
}

/// A path, and a pattern for each folder that it is in.
fn with_folders(path: String) -> Vec<String> {
    let ends = path
        .match_indices('/')
        .map(|(at, _)| at)
        .filter(|at| *at > 0);
    let mut all: Vec<String> = ends.map(|at| format!("{}/*", &path[..at])).collect();
    all.push(path);
    all
}

fn claim_that_no_form_gives(generation: &Generation, rule: &RequireRule) -> Option<Problem> {
    let given = generation.pages.claims_of_forms();
    let name = rule.require.condition.claim.as_str();
    if given.contains(name) {
        return None;
    }
    let note = fault(
        rule,
        format!("no form gives the claim `{name}`, so no visitor may enter"),
    );
    Some(match closest(name, given.iter().copied()) {
        Some(near) => note.hint(format!("did you mean `{near}`?")),
        None => note.hint("a form that signs in has a line such as: -- claims: user = account.id"),
    })
}

fn fault(rule: &RequireRule, message: String) -> Problem {
    Problem::new(SETTINGS, message).at(rule.place.line, rule.place.column)
}

//! Which members of `errors` the templates of a page show.

use std::collections::{BTreeMap, BTreeSet};

use super::Reach;
use crate::refusal::values::ERRORS;

/// The members of `errors` that a page's templates read by their names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ShownFaults {
    names: BTreeSet<String>,
    /// True if others may be read too: `errors[name]`, or `errors` as a value.
    has_others: bool,
}

impl ShownFaults {
    /// Returns the faults that a page of `template` shows, also by the templates that it extends,
    /// includes or imports.
    pub fn of(template: &str, sources: &BTreeMap<String, String>, reach: &Reach) -> Self {
        let mut shown = Self::default();
        for (name, source) in sources {
            if reach.shows(template, name) {
                shown.read(source);
            }
        }
        shown
    }

    /// True if a visitor may be shown what is wrong with this field.
    pub fn has(&self, name: &str) -> bool {
        self.has_others || self.names.contains(name)
    }

    /// Adds what a source reads.
    fn read(&mut self, source: &str) {
        for (at, _) in source.match_indices(ERRORS) {
            let before = &source[..at];
            let behind = &source[at + ERRORS.len()..];
            let is_part = before.ends_with(is_of_name)
                || before.ends_with('.')
                || behind.starts_with(is_of_name);
            if is_part || !is_in_tag(before) {
                continue;
            }
            match member(behind) {
                Some(name) => drop(self.names.insert(name.to_owned())),
                None => self.has_others |= is_value(before, behind),
            }
        }
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// True if a template's tag is open behind this.
fn is_in_tag(before: &str) -> bool {
    let last = |one: &str, other: &str| before.rfind(one).max(before.rfind(other));
    last("{{", "{%") > last("}}", "%}")
}

/// The name of the member that is read by `.name` or `["name"]`.
fn member(behind: &str) -> Option<&str> {
    let behind = behind.trim_start();
    if let Some(name) = behind.strip_prefix('.') {
        let name = name.trim_start();
        let end = name.find(|letter| !is_of_name(letter));
        return Some(&name[..end.unwrap_or(name.len())]);
    }
    let inner = behind.strip_prefix('[')?.trim_start();
    let quote = inner
        .chars()
        .next()
        .filter(|first| "\"'".contains(*first))?;
    let (name, rest) = inner[1..].split_once(quote)?;
    rest.trim_start().starts_with(']').then_some(name)
}

/// True if `errors` is more than a condition here: a member of it may then be read elsewhere.
fn is_value(before: &str, behind: &str) -> bool {
    let before = before.trim_end();
    let word = before.rsplit(|letter| !is_of_name(letter)).next();
    let is_condition = matches!(word, Some("if" | "elif" | "not" | "and" | "or"));
    let behind = behind.trim_start();
    !is_condition || behind.starts_with(['[', '|', ',', '('])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_by_its_name_is_shown() {
        for (source, title, other) in [
            ("{{ errors.title }}", true, false),
            ("{{ errors . title.kind }}", true, false),
            ("{{ errors['title'] }}{{ errors[ \"x\" ] }}", true, false),
            (
                "{% if errors %}{{ my_errors.title }}{% endif %}",
                false,
                false,
            ),
            (
                "{{ 1 if not errors else 2 }}{{ form.errors.title }}",
                false,
                false,
            ),
            (
                "{% for name in errors %}{{ errors[name] }}{% endfor %}",
                true,
                true,
            ),
            ("{{ field('title', errors) }}", true, true),
            ("{{ errors | items }}", true, true),
            ("{% set all = errors %}{{ all.title }}", true, true),
            ("{% if errors[name] %}", true, true),
            ("{% if errors|length %}", true, true),
            (
                "<p class=\"errors\">errors.title</p>{{ x }} errors",
                false,
                false,
            ),
            ("", false, false),
        ] {
            let mut shown = ShownFaults::default();
            shown.read(source);
            assert_eq!(
                (shown.has("title"), shown.has("other")),
                (title, other),
                "{source}"
            );
        }
    }
}

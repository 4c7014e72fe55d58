//! The settings of which there may be many: `[[redirect]]`, `[[rewrite]]`, `[[fields]]`,
//! `[[require]]`, `[[alert]]`, `[[data]]`, `[[host]]`.

use std::{borrow::Cow, ops::Range, path::Path};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Config, alerts, data, hosts, list, require, rules};
use crate::{Problem, problem::SETTINGS, rules::RulePosition, suggest};

/// A kind of entry. Its meaning and that of its keys is in the manual.
pub(super) struct EntryKind {
    /// Its name, as in `[[redirect]]`.
    pub(super) name: &'static str,
    /// Its keys, in the order of the manual, each with an example in the notation of the file.
    pub(super) keys: &'static [(&'static str, &'static str)],
    /// Reads an entry into the configuration.
    pub(super) read: fn(&mut Config, &ConfigEntry<'_>, &Path) -> Result<(), Problem>,
}

/// All of them, in the order of the manual.
pub(super) const TABLES: [&EntryKind; 7] = [
    &rules::REDIRECT,
    &rules::REWRITE,
    &rules::FIELDS,
    &require::REQUIRE,
    &alerts::ALERT,
    &data::DATA,
    &hosts::HOST,
];

/// The most entries of one kind; more are an error of the program that generates them.
const MAX_ENTRIES: usize = 10_000;

/// One entry of the file.
pub(super) struct ConfigEntry<'a> {
    text: &'a str,
    table: &'static EntryKind,
    span: Range<usize>,
    values: &'a DeTable<'a>,
}

/// Reads all entries of one kind.
pub(super) fn read(
    config: &mut Config,
    text: &str,
    table: &'static EntryKind,
    (name, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>),
    dir: &Path,
) -> Result<(), Problem> {
    let problem = |message: String, span: Range<usize>| {
        Problem::new(SETTINGS, message).at_offset(text, span.start)
    };
    let shape = |span: Range<usize>| {
        let message = format!("`{}` is a list of entries", table.name);
        problem(message, span).hint(format!(
            "write [[{}]] with two brackets, once for each",
            table.name
        ))
    };
    let entries = value
        .get_ref()
        .as_array()
        .ok_or_else(|| shape(name.span()))?;
    if entries.len() > MAX_ENTRIES {
        let message = format!("more than {MAX_ENTRIES} entries of [[{}]]", table.name);
        return Err(problem(message, name.span()).hint("a `*` or `:name` makes one rule of many"));
    }
    for entry in entries.iter() {
        let values = entry
            .get_ref()
            .as_table()
            .ok_or_else(|| shape(entry.span()))?;
        let entry = ConfigEntry {
            text,
            table,
            span: entry.span(),
            values,
        };
        entry.check_keys()?;
        (table.read)(config, &entry, dir)?;
    }
    Ok(())
}

impl<'a> ConfigEntry<'a> {
    /// The position of its first character.
    pub(super) fn place(&self) -> RulePosition {
        let at = self.problem(String::new(), self.span.start).at;
        let (line, column) = at.unwrap_or((1, 1));
        RulePosition { line, column }
    }

    /// The value of a key; `None` if it is absent.
    pub(super) fn find(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.values.get(key)
    }

    /// The value of a required key, as `take` parses it. An error of `take` becomes a problem at
    /// the position of the value.
    pub(super) fn need<T>(
        &self,
        key: &'static str,
        take: impl FnOnce(&'a DeValue<'a>) -> Result<T, String>,
    ) -> Result<T, Problem> {
        match self.find(key) {
            Some(value) => {
                take(value.get_ref()).map_err(|message| self.fault(key, value.span(), &message))
            }
            None => Err(self
                .problem(
                    format!("[[{}]] without `{key}`", self.table.name),
                    self.span.start,
                )
                .hint(self.example(key))),
        }
    }

    /// A problem with the value of a key at this position.
    pub(super) fn fault(&self, key: &str, at: Range<usize>, message: &str) -> Problem {
        self.problem(format!("{}.{key}: {message}", self.table.name), at.start)
            .hint(self.example(key))
    }

    fn problem(&self, message: String, offset: usize) -> Problem {
        Problem::new(SETTINGS, message).at_offset(self.text, offset)
    }

    fn example(&self, key: &str) -> String {
        let found = self.table.keys.iter().find(|(name, _)| *name == key);
        let example = found.map_or("", |(_, example)| example);
        format!("for example: {key} = {example}")
    }

    fn check_keys(&self) -> Result<(), Problem> {
        let known = || self.table.keys.iter().map(|(name, _)| *name);
        let mut unknown: Vec<_> = self
            .values
            .keys()
            .filter(|key| !known().any(|known| known == key.get_ref()))
            .collect();
        unknown.sort_by_key(|key| key.span().start);
        let Some(key) = unknown.first() else {
            return Ok(());
        };
        let word = key.get_ref();
        let problem = self.problem(
            format!("unknown key `{word}` in [[{}]]", self.table.name),
            key.span().start,
        );
        Err(match suggest::closest(word, known()) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem.hint(format!(
                "[[{}]] has {}",
                self.table.name,
                list(known().map(|name| format!("`{name}`")))
            )),
        })
    }
}

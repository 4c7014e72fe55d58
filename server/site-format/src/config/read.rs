//! The file as a whole: its keys, and whether they are known.

use std::{borrow::Cow, path::Path};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Config,
    keys::{KEYS, Key, SECTIONS, SettingKind},
    list,
    tables::{self, TABLES},
    value,
};
use crate::{Problem, problem::SETTINGS, suggest};

type Name<'t> = Spanned<Cow<'t, str>>;
type SpannedValue<'t> = Spanned<DeValue<'t>>;

/// The configuration in `text`; paths are taken from `dir`.
pub(super) fn read(text: &str, dir: &Path) -> Result<Config, Problem> {
    let file = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(text.len(), |span| span.start);
        Problem::new(
            SETTINGS,
            format!("not TOML: {}", error.message().replace('\n', ", ")),
        )
        .at_offset(text, offset)
        .hint("a section is `[server]`, a setting `listen = \"127.0.0.1:8080\"`")
    })?;
    let mut config = Config::defaults(dir);
    for (name, value) in in_order(file.get_ref()) {
        if let Some(table) = TABLES.iter().find(|table| table.name == name.get_ref()) {
            tables::read(&mut config, text, table, (name, value), dir)?;
            continue;
        }
        let section = value
            .get_ref()
            .as_table()
            .filter(|_| is_section(name.get_ref()));
        let section = section.ok_or_else(|| unknown_section(text, name, value))?;
        for (key_name, value) in in_order(section) {
            let key = find(name.get_ref(), key_name.get_ref())
                .ok_or_else(|| unknown_key(text, name.get_ref(), key_name))?;
            value::set(&mut config, key, value.get_ref(), dir).map_err(|message| {
                Problem::new(SETTINGS, format!("{}: {message}", key.path))
                    .at_offset(text, value.span().start)
                    .hint(hint(key, value.get_ref()))
            })?;
        }
    }
    check_limits(&config, text, file.get_ref())?;
    check_tls(&config, text, file.get_ref())?;
    check_hosts(&config, text, file.get_ref())?;
    Ok(config)
}

/// How a value is to be. What stands in the environment is mended there.
fn hint(key: &Key, value: &DeValue<'_>) -> String {
    let is_url = matches!(key.kind, SettingKind::Database(_));
    match value.as_str().and_then(|value| value.strip_prefix("env:")) {
        Some(name) if is_url && !name.is_empty() => format!(
            "set it where the program is started: export {name}=\"postgres://user:password@host:5432/database\", \
             or {name}=\"sqlite:site.db\""
        ),
        _ => format!("for example: {}", key.line()),
    }
}

/// Sections that stay in the file of a folder with several sites.
pub(super) const SHARED: [&str; 8] = [
    "server", "tls", "admin", "alert", "log", "proxies", "limits", "host",
];

/// If each site has its own file, settings of a single site do not apply here.
fn check_hosts(config: &Config, text: &str, file: &DeTable<'_>) -> Result<(), Problem> {
    let strays = in_order(file).into_iter().map(|(name, _)| name);
    let stray = strays
        .into_iter()
        .find(|name| !SHARED.contains(&&**name.get_ref()));
    match stray.filter(|_| config.has_hosts()) {
        None => Ok(()),
        Some(name) => Err(Problem::new(
            SETTINGS,
            format!("`{}` beside [[host]] applies to no site", name.get_ref()),
        )
        .at_offset(text, name.span().start)
        .hint("write it into the millpond.toml of the site that it is for")),
    }
}

/// A certificate has a key, and a key a certificate.
fn check_tls(config: &Config, text: &str, file: &DeTable<'_>) -> Result<(), Problem> {
    let (has, lacks) = match (&config.tls.certificate, &config.tls.key) {
        (Some(_), None) => ("certificate", "key"),
        (None, Some(_)) => ("key", "certificate"),
        _ => return Ok(()),
    };
    let section = file
        .get("tls")
        .and_then(|section| section.get_ref().as_table());
    let blamed = section.and_then(|section| section.get(has));
    Err(
        Problem::new(SETTINGS, format!("tls.{has} without tls.{lacks}"))
            .at_offset(text, blamed.map_or(0, |value| value.span().start))
            .hint(format!(
                "for example: {lacks} = \"tls/example.org.pem\"; both may be in one file"
            )),
    )
}

/// Checks that involve more than one limit.
fn check_limits(config: &Config, text: &str, file: &DeTable<'_>) -> Result<(), Problem> {
    let limits = &config.limits;
    if limits.target <= limits.head {
        return Ok(());
    }
    let section = file
        .get("limits")
        .and_then(|section| section.get_ref().as_table());
    let blamed = section.and_then(|section| section.get("target").or_else(|| section.get("head")));
    Err(Problem::new(
        SETTINGS,
        format!(
            "limits.target ({}) is more than limits.head ({}), which the target is part of",
            value::show_size(limits.target),
            value::show_size(limits.head)
        ),
    )
    .at_offset(text, blamed.map_or(0, |value| value.span().start))
    .hint("lower limits.target or raise limits.head"))
}

/// The entries in the order of the file, so that the first mistake is reported first.
fn in_order<'t, 'f>(table: &'t DeTable<'f>) -> Vec<(&'t Name<'f>, &'t SpannedValue<'f>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

fn is_section(name: &str) -> bool {
    SECTIONS.iter().any(|(section, _)| *section == name)
}

fn find(section: &str, name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.parts() == (section, name))
}

fn names_in(section: &str) -> impl Iterator<Item = &'static str> {
    let parts = KEYS.iter().map(Key::parts);
    parts
        .filter(move |(of, _)| *of == section)
        .map(|(_, name)| name)
}

/// The section that has a setting of this name.
fn section_with(name: &str) -> Option<&'static str> {
    let parts = KEYS.iter().map(Key::parts);
    parts
        .filter(|(_, of)| *of == name)
        .map(|(section, _)| section)
        .next()
}

fn unknown_section(text: &str, name: &Name<'_>, value: &SpannedValue<'_>) -> Problem {
    let word = name.get_ref();
    let problem =
        |message: String| Problem::new(SETTINGS, message).at_offset(text, name.span().start);
    if is_section(word) {
        return problem(format!("`{word}` is a section and not a setting"))
            .hint(format!("write [{word}] on a line of its own"));
    }
    let is_section_like = value.get_ref().is_table() || value.get_ref().is_array();
    let what = if is_section_like {
        "section"
    } else {
        "setting"
    };
    let unknown = problem(format!("unknown {what} `{word}`"));
    if let Some(section) = section_with(word).filter(|_| !is_section_like) {
        return unknown.hint(format!("it belongs under [{section}]"));
    }
    let sections = SECTIONS.iter().map(|(name, _)| *name);
    let tables = TABLES.iter().map(|table| table.name);
    let shown = sections.clone().map(|name| format!("[{name}]"));
    let shown = shown.chain(tables.clone().map(|name| format!("[[{name}]]")));
    match suggest::closest(word, sections.chain(tables)).filter(|_| is_section_like) {
        Some(near) if is_section(near) => unknown.hint(format!("did you mean [{near}]?")),
        Some(near) => unknown.hint(format!("did you mean [[{near}]]?")),
        None => unknown.hint(format!("there are {}", list(shown))),
    }
}

fn unknown_key(text: &str, section: &str, name: &Name<'_>) -> Problem {
    let word = name.get_ref();
    let unknown = Problem::new(SETTINGS, format!("unknown key `{word}` in [{section}]"))
        .at_offset(text, name.span().start);
    if let Some(near) = suggest::closest(word, names_in(section)) {
        return unknown.hint(format!("did you mean `{near}`?"));
    }
    if let Some(section) = section_with(word) {
        return unknown.hint(format!("it belongs under [{section}]"));
    }
    unknown.hint(format!(
        "[{section}] has {}",
        list(names_in(section).map(|name| format!("`{name}`")))
    ))
}

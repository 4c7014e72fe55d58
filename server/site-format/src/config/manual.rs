//! Compares the reference manual of the settings with their tables.

use std::fmt::Write as _;

use super::{
    keys::{KEYS, Key, SECTIONS, SettingKind},
    tables::{EntryKind, TABLES},
    value::{show_size, show_time},
};

const PAGE: &str = include_str!("../../../../docs/reference/configuration.md");

#[test]
fn the_manual_is_up_to_date() {
    expect_test::expect_file!["../../../../docs/reference/configuration.md"].assert_eq(&manual());
}

/// The example of a kind of entry.
pub(super) fn example(table: &EntryKind) -> &'static str {
    between(PAGE, &heading(table), "\n```\n")
        .split_once("```toml\n")
        .expect("an example")
        .1
}

fn heading(table: &EntryKind) -> String {
    format!("\n## [[{}]]\n\n", table.name)
}

/// True if an entry need not have the key.
pub(super) fn is_optional(table: &EntryKind, key: &str) -> bool {
    meaning(table, key).contains(" Default: `")
}

/// Returns the text of the page on a key of an entry.
fn meaning(table: &EntryKind, key: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&heading(table)).unwrap_or_default();
    between(rest, &format!("\n- `{key}`: "), "\n")
}

/// The page with its own texts, and all else from the tables.
fn manual() -> String {
    let mut text = PAGE.split("\n## [").next().unwrap_or("").to_owned();
    for (section, _) in SECTIONS {
        let heading = format!("\n## [{section}]\n\n");
        let _ = writeln!(text, "{heading}{}", between(PAGE, &heading, "\n\n### "));
        for key in KEYS.iter().filter(|key| key.parts().0 == section) {
            describe(&mut text, key);
        }
    }
    for table in TABLES {
        let heading = heading(table);
        let about = between(PAGE, &heading, "\n\n- `");
        let _ = write!(text, "{heading}{about}\n\n");
        for (key, _) in table.keys {
            let _ = writeln!(text, "- `{key}`: {}", meaning(table, key));
        }
    }
    text
}

fn describe(text: &mut String, key: &Key) {
    let heading = format!("\n### {}\n\n", key.path);
    let about = between(PAGE, &heading, "\n\nDefault: ");
    let default = key
        .default
        .map_or("absent".to_owned(), |default| format!("`{default}`"));
    let values = values(&key.kind);
    let _ = write!(text, "{heading}{about}\n\nDefault: {default}; {values}.\n");
}

/// The text of the page between two others.
fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let rest = text.split_once(start).map(|(_, rest)| rest);
    let found = rest.and_then(|rest| rest.split_once(end));
    found.map(|(found, _)| found).unwrap_or_else(|| {
        panic!("docs/reference/configuration.md has no text after {start:?} and before {end:?}: write what it means")
    })
}

/// The accepted values of a setting.
fn values(kind: &SettingKind) -> String {
    match kind {
        SettingKind::Flag(_) => "`true` or `false`".to_owned(),
        SettingKind::Count(_, least, most) => format!("a whole number from {least} to {most}"),
        SettingKind::Size(_, least, most) if *most == isize::MAX.unsigned_abs() => {
            format!("a size of at least `{}`", show_size(*least))
        }
        SettingKind::Size(_, least, most) => format!(
            "a size from `{}` to `{}`",
            show_size(*least),
            show_size(*most)
        ),
        SettingKind::Time(_, least, most) => format!(
            "a span of time from `{}` to `{}`",
            show_time(*least),
            show_time(*most)
        ),
        SettingKind::Address(_) => "an IP address and a port, or `unix:` and a path".to_owned(),
        SettingKind::SomeAddress(_) => "an IP address and a port".to_owned(),
        SettingKind::Database(_) => "a URL".to_owned(),
        SettingKind::Feed(_) => "`\"logical\"` or `\"triggers\"`".to_owned(),
        SettingKind::Replicas(_) => "a list of hosts".to_owned(),
        SettingKind::Publication(_) => "a name".to_owned(),
        SettingKind::KeptFile(..) => "`true`, `false` or a path".to_owned(),
        SettingKind::File(_) => "a path".to_owned(),
        SettingKind::Text(_) => "a text".to_owned(),
        SettingKind::Word(_, words) => {
            let words: Vec<_> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
            words.join(" or ")
        }
        SettingKind::Networks(_) => {
            "a list of addresses, and of networks such as `10.0.0.0/8`".to_owned()
        }
        SettingKind::Domains(_) => "a list of host names or addresses".to_owned(),
        SettingKind::Log(_) => "a path or `-`".to_owned(),
        SettingKind::Locale(_) => format!("one of {}", crate::locale::tags()),
        SettingKind::Currency(_) => "three letters".to_owned(),
        SettingKind::Zone(_) => "the name of a time zone".to_owned(),
        SettingKind::Secret(_) => "keys, or `env:NAME`".to_owned(),
        SettingKind::Cookie(_) => "a name".to_owned(),
        SettingKind::Names(_) => "a list of names".to_owned(),
        SettingKind::Scope(_) => "`true`, `false` or a list of paths".to_owned(),
    }
}

//! The reference manual of the settings, generated from their table.

use std::fmt::Write as _;

use super::{
    keys::{KEYS, Key, SECTIONS, SettingKind},
    tables::{EntryKind, TABLES},
    value::{show_size, show_time},
};

/// `docs/reference/configuration.md`.
pub(super) fn manual() -> String {
    let mut text = String::from(
        "# Configuration\n\n\
         A site's settings are in `millpond.toml` in its folder ([TOML](https://toml.io)). The file may be empty: every setting has a\n\
         default. What is not known is an error with its line, so a misspelt setting is never a silent one. `millpond check` reads the\n\
         file; `SIGHUP` makes a running server read it again, apply what can be applied, and name what needs a restart. `[session]`, `[static]`,\n\
         `[[redirect]]`, `[[rewrite]]`, `[[fields]]` and `[[require]]` take effect as soon as the file has changed.\n\n\
         Sizes are a number of bytes, or text with a unit: `\"64KiB\"` is 65,536 bytes, `\"64KB\"` 64,000. Spans of time are text with\n\
         a unit: `ms`, `s`, `min`, `h` or `d`.\n\n\
         This page is made from the tables in `server/site-format/src/config/` (`UPDATE_EXPECT=1 cargo test -p millpond-site-format manual`).\n",
    );
    for section in &SECTIONS {
        let _ = write!(text, "\n## [{}]\n\n{}\n", section.name, section.about);
        for key in KEYS.iter().filter(|key| key.section == section.name) {
            describe(&mut text, key);
        }
    }
    for table in TABLES {
        describe_table(&mut text, table);
    }
    text
}

fn describe_table(text: &mut String, table: &EntryKind) {
    let _ = write!(
        text,
        "\n## [[{}]]\n\n{}\n\n```toml\n{}\n```\n\n",
        table.name, table.about, table.example
    );
    for column in table.keys {
        let default = match column.default {
            Some(default) => format!("Default: `{default}`."),
            None => "It must be there.".to_owned(),
        };
        let _ = writeln!(text, "- `{}`: {} {default}", column.name, column.about);
    }
}

fn describe(text: &mut String, key: &Key) {
    let default = key.default.map_or("Default: absent".to_owned(), |default| {
        format!("Default: `{default}`")
    });
    let _ = write!(
        text,
        "\n### {}\n\n{}\n\n{}; {}.\n",
        key.path(),
        key.about,
        default,
        values(&key.kind)
    );
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
        SettingKind::Address(_) | SettingKind::SomeAddress(_) => {
            "an IP address and a port".to_owned()
        }
        SettingKind::Database(_) => "a URL".to_owned(),
        SettingKind::Feed(_) => "`\"logical\"` or `\"triggers\"`".to_owned(),
        SettingKind::Replicas(_) => "a list of hosts".to_owned(),
        SettingKind::Publication(_) => "a name".to_owned(),
        SettingKind::WarmList(_) => "`true`, `false` or a path".to_owned(),
        SettingKind::File(_) => "a path".to_owned(),
        SettingKind::Text(_) => "a text".to_owned(),
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

#[cfg(test)]
mod tests {
    #[test]
    fn the_manual_is_up_to_date() {
        expect_test::expect_file!["../../../../docs/reference/configuration.md"]
            .assert_eq(&super::manual());
    }
}

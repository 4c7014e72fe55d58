//! The reference manual of the settings, made from their table.

use std::fmt::Write as _;

use super::{
    keys::{KEYS, Key, Kind, SECTIONS},
    tables::{TABLES, Table},
    value::{show_size, show_time},
};

/// `docs/reference/configuration.md`.
pub(super) fn manual() -> String {
    let mut text = String::from(
        "# Configuration\n\n\
         A site's settings are in `millpond.toml` in its folder ([TOML](https://toml.io)). The file may be empty: every setting has a\n\
         default. What is not known is an error with its line, so a misspelt setting is never a silent one. `millpond check` reads the\n\
         file; `SIGHUP` makes a running server read it again, apply what can be applied, and name what needs a restart. `[session]`, `[static]`,\n\
         `[[redirect]]`, `[[rewrite]]` and `[[fields]]` take effect as soon as the file has changed.\n\n\
         Sizes are a number of bytes, or text with a unit: `\"64KiB\"` is 65,536 bytes, `\"64KB\"` 64,000. Spans of time are text with\n\
         a unit: `ms`, `s`, `min`, `h` or `d`.\n\n\
         This page is made from the tables in `server/site/src/config/` (`UPDATE_EXPECT=1 cargo test -p millpond-site manual`).\n",
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

fn describe_table(text: &mut String, table: &Table) {
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

/// What may be written there.
fn values(kind: &Kind) -> String {
    match kind {
        Kind::Flag(_) => "`true` or `false`".to_owned(),
        Kind::Count(_, least, most) => format!("a whole number from {least} to {most}"),
        Kind::Size(_, least, most) if *most == isize::MAX.unsigned_abs() => {
            format!("a size of at least `{}`", show_size(*least))
        }
        Kind::Size(_, least, most) => format!(
            "a size from `{}` to `{}`",
            show_size(*least),
            show_size(*most)
        ),
        Kind::Time(_, least, most) => format!(
            "a span of time from `{}` to `{}`",
            show_time(*least),
            show_time(*most)
        ),
        Kind::Address(_) | Kind::SomeAddress(_) => "an IP address and a port".to_owned(),
        Kind::Database(_) => "a URL".to_owned(),
        Kind::Feed(_) => "`\"logical\"` or `\"triggers\"`".to_owned(),
        Kind::Replicas(_) => "a list of hosts".to_owned(),
        Kind::Publication(_) => "a name".to_owned(),
        Kind::WarmList(_) => "`true`, `false` or a path".to_owned(),
        Kind::Log(_) => "a path or `-`".to_owned(),
        Kind::Secret(_) => "keys, or `env:NAME`".to_owned(),
        Kind::Cookie(_) => "a name".to_owned(),
        Kind::Names(_) => "a list of names".to_owned(),
        Kind::Scope(_) => "`true`, `false` or a list of paths".to_owned(),
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

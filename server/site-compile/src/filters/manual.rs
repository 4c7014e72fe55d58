//! docs/reference/templates.md is right and complete: every example prints what it says, and every
//! filter, test and function has one.

use std::{collections::BTreeMap, fs};

use millpond_db::ValueKind;
use minijinja::{Environment, Value, context};

use super::{names as own_names, with_present_time};
use crate::{page_params::PageParams, template};
use millpond_site_format::{locale::Formats, params::Param};

fn manual() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/templates.md"
    );
    fs::read_to_string(path).unwrap()
}

/// The examples with what they print.
fn examples(manual: &str) -> Vec<(&str, &str)> {
    let blocks = manual.split("```jinja\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap().lines());
    lines
        .map(|line| {
            let (template, result) = line.split_once("{# →").expect(line);
            (
                template.trim_end(),
                result.strip_suffix("#}").expect(line).trim(),
            )
        })
        .collect()
}

fn sample() -> Value {
    let param = |name: &str, kind, default| Param {
        default,
        ..Param::new(name, kind)
    };
    let params = [
        param("q", ValueKind::Text, None),
        param("page", ValueKind::Integer, Some(1.into())),
    ];
    context! {
        article => context! {
            title => "Tea & Cake", price => 2.5, at => "2026-03-03 14:05:06", body => "*good*",
            none_at => (),
        },
        comments => [context! { who => "Ann", n => 1 }, context! { who => "Bob", n => 2 }],
        params => Value::from_object(PageParams::new(&params, &["a&b".into(), 3.into()])),
    }
}

/// Kinds of spaces and lines do not count, nor do the years that have passed.
fn plain(text: &str, is_of_now: bool) -> String {
    let text = text.replace(['\u{202f}', '\u{a0}'], " ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match is_of_now {
        true => text.replace(|letter: char| letter.is_ascii_digit(), ""),
        false => text,
    }
}

#[test]
fn every_example_prints_what_the_manual_says() {
    let (environment, _) = template::environment(&BTreeMap::new(), Formats::default());
    let manual = manual();
    let examples = examples(&manual);
    assert!(examples.len() > 90);
    let mut wrong = String::new();
    for (template, expected) in examples {
        let (printed, _) =
            with_present_time(|| environment.render_named_str("pages/a.html", template, sample()));
        let printed = printed.unwrap_or_else(|error| template::failure(&error));
        let is_of_now = template.contains("timeago");
        if plain(&printed, is_of_now) != plain(expected, is_of_now) {
            wrong += &format!("{template} prints {printed}, not {expected}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The names that an environment has, as its debug output lists them.
fn names(environment: &Environment<'_>, kind: &str) -> Vec<String> {
    let shown = format!("{environment:?}");
    let start = shown.find(&format!("{kind}: ")).unwrap() + kind.len() + 3;
    let list = shown[start..].split(['}', ']']).next().unwrap();
    list.split(", ")
        .map(|name| name.trim_matches('"').to_owned())
        .filter(|name| {
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        })
        .collect()
}

#[test]
fn every_filter_test_and_function_has_an_example() {
    let (environment, _) = template::environment(&BTreeMap::new(), Formats::default());
    let filters = names(&environment, "filters");
    let built_in = names(&Environment::new(), "filters");
    let own: Vec<_> = filters
        .iter()
        .filter(|name| !built_in.contains(name))
        .collect();
    assert_eq!(own, own_names().collect::<Vec<_>>());
    let tests = names(&environment, "tests");
    assert!(built_in.len() > 40 && tests.len() > 20);
    let manual = manual();
    let used: String = examples(&manual)
        .iter()
        .map(|(template, _)| format!("{template} "))
        .collect();
    let is_used = |before: &str, name: &str, ends: &[char]| {
        let pattern = format!("{before}{name}");
        let mut rest = used
            .match_indices(&pattern)
            .map(|(at, _)| &used[at + pattern.len()..]);
        rest.any(|rest| rest.starts_with(ends))
    };
    let missing_filters = filters
        .iter()
        .filter(|name| !is_used("| ", name, &[' ', '(', ')']));
    let missing_tests = tests
        .iter()
        .filter(|name| !is_used(" is ", name, &[' ', '(']));
    let functions = environment.globals().map(|(name, _)| name.to_owned());
    let missing_functions = functions.filter(|name| !is_used("", name, &['(']));
    let missing: Vec<_> = missing_filters
        .chain(missing_tests)
        .cloned()
        .chain(missing_functions)
        .collect();
    assert!(missing.is_empty(), "without an example: {missing:?}");
}

//! What is rewritten means what it meant, and null is no error.

use std::collections::BTreeMap;

use super::*;
use crate::{
    filters::with_note,
    template::{environment, failure},
};
use millpond_site_format::locale::Formats;

/// Renders a template. Marks are in no text, and errors have the owner's text.
fn printed(source: &str) -> String {
    let given = rewritten("pages/a.html", source);
    assert_eq!(written(&given, 0).0, source);
    let sources = BTreeMap::from([("pages/a.html".to_owned(), source.to_owned())]);
    let (environment, problems) = environment(&sources, Formats::default());
    assert!(problems.is_empty(), "{problems:?}");
    let template = environment.get_template("pages/a.html").unwrap();
    assert_eq!(template.source(), given, "what is rewritten parses");
    let context = minijinja::context! {
        none => (), n => 7, half => 0.5, text => "abc", list => [3, 1, 2], row => minijinja::context! { n => 2 },
    };
    match with_note(|| template.render(context)).0 {
        Ok(text) => text,
        Err(error) => failure(&error),
    }
}

#[test]
fn operators_mean_what_they_mean() {
    for (source, expected) in [
        ("{{ 1 + 2 * 3 - 4 }}", "3"),
        ("{{ (1 + 2) * (3 - 4) }}", "-3"),
        ("{{ 1+2-3+4 }}{{2**3**1}}", "48"),
        (
            "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 1 / 2 }}",
            "3 -4 1 2 0.5",
        ),
        ("{{ 'a' + 'b' ~ 'c' * 2 }}", "abcc"),
        ("{{ [1] + [2] }} {{ (list + [9]) | length }}", "[1, 2] 4"),
        (
            "{{ -n + 1 }} {{ -row.n }} {{ - -n }} {{ -(n + 1) * 2 }}",
            "-6 -2 7 -16",
        ),
        ("{{ n + 1 if n - 7 == 0 else n }}", "8"),
        ("{{ (n if none else half) + 1 }}", "1.5"),
        (
            "{{ (n + 1) | string + 'x' }} {{ n - 1 is odd }} {{ (n - 1) is even }}",
            "8x 6 True",
        ),
        (
            "{{ 1 in list }} {{ 9 not in list }} {{ not 1 in list }} {{ (1) not   in (list) }}",
            "True True False False",
        ),
        ("{{ 'b' in text and 'z' not in text }}", "True"),
        (
            "{{ ('z' not in text) ~ (('b' not in text) + 1) }}{{ not 'z' not in text }}",
            "True1False",
        ),
        (
            "{{ list[1:][0] }} {{ (list + list)[:4:2] | list }} {{ text[:n - 5] }} {{ row['n'] + list[-1] }}",
            "1 [3, 2] ab 4",
        ),
        (
            "{% for x in list | sort %}{{ loop.index0 * 2 + x }}{% endfor %}",
            "147",
        ),
        (
            "{% for x in (list) + [n + 1] if x % 2 == 0 %}{{ x }}{% else %}-{% endfor %}",
            "28",
        ),
        (
            "{% set x = n + 1 %}{{ x }}{% macro m(a, b = n + 2) %}{{ a + b }}{% endmacro %}{{ m(n - 6) }}",
            "810",
        ),
        (
            "{{ n < n + 1 < n + 2 }} {{ {'a': n + 1}.a }} {{ [n + 1, -n][1] }}",
            "True 8 -7",
        ),
        (
            "a + b {% raw %}{{ 1 + 2 }}{% endraw %}{# 1 + 2 #}",
            "a + b {{ 1 + 2 }}",
        ),
        ("{%- for x in list -%} {{ x - 1 -}} {%- endfor -%}", "201"),
        ("{{ range(n - 4) | map('string') | join(n // 7) }}", "01112"),
        ("{{ 9223372036854775807 + 1 }}", "9223372036854775808"),
        (
            "{% for x in (list if n else none) %}{{ x }}{% endfor %}{% for a in row %}{{ a }}{% endfor %}",
            "312n",
        ),
        (
            "{{ (row).n + (list)[0] }} {{ ((list | first)) - 1 }}",
            "5 2",
        ),
        (
            "{{ (text is not none) in [true] }}{{ (n is not none) + 1 }}",
            "True2",
        ),
    ] {
        assert_eq!(printed(source), expected, "{source}");
    }
}

#[test]
fn null_gives_null_and_what_cannot_be_gives_nothing() {
    for source in [
        "{{ none + 1 }}{{ 1 - none }}{{ none * none }}{{ -none }}{{ (none + 1) / 2 }}",
        "{{ text + 1 }}{{ n / 0 }}{{ n % 0 }}{{ n // 0 }}{{ 0 ** -1 }}{{ list * 'x' }}{{ -text }}",
        "{{ 170141183460469231731687303715884105727 + 1 }}{{ 1 / 'x' }}",
        "{% if 1 in none %}x{% endif %}{% if 1 in n %}x{% endif %}",
        "{{ none[:2] | join }}{{ n[:2] }}{% for x in none %}x{% endfor %}{% for x in n %}x{% endfor %}",
        "{% for x in n[:none] %}x{% endfor %}{% for x in list[n:text] %}x{% endfor %}{{ list[::0] | length - 3 or '' }}",
    ] {
        assert_eq!(printed(source), "", "{source}");
    }
    assert_eq!(
        printed(
            "{{ [] | max }}{{ ([] | max) + 1 }}{{ [] | min | default(0) }}{{ '' | first }}{{ none | upper }}{{ '' | last | abs }}{{ ([] | max)[:1] }}"
        ),
        "0"
    );
    assert_eq!(
        printed("{{ 1 not in none }}{{ none < 1 }}{{ none ~ 'a' }}{{ none == none }}"),
        "TrueTrueaTrue"
    );
}

#[test]
fn errors_have_the_places_of_the_owners_file() {
    for (source, expected) in [
        (
            "é {{ n + 1 - n }}{{ nothing.x }}",
            "pages/a.html:1:21: `nothing` is undefined",
        ),
        (
            "{{ n + nothing }}",
            "pages/a.html:1:7: `nothing` is undefined",
        ),
        (
            "{{ -n }}\n{{ n // 2 ~ (-nothing) }}",
            "pages/a.html:2:22: `nothing` is undefined",
        ),
    ] {
        assert_eq!(printed(source), expected, "{source}");
    }
    assert_eq!(rewritten("a", "\u{c}{{ a"), " {{ a");
}

/// The engine reads 150 levels of brackets and calls.
#[test]
fn operators_in_a_row_are_not_nested_and_those_in_brackets_are_limited() {
    let sum = format!("{{{{ none{} }}}}", " + 1".repeat(500));
    assert_eq!(printed(&sum), "");
    let mixed = format!("{{{{ 'a'{} }}}}", " ~ 2 * 3 ~ none ~ 'b'".repeat(100));
    assert_eq!(printed(&mixed), format!("a{}", "6b".repeat(100)));
    let problems = |count: usize| {
        let source = format!(
            "a\n{{{{ n{}{} }}}}",
            " + (n".repeat(count),
            ")".repeat(count)
        );
        let sources = BTreeMap::from([("pages/a.html".to_owned(), source)]);
        let (_, problems) = environment(&sources, Formats::default());
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        problems.join("\n")
    };
    assert_eq!(problems(30), "");
    assert_eq!(
        problems(70),
        "pages/a.html:2:1: an expression has operators within too many brackets\n  \
         hint: give parts of it names with {% set part = … %}"
    );
}

/// A value may be a megabyte: the note has its beginning.
#[test]
fn a_note_has_the_beginning_of_a_value() {
    let sources = BTreeMap::from([(
        "pages/a.html".to_owned(),
        "{{ text - [[text]] }}".to_owned(),
    )]);
    let (environment, _) = environment(&sources, Formats::default());
    let template = environment.get_template("pages/a.html").unwrap();
    let text = "é".repeat(1 << 20);
    let (rendered, note) = with_note(|| template.render(minijinja::context! { text }));
    assert_eq!(rendered.unwrap(), "");
    let start = "é".repeat(39);
    let note = note.unwrap();
    assert!(
        note.starts_with(&format!(
            "cannot calculate '{start}… - [['{}… (",
            &start[..37 * 2]
        )),
        "{note}"
    );
}

//! What is refused, what is doubted, and what is accepted.

use std::collections::BTreeMap;

use millpond_db::{Value, ValueKind};

use super::*;
use crate::template::environment;

mod chosen;

/// The queries of the page in these tests.
const QUERIES: &[(&str, Rows, &[&str])] = &[
    ("albums", Rows::Many, &["id", "title", "artist"]),
    ("totals", Rows::One, &["n", "total"]),
    ("top", Rows::Optional, &["id", "title"]),
];

/// A query that only this page has.
const TOPIC_PAGE: &str = "pages/topic.html";
const TOPIC: (&str, Rows, &[&str]) = ("category", Rows::One, &["name"]);

fn given(template: &str) -> Given {
    let own = (template == TOPIC_PAGE).then_some(&TOPIC);
    let queries = QUERIES
        .iter()
        .chain(own)
        .map(|(name, rows, columns)| GivenQuery {
            name: (*name).to_owned(),
            rows: *rows,
            columns: Some(columns.iter().map(|name| Arc::from(*name)).collect()),
            documents: Vec::new(),
        });
    Given {
        template: template.to_owned(),
        queries: queries.collect(),
        params: Some(vec![
            Param::new("page", ValueKind::Integer),
            Param::new("q", ValueKind::Text),
            Param {
                choices: ["title", "-title"].map(Value::from).into(),
                ..Param::new("sort", ValueKind::Text)
            },
        ]),
        is_error: false,
        forms: GivenForms::None,
    }
}

/// All that is said of some templates, each error and each doubt in a line.
fn said(templates: &[(&str, &str)]) -> String {
    let sources: BTreeMap<String, String> = templates
        .iter()
        .map(|(name, source)| ((*name).to_owned(), (*source).to_owned()))
        .collect();
    let (environment, _) = environment(&sources, millpond_site_format::locale::Formats::default());
    let pages = sources.keys().filter(|name| name.starts_with("pages/"));
    let pages: Vec<Given> = pages.map(|name| given(name)).collect();
    let Inspection { errors, doubts } = inspect(&environment, &sources, &pages, false);
    let doubts = doubts.iter().map(|doubt| format!("maybe: {doubt}"));
    let all: Vec<String> = errors
        .iter()
        .map(ToString::to_string)
        .chain(doubts)
        .collect();
    all.join("\n")
}

fn page(source: &str) -> String {
    said(&[("pages/a.html", source)])
}

/// The messages without files and hints.
fn messages(source: &str) -> Vec<String> {
    let said = page(source);
    let lines = said.lines().filter(|line| !line.starts_with("  hint"));
    let message = |line: &str| line.rsplit_once("html:").unwrap().1.to_owned();
    lines
        .map(|line| {
            let maybe = if line.starts_with("maybe") {
                "maybe "
            } else {
                ""
            };
            format!("{maybe}{}", message(line))
        })
        .collect()
}

#[test]
fn what_fails_for_certain_is_refused_with_place_and_remedy() {
    for (source, message) in [
        (
            "{% for a in albums %}{{ a.Title }}{% endfor %}",
            "1:27: `albums` has no column `Title`\n  hint: did you mean `title`?",
        ),
        (
            "{{ totals.nn }}",
            "1:11: `totals` has no column `nn`\n  hint: did you mean `n`?",
        ),
        (
            "{{ albums[0].artst }}",
            "1:14: `albums` has no column `artst`\n  hint: did you mean `artist`?",
        ),
        (
            "{{ (albums | first).xyz }}",
            "1:21: `albums` has no column `xyz`\n  hint: it has: artist, id, title",
        ),
        (
            "{{ params.foo }}",
            "1:11: the page has no parameter `foo`\n  hint: declare it in the page's .sql file: -- param: foo text",
        ),
        (
            "{{ request.hoost }}",
            "1:12: `request` has no `hoost`\n  hint: did you mean `host`?",
        ),
        (
            "{{ albums | lenght }}",
            "1:13: there is no filter `lenght`\n  hint: did you mean `length`?",
        ),
        (
            "{% if totals.n is evn %}{% endif %}",
            "1:19: there is no test `evn`\n  hint: did you mean `even`?",
        ),
        (
            "{{ rnage(3) }}",
            "1:4: there is no function or macro `rnage`\n  hint: did you mean `range`?",
        ),
        (
            "{{ albums.title }}",
            "1:11: `albums` is a list: it has no `title`\n  hint: loop over it, or let the query give one row (:one)",
        ),
        (
            "{% for a in albums %}{{ loop.indx }}{% endfor %}",
            "1:30: `loop` has no `indx`\n  hint: did you mean `index`?",
        ),
        (
            "{{ artcle.title }}",
            "1:4: nothing gives the template `artcle`\n  hint: a template sees the page's queries by name, `params` and `request`; here: albums, params, request, top, totals",
        ),
        (
            "{{ albums | map(attribute='titel') | join }}",
            "1:27: `albums` has no column `titel`\n  hint: did you mean `title`?",
        ),
        (
            "{{ albums | selectattr('title', 'evn') | list }}",
            "1:33: there is no test `evn`\n  hint: did you mean `even`?",
        ),
        (
            "{{ totals.n.x }}",
            "1:13: `totals.n` is a single value: it has no `x`",
        ),
        (
            "{{ totals.n.upper() }}",
            "1:13: `totals.n` has no method `upper`\n  hint: there is a filter of this name: {{ value | upper }}",
        ),
        (
            "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=1) }}",
            "1:43: the macro `m` has no argument `b`",
        ),
    ] {
        let said = page(source);
        assert!(
            said.contains(&format!("pages/a.html:{message}")),
            "{source}\n{said}"
        );
    }
}

#[test]
fn shapes_are_followed_through_set_with_loops_and_filters() {
    for source in [
        "{% set a = totals %}{{ a.x }}",
        "{% with a = totals %}{{ a.x }}{% endwith %}",
        "{% for a in albums | sort(attribute='title') | list %}{{ a.x }}{% endfor %}",
        "{% for a in albums[:3] %}{{ a.x }}{% endfor %}",
        "{% for a in albums if a.id > 1 %}{{ a.x }}{% endfor %}",
        "{% for a in albums if a.x %}{% endfor %}",
        "{% for artist, list in albums | groupby('artist') %}{% for a in list %}{{ a.x }}{% endfor %}{% endfor %}",
        "{% for group in albums | groupby('artist') %}{% for a in group.list %}{{ a.x }}{% endfor %}{% endfor %}",
        "{% for row in albums | batch(2) %}{% for a in row %}{{ a.x }}{% endfor %}{% endfor %}",
        "{% for a in [totals, top] %}{{ a.x }}{% endfor %}",
        "{% if totals.x %}{% endif %}",
        "{{ 'a' if totals.x else 'b' }}",
        "{{ totals.x if params.q else 'b' }}",
        "{% if params.q %}{% set c = totals.x %}{% else %}{% set c = 1 %}{% endif %}{{ c }}",
        "{{ totals.x == 1 }}{# a comment #}",
        "{{ totals.n + totals.x }}",
        "{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m(totals) }}",
        "{% macro m(a) %}{{ caller() }}{% endmacro %}{% call m(1) %}{{ totals.x }}{% endcall %}",
        "{% set n = {'a': totals} %}{{ n.a.x }}",
        "{% filter upper %}{{ totals.x }}{% endfilter %}",
        "{% set t %}{{ totals.x }}{% endset %}",
        "{{ totals['x'] }}",
        "{{ totals | attr('x') }}",
    ] {
        let found = messages(source);
        assert_eq!(found.len(), 1, "{source}\n{found:?}");
        assert!(found[0].contains("no column `x`"), "{source}\n{found:?}");
    }
}

#[test]
fn what_is_not_certain_is_accepted() {
    for source in [
        "{% set a = none %}{{ a.title if a else '' }}{% if a %}{{ a.title }}{% endif %}{{ a and a.title }}".into(),
        "{% set a = none %}{% if totals.n %}{% set a = top %}{% endif %}{% if a %}{{ a.title }}{% endif %}".into(),
        "{% set n = namespace(a = none) %}{% for x in albums %}{% set n.a = x %}{% endfor %}{% if n.a %}{{ n.a.title }}{% endif %}".into(),
        "{% if title is defined %}{% endif %}{{ albums | length }}".replace("title", "params.none"),
        "{{ totals.x | default('') }}".into(),
        "{{ (totals.x if params.q else 1) | default('') }}".into(),
        "{% if totals.x is defined %}{{ totals.x.y }}{% endif %}".into(),
        "{% if totals.x is defined and totals.x.y %}{% endif %}".into(),
        "{% if totals.x is not defined or totals.x %}{% endif %}".into(),
        "{% set ns = namespace(n=0) %}{% for a in albums %}{% set ns.n = ns.n + a.id %}{% endfor %}{{ ns.n }}".into(),
        "{% for a in albums %}{{ loop.cycle('a', 'b') }}{{ loop.index }}{% if loop.changed(a.artist) %}x{% endif %}{% else %}none{% endfor %}".into(),
        "{% macro m(a, b='x') %}{{ a.title }}{{ b }}{% endmacro %}{% for a in albums %}{{ m(a) }}{{ m(a, b='y') }}{% endfor %}".into(),
        "{% macro tree(n) %}{% if n %}{{ tree(n - 1) }}{% endif %}{% endmacro %}{{ tree(3) }}".into(),
        "{% set x = 1 %}{% macro m() %}{{ x }}{{ y }}{% endmacro %}{% set y = 2 %}{{ m() }}".into(),
        "{{ request.claims.name }}{{ request.headers['accept-language'] }}{{ request.path }}{{ params.q }}".into(),
        "{% for key in totals %}{{ key }}{% endfor %}{% for name in params %}{{ params[name] }}{% endfor %}".into(),
        "{% if top %}{{ top.title }}{% endif %}{% if not top %}{% else %}{{ top.title }}{% endif %}".into(),
        "{{ top.title if top else '' }}{{ top and top.title }}{{ top }}".into(),
        "{% if top is not none %}{{ top.title }}{% endif %}".into(),
        "{% if albums %}{{ albums[0].title }}{{ (albums | last).title }}{% endif %}".into(),
        "{% if albums | length > 3 %}{{ albums[3].title }}{% endif %}".into(),
        "{% for a in albums %}{{ albums[0].title }}{% endfor %}".into(),
        "{% if request.query.q is defined %}{{ request.query.q }}{% endif %}{{ request.query.q | default('') }}".into(),
        "{% if params.q and request.query.q is defined %}{% if request.query.q %}{% else %}{{ request.query.q }}{% endif %}{% endif %}".into(),
        "{% for a in albums %}{% if not loop.first %}{{ loop.previtem.title }}{% endif %}{% endfor %}".into(),
        "{% if params.q %}{% set c = 'on' %}{% else %}{% set c = 'off' %}{% endif %}{{ c }}".into(),
        "{% if params.q %}{% set c = 'on' %}{% endif %}{% if params.q %}{{ c }}{% endif %}".into(),
        "{% if top.x is defined %}{% endif %}{{ totals.n if false else 1 }}".into(),
        "{{ [1, 2][0] }}{{ {'a': 1}.a }}{{ (1, 2)[1] }}{{ dict(a=1).a }}".into(),
        "{% set a, b = totals.n, totals.total %}{{ a }}{{ b }}".into(),
        "{{ albums | map(attribute='x', default='-') | join }}".into(),
        "{{ albums | map('upper') | list }}{{ albums | map(attribute='title') | join(', ') }}".into(),
        "{% for k, v in totals | items %}{{ k }}{{ v }}{% endfor %}".into(),
        "{% if 'x' is filter %}{% endif %}{% raw %}{{ nothing }}{% endraw %}".into(),
    ] {
        assert_eq!(page(&source), "", "{source}");
    }
}

#[test]
fn what_may_be_missing_is_said_and_is_no_error() {
    for (source, message) in [
        (
            "{{ top.title }}",
            "maybe 1:8: `top` is none where the query gives no row (:one?)",
        ),
        (
            "{{ albums[0].title }}",
            "maybe 1:4: `albums` may have no row here",
        ),
        (
            "{{ (albums | first).title }}",
            "maybe 1:5: `albums` may have no row here",
        ),
        (
            "{{ request.query.q }}",
            "maybe 1:18: `request.query.q` is undefined where the address does not have it",
        ),
        (
            "{% if params.q %}{% set c = 1 %}{% endif %}{{ c }}",
            "maybe 1:7: `c` is set in one branch of this condition only",
        ),
        (
            "{% for a in albums %}{{ loop.nextitem.id }}{% endfor %}",
            "maybe 1:30: `loop.nextitem` is undefined at one end of the list",
        ),
        (
            "{% if top %}{% else %}{{ top.title }}{% endif %}",
            "1:30: `top` is none here: it has no `title`",
        ),
        (
            "{% if not albums %}{{ albums[0].title }}{% endif %}",
            "1:23: `albums` may have no row here",
        ),
    ] {
        assert_eq!(messages(source), [message], "{source}");
    }
}

#[test]
fn layouts_includes_and_imports_are_walked_for_each_page() {
    let layout = "<title>{% block title %}{{ site }}{% endblock %}</title>{% block main %}{{ nothing }}{% endblock %}";
    let all = |page: &str, card: &str| {
        said(&[
            ("layout.html", layout),
            ("card.html", card),
            ("macros.html", "{% macro m(a) %}{{ a.title }}{% endmacro %}"),
            ("pages/a.html", page),
        ])
    };
    let extends = "{% extends 'layout.html' %}";
    // A block of the layout that the page replaces is not shown.
    assert_eq!(
        all(
            &format!("{extends}{{% set site = 'S' %}}{{% block main %}}x{{% endblock %}}"),
            ""
        ),
        ""
    );
    assert_eq!(
        all(
            &format!("{extends}{{% block title %}}x{{% endblock %}}"),
            ""
        ),
        "templates/layout.html:1:76: nothing gives the template `nothing` (for pages/a.html)\n  \
         hint: a template sees the page's queries by name, `params` and `request`; here: albums, params, request, top, totals; \
         what only some pages have stands in {% if nothing is defined %}…{% endif %}"
    );
    assert!(
        all(&format!("{extends}{{% block title %}}{{{{ super() }}}}{{% endblock %}}{{% block main %}}{{% endblock %}}"), "")
            .starts_with("templates/layout.html:1:28: nothing gives the template `site`")
    );
    // A partial that two loops share is right where one of them has the column.
    let loops = "{% for x in albums %}{% include 'card.html' %}{% endfor %}{% for x in [totals] %}{% include 'card.html' %}{% endfor %}";
    assert_eq!(
        all(
            loops,
            "{% if x.title is defined %}{{ x.title }}{% else %}{{ x.n }}{% endif %}"
        ),
        ""
    );
    assert_eq!(
        all(
            loops,
            "{% if kind == 1 %}{{ x.title }}{% else %}{{ x.n }}{% endif %}"
        )
        .lines()
        .next()
        .unwrap(),
        "templates/card.html:1:7: nothing gives the template `kind` (for pages/a.html)"
    );
    let card = "{% if kind == 1 %}{{ x.title }}{% else %}{{ x.n }}{% endif %}";
    let kinds = |first, second| {
        let loops = loops.replacen(
            "{% for x in [totals]",
            &format!("{{% set kind = {second} %}}{{% for x in [totals]"),
            1,
        );
        all(&format!("{{% set kind = {first} %}}{loops}"), card)
    };
    assert_eq!(kinds("1", "2"), "");
    for (first, second) in [("1", "1"), ("1", "params.q")] {
        assert!(
            kinds(first, second).starts_with(
                "templates/card.html:1:24: `totals` has no column `title` (for pages/a.html)"
            ),
            "{}",
            kinds(first, second)
        );
    }
    let imports = "{% import 'macros.html' as m %}{{ m.m(totals) }}{{ m.n() }}{% from 'macros.html' import k %}{{ k }}";
    let found = all(imports, "");
    for part in [
        "templates/macros.html:1:22: `totals` has no column `title`",
        "pages/a.html:1:54: templates/macros.html has no macro or value `n`",
        "pages/a.html:1:89: templates/macros.html has no macro or value `k`",
    ] {
        assert!(found.contains(part), "{part}\n{found}");
    }
    // What is chosen when the page is rendered may set anything.
    assert_eq!(all("{% include params.q %}{{ anything }}", ""), "");
}

#[test]
fn a_walk_ends_though_templates_and_macros_call_themselves() {
    let twice = |n: usize| {
        format!(
            "{{% macro m{n}() %}}{{{{ m{0}() }}}}{{{{ m{0}() }}}}{{% endmacro %}}",
            n + 1
        )
    };
    let mut page: String = (0..40).rev().map(twice).collect();
    page = format!("{{% macro m40() %}}x{{% endmacro %}}{page}{{{{ m0() }}}}");
    assert_eq!(self::page(&page), "");
    let itself = said(&[
        ("a.html", "{% include 'a.html' %}{{ x }}"),
        ("pages/a.html", "{% set x = 1 %}{% include 'a.html' %}"),
    ]);
    assert_eq!(itself, "");
    let deep = format!(
        "{}{}",
        "{% if params.q %}".repeat(100),
        "{% endif %}".repeat(100)
    );
    assert_eq!(self::page(&deep), "");
}

/// That a part of a list is empty says nothing of the list.
#[test]
fn an_empty_part_is_no_empty_list() {
    for condition in [
        "albums[1:] | length",
        "albums | selectattr('artist') | list | length > 0",
    ] {
        let source = format!(
            "{{% if albums %}}{{% if {condition} %}}many{{% else %}}{{{{ albums[0].title }}}}{{% endif %}}{{% endif %}}"
        );
        assert_eq!(page(&source), "", "{source}");
    }
}

#[test]
fn arguments_that_no_value_can_have_are_refused() {
    for (source, message) in [
        ("{{ totals.n | date('%q') }}", "1:20: filter `date`"),
        (
            "{{ totals.n | date('atom') }}",
            "1:20: filter `date`: `atom` is no format of a date",
        ),
        ("{{ totals.n | date(1) }}", "1:20: filter `date`"),
        (
            "{% macro pager(params) %}{% if params.page %}{{ params | query(pgae=params.page) }}{% endif %}{% endmacro %}{{ pager(params) }}",
            "1:69: the page has no parameter `pgae`",
        ),
        ("{{ totals.n | number(dezimals=2) }}", "1:"),
        ("{{ totals.n | number('two') }}", "1:22: filter `number`"),
        ("{{ top.title | truncate(lenght=5) }}", "1:"),
        ("{{ totals.n | round(1, 2, 3) }}", "1:21: filter `round`"),
        (
            "{% if totals.n is divisibleby %}{% endif %}",
            "1:19: test `divisibleby`",
        ),
        (
            "{{ params | query(pgae=2) }}",
            "1:24: the page has no parameter `pgae`",
        ),
        ("{{ albums | join(1, 2, 3) }}", "1:18: filter `join`"),
    ] {
        let said = page(&source.replace("top.", "totals."));
        assert!(
            said.starts_with(&format!("pages/a.html:{message}")),
            "{source}: {said}"
        );
    }
}

#[test]
fn arguments_that_a_value_can_have_are_accepted() {
    for source in [
        "{{ totals.n | date('%Y-%m') }}{{ totals.n | date(params.q) }}{{ totals.n | date }}",
        "{{ params | query(page=2) }}{{ params | query(page=params.page, q=none) }}",
        "{{ {'a': 1} | query(b=2) }}{{ albums | join(', ') }}{{ albums | sort(attribute='id', reverse=true) }}",
        "{{ totals.n | number(2) }}{{ totals.n | money('EUR') }}{{ totals.n | round(-1) }}",
        "{{ totals.n | pluralize('s') }}{{ totals.n | pluralize('book', 'books') }}",
        "{{ params.q | truncate(20) }}{{ params.q | truncate(20, end='') }}{{ params.q | replace('a', 'b') }}",
        "{{ albums | batch(3) | list }}{{ albums | slice(2) | list }}{{ albums | first }}",
        "{{ params.q | default('x') | upper }}{{ albums | unique(attribute='artist') | list }}",
        "{% if totals.n is divisibleby(2) and params.q is startingwith('a') %}{% endif %}",
    ] {
        let said = page(source);
        let faults = said.lines().filter(|line| line.starts_with("pages/"));
        assert_eq!(faults.count(), 0, "{source}: {said}");
    }
}

#[test]
fn a_block_that_no_layout_shows_is_refused() {
    let layout = (
        "layout.html",
        "{% block head %}{% block title %}{% endblock %}{% endblock %}{% block main %}{% endblock %}",
    );
    let page = |source| said(&[layout, ("pages/a.html", source)]);
    assert_eq!(
        page("{% extends 'layout.html' %}{% block mian %}x{% endblock %}"),
        "pages/a.html:1:37: the layout has no block `mian`, so this one is never shown\n  hint: did you mean `main`?"
    );
    for good in [
        "{% extends 'layout.html' %}{% block main %}{% block own %}x{% endblock %}{% endblock %}{% block title %}y{% endblock %}",
        "{% if params.q %}{% extends 'layout.html' %}{% endif %}{% block mian %}x{% endblock %}",
        "{% extends params.q %}{% block mian %}x{% endblock %}",
        "{% block mian %}x{% endblock %}",
    ] {
        assert_eq!(page(good), "", "{good}");
    }
    let middle = (
        "middle.html",
        "{% extends 'layout.html' %}{% block main %}{% block side %}{% endblock %}{% endblock %}",
    );
    assert_eq!(
        said(&[
            layout,
            middle,
            (
                "pages/a.html",
                "{% extends 'middle.html' %}{% block side %}x{% endblock %}"
            )
        ]),
        ""
    );
}

/// A layout shows on some pages what others do not have.
#[test]
fn a_condition_in_a_layout_excuses_what_it_proves() {
    let layout = |layout: &str, page: &str, other: &str| {
        said(&[
            ("layout.html", layout),
            (TOPIC_PAGE, &format!("{page}{{% extends 'layout.html' %}}")),
            (
                "pages/a.html",
                &format!("{other}{{% extends 'layout.html' %}}"),
            ),
        ])
    };
    for good in [
        "{% if category is defined %}{{ category.name }}{% endif %}",
        "{% if category is defined and params.q %}{{ category.name }}{% endif %}",
        "{% if category is undefined %}-{% else %}{{ category.name }}{% endif %}",
        "{% if not category is defined or not category.name %}{% elif params.q %}{{ category.name }}{% endif %}",
        "{{ category.name if category is defined else '' }}{{ category is defined and category.name }}",
        "{% if category is defined %}{% if category %}{{ category.name }}{% endif %}{% endif %}",
    ] {
        assert_eq!(layout(good, "", ""), "", "{good}");
    }
    for bad in [
        "{% if albums %}{{ category.name }}{% endif %}",
        "{% if albums %}{% if category %}{{ category.name }}{% endif %}{% endif %}",
        "{% for a in albums %}{% if loop.first %}{{ category.name }}{% endif %}{% endfor %}",
        "{% if params.q %}{% else %}{{ category.name }}{% endif %}",
        "{% if category is defined or params.q %}{{ category.name }}{% endif %}",
        "{% if params.q and not category %}{% endif %}",
        "{{ category.name if params.q else '' }}",
        "{% macro m() %}{% if params.q %}{{ category.name }}{% endif %}{% endmacro %}{{ m() }}",
        "{% block b %}{% if params.q %}{{ category.name }}{% endif %}{% endblock %}",
    ] {
        let said = layout(bad, "", "");
        assert!(
            said.contains("nothing gives the template `category` (for pages/a.html)"),
            "{bad}: {said}"
        );
        assert!(
            said.contains("{% if category is defined %}…{% endif %}"),
            "{bad}: {said}"
        );
    }
    let shown = "{% if shows_topic %}{{ category.name }}{% endif %}";
    let (on, off) = (
        "{% set shows_topic = true %}",
        "{% set shows_topic = false %}",
    );
    assert_eq!(layout(shown, on, off), "");
    for set in [
        "{% set shows_topic = category is defined %}",
        "{% set shows_topic = category is not undefined and category %}",
        "{% set shows_topic = not (category is undefined) and params.q %}",
    ] {
        assert_eq!(layout(&format!("{set}{shown}"), "", ""), "", "{set}");
    }
    let other = "{% set shows_topic = albums is defined %}";
    assert_ne!(layout(&format!("{other}{shown}"), "", ""), "");
    assert_eq!(
        layout(&shown.replace("pic %", "pic | default(false) %"), on, ""),
        ""
    );
    assert_eq!(
        layout(
            &shown.replace("shows_topic", "not not (shows_topic == true)"),
            on,
            off
        ),
        ""
    );
    assert_eq!(
        layout(
            "{% if kind in ('a', 'b') %}{{ category.name }}{% endif %}",
            "{% set kind = 'a' %}",
            "{% set kind = 'c' %}"
        ),
        ""
    );
    assert!(layout(shown, on, on).contains("nothing gives the template `category`"));
    let sometimes = "{% if params.q %}{% set shows_topic = true %}{% else %}{% set shows_topic = false %}{% endif %}";
    assert!(layout(shown, on, sometimes).contains("nothing gives the template `category`"));
}

/// A macro that calls itself has other arguments then.
#[test]
fn what_a_macro_calls_itself_with_is_any_value() {
    let counted = "{% macro m(k) %}{% if k == 1 %}{{ m(2) }}{% elif k == 2 %}{{ m(3) }}{% elif k == 3 %}{{ totals.x }}{% endif %}{% endmacro %}{{ m(1) }}";
    assert_eq!(messages(counted).len(), 1, "{}", page(counted));
    let once = "{% macro m(k) %}{% if k == 1 %}{{ totals.n }}{% else %}{{ totals.x }}{% endif %}{% endmacro %}{{ m(1) }}";
    assert_eq!(page(once), "");
}

#[test]
fn a_member_that_a_value_names_may_be_missing() {
    let names = "{% set names = {'a': 'A', 'b': 'B'} %}";
    for (source, said) in [
        (
            "{{ names[totals.n] }}",
            "`names[totals.n]` is undefined where `totals.n` names no member",
        ),
        (
            "{{ names[params.q | upper] }}",
            "`names[…]` is undefined where `…` names no member",
        ),
        (
            "{{ totals[params.q] }}",
            "`totals[params.q]` is undefined where `params.q` names no member",
        ),
        (
            "{{ params[params.q] }}",
            "`params[params.q]` is undefined where `params.q` names no member",
        ),
        (
            "{% for a in albums %}{% if names[a.id] is defined %}{% set a = totals %}{{ names[a.id] }}{% endif %}{% endfor %}",
            "`totals` has no column `id`",
        ),
        ("{% set k = 'c' %}{{ names[k] }}", "this map has no `c`"),
    ] {
        let found = page(&format!("{names}{source}"));
        assert!(found.contains(said), "{source}: {found}");
    }
    for good in [
        "{{ names[totals.n] | default('') }}",
        "{% if names[totals.n] is defined %}{{ names[totals.n] }}{% endif %}",
        "{% for n in names %}{{ names[n] }}{% endfor %}{% for n in totals %}{{ totals[n] }}{% endfor %}",
        "{% set k = 'a' %}{{ names[k] }}{{ names['b'] }}{{ names.a }}",
        "{{ names[totals.n] if names[totals.n] is defined else '' }}",
    ] {
        assert_eq!(page(&format!("{names}{good}")), "", "{good}");
    }
}

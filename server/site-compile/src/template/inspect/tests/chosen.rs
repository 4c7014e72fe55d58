//! Values that are one of several: what is not in them is found, and what is in one of them alone
//! is said.

use super::*;

#[test]
fn a_member_that_none_of_the_values_has_is_refused() {
    for (source, missing) in [
        (
            "{% set t = {'a': 1} if params.q else {'a': 2} %}{{ t.typo }}",
            "this map has no `typo`",
        ),
        (
            "{% if params.q %}{% set t = {'a': 1} %}{% else %}{% set t = {'b': 2} %}{% endif %}{{ t.typo }}",
            "this map has no `typo`",
        ),
        (
            "{% set w = {'en': {'a': 1}, 'de': {'a': 2}} %}{{ (w[params.q] | default(w.en)).typo }}",
            "this map has no `typo`",
        ),
        (
            "{% set w = {'en': {'a': 1}, 'de': {'b': 2}} %}{% set t = w[params.q] | default(w.en) %}{{ t.typo }}",
            "this map has no `typo`",
        ),
        ("{{ dict(a = totals).a.aa }}", "`totals` has no column `aa`"),
        ("{{ dict({'a': 1}, b = 2).c }}", "this map has no `c`"),
        (
            "{{ namespace(a = totals).a.aa }}",
            "`totals` has no column `aa`",
        ),
        (
            "{% set ns = namespace(a = 1) %}{{ ns.b }}",
            "nothing sets `b` of this namespace before",
        ),
        (
            "{% set ns = namespace(last = none) %}{% for a in albums %}{% set ns.last = a %}{% endfor %}{% if ns.last %}{{ ns.last.titel }}{% endif %}",
            "`albums` has no column `titel`",
        ),
        // A round sees what the one before it has set.
        (
            "{% set ns = namespace(last = none) %}{% for a in albums %}{% if ns.last %}{{ ns.last.titel }}{% endif %}{% set ns.last = a %}{% endfor %}",
            "`albums` has no column `titel`",
        ),
        (
            "{% set ns = namespace(found = false) %}{% for a in albums %}{% if a.id == 1 %}{% set ns.found = a %}{% endif %}{% endfor %}{% if ns.found %}{{ ns.found.titel }}{% endif %}",
            "`albums` has no column `titel`",
        ),
        (
            "{% set l = albums if albums else [] %}{% for r in l %}{{ r.aa }}{% endfor %}",
            "`albums` has no column `aa`",
        ),
        (
            "{% set l = [] %}{% set l = l + [totals] %}{% for r in l %}{{ r.aa }}{% endfor %}",
            "`totals` has no column `aa`",
        ),
        ("{{ (top or totals).nn }}", "`totals` has no column `nn`"),
        (
            "{{ (totals and totals.nn) }}",
            "`totals` has no column `nn`",
        ),
        ("{{ totals.nn if params.q }}", "`totals` has no column `nn`"),
        (
            "{% set c = totals if params.q %}{% if c %}{{ c.nn }}{% endif %}",
            "`totals` has no column `nn`",
        ),
        (
            "{% set n = '' %}{% if params.q %}{% set n = totals %}{% endif %}{% if n %}{{ n.nn }}{% endif %}",
            "`totals` has no column `nn`",
        ),
        (
            "{% set n = none %}{% if params.q %}{% set n = totals %}{% endif %}{% if n is not none %}{{ n.nn }}{% endif %}",
            "`totals` has no column `nn`",
        ),
        (
            "{% set x = params.sort %}{{ x.y }}",
            "`x` is a single value: it has no `y`",
        ),
        (
            "{{ [{'a': 1}, {'a': 2}] | map(attribute='b') | join }}",
            "this map has no `b`",
        ),
        (
            "{% set totals.n = 1 %}",
            "`totals.n` cannot be set: only a namespace takes values",
        ),
        (
            "{% include 'none-' ~ params.sort %}",
            "there is no template `none-title`, which this may name",
        ),
        (
            "{% if totals.nn %}{% endif %}{{ totals.nn or '-' }}",
            "`totals` has no column `nn`",
        ),
    ] {
        let found = messages(source);
        let is_found = found
            .iter()
            .any(|it| it.contains(missing) && !it.starts_with("maybe"));
        assert!(is_found, "{source}\n{found:?}");
    }
}

#[test]
fn a_member_that_some_of_the_values_have_is_said() {
    for (source, said) in [
        (
            "{% set t = {'a': 1} if params.q else {'b': 2} %}{{ t.a }}",
            "maybe 1:54: some of the values that `t` may be have no `a`",
        ),
        (
            "{% for r in [totals] + albums %}{{ r.title }}{% endfor %}",
            "maybe 1:38: some of the values that `r` may be have no `title`",
        ),
        (
            "{% set a = totals if params.q else none %}{% if params.page %}{{ a.n }}{% endif %}",
            "maybe 1:68: `a` may be none here",
        ),
        (
            "{% set names = {'title': 'A'} %}{{ names[params.sort] }}",
            "maybe 1:42: `names[params.sort]` is undefined where `params.sort` is `-title`",
        ),
        (
            "{{ (albums if params.q else [])[0].id }}",
            "maybe 1:4: this list may have no row here",
        ),
        (
            "{% for n in totals.n %}{{ n }}{% endfor %}",
            "maybe 1:13: a loop takes a list, and this is a single value",
        ),
        (
            "{{ request.query.q and 'x' }}",
            "maybe 1:18: `request.query.q` is undefined where the address does not have it",
        ),
        (
            "{% if request.query.q %}{% else %}{{ request.query.q }}{% endif %}",
            "maybe 1:52: `request.query.q` is undefined where the address does not have it",
        ),
        (
            "{% if albums[0] %}{% else %}{{ albums[0].title }}{% endif %}",
            "maybe 1:32: `albums` may have no row here",
        ),
        (
            "{% set ns = namespace() %}{% for a in albums %}{% set ns.a = a %}{% endfor %}{{ ns.a.title }}",
            "maybe 1:58: `ns.a` may not be set yet where it is used",
        ),
    ] {
        assert_eq!(messages(source), [said], "{source}");
    }
}

#[test]
fn a_condition_on_what_may_be_missing_settles_it() {
    for source in [
        "{% if request.query.q %}{{ request.query.q }}{% endif %}{{ request.query.q or '-' }}",
        "{{ 'x' if request.query.q else 'y' }}{% if not request.query.q %}-{% endif %}",
        "{% if albums[0] %}{{ albums[0].title }}{% endif %}{{ albums[0].title if albums[0] }}",
        "{% if (albums | first) %}x{% endif %}{% if albums[0] and albums[0].title %}x{% endif %}",
        "{% set names = {'a': 'A'} %}{% if names[totals.n] %}{{ names[totals.n] }}{% endif %}{{ names[totals.n] or '-' }}",
        "{% for a in albums if request.query.q %}{{ a.title }}{% endfor %}",
        "{% set t = {'a': 1} if params.q else {'b': 2} %}{% if t.a %}{{ t.a }}{% endif %}{% if t.b is defined %}{{ t.b }}{% endif %}",
        "{% set t = {'a': 1} if params.q else {'a': 2, 'b': 3} %}{{ t.a }}",
        "{% set names = {'title': 'A', '-title': 'B'} %}{{ names[params.sort] }}",
        "{% set ns = namespace(n = 0) %}{% for a in albums %}{% set ns.n = ns.n + 1 %}{% endfor %}{% if ns.n %}{{ ns.n }}{% endif %}",
        "{% set ns = namespace(prev = none) %}{% for a in albums %}{% if ns.prev and ns.prev.id != a.id %}{{ ns.prev.title }}{% endif %}{% set ns.prev = a %}{% endfor %}",
        "{% set c = totals if params.q %}{{ c }}{% if c is defined %}{{ c.n }}{% else %}{{ c }}{% endif %}",
        "{% set l = albums if albums else [] %}{% for r in l %}{{ r.id }}{% endfor %}{{ l | length }}",
        "{% set l = albums if params.q else none %}{% for r in l %}{{ r.id }}{% endfor %}",
        "{% macro m(a, b = 'x') %}{{ b }}{% if a %}{{ a.title }}{% endif %}{% endmacro %}{{ m(top, top) }}",
        "{% set m = {'a': totals, 'b': {'n': 1}} %}{% for k in m %}{{ m[k].n }}{% endfor %}",
    ] {
        assert_eq!(page(source), "", "{source}");
    }
}

/// Each value that the path may have is a page of its own.
#[test]
fn a_page_is_followed_for_each_value_of_its_path() {
    let said = |source: &str, parts: &[(&str, &str)]| {
        let mut sources = BTreeMap::from([("pages/a.html".to_owned(), source.to_owned())]);
        let parts = parts.iter();
        sources.extend(parts.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())));
        let formats = millpond_site_format::locale::Formats::default();
        let (environment, _) = environment(&sources, formats);
        let mut page = given("pages/a.html");
        page.params = Some(vec![Param {
            choices: ["en", "de"].map(Value::from).into(),
            in_path: Some(0),
            ..Param::new("lang", ValueKind::Text)
        }]);
        let Inspection { errors, doubts } = inspect(&environment, &sources, &[page], false);
        let all = errors.iter().chain(&doubts).map(ToString::to_string);
        all.collect::<Vec<_>>().join("\n")
    };
    let words = "{% set words = {'en': {'a': 'A', 'b': 'B'}, 'de': {'a': 'Ä'}} %}";
    for good in [
        "{{ words[params.lang].a }}{% if params.lang == 'en' %}{{ words[params.lang].b }}{% endif %}",
        "{% set w = words[params.lang] %}{{ w.a }}{{ w.b | default(words.en.b) }}{{ w.b or '-' if w.b is defined }}",
    ] {
        assert_eq!(said(&format!("{words}{good}"), &[]), "", "{good}");
    }
    let missing = said(&format!("{words}{{{{ words[params.lang].b }}}}"), &[]);
    assert_eq!(
        missing.lines().next().unwrap(),
        format!(
            "pages/a.html:1:{}: this map has no `b` where `lang` is `de`",
            words.chars().count() + 23
        )
    );
    let texts = [
        ("texts/en.html", "{% set t = {'a': 'A'} %}"),
        ("texts/de.html", "{% set t = {'a': 'Ä', 'b': 'B'} %}"),
    ];
    let imported = "{% from 'texts/' ~ params.lang ~ '.html' import t %}";
    let import = |shown: &str| said(&format!("{imported}{shown}"), &texts);
    assert_eq!(import("{{ t.a }}"), "");
    let none = import("{{ t.c }}");
    assert!(none.contains(": this map has no `c`\n"), "{none}");
    let english = import("{{ t.b }}");
    assert!(english.contains("no `b` where `lang` is `en`"), "{english}");
    let absent = said(imported, &texts[..1]);
    assert!(
        absent.contains(
            "there is no template `texts/de.html`, which this may name where `lang` is `de`"
        ),
        "{absent}"
    );
    let module = "{% import 'texts/' ~ params.lang ~ '.html' as m %}{{ m.t.a }}{{ m.x }}";
    let found = said(module, &texts);
    assert!(found.contains("has no macro or value `x`"), "{found}");
    assert_eq!(
        found
            .lines()
            .filter(|line| line.contains("a.html:1"))
            .count(),
        1,
        "{found}"
    );
}

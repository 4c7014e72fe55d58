//! What pages write values with, and what they are sent as.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::{
    both::{Housed, Kind, on_both},
    support::{TestSite, problems},
};

on_both!(
    numbers_and_dates_of_the_database_are_written_alike,
    rows_are_sent_as_csv,
);

/// Column types that differ between the databases: `numeric` is a number here and a text there.
fn numbers_and_dates_of_the_database_are_written_alike(kind: Kind) {
    let cast = match kind {
        Kind::Sqlite => "12345.5 as price, '2026-03-03 14:05:06' as at, null as gone",
        Kind::Postgres => {
            "12345.5::numeric as price, '2026-03-03 14:05:06Z'::timestamptz as at, null::date as gone"
        }
    };
    let sql = format!("-- name: row :one\nselect {cast};\n");
    let site = Housed::new(
        kind,
        &[
            (
                "millpond.toml",
                "[database]\nurl = \"sqlite:site.db\"\n[site]\nlocale = \"de\"\ncurrency = \"EUR\"\n",
            ),
            ("pages/row.sql", &sql),
            (
                "pages/row.html",
                "{{ row.price | number(2) }}|{{ row.price | money }}|{{ row.at | datetime }}|\
                 {{ row.at | date('rfc3339') }}|{{ row.gone | date }}{{ row.gone | money }}",
            ),
        ],
    );
    let page = site.get("/row");
    assert_eq!(
        page.body,
        "12.345,50|12.345,50\u{a0}€|3. März 2026, 14:05|2026-03-03T14:05:06Z|"
    );
}

fn rows_are_sent_as_csv(kind: Kind) {
    let site = Housed::new(
        kind,
        &[(
            "pages/export.csv.sql",
            "-- param: least integer = 0\n-- name: rows :many\n\
             select id, title, 'a, \"b\"' as body from article where id > :least order by id;\n",
        )],
    );
    let csv = site.get("/export.csv");
    assert_eq!(
        (csv.cache(), csv.field("content-type")),
        (
            "fwd=miss; stored",
            "text/csv; charset=utf-8; header=present"
        )
    );
    assert_eq!(
        csv.body,
        "id,title,body\r\n1,One,\"a, \"\"b\"\"\"\r\n2,Two,\"a, \"\"b\"\"\"\r\n"
    );
    assert_eq!(site.get("/export.csv?least=9").body, "id,title,body\r\n");
}

#[test]
fn csv_has_the_rows_of_one_query() {
    let found = problems(&[(
        "pages/a.csv.sql",
        "-- name: a :many\nselect 1 as x;\n-- name: b :many\nselect 2 as y;\n",
    )]);
    assert_eq!(
        found,
        "pages/a.csv.sql: 2 queries, but CSV has the rows of one\n  \
         hint: give each query a file of its own, or leave `.csv` out of the name"
    );
}

#[test]
fn the_end_of_a_name_says_the_type_and_the_escaping() {
    let sql = "-- name: a :one\nselect '<&>\"' || char(10) || 'x;y' as t, null as n;\n";
    let site = TestSite::new(&[
        ("pages/feed.xml.sql", sql),
        ("pages/feed.xml.html", "{{ a.t }}{{ a.n }}"),
        ("pages/robots.txt.sql", sql),
        (
            "pages/robots.txt.html",
            "{% extends 'base.txt' %}{% block b %}{{ a.t }}{{ a.n }}{% endblock %}",
        ),
        ("templates/base.txt", "{% block b %}{% endblock %}."),
        ("pages/calendar.ics.sql", sql),
        ("pages/calendar.ics.html", "A:{{ a.t }}{{ a.n }}\nB:1\n"),
        ("pages/data.json.sql", sql),
        (
            "pages/data.json.html",
            "{\"t\": {{ a.t }}, \"n\": {{ a.n }}}",
        ),
        ("pages/plain.sql", sql),
        (
            "pages/plain.html",
            "{% include 'base.txt' %}{% include 'part.txt' %}",
        ),
        ("templates/part.txt", "{{ a.t }}"),
    ]);
    for (target, media_type, body) in [
        (
            "/feed.xml",
            "application/xml; charset=utf-8",
            "&lt;&amp;&gt;&quot;\nx;y",
        ),
        ("/robots.txt", "text/plain; charset=utf-8", "<&>\"\nx;y."),
        (
            "/calendar.ics",
            "text/calendar; charset=utf-8",
            "A:<&>\"\\nx\\;y\r\nB:1\r\n",
        ),
        (
            "/data.json",
            "application/json",
            "{\"t\": \"<&>\\\"\\nx;y\", \"n\": null}",
        ),
        (
            "/plain",
            "text/html; charset=utf-8",
            ".&lt;&amp;&gt;&quot;\nx;y",
        ),
    ] {
        let page = site.get(target);
        assert_eq!(
            (page.field("content-type"), &*page.body),
            (media_type, body),
            "{target}"
        );
        let again = site.get(target);
        assert_eq!(
            (again.cache(), again.field("content-type")),
            ("hit", media_type)
        );
    }
}

#[test]
fn a_page_of_another_type_is_no_part_of_a_page() {
    let found = problems(&[
        ("pages/a.html", "{% include 'pages/b.txt.html' %}"),
        ("pages/b.txt.html", "{{ params }}"),
    ]);
    assert_eq!(
        found,
        "pages/a.html:1:13: `pages/b.txt.html` is escaped for another type of page than this one\n  \
         hint: what pages of several types show is a macro in templates/, which is imported"
    );
    let found = problems(&[
        ("pages/a.ics.html", "{% include 'event.html' %}"),
        ("templates/event.html", "SUMMARY:x"),
    ]);
    assert_eq!(
        found,
        "pages/a.ics.html:1:13: `event.html` is escaped for another type of page than this one\n  \
         hint: what pages of several types show is a macro in templates/, which is imported"
    );
}

#[test]
fn a_page_links_to_itself_with_other_parameters() {
    let site = TestSite::new(&[
        (
            "pages/topics/[slug].sql",
            "-- param: q text = ''\n-- param: page integer = 1\n-- param: least integer = null\n\
             -- name: a :one\nselect :q as q, :page as page, :least as least, :slug as slug;\n",
        ),
        (
            "pages/topics/[slug].html",
            "{{ params | query(page = params.page + 1) }} {{ params | query(q = none) }} {{ params | query(page = 1, q = none, least = none) }}",
        ),
    ]);
    let page = site.get("/topics/tea?q=a%26b+%C3%A4&utm_source=x");
    assert_eq!(page.body, "?q=a%26b+%C3%A4&amp;page=2 ? ?");
    let page = site.get("/topics/tea?page=4&least=0&q=");
    assert_eq!(page.body, "?page=5&amp;least=0 ?page=4&amp;least=0 ?");
    assert_eq!(site.get("/topics/tea?page=4&least=0&ref=1").cache(), "hit");
}

/// The text is that of the moment at which the page is given, also from memory.
#[test]
fn a_page_that_says_how_long_ago_ends_when_that_changes() {
    let seconds = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(since.as_secs()).unwrap()
    };
    let at = seconds() - 57;
    let sql = format!("-- name: a :one\nselect {at} as at, count(*) as n from article;\n");
    let site = TestSite::new(&[
        ("pages/ago.sql", &sql),
        ("pages/ago.html", "{{ a.at | timeago }}"),
        ("pages/404.html", "gone"),
    ]);
    let text = |now: i64| {
        if now - at < 60 {
            "just now"
        } else {
            "1 minute ago"
        }
    };
    let mut hits = 0;
    site.until("the next minute", || {
        let before = seconds();
        let page = site.get("/ago");
        assert!(
            [text(before), text(seconds())].contains(&&*page.body),
            "{}",
            page.body
        );
        hits += u32::from(page.cache() == "hit");
        before - at > 61
    });
    assert!(hits > 0);
}

#[test]
fn an_error_page_shows_no_time_that_passes() {
    let found = problems(&[("pages/404.html", "{{ 0 | timeago }}")]);
    assert!(found.contains("`timeago` works in pages only"), "{found}");
}

/// A changed locale takes effect by itself, and what was kept in the old one is not given.
#[test]
fn a_change_of_the_locale_ends_pages() {
    let site = TestSite::new(&[("pages/n.html", "{{ 1234.5 | number }}")]);
    assert_eq!(site.get("/n").body, "1\u{202f}234.5");
    crate::support::write(
        site.dir.path(),
        &[(
            "millpond.toml",
            "[database]\nurl = \"sqlite:site.db\"\n[cache]\nrefresh_ahead = 0\n[site]\nlocale = \"de\"\n",
        )],
    );
    site.until("the new locale", || site.get("/n").body == "1.234,5");
    let found = problems(&[("millpond.toml", "[site]\nlocale = \"de-XX\"\n")]);
    assert!(
        found.contains("there is no locale `de-XX`; did you mean `de"),
        "{found}"
    );
}

/// A text that no filter can read, and nulls, as a database has them.
#[test]
fn a_value_that_cannot_be_used_fails_no_page() {
    let site = TestSite::new(&[
        (
            "migrations/0002_odd.sql",
            "create table odd (id integer primary key, n, text text, at text);\n\
             insert into odd values (1, null, null, null), (2, 'many', '<b>', 'soon'), (3, 4, 'c', '2026-03-03');",
        ),
        (
            "pages/odd/[id].sql",
            "-- param: id integer\n-- name: o :one\nselect n, text, at from odd where id = :id;\n",
        ),
        (
            "pages/odd/[id].html",
            "{{ o.at | date }}|{{ o.text | date }}|{{ o.n | number }}|{{ o.n | money('EUR') }}|\
             {{ o.n | filesize }}|{{ o.at | timeago | length > 0 }}|{{ o.n < 3 }}",
        ),
    ]);
    for (id, expected) in [
        (1, "|||||False|True"),
        (2, "soon|&lt;b&gt;|many|many|many|True|False"),
        (3, "3 March 2026|c|4|€4.00|4 B|True|False"),
    ] {
        let answer = site.get(&format!("/odd/{id}"));
        assert_eq!(answer.status, 200);
        let shown = answer.body.replace('\u{a0}', " ");
        assert_eq!(shown, expected, "{id}");
    }
}

/// It would be a wrong sum otherwise, or a page with a hole in it.
#[test]
fn arithmetic_with_null_is_an_error_of_the_page() {
    let sql = "-- param: id integer\n-- name: o :one\nselect nullif(:id, 0) as n;\n";
    let site = TestSite::new(&[
        ("pages/sum/[id].sql", sql),
        ("pages/sum/[id].html", "{{ o.n + 1 }}"),
        ("pages/or/[id].sql", sql),
        ("pages/or/[id].html", "{{ (o.n or 0) + 1 }}"),
    ]);
    for (target, expected) in [("/sum/1", "2"), ("/or/1", "2"), ("/or/0", "1")] {
        let answer = site.get(target);
        assert_eq!((answer.status, &*answer.body), (200, expected), "{target}");
    }
    assert_eq!(site.get("/sum/0").status, 500);
}

/// *Counterexample*: each of these was a 500 where the value was missing.
#[test]
fn a_condition_is_false_where_the_value_is_missing() {
    let site = TestSite::new(&[
        (
            "pages/a.sql",
            "-- param: id integer = 1\n-- name: rows :many\nselect id, title from article where id = :id;\n",
        ),
        (
            "pages/a.html",
            "{% set names = {'One': 'first'} %}{% if rows[0] %}{{ rows[0].title }}{% else %}none{% endif %};\
             {% for row in rows %}{{ names[row.title] or '-' }}{% if names[row.title] %}!{% endif %}{% endfor %};\
             {{ 'y' if rows[0] and names[rows[0].title] else 'n' }}{{ 'z' if not rows[0] }}",
        ),
        (
            "pages/q.html",
            "{% if request.query.q %}{{ request.query.q }}{% else %}no{% endif %};{{ request.query.q or '-' }};{{ 1 if not request.query.q }}",
        ),
    ]);
    for (target, expected) in [
        ("/a?id=1", "One;first!;y"),
        ("/a?id=2", "Two;-;n"),
        ("/a?id=9", "none;;nz"),
        ("/q", "no;-;1"),
        ("/q?q=", "no;-;1"),
        ("/q?q=x", "x;x;"),
    ] {
        let answer = site.get(target);
        assert_eq!((answer.status, &*answer.body), (200, expected), "{target}");
    }
}

#[test]
fn a_filter_writes_in_the_locale_that_it_is_given() {
    let site = TestSite::new(&[
        (
            "pages/[lang]/day.sql",
            "-- param: lang text in (en, de, xx)\n",
        ),
        (
            "pages/[lang]/day.html",
            "{{ '2026-03-03' | date(locale = params.lang) }}, {{ 1234.5 | number(1, locale = params.lang) }}",
        ),
    ]);
    for (target, expected) in [
        ("/de/day", "3. März 2026, 1.234,5"),
        ("/en/day", "3 March 2026, 1,234.5"),
        // A value that is no locale fails no page.
        ("/xx/day", "2026-03-03, 1234.5"),
    ] {
        for _ in 0..2 {
            assert_eq!(site.get(target).body, expected);
        }
    }
    for (text, expected) in [
        (
            "{{ 1 | money('EUR', locale = 'dee') }}",
            "`dee` is no locale; it takes `de`",
        ),
        ("{{ 1 | filesize(local = 'de') }}", "filter `filesize`"),
        (
            "{{ '2026-03-03' | date('%Q', locale = 'de') }}",
            "`%Q` is no field of a date",
        ),
    ] {
        let found = problems(&[("pages/a.html", text)]);
        assert!(found.contains(expected), "{text}: {found}");
    }
}

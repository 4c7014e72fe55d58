//! Pages that end by the clock: with `:today` at midnight, with `-- until:` at a moment in a row.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base_clock::Boottime;
use millpond_http::OwnedRequest;
use millpond_site::{Config, ExplainedVisitor, check};
use time::OffsetDateTime;

use crate::{
    both::{Housed, Kind, on_both},
    support::{TestSite, folder, problems},
};

/// So long that a moment of this day is within the bound.
const SETTINGS: &str =
    "[database]\nurl = \"sqlite:site.db\"\n[cache]\nmax_staleness = \"1d\"\nrefresh_ahead = 0\n";

fn unix() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

/// The date where clocks are `hours` before those of UTC.
fn date(hours: i64) -> String {
    let moment = OffsetDateTime::from_unix_timestamp(unix() + hours * 3600).unwrap();
    moment.date().to_string()
}

/// The seconds after which what is stored of a page ends.
fn ends_in(site: &TestSite, target: &str) -> Option<f64> {
    let explained = site.site.explain(target, ExplainedVisitor::Anonymous);
    explained.unwrap()["page"]["stored"]["ends_in_s"].as_f64()
}

fn is_hit_in(site: &TestSite, target: &str, seconds: f64) -> bool {
    site.is_hit_at(
        target,
        Boottime::now().plus(Duration::from_secs_f64(seconds)),
    )
}

fn today_is_given_by_the_server(kind: Kind) {
    for (zone, hours) in [
        ("", 0),
        ("Pacific/Kiritimati", 14),
        ("Pacific/Pago_Pago", -11),
    ] {
        let settings = match zone {
            "" => SETTINGS.to_owned(),
            zone => format!("{SETTINGS}[site]\ntimezone = \"{zone}\"\n"),
        };
        let site = Housed::new(
            kind,
            &[
                ("millpond.toml", &settings),
                (
                    "pages/today.sql",
                    "-- name: t :one\nselect :today as day, count(*) as n from article;\n",
                ),
                (
                    "pages/today.html",
                    "{{ t.day }} {{ params.today }}{{ params | query }} {% include 'menu.html' %}",
                ),
                ("templates/menu.html", "{{ m.day }}"),
                (
                    "templates/menu.sql",
                    "-- name: m :one\nselect :today as day;\n",
                ),
                (
                    "pages/note.post.sql",
                    "-- param: id integer\n-- param: title text\n-- name: a :exec\n\
                     insert into article (id, title) values (:id, :title || :today);\n-- redirect: /today\n",
                ),
            ],
        );
        let midnight = |before: &str, hours| before != date(hours);
        let day = date(hours);
        let page = site.get("/today").body;
        // No address chooses it.
        let other = site.get("/today?today=2001-02-03").body;
        site.until("a hit", || site.get("/today").cache() == "hit");
        let ends = ends_in(&site, "/today").unwrap();
        let form = "id=7&title=on+&today=2001-02-03";
        assert_eq!(site.post("/note", form).status, 303);
        let json = OwnedRequest::new("POST", "/note")
            .field("Host", "site.test")
            .field("Content-Type", "application/json")
            .body(r#"{"id": 8, "title": "json on ", "today": "2001-02-03"}"#);
        assert_eq!(site.ask(&json).status, 303);
        if midnight(&day, hours) {
            continue;
        }
        assert_eq!(page, format!("{day} {day}? {day}"), "{zone}");
        assert_eq!(other, page);
        for (id, title) in [(7, "on "), (8, "json on ")] {
            let found = site.text(&format!("select title from article where id = {id}"));
            assert_eq!(found, format!("{title}{day}"));
        }
        let local = (unix() + hours * 3600).rem_euclid(86_400);
        let left = f64::from(u32::try_from(86_400 - local).unwrap());
        assert!((left - 2.0..left + 60.0).contains(&ends), "{ends} {left}");
        site.until("a hit", || site.get("/today").cache() == "hit");
        let ends = ends_in(&site, "/today").unwrap();
        if ends > 60.0 {
            assert!(is_hit_in(&site, "/today", ends - 30.0));
        }
        assert!(!is_hit_in(&site, "/today", ends + 0.1));
    }
}

/// A page that says whether a performance is still to come, by the database's clock.
fn shows(kind: Kind, until: &str) -> Housed {
    shows_with(kind, until, "")
}

fn shows_with(kind: Kind, until: &str, column: &str) -> Housed {
    let (table, now) = match kind {
        Kind::Sqlite => ("starts_at text", "datetime('now')"),
        Kind::Postgres => ("starts_at timestamptz", "now()"),
    };
    let publish = match kind {
        Kind::Sqlite => "",
        Kind::Postgres => "alter publication millpond add table show;\n",
    };
    let table = format!("create table show (id integer primary key, {table});\n{publish}");
    let page = format!(
        "-- param: id integer\n{until}\n-- name: show :one\nselect starts_at, starts_at > {now} as is_open{column} from show where id = :id;\n\
         -- name: articles :one\nselect count(*) as n from article;\n"
    );
    Housed::new(
        kind,
        &[
            ("millpond.toml", SETTINGS),
            ("migrations/0002_show.sql", &table),
            ("pages/show.sql", &page),
            (
                "pages/show.html",
                "{{ 'open' if show.is_open else 'closed' }}",
            ),
        ],
    )
}

/// The SQL of the moment that is `seconds` after now.
fn moment(kind: Kind, seconds: i64) -> String {
    match kind {
        Kind::Sqlite => format!("datetime('now', '{seconds:+} seconds')"),
        Kind::Postgres => format!("date_trunc('second', now()) + interval '{seconds} seconds'"),
    }
}

/// A show, and the site knows of it.
fn begins_in_two_hours(site: &Housed, kind: Kind) {
    let at = moment(kind, 7200);
    site.run(&format!(
        "insert into show (id, starts_at) values (1, {at})"
    ));
    site.until("the row", || site.get("/show?id=1").status == 200);
}

fn a_page_ends_at_a_moment_in_its_row(kind: Kind) {
    let site = shows(kind, "-- until: show.starts_at");
    for (id, seconds) in [(1, 7200), (2, -7200), (3, 3)] {
        let at = moment(kind, seconds);
        site.run(&format!(
            "insert into show (id, starts_at) values ({id}, {at})"
        ));
    }
    site.run("insert into show (id) values (4)");
    let is_there = |id: i32| site.get(&format!("/show?id={id}")).status == 200;
    site.until("the rows", || is_there(4));
    for (id, text) in [(1, "open"), (2, "closed"), (4, "closed")] {
        let target = format!("/show?id={id}");
        site.until("a hit", || site.get(&target).cache() == "hit");
        assert_eq!(site.get(&target).body, text, "{id}");
    }
    let ends = ends_in(&site, "/show?id=1").unwrap();
    assert!((7000.0..7201.0).contains(&ends), "{ends}");
    // The feed may still find the rows above, which ends what was made before.
    site.until("a hit up to the end", || {
        is_hit_in(&site, "/show?id=1", ends - 30.0)
    });
    assert!(!is_hit_in(&site, "/show?id=1", ends + 0.1));
    assert_eq!(ends_in(&site, "/show?id=2"), None);
    // A change of the row moves the end.
    let later = moment(kind, 90_000);
    site.run(&format!("update show set starts_at = {later} where id = 1"));
    site.until("another end", || {
        let answer = site.get("/show?id=1");
        answer.body == "open" && ends_in(&site, "/show?id=1").is_some_and(|ends| ends > 80_000.0)
    });
    // Of the third the moment comes: never late, and not kept just after it.
    let begins = site.text(match kind {
        Kind::Sqlite => "select strftime('%s', starts_at) from show where id = 3",
        Kind::Postgres => {
            "select extract(epoch from starts_at)::bigint::text from show where id = 3"
        }
    });
    let begins: i64 = begins.parse().unwrap();
    site.until("the moment", || {
        let before = unix();
        let answer = site.get("/show?id=3");
        let text = |now: i64| if now < begins { "open" } else { "closed" };
        let possible = [text(before), text(unix())];
        assert!(possible.contains(&&*answer.body), "{}", answer.body);
        before > begins
    });
    let answer = site.get("/show?id=3");
    let is_settling = unix() < begins + 9;
    if is_settling {
        assert_eq!(answer.cache(), "fwd=miss; detail=uncacheable");
    }
}

fn without_the_line_a_page_by_the_clock_is_not_kept(kind: Kind) {
    let site = shows(kind, "");
    begins_in_two_hours(&site, kind);
    for _ in 0..3 {
        let answer = site.get("/show?id=1");
        assert_eq!(
            (&*answer.body, answer.cache()),
            ("open", "fwd=miss; detail=uncacheable")
        );
    }
    let site = shows(kind, "-- until: show.starts_at - 1h");
    begins_in_two_hours(&site, kind);
    site.until("a hit", || site.get("/show?id=1").cache() == "hit");
    let ends = ends_in(&site, "/show?id=1").unwrap();
    assert!((3400.0..3601.0).contains(&ends), "{ends}");
}

fn the_line_waives_the_clock_and_nothing_else(kind: Kind) {
    let site = shows_with(kind, "-- until: show.starts_at", ", random() as r");
    begins_in_two_hours(&site, kind);
    for _ in 0..3 {
        let answer = site.get("/show?id=1");
        assert_eq!(answer.cache(), "fwd=miss; detail=uncacheable");
    }
}

on_both!(
    today_is_given_by_the_server,
    a_page_ends_at_a_moment_in_its_row,
    without_the_line_a_page_by_the_clock_is_not_kept,
    the_line_waives_the_clock_and_nothing_else,
);

#[test]
fn check_says_when_a_page_ends_and_what_cannot_be() {
    let page = "-- name: a :one\n-- until: a.body - 1h\nselect body, datetime('now') as now from article where id = 1;\n";
    let dir = folder(&[("pages/a.sql", page)]);
    let report = check(dir.path(), &Config::read(dir.path()).unwrap()).unwrap();
    let a = report
        .queries
        .iter()
        .find(|query| query.name == "a")
        .unwrap();
    assert_eq!(
        a.ends,
        [
            "the moment of a.body - 1h (-- until)",
            "article with id = 1"
        ]
    );
    assert!(
        a.dependencies[0].starts_with("kept until a.body - 1h (-- until): "),
        "{:?}",
        a.dependencies
    );
    // A query of several statements before it.
    let ordered = "-- order: sort: id = \"id\", title = \"title\"\n-- until: a.at\n\
                   -- name: all :many\nselect id, title from article order by :sort;\n\
                   -- name: a :one\nselect '2099-01-01' as at, datetime('now') as now;\n";
    let site = TestSite::new(&[("pages/a.sql", ordered)]);
    site.until("a hit", || site.get("/a?sort=title").cache() == "hit");
    let ends = ends_in(&site, "/a?sort=title").unwrap();
    assert!(ends > 1e9, "{ends}");
    let until = |line: &str| {
        let text = format!("{line}\n-- name: a :one\nselect id, body from article where id = 1;\n");
        problems(&[("pages/a.sql", &text)])
    };
    let today = "-- name: a :many\nselect id from article where id = :today;\n";
    let menu = (
        "templates/m.sql",
        "-- name: m :one\nselect :today as day;\n",
    );
    for (found, expected) in [
        (
            until("-- until: a.bdy"),
            "pages/a.sql:1:11: query `a` has no column `bdy`\n  hint: did you mean `a.body`?",
        ),
        (
            until("-- until: b.body"),
            "pages/a.sql:1:11: there is no query `b` here",
        ),
        (
            until("-- until: a.body - soon"),
            "pages/a.sql:1:20: `soon` is no span of time",
        ),
        (
            until("-- untill: a.body"),
            "pages/a.sql:1:1: `-- untill: a.body` would be a comment\n  hint: did you mean `-- until: a.body`?",
        ),
        (
            problems(&[(
                "pages/a.post.sql",
                "-- until: a.id\n-- name: a :one\nselect id from article where id = 1;\n-- redirect: /\n",
            )]),
            "pages/a.post.sql:1:1: only a page ends at a moment",
        ),
        (
            problems(&[("pages/a.sql", today)]),
            "pages/a.sql:2:35: `:today` is a date, and something else is expected here",
        ),
        (
            problems(&[
                (
                    "pages/a.sql",
                    "-- param: today text\n-- name: a :one\nselect :today as a;\n",
                ),
                ("pages/a.html", "{% include 'm.html' %}{{ a.a }}"),
                ("templates/m.html", "{{ m.day }}"),
                menu,
            ]),
            "templates/m.sql:2:8: `:today` is the server's date here, and a parameter of pages/a.sql, which shows this",
        ),
    ] {
        assert!(found.starts_with(expected), "{found}");
    }
}

//! What values a parameter takes: ranges, dates, times and addresses.

use millpond_http::OwnedRequest;

use crate::{
    both::{Housed, Kind, on_both},
    support::problems,
};

on_both!(
    a_number_outside_of_its_range_is_refused,
    a_value_is_a_day_that_exists,
    a_moment_has_one_spelling,
    a_time_without_an_offset_is_of_the_sites_zone,
    a_form_says_at_the_field_what_a_value_must_be,
    a_declared_type_wins_over_the_one_that_is_computed_with,
);

const SQLITE: &str = "create table event (id integer primary key, title text, day date, at text, place text, cents integer);
insert into event values (1, 'One', '2026-03-31', '2026-03-31 12:00:00', '123e4567-e89b-12d3-a456-426614174000', 100);";
const POSTGRES: &str = "create table event (id bigint primary key, title text, day date, at timestamptz, place uuid, cents integer);
alter publication millpond add table event;
insert into event values (1, 'One', '2026-03-31', '2026-03-31 12:00:00Z', '123e4567-e89b-12d3-a456-426614174000', 100);";

fn open(kind: Kind, files: &[(&str, &str)]) -> Housed {
    let tables = [
        ("migrations/0002_events.sqlite.sql", SQLITE),
        ("migrations/0002_events.postgres.sql", POSTGRES),
    ];
    Housed::new(kind, &[&tables[..], files].concat())
}

fn a_number_outside_of_its_range_is_refused(kind: Kind) {
    let site = open(
        kind,
        &[
            (
                "pages/list.sql",
                "-- param: page integer from 1 to 100 = 1\n-- param: share real to 0.5 = 0.5\n-- param: ids integer[] from 1\n\
                 -- name: a :many\nselect title from article order by id limit 1 offset :page - 1;\n\
                 -- name: b :many\nselect title from article where id in (:ids) and id * 0.1 < :share order by id;\n",
            ),
            (
                "pages/by/[id].sql",
                "-- param: id integer from 1\n-- name: a :many\nselect title from article where id = :id;\n",
            ),
        ],
    );
    assert_eq!(site.get("/list?page=2").status, 200);
    assert_eq!(site.get("/list?page=100&share=0.5&ids=1").status, 200);
    for (query, sentence) in [
        ("page=0", r#"The parameter \"page\" must be from 1 to 100."#),
        (
            "page=101",
            r#"The parameter \"page\" must be from 1 to 100."#,
        ),
        (
            "page=99999999999999999999",
            r#"The parameter \"page\" must be from 1 to 100."#,
        ),
        (
            "page=x",
            r#"The parameter \"page\" must be a whole number."#,
        ),
        (
            "share=0.51",
            r#"The parameter \"share\" must be at most 0.5."#,
        ),
        (
            "ids=2&ids=0",
            r#"The parameter \"ids\" must be at least 1."#,
        ),
    ] {
        let answer = site.get(&format!("/list?{query}"));
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.body.contains(sentence), "{query}: {}", answer.body);
    }
    assert_eq!(site.get("/by/1").status, 200);
    assert_eq!(site.get("/by/0").status, 404);
}

fn a_value_is_a_day_that_exists(kind: Kind) {
    let site = open(
        kind,
        &[
            (
                "pages/on.sql",
                "-- param: day date = 2026-03-31\n-- name: a :many\nselect id, day from event where day = :day;\n",
            ),
            (
                "pages/place.sql",
                "-- param: place uuid\n-- name: a :many\nselect id from event where place = :place;\n",
            ),
            (
                "pages/given.sql",
                "-- param: day date = null\n-- param: mail email = ''\n-- param: link url = null\n-- name: a :one\nselect :day is null as none, :mail as mail, :link is null as free;\n",
            ),
        ],
    );
    let one = r#"{"a":[{"id":1,"day":"2026-03-31"}]}"#;
    site.until("the page is kept", || site.get("/on").cache() == "hit");
    for same in [
        "/on",
        "/on?day=",
        "/on?day=2026-03-31",
        "/on?day=+2026-03-31",
    ] {
        let answer = site.get(same);
        assert_eq!((answer.cache(), &*answer.body), ("hit", one), "{same}");
    }
    for wrong in ["2026-02-30", "31.3.2026", "2026-03-31T10:00", "tomorrow"] {
        let answer = site.get(&format!("/on?day={wrong}"));
        let sentence = r#"The parameter \"day\" must be a date such as 2026-03-31."#;
        assert_eq!(answer.status, 400, "{wrong}");
        assert!(answer.body.contains(sentence), "{}", answer.body);
    }
    let place = "123E4567-E89B-12D3-A456-426614174000";
    assert_eq!(
        site.get(&format!("/place?place={place}")).body,
        r#"{"a":[{"id":1}]}"#
    );
    assert_eq!(site.get("/place?place=7").status, 400);
    assert_eq!(site.get("/given").status, 200);
    assert_eq!(
        site.get("/given?mail=ann@example.org&day=2026-01-01")
            .status,
        200
    );
    assert_eq!(site.get("/given?mail=ann").status, 400);
    assert_eq!(site.get("/given?link=javascript:alert(1)").status, 400);
}

fn a_moment_has_one_spelling(kind: Kind) {
    let site = open(
        kind,
        &[
            (
                "pages/at.sql",
                "-- param: at datetime\n-- name: a :many\nselect id from event where at = :at;\n",
            ),
            (
                "pages/event.post.sql",
                "-- param: at datetime\n-- name: a :exec\nupdate event set at = :at where id = 1;\n-- redirect: /\n",
            ),
            (
                "pages/event.sql",
                "-- name: a :one\nselect at from event where id = 1;\n",
            ),
            ("pages/event.html", "{{ a.at | date('%F %T') }}"),
        ],
    );
    for same in [
        "2026-03-31T12:00",
        "2026-03-31+12:00:00",
        "2026-03-31T12:00:00.000Z",
        "2026-03-31T14:00%2B02:00",
    ] {
        let answer = site.get(&format!("/at?at={same}"));
        assert_eq!(answer.body, r#"{"a":[{"id":1}]}"#, "{same}");
    }
    assert_eq!(site.get("/at?at=2026-03-31").status, 400);
    assert_eq!(
        site.post("/event", "at=2026-12-31T23:30:05-01:00").status,
        303
    );
    assert_eq!(site.get("/event").body, "2027-01-01 00:30:05");
}

fn a_time_without_an_offset_is_of_the_sites_zone(kind: Kind) {
    let site = open(
        kind,
        &[
            ("millpond.toml", "[site]\ntimezone = \"Europe/Vienna\"\n"),
            (
                "pages/at.sql",
                "-- param: at datetime\n-- name: a :many\nselect id from event where at = :at;\n",
            ),
            (
                "pages/at.html",
                "{% for r in a %}{{ r.id }} {% endfor %}{{ params.at }} {{ params | query }} {{ params.at | date('%FT%R') }}",
            ),
            (
                "pages/event.post.sql",
                "-- param: at datetime\n-- name: a :exec\nupdate event set at = :at where id = 1;\n-- redirect: /\n",
            ),
            (
                "pages/event.sql",
                "-- name: a :one\nselect at, day from event where id = 1;\n",
            ),
            (
                "pages/event.html",
                "{{ a.at | date('%FT%R') }} {{ a.at | date('ical') }} {{ a.day | date('iso') }}",
            ),
        ],
    );
    assert_eq!(
        site.get("/event").body,
        "2026-03-31T14:00 20260331T120000Z 2026-03-31"
    );
    // The last is what the page itself puts into links: the same page again, not two hours off.
    for same in [
        "2026-03-31T14:00",
        "2026-03-31T12:00Z",
        "2026-03-31T14:00%2B02:00",
        "2026-03-31+12%3A00%3A00",
    ] {
        let answer = site.get(&format!("/at?at={same}"));
        assert_eq!(
            answer.body, "1 2026-03-31 12:00:00 ?at=2026-03-31+12%3A00%3A00 2026-03-31T14:00",
            "{same}"
        );
    }
    // A time that is left out, one that comes twice, and what a page of the field fills in again.
    for (typed, shown) in [
        ("2026-03-29T02:30", "2026-03-29T03:30 20260329T013000Z"),
        ("2026-10-25T02:30", "2026-10-25T02:30 20261025T003000Z"),
        ("2026-12-31T23:30", "2026-12-31T23:30 20261231T223000Z"),
    ] {
        assert_eq!(site.post("/event", &format!("at={typed}")).status, 303);
        assert_eq!(site.get("/event").body, format!("{shown} 2026-03-31"));
    }
    let wrong = problems(&[
        ("millpond.toml", "[site]\ntimezone = \"Europe/Vienna\"\n"),
        (
            "pages/at.sql",
            "-- param: at datetime = 2026-03-31T14:00\n-- name: a :many\nselect 1 where :at = :at;\n",
        ),
    ]);
    assert!(wrong.contains("names no offset"), "{wrong}");
}

fn a_form_says_at_the_field_what_a_value_must_be(kind: Kind) {
    let site = open(
        kind,
        &[
            (
                "pages/new.html",
                "{{ errors.day }} {{ errors.day.kind }}|{{ errors.cents }} {{ errors.cents.kind }}|{{ errors.mail }}|{{ form.day }}",
            ),
            ("pages/new.sql", "-- name: a :many\nselect id from event;\n"),
            (
                "pages/new.post.sql",
                "-- param: day date from 2026-01-01\n-- param: cents integer from 1 to 9\n-- param: mail email = ''\n-- param: id integer = 2\n\
                 -- name: a :exec\ninsert into event (id, day, cents, title) values (:id, :day, :cents, :mail);\n\
                 -- message: cents range = \"One to nine, please.\"\n-- invalid: /new\n-- redirect: /\n",
            ),
        ],
    );
    let shown = |body: &str| {
        let answer = site.post("/new", body);
        assert_eq!(answer.status, 303, "{}", answer.body);
        let cookie = answer.field("set-cookie");
        let flash = cookie.split(';').next().unwrap().to_owned();
        let request = OwnedRequest::new("GET", "/new")
            .field("Host", "site.test")
            .field("Cookie", &flash);
        site.ask(&request).body
    };
    assert_eq!(
        shown("day=2026-02-30&cents=10&mail=x"),
        "Day must be a date such as 2026-03-31. type|One to nine, please. range|Mail must be an e-mail address.|2026-02-30"
    );
    assert_eq!(
        shown("day=2025-12-31&cents=1"),
        "Day must be at least 2026-01-01. range| ||2025-12-31"
    );
    assert_eq!(
        site.post("/new", "day=2026-01-01&cents=9")
            .field("location"),
        "/"
    );
}

fn a_declared_type_wins_over_the_one_that_is_computed_with(kind: Kind) {
    let site = open(
        kind,
        &[
            (
                "pages/cents.sql",
                "-- param: amount real\n-- name: a :one\nselect :amount * 100 as cents;\n",
            ),
            (
                "pages/pay.post.sql",
                "-- param: amount real\n-- name: a :exec\nupdate event set cents = cents + :amount * 100 where id = 1;\n-- redirect: /\n",
            ),
            (
                "pages/paid.sql",
                "-- name: a :one\nselect cast(cents as text) as cents from event where id = 1;\n",
            ),
        ],
    );
    assert_eq!(
        site.get("/cents?amount=12.5").body,
        r#"{"a":{"cents":1250.0}}"#
    );
    assert_eq!(site.post("/pay", "amount=0.5").status, 303);
    assert_eq!(site.get("/paid").body, r#"{"a":{"cents":"150"}}"#);
}

#[test]
fn what_cannot_be_is_said_before() {
    for (line, expected) in [
        ("-- param: n integer from 9 to 1", "no value is from 9 to 1"),
        (
            "-- param: n integer from 1 = 0",
            "the default `0` is not at least 1",
        ),
        (
            "-- param: n text to 200",
            "the length of a text is: text length from 1 to 200",
        ),
        ("-- param: n dat", "did you mean `date`?"),
        (
            "-- param: n date = 2026-02-30",
            "`2026-02-30` is not a date",
        ),
        ("-- param: n emial", "did you mean `email`?"),
    ] {
        let text = format!("{line}\n-- name: a :many\nselect id from article where id = :n;\n");
        let said = problems(&[("pages/list.sql", &text)]);
        assert!(said.contains(expected), "{line}: {said}");
    }
}

//! Queries that say who may enter (`-- require: member`), on both databases.

use millpond_http::OwnedRequest;
use millpond_site::ExplainedVisitor;

use crate::{
    both::{Housed, Kind, on_both},
    sessions::{SITE, get, register},
    support::{Answer, TestSite, problems},
};

const TEAMS: &str = "create table team (id ID primary key, name text not null);
create table member (team_id ID not null, person_id ID not null, role text not null, primary key (team_id, person_id));
insert into team (id, name) values (1, 'Mill'), (2, 'hidden');
insert into member (team_id, person_id, role) values (1, 1, 'lead');
";

const MEMBER: &str = "-- name: member :one
select role from member where team_id = :id and person_id = :claims.user;
";

/// A page of a team, by its lines.
fn page(lines: &str) -> String {
    format!(
        "-- param: id integer\n{lines}\n-- name: team :one\nselect name from team where id = :id;\n{MEMBER}"
    )
}

fn site(kind: Kind, more: &[(&str, &str)]) -> Housed {
    let sqlite = TEAMS.replace("ID", "integer");
    let published = "alter publication millpond add table team, member;\n";
    let postgres = TEAMS.replace("ID", "bigint") + published;
    let html = page("-- require: claims.user else /login\n-- require: member else /me");
    let json = page("-- require: member");
    let private = page("-- require: member else /teams/:id/public");
    let rename = format!(
        "-- param: name text\n-- param: id integer\n-- require: member else /teams/:id/public\n{MEMBER}\
         -- name: renamed :exec\nupdate team set name = :name || ' by ' || :role where id = :id;\n\
         -- redirect: /teams/:id\n"
    );
    let api = format!(
        "-- param: name text\n-- param: id integer\n-- require: member\n{MEMBER}\
         -- name: team :one\nupdate team set name = :name where id = :id returning id, name;\n"
    );
    let csv = format!(
        "-- param: id integer\n-- require: member\n{MEMBER}\
         -- name: people :many\nselect person_id, role from member where team_id = :id order by person_id;\n"
    );
    let bytes = page("-- require: member\n-- bytes: team.name name 'name.txt'");
    let files: [(&str, &str); 13] = [
        ("migrations/0003_teams.sql", &sqlite),
        ("migrations/0003_teams.postgres.sql", &postgres),
        ("pages/teams/[id].sql", &html),
        (
            "pages/teams/[id].html",
            "{{ team.name }} ({{ member.role }})",
        ),
        ("pages/api/teams/[id].sql", &json),
        ("pages/api/teams/[id].put.sql", &api),
        ("pages/teams/[id]/mine.sql", &private),
        (
            "pages/teams/[id]/mine.html",
            "{{ request.claims.name }} in {{ team.name }}",
        ),
        ("pages/teams/[id]/rename.post.sql", &rename),
        ("pages/teams/[id]/people.csv.sql", &csv),
        ("pages/teams/[id]/name.sql", &bytes),
        (
            "pages/teams/[id]/public.sql",
            "-- require: shown\n-- name: shown :one\nselect 1 as yes from team where id = :id and name <> 'hidden';\n",
        ),
        ("pages/teams/[id]/public.html", "a public page"),
    ];
    let all: Vec<(&str, &str)> = SITE.iter().chain(&files).chain(more).copied().collect();
    Housed::new(kind, &all)
}

fn send(site: &TestSite, method: &str, target: &str, cookie: &str, body: &str) -> Answer {
    let request = OwnedRequest::new(method, target)
        .field("Host", "site.test")
        .field("Cookie", cookie)
        .field("Content-Type", "application/x-www-form-urlencoded")
        .body(body.to_owned());
    site.ask(&request)
}

fn told(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.field("location"))
}

fn the_row_of_a_query_lets_a_visitor_in(kind: Kind) {
    let site = site(kind, &[]);
    let [ann, bob] = ["Ann", "Bob"].map(|name| register(&site, name, 1, "reader"));
    let enter = |cookie: &str| get(&site, "/teams/1", cookie);
    site.until("a hit", || enter(&ann).cache() == "hit");
    // Each answer is looked at when it is made and again from memory.
    for _ in 0..3 {
        assert_eq!(enter(&ann).body, "Mill (lead)");
        let answer = enter(&bob);
        assert_eq!(told(&answer), (303, "/me?next=%2Fteams%2F1"));
        assert_eq!(answer.field("cache-control"), "no-store");
        let stranger = site.get("/teams/1");
        assert_eq!(told(&stranger), (303, "/login?next=%2Fteams%2F1"));
        // A team that is not there looks as one of others.
        let absent = get(&site, "/teams/9", &ann);
        assert_eq!(told(&absent), (303, "/me?next=%2Fteams%2F9"));
    }
    site.run("update member set person_id = 2, role = 'guest' where team_id = 1");
    site.until("Bob may enter", || enter(&bob).status == 200);
    for _ in 0..2 {
        assert_eq!(enter(&bob).body, "Mill (guest)");
        assert_eq!(told(&enter(&ann)), (303, "/me?next=%2Fteams%2F1"));
        let mine = get(&site, "/teams/1/mine", &bob);
        assert_eq!(mine.body, "Bob in Mill");
        assert_eq!(mine.field("cache-control"), "private, no-cache");
        let mine = get(&site, "/teams/1/mine", &ann);
        let led = "/teams/1/public?next=%2Fteams%2F1%2Fmine";
        assert_eq!(told(&mine), (303, led));
    }
}

fn a_program_is_told_and_gets_no_rows_of_guards(kind: Kind) {
    let staff = "-- require: claims.user else /:lang/login\n";
    let more = [
        ("pages/[lang]/staff.sql", staff),
        ("pages/[lang]/staff.html", "x"),
    ];
    let site = site(kind, &more);
    let [ann, bob] = ["Ann", "Bob"].map(|name| register(&site, name, 1, "reader"));
    for _ in 0..2 {
        let given = get(&site, "/api/teams/1", &ann);
        assert_eq!(given.body, r#"{"team":{"name":"Mill"}}"#);
        assert_eq!(given.field("cache-control"), "private, no-cache");
        let refused = get(&site, "/api/teams/1", &bob);
        assert_eq!(refused.status, 403);
        assert_eq!(refused.field("content-type"), "application/problem+json");
        let stranger = site.get("/api/teams/1");
        assert_eq!(stranger.status, 401);
        assert!(stranger.field("www-authenticate").starts_with("Cookie"));
        let rows = get(&site, "/teams/1/people.csv", &ann);
        assert_eq!(rows.body, "person_id,role\r\n1,lead\r\n");
        assert_eq!(get(&site, "/teams/1/people.csv", &bob).status, 403);
        assert_eq!(get(&site, "/teams/1/name", &ann).body, "Mill");
        assert_eq!(get(&site, "/teams/1/name", &bob).status, 403);
        // No session is asked for, and the page is everyone's.
        let public = site.get("/teams/1/public");
        assert_eq!(public.body, "a public page");
        assert_eq!(public.field("cache-control"), "no-cache");
        assert_eq!(site.get("/teams/2/public").status, 403);
    }
    site.run("update team set name = 'shown' where id = 2");
    site.until("it is shown", || site.get("/teams/2/public").status == 200);
    let explain = |target| site.site.explain(target, ExplainedVisitor::Anonymous);
    assert_eq!(
        explain("/teams/7/mine").unwrap()["guards"],
        serde_json::json!([{ "query": "member", "led_to": "/teams/7/public" }])
    );
    assert_eq!(explain("/de/staff").unwrap()["led_to"], "/de/login");
}

fn a_form_begins_with_its_guards(kind: Kind) {
    let site = site(kind, &[]);
    let [ann, bob] = ["Ann", "Bob"].map(|name| register(&site, name, 1, "reader"));
    let name = || site.text("select name from team where id = 1");
    let rename = |cookie: &str| send(&site, "POST", "/teams/1/rename", cookie, "name=River");
    for cookie in [&*bob, ""] {
        let answer = rename(cookie);
        assert_eq!(told(&answer), (303, "/teams/1/public"));
        let answer = send(&site, "PUT", "/api/teams/1", cookie, "name=River");
        let status = if cookie.is_empty() { 401 } else { 403 };
        assert_eq!(answer.status, status, "{}", answer.body);
        assert_eq!(name(), "Mill");
    }
    assert_eq!(told(&rename(&ann)), (303, "/teams/1"));
    assert_eq!(name(), "River by lead");
    assert_eq!(get(&site, "/teams/1", &ann).body, "River by lead (lead)");
    let answer = send(&site, "PUT", "/api/teams/1", &ann, "name=Brook");
    assert_eq!(answer.body, r#"{"team":{"id":1,"name":"Brook"}}"#);
    site.run("delete from member");
    assert_eq!(told(&rename(&ann)), (303, "/teams/1/public"));
    assert_eq!(name(), "Brook");
}

on_both!(
    the_row_of_a_query_lets_a_visitor_in,
    a_program_is_told_and_gets_no_rows_of_guards,
    a_form_begins_with_its_guards,
);

#[test]
fn what_cannot_say_who_may_enter_is_a_fault() {
    let found = |file: &str, lines: &str| {
        let text = format!(
            "-- param: id integer\n{lines}\n-- name: article :one\nselect id, title from article where id = :id;\n"
        );
        problems(&[(file, &text)])
    };
    let page = |lines: &str| found("pages/a.sql", lines);
    let form = |lines: &str| found("pages/a.post.sql", lines);
    for (problem, expected) in [
        (
            page("-- require: artcle"),
            "pages/a.sql:2:13: there is no query `artcle` here\n  hint: did you mean `article`?",
        ),
        (
            page("-- require: user else /login"),
            "pages/a.sql:2:13: there is no query `user` here\n  hint: name a `:one` query of this file; a claim is written: -- require: claims.user",
        ),
        (
            page("-- require: member\n-- name: member :many\nselect 1 as yes;"),
            "pages/a.sql:2:13: `-- require: member` needs a `:one` query: a visitor without its row may not enter\n  hint: make it one: -- name: member :one",
        ),
        (
            page("-- require: article\n-- require: article else /x"),
            "pages/a.sql:3:13: query `article` is required twice",
        ),
        (
            page("-- require: article else /:lang/x"),
            "pages/a.sql:2:28: after `else` stands `:lang`, which is no part of this file's path",
        ),
        (
            form("-- require: article\n-- name: first :exec\ndelete from comment where id = :id;"),
            "pages/a.post.sql:5:1: query `article` says who may enter, below other queries",
        ),
        (
            form(
                "-- require: gone\n-- name: gone :one\ndelete from comment where id = :id returning id as comment;",
            ),
            "pages/a.post.sql:3:1: query `gone` says who may enter, and writes",
        ),
        (
            form("-- require: article\n-- message: article = \"No.\""),
            "pages/a.post.sql:3:1: no form shows a sentence about `article`",
        ),
        (
            form("-- require: gone\n-- name: gone :one else 409\nselect 1 as yes;"),
            "pages/a.post.sql:2:13: query `gone` says who may enter, so `else 409` never counts",
        ),
        (
            problems(&[
                ("templates/m.html", "m"),
                (
                    "templates/m.sql",
                    "-- require: m\n-- name: m :one\nselect 1 as yes;\n",
                ),
            ]),
            "templates/m.sql: only a page or a form says who may enter",
        ),
    ] {
        assert!(problem.starts_with(expected), "{problem}");
    }
}

//! What a write takes from a visitor is said in its lines: a name that is misspelt, or that nothing
//! gives, does not silently become a visitor's value.

use millpond_http::OwnedRequest;

use crate::{
    sessions::{cookie, get},
    support::{TestSite, problems},
};

const TABLES: (&str, &str) = (
    "migrations/0002_tickets.sql",
    "create table ticket (id integer primary key, account_id integer, title text not null) strict;\n\
     create table message (ticket_id integer not null, body text not null) strict;\n\
     create table account (id integer primary key, name text not null, password text not null, role text, password_hash text) strict;\n",
);

/// Returns the faults of a form.
fn refused(form: &str) -> String {
    problems(&[TABLES, ("pages/new.post.sql", form)])
}

const MESSAGE: &str = "-- name: message :exec\ninsert into message (ticket_id, body) values (:ticket_id, :body);\n-- redirect: /\n";

#[test]
fn what_no_step_gives_is_declared_or_refused() {
    let lines = "-- param: title text\n-- param: body text\n";
    let insert = "insert into ticket (title) values (:title) returning id";
    for (step, message, hint) in [
        (
            format!("{lines}-- name: ticket :exec\n{insert} as ticket_id;\n"),
            "pages/new.post.sql:3:1: query `ticket` is `:exec`, so what it returns is lost",
            "`-- name: ticket :one` gives its columns",
        ),
        (
            format!("{lines}-- name: ticket :one\n{insert};\n"),
            "6:47: nothing gives `:ticket_id`, so any visitor could",
            "query `ticket` gives it as `id`: write `id as ticket_id` there. if the visitor sends it, declare it: -- param: ticket_id integer",
        ),
        (
            format!("{lines}-- name: ticket :one\n{insert} as tid;\n"),
            "nothing gives `:ticket_id`",
            "query `ticket` gives `:tid`.",
        ),
        (
            format!("{lines}-- name: made :one\n{insert} as made;\n"),
            "nothing gives `:ticket_id`",
            "if the visitor sends it, declare it: -- param: ticket_id integer",
        ),
        (
            format!("{lines}-- name: tickets :many\n{insert} as ticket_id;\n"),
            "nothing gives `:ticket_id`",
            "query `tickets` has this column, but gives several rows: make it `:one`.",
        ),
        (
            lines.replace("-- param: title text\n", ""),
            "nothing gives `:ticket_id`",
            "declare it: -- param: ticket_id integer",
        ),
    ] {
        let found = refused(&format!("{step}{MESSAGE}"));
        assert!(found.contains(message), "{step}: {found}");
        assert!(found.contains(hint), "{step}: {found}");
    }
    // Without any lines, several queries need them too.
    let bare = format!("-- name: made :one\n{insert} as made;\n{MESSAGE}");
    let found = refused(&bare);
    for name in ["title", "ticket_id", "body"] {
        assert!(
            found.contains(&format!("nothing gives `:{name}`")),
            "{found}"
        );
    }
}

#[test]
fn a_small_form_stays_small() {
    let site = TestSite::new(&[
        TABLES,
        ("pages/new.post.sql", MESSAGE),
        (
            "pages/tickets/[id]/new.post.sql",
            "-- param: title text\n-- name: ticket :one\ninsert into ticket (title, account_id) values (:title, :id) returning id as ticket_id;\n-- name: message :exec\ninsert into message values (:ticket_id, 'new');\n-- redirect: /\n",
        ),
    ]);
    assert_eq!(site.post("/new", "ticket_id=3&body=x").status, 303);
    assert_eq!(
        site.post("/tickets/4/new", "title=x&ticket_id=3").status,
        303
    );
    let rows: (i64, i64) = site
        .foreign()
        .query_row(
            "select max(ticket_id), (select max(id) from ticket) from message",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert_eq!(rows, (3, 1));
}

#[test]
fn a_claim_is_not_a_visitors_value() {
    let login = (
        "pages/login.post.sql",
        "-- name: account :one?\nselect id, name as known_as, password_hash from account where name = :name;\n-- verify: account.password_hash = :password\n-- claims: user = account.id, name = account.known_as\n-- redirect: /\n",
    );
    let with = |line: &str, name: &str| {
        let form = format!(
            "{line}-- name: gone :exec\ndelete from ticket where account_id = :{name};\n-- redirect: /\n"
        );
        problems(&[TABLES, login, ("pages/gone.post.sql", &form)])
    };
    let found = with("", "user");
    assert_eq!(
        found,
        "pages/gone.post.sql:2:39: `:user` could be a field of the form or the claim `user`\n  \
         hint: did you mean `:claims.user`? if the visitor sends it, declare it: -- param: user integer"
    );
    for name in ["user_id", "current_user", "userid"] {
        let found = with("", name);
        assert!(
            found.contains(&format!(
                "pages/gone.post.sql:2:39: nothing gives `:{name}`, so any visitor could"
            )),
            "{found}"
        );
        assert!(found.contains("did you mean `:claims.user`?"), "{found}");
    }
    TestSite::new(&[
        TABLES,
        login,
        (
            "pages/gone.post.sql",
            "-- param: user_id integer\n-- name: gone :exec\ndelete from ticket where account_id = :user_id and title <> :claims.user;\n-- redirect: /\n",
        ),
        (
            "pages/other.post.sql",
            "-- name: gone :exec\ndelete from ticket where account_id = :owner;\n-- redirect: /\n",
        ),
    ]);
}

#[test]
fn a_password_is_not_stored_as_it_was_typed() {
    for (file, text) in [
        (
            "pages/register.post.sql",
            "-- param: name text\n-- param: password text\n-- name: a :exec\ninsert into account (name, password) values (:name, :password);\n-- redirect: /\n",
        ),
        (
            "pages/register.post.sql",
            "-- name: a :exec\nupdate account set password = :new_password2 where name = :name;\n-- redirect: /\n",
        ),
        (
            "pages/login.sql",
            "-- param: password text\n-- name: a :one\nselect id from account where password = :password;\n",
        ),
    ] {
        let found = problems(&[TABLES, (file, text)]);
        assert!(
            found.contains("query `a` is given the password `:"),
            "{found}"
        );
        assert!(found.contains("-- hash: password_hash = :"), "{found}");
    }
    TestSite::new(&[
        TABLES,
        (
            "pages/register.post.sql",
            "-- param: name text\n-- param: has_password boolean = false\n-- hash: password_hash = :password\n-- name: a :exec\ninsert into account (name, password, password_hash, role) values (:name, '', :password_hash, :has_password);\n-- redirect: /\n",
        ),
    ]);
}

/// A password of something else is data, where a line declares it.
#[test]
fn a_password_of_something_else_is_data() {
    let form = |line: &str, name: &str| {
        problems(&[
            TABLES,
            (
                "pages/net.post.sql",
                &format!(
                    "{line}-- name: a :exec\nupdate account set password = :{name} where id = 1;\n-- redirect: /\n"
                ),
            ),
        ])
    };
    assert_eq!(form("-- param: wifi_password text\n", "wifi_password"), "");
    for (line, name) in [
        ("", "wifi_password"),
        ("-- param: user_password text\n", "user_password"),
    ] {
        let found = form(line, name);
        assert!(found.contains("is given the password `:"), "{found}");
        assert!(found.contains("-- param: wifi_password text"), "{found}");
    }
    let found = form("-- param: password_repeat text\n", "password_repeat");
    assert!(
        found.contains("let the browser compare what is typed twice"),
        "{found}"
    );
    let page = "<form><input name=wifi_password></form>";
    assert_eq!(problems(&[("templates/form.html", page)]), "");
}

/// A form that gives a session new claims keeps those that it names.
#[test]
fn a_claim_is_given_again() {
    let site = TestSite::new(&[
        (
            "millpond.toml",
            "[database]\nurl = \"sqlite:site.db\"\n[session]\nsecret = \"0123456789abcdef0123456789abcdef\"\n",
        ),
        (
            "pages/visit.post.sql",
            "-- param: visitor text\n-- claims: visitor = :visitor\n-- redirect: /\n",
        ),
        (
            "pages/user.post.sql",
            "-- param: user integer\n-- claims: user = :user, visitor = :claims.visitor, none = :claims.nothing\n-- redirect: /\n",
        ),
        (
            "pages/me.html",
            "{{ request.claims.user }} {{ request.claims.visitor }} {{ request.claims.none | default('') }}.",
        ),
    ]);
    let post = |target: &str, session: &str, body: &str| {
        let request = OwnedRequest::new("POST", target)
            .field("Host", "site.test")
            .field("Content-Type", "application/x-www-form-urlencoded")
            .field("Cookie", session)
            .body(body.to_owned());
        cookie(&site.ask(&request))
    };
    let first = post("/visit", "", "visitor=v7");
    let second = post("/user", &first, "user=3");
    assert_eq!(get(&site, "/me", &second).body, "3 v7 .");
}

//! What a refused form says: by name of the constraint, for programs, and where nothing fits into a
//! cookie.

use std::sync::Mutex;

use millpond_http::OwnedRequest;
use millpond_site::SiteOptions;
use serde_json::{Value as Json, json};

use crate::{
    both::{Housed, Kind, on_both},
    postgres,
    support::{Answer, TestSite, folder, problems},
};

const SCHEMA: &str = "create table room (id integer primary key, name text not null);
create table booking (id integer primary key, room_id integer not null references room, title text not null constraint one_title unique,
  starts_at integer not null, ends_at integer not null, seats integer, version integer not null default 1,
  constraint ends_after_start check (ends_at > starts_at), constraint no_overlap unique (starts_at, ends_at));
create unique index one_seat on booking (seats);
insert into room (id, name) values (1, 'Red');
insert into booking (id, room_id, title, starts_at, ends_at, seats) values (1, 1, 'One', 1, 2, 4);";

const FORM: &str = "-- param: title text
-- param: starts_at integer
-- param: ends_at integer
-- param: room_id integer = 1
-- param: seats integer = null
-- name: booked :exec
insert into booking (id, room_id, title, starts_at, ends_at, seats) values (9, :room_id, :title, :starts_at, :ends_at, :seats);
-- message: ends_at ends_after_start = \"The end is before the start.\"
-- message: form no_overlap = \"The room is taken.\"
-- message: title one_title = \"Choose another title.\"
-- message: seats one_seat = \"These seats are gone.\"
-- message: room_id reference = \"There is no such room.\"
";

const SHOWN: &str =
    "{% for name in errors %}{{ name }}: {{ errors[name] }} {{ errors[name].kind }};{% endfor %}";

fn files() -> Vec<(&'static str, String)> {
    let api = FORM.replace("-- name", "-- created: /bookings/9\n-- name");
    let edit = "-- param: title text
-- param: version integer
-- name: old :one
select id from booking where id = :id;
-- name: saved :one else 409
update booking set title = :title, version = version + 1 where id = :id and version = :version returning id, version;
";
    vec![
        ("migrations/0002_rooms.sql", SCHEMA.to_owned()),
        (
            "migrations/0003_feed.postgres.sql",
            "alter publication millpond add table room, booking;".to_owned(),
        ),
        ("pages/book.html", SHOWN.to_owned()),
        (
            "pages/book.post.sql",
            format!("{FORM}-- invalid: /book\n-- redirect: /book\n"),
        ),
        (
            "pages/plain.post.sql",
            format!("{FORM}-- redirect: /book\n"),
        ),
        ("pages/api/book.post.sql", api),
        (
            "pages/edit/[id].html",
            format!(
                "{{{{ booking.title }}}} {{{{ booking.version }}}} {{{{ form.title }}}} {SHOWN}"
            ),
        ),
        (
            "pages/edit/[id].sql",
            "-- name: booking :one\nselect title, version from booking where id = :id;\n"
                .to_owned(),
        ),
        (
            "pages/edit/[id].post.sql",
            format!("{edit}-- invalid: /edit/:id\n-- redirect: /edit/:id\n"),
        ),
        (
            "pages/own/[id].post.sql",
            format!(
                "{edit}-- message: title saved = \"Another was faster.\"\n-- invalid: /edit/:id\n-- redirect: /edit/:id\n"
            ),
        ),
        (
            "pages/api/edit/[id].put.sql",
            format!(
                "{}-- json: saved\n-- message: form conflict = \"Read it again.\"\n",
                edit.replace("409", "412")
            ),
        ),
    ]
}

fn open(kind: Kind) -> Housed {
    let files = files();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
    Housed::new(kind, &files)
}

fn get(site: &TestSite, target: &str, cookie: &str) -> Answer {
    let request = OwnedRequest::new("GET", target).field("Host", "site.test");
    site.ask(&request.field("Cookie", cookie))
}

/// The page to which an answer leads.
fn shown(site: &TestSite, answer: &Answer) -> String {
    assert_eq!(answer.status, 303, "{}", answer.body);
    let cookie = answer.field("set-cookie").split(';').next().unwrap();
    let shown = get(site, answer.field("location"), cookie);
    assert_eq!(shown.status, 200);
    assert_eq!(shown.field("cache-control"), "private, no-store");
    shown.body
}

fn send(site: &TestSite, method: &str, target: &str, body: &Json) -> (u16, Json) {
    let request = OwnedRequest::new(method, target)
        .field("Host", "site.test")
        .field("Content-Type", "application/json");
    let answer = site.ask(&request.body(body.to_string()));
    let document = serde_json::from_str(&answer.body).unwrap_or(Json::Null);
    (answer.status, document)
}

/// Form, then what is wrong: the field, the sentence, the kind and the status of a program.
const REFUSED: &[(&str, &str, &str, &str, u16)] = &[
    (
        "title=a&starts_at=5&ends_at=4",
        "ends_at",
        "The end is before the start.",
        "check",
        422,
    ),
    (
        "title=a&starts_at=1&ends_at=2",
        "form",
        "The room is taken.",
        "unique",
        409,
    ),
    (
        "title=One&starts_at=3&ends_at=4",
        "title",
        "Choose another title.",
        "unique",
        409,
    ),
    (
        "title=a&starts_at=3&ends_at=4&seats=4",
        "seats",
        "These seats are gone.",
        "unique",
        409,
    ),
    (
        "title=a&starts_at=3&ends_at=4&room_id=9",
        "room_id",
        "There is no such room.",
        "reference",
        409,
    ),
];

on_both!(
    a_constraint_has_a_sentence_at_the_field_that_the_line_names,
    programs_are_told_the_field_of_a_constraint,
    what_has_changed_meanwhile_is_a_conflict,
    what_has_no_room_in_a_cookie_is_shown_by_the_answer,
);

fn a_constraint_has_a_sentence_at_the_field_that_the_line_names(kind: Kind) {
    let site = open(kind);
    for (body, field, sentence, word, status) in REFUSED {
        let answer = site.post("/book", body);
        assert_eq!(
            shown(&site, &answer),
            format!("{field}: {sentence} {word};")
        );
        // Without a page to lead to it is the sentence of the error.
        let plain = site.post("/plain", body);
        assert_eq!(
            (plain.status, &*plain.body),
            (*status, &*format!("{sentence}\n"))
        );
    }
    let done = site.post("/book", "title=a&starts_at=3&ends_at=4");
    assert!(!done.field("set-cookie").contains("-form"));
}

fn programs_are_told_the_field_of_a_constraint(kind: Kind) {
    let site = open(kind);
    for (body, field, sentence, _, status) in REFUSED {
        let pairs = body.split('&').map(|pair| pair.split_once('=').unwrap());
        let pairs = pairs.map(|(name, value)| (name.to_owned(), Json::from(value)));
        let (found, problem) = send(&site, "POST", "/api/book", &Json::Object(pairs.collect()));
        assert_eq!(
            (found, &problem["detail"]),
            (*status, &json!(sentence)),
            "{problem}"
        );
        let errors = match *field {
            "form" => Json::Null,
            field => json!([{ "field": field, "detail": sentence }]),
        };
        assert_eq!(problem["errors"], errors);
    }
    // Without sentences of the owner's, and all that is wrong with the members at once.
    let (status, problem) = send(
        &site,
        "POST",
        "/api/book",
        &json!({ "title": "a", "starts_at": "x" }),
    );
    assert_eq!(status, 400);
    assert_eq!(
        problem["errors"],
        json!([
            { "field": "starts_at", "detail": "The parameter \"starts_at\" must be a whole number." },
            { "field": "ends_at", "detail": "The parameter \"ends_at\" is missing." },
        ])
    );
    let edit = json!({ "title": "One", "version": 1 });
    send(
        &site,
        "POST",
        "/api/book",
        &json!({ "title": "b", "starts_at": 8, "ends_at": 9 }),
    );
    let (status, problem) = send(&site, "PUT", "/api/edit/9", &edit);
    assert_eq!(
        (status, &problem["detail"]),
        (409, &json!("This exists already."))
    );
    assert_eq!(
        problem["errors"],
        json!([{ "field": "title", "detail": "Title exists already." }])
    );
}

fn what_has_changed_meanwhile_is_a_conflict(kind: Kind) {
    let site = open(kind);
    let form = |path: &str, version: i64| {
        let answer = site.post(path, &format!("title=Mine&version={version}"));
        shown(&site, &answer)
    };
    site.run("update booking set title = 'Theirs', version = 2 where id = 1");
    assert_eq!(
        form("/edit/1", 1),
        "Theirs 2 Mine form: This has changed meanwhile. Please look at it again. conflict;"
    );
    assert_eq!(
        form("/own/1", 1),
        "Theirs 2 Mine title: Another was faster. conflict;"
    );
    assert_eq!(site.post("/edit/8", "title=Mine&version=1").status, 404);
    let put = |version: i64| {
        let (status, document) = send(
            &site,
            "PUT",
            "/api/edit/1",
            &json!({ "title": "Mine", "version": version }),
        );
        (
            status,
            document["detail"].clone(),
            document["version"].clone(),
        )
    };
    assert_eq!(put(1), (412, json!("Read it again."), Json::Null));
    assert_eq!(
        site.text("select title from booking where id = 1"),
        "Theirs"
    );
    assert_eq!(put(2), (200, Json::Null, json!(3)));
    let saved = site.post("/edit/1", "title=Last&version=3");
    assert!(!saved.field("set-cookie").contains("-form"));
    assert!(get(&site, "/edit/1", "").body.starts_with("Last 4 "));
}

/// Shows the text of one visitor in the one answer to the form, of any length, and in no other.
fn what_has_no_room_in_a_cookie_is_shown_by_the_answer(kind: Kind) {
    let site = open(kind);
    let empty = get(&site, "/edit/1", "").body;
    assert_eq!(empty, "One 1  ");
    for size in [3_000, 900_000] {
        let long = "y".repeat(size);
        let answer = site.post("/edit/1", &format!("title={long}%3Cb%3E&version=7"));
        assert_eq!((answer.status, answer.field("location")), (422, ""));
        assert_eq!(answer.field("cache-control"), "private, no-store");
        assert_eq!(answer.cache(), "fwd=bypass; detail=form");
        assert_eq!(answer.field("set-cookie"), "");
        assert!(answer.field("content-type").starts_with("text/html"));
        assert_eq!(
            answer.body,
            format!(
                "One 1 {long}&lt;b&gt; form: This has changed meanwhile. Please look at it again. conflict;"
            )
        );
        for _ in 0..2 {
            let other = get(&site, "/edit/1", "");
            assert_eq!((&*other.body, other.cache()), (&*empty, "hit"));
        }
    }
    // The page shows what another has just written.
    site.run("update booking set title = 'New' where id = 1");
    let long = "y".repeat(5_000);
    let answer = site.post("/edit/1", &format!("title={long}&version=7"));
    assert!(
        answer.body.starts_with("New 1 yyy"),
        "{}",
        &answer.body[..20]
    );
}

/// Asks the one who has sent the form for the requirements of the page.
#[test]
fn a_page_that_the_visitor_may_not_see_is_not_the_answer() {
    let site = TestSite::new(&[
        (
            "millpond.toml",
            "[database]\nurl = \"sqlite:site.db\"\n[[require]]\npath = \"/staff/*\"\nclaims = \"role = 'editor'\"\n",
        ),
        (
            "pages/secret.html",
            "secret {{ all[0].title }} {{ form.title }}",
        ),
        (
            "pages/secret.sql",
            "-- require: claims.role = 'editor'\n-- name: all :many\nselect title from article;\n",
        ),
        (
            "pages/add.post.sql",
            "-- name: a :exec\ninsert into article (title) values (:title);\n-- invalid: /secret\n-- redirect: /\n",
        ),
        ("pages/staff/new.html", "secret {{ form.title }}"),
        (
            "pages/say.post.sql",
            "-- name: a :exec\ninsert into article (title) values (:title);\n-- invalid: /staff/new\n-- redirect: /\n",
        ),
        (
            "pages/enter.post.sql",
            "-- name: a :one\nselect 'editor' as role;\n-- claims: role = a.role\n-- redirect: /\n",
        ),
        (
            "pages/broken.html",
            "{{ {'x': 1}[all[0].title] }}{{ form.title }}",
        ),
        (
            "pages/broken.sql",
            "-- name: all :many\nselect title from article;\n",
        ),
        (
            "pages/broken.post.sql",
            "-- name: a :exec\ninsert into article (title) values (:title);\n-- invalid: /broken\n-- redirect: /\n",
        ),
    ]);
    let long = format!("title={}", "y".repeat(5_000));
    for form in ["/add", "/say"] {
        let answer = site.post(form, &long);
        assert_eq!(answer.status, 422);
        assert_eq!(
            answer.body,
            "A field is too short, too long or not allowed.\n"
        );
    }
    let entered = site.post("/enter", "");
    let cookie = entered.field("set-cookie").split(';').next().unwrap();
    let post = OwnedRequest::new("POST", "/add")
        .field("Host", "site.test")
        .field("Cookie", cookie)
        .field("If-Modified-Since", "Sun, 06 Nov 2094 08:49:37 GMT")
        .field("Range", "bytes=0-3")
        .field("Content-Type", "application/x-www-form-urlencoded");
    let answer = site.ask(&post.body(long.clone()));
    assert_eq!(answer.status, 422);
    assert!(answer.body.starts_with("secret One yyy"), "{}", answer.body);
    // A page that fails leaves the plain answer.
    let answer = site.post("/broken", &long);
    assert_eq!(answer.status, 422);
    assert!(answer.body.starts_with("A field is too"), "{}", answer.body);
}

#[test]
fn of_several_forms_the_page_knows_which_it_was() {
    let rename = "-- name: a :exec\nupdate article set title = :title where id = :id;\n-- invalid: /all\n-- redirect: /all\n";
    let site = TestSite::new(&[
        (
            "pages/all.html",
            "{% for a in all %}{% set mine = errors.form.action == '/article/' ~ a.id %}\
             [{{ form.title if mine else a.title }}{{ errors.title if mine }}]{% endfor %}\
             {% if errors.form.action == '/add' %}{{ form.title }} {{ errors.title }}{% endif %}",
        ),
        (
            "pages/all.sql",
            "-- name: all :many\nselect id, title from article order by id;\n",
        ),
        ("pages/article/[id].post.sql", rename),
        (
            "pages/add.post.sql",
            "-- name: a :exec\ninsert into article (title) values (:title);\n-- invalid: /all\n-- redirect: /all\n",
        ),
    ]);
    assert_eq!(get(&site, "/all", "").body, "[One][Two]");
    let second = site.post("/article/2", "title=One");
    assert_eq!(shown(&site, &second), "[One][OneTitle exists already.]");
    let first = site.post("/article/%31", "title=Two");
    assert_eq!(shown(&site, &first), "[TwoTitle exists already.][Two]");
    let third = site.post("/add", "title=Two");
    assert_eq!(shown(&site, &third), "[One][Two]Two Title exists already.");
    assert_eq!(get(&site, "/all", "").body, "[One][Two]");
}

#[test]
fn a_wrong_password_is_said_at_its_field_if_the_owner_has_a_sentence_there() {
    let form = |message: &str| {
        format!(
            "-- name: account :one?\nselect id, title as hash from article where title = :name;\n\
             -- verify: account.hash = :password\n-- claims: user = account.id\n{message}-- invalid: /login\n-- redirect: /\n"
        )
    };
    let said = |message: &str| {
        let site = TestSite::new(&[
            ("pages/login.html", SHOWN),
            ("pages/login.post.sql", &form(message)),
        ]);
        shown(&site, &site.post("/login", "name=ann&password=hunter22"))
    };
    for (message, expected) in [
        ("", "form: The account or the password is wrong. password;"),
        (
            "-- message: password = \"Wrong.\"\n",
            "password: Wrong. password;",
        ),
        (
            "-- message: password password = \"Wrong.\"\n",
            "password: Wrong. password;",
        ),
        (
            "-- message: form password = \"Wrong.\"\n",
            "form: Wrong. password;",
        ),
        (
            "-- message: password missing = \"Fill in.\"\n",
            "form: The account or the password is wrong. password;",
        ),
    ] {
        assert_eq!(said(message), expected, "{message}");
    }
    let elsewhere = form("-- message: password = \"Wrong.\"\n");
    let elsewhere = elsewhere.replace(":password\n", ":password else /login?failed=1\n");
    let found = problems(&[
        ("pages/login.html", SHOWN),
        ("pages/login.post.sql", &elsewhere),
    ]);
    assert!(
        found.starts_with("pages/login.post.sql:5:1: this message is never shown: a wrong password leads to /login?failed=1\n  hint: leave out `else"),
        "{found}"
    );
}

#[test]
fn check_knows_constraints_and_conflicts() {
    let form = |lines: &str, rows: &str| {
        format!(
            "-- param: title text\n-- name: a {rows}\nupdate article set title = :title returning id;\n-- redirect: /\n{lines}"
        )
    };
    let schema = (
        "migrations/0002_named.sql",
        "create table named (id integer primary key, a text constraint a_given not null, constraint short_a check (length(a) < 9));",
    );
    let said = |lines: &str, rows: &str| {
        let form = form(lines, rows).replace("update article set title", "update named set a");
        problems(&[schema, ("pages/new.post.sql", &form)])
    };
    for good in [
        "-- message: title SHORT_A = \"No.\"\n",
        "-- message: title a_given = \"No.\"\n-- message: form a = \"No.\"\n",
        "-- message: form conflict = \"No.\"\n",
    ] {
        assert_eq!(said(good, ":one else 409"), "", "{good}");
    }
    for (lines, rows, expected) in [
        (
            "-- message: title short_b = \"No.\"\n",
            ":one",
            "pages/new.post.sql:5:1: there is no fault `short_b`, nor a constraint of this name\n  hint: did you mean `short_a`?",
        ),
        (
            "-- message: titel short_a = \"No.\"\n",
            ":one",
            "pages/new.post.sql:5:1: `titel` is neither a parameter of the form nor a `:one` query\n  hint: did you mean `title`?",
        ),
        (
            "-- message: title size = \"No.\"\n",
            ":one",
            "pages/new.post.sql:5:1: `size` is a fault of a file, and `title` is none\n",
        ),
        (
            "-- message: form conflict = \"No.\"\n",
            ":one",
            "pages/new.post.sql:5:1: no query of this file says that a row has changed meanwhile\n",
        ),
        (
            "-- message: title conflict = \"No.\"\n",
            ":one else 412",
            "pages/new.post.sql:5:1: a conflict belongs to the form, not to `title`\n",
        ),
        (
            "",
            ":one? else 409",
            "pages/new.post.sql:2:1: `else` behind query `a`, which need not give a row\n  hint: only a `:one`",
        ),
        (
            "",
            ":one else 410",
            "pages/new.post.sql:2:1: `410` is no status for a row that has changed meanwhile",
        ),
        ("", ":one else", "pages/new.post.sql:2:1: `` is no status"),
    ] {
        let found = said(lines, rows);
        assert!(found.starts_with(expected), "{lines} {rows}\n{found}");
    }
    let page = "-- name: a :one else 409\nselect id from article;\n";
    let found = problems(&[("pages/a.sql", page)]);
    assert!(
        found.starts_with("pages/a.sql:1:1: a page has no `-- name … else:`"),
        "{found}"
    );
}

static LEFT_OUT: Mutex<Vec<String>> = Mutex::new(Vec::new());
static WORDS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn logged(log: &Mutex<Vec<String>>, part: &str) -> bool {
    log.lock().unwrap().iter().any(|line| line.contains(part))
}

const EVENTS: &[(&str, &str)] = &[
    (
        "migrations/0002_event.sql",
        "create table event (id integer primary key, title text, owner text not null)",
    ),
    ("pages/event.html", SHOWN),
    (
        "pages/event.post.sql",
        "-- name: a :exec\ninsert into event (id, title) values (1, :title);\n-- invalid: /event\n-- redirect: /\n",
    ),
];

const TICKETS: &[(&str, &str)] = &[
    (
        "migrations/0003_ticket.sql",
        "alter table event add ticket uuid",
    ),
    (
        "pages/ticket.post.sql",
        "-- name: a :exec\ninsert into event (id, owner, ticket) values (1, 'x', :ticket);\n-- invalid: /event\n-- redirect: /\n",
    ),
    (
        "pages/api/ticket.post.sql",
        "-- name: a :exec\ninsert into event (id, owner, ticket) values (1, 'x', :ticket);\n",
    ),
];

fn options(dev: bool, log: fn(&str)) -> SiteOptions {
    SiteOptions {
        dev,
        log,
        ..SiteOptions::default()
    }
}

#[test]
fn the_owner_is_told_of_a_column_that_is_left_out() {
    let log = |line: &str| LEFT_OUT.lock().unwrap().push(line.to_owned());
    let said = |part: &str| logged(&LEFT_OUT, part);
    let hint = "the statement gives the column `owner` no value, and it has no default";
    let database = postgres::database();
    let on_postgres = || postgres::folder(&database, EVENTS);
    for (name, dir) in [("NOT NULL", folder(EVENTS)), ("not-null", on_postgres())] {
        LEFT_OUT.lock().unwrap().clear();
        let site = TestSite::open(dir, options(false, log));
        let page = shown(&site, &site.post("/event", "title=a"));
        assert_eq!(
            page,
            "form: A field that must be filled in is empty. missing;"
        );
        assert!(said(hint) && said(name) && said("pages/event.post.sql:1: "));
    }
    // The developer gets the status and the cause, not the form.
    let site = TestSite::open(folder(EVENTS), options(true, log));
    assert_eq!(site.post("/event", "title=a").status, 422);
}

/// Writes PostgreSQL's words about a value into the log, and ours at the field.
#[test]
fn no_visitor_reads_the_words_of_the_database() {
    let database = postgres::database();
    let log = |line: &str| WORDS.lock().unwrap().push(line.to_owned());
    let files = [EVENTS, TICKETS].concat();
    let site = TestSite::open(postgres::folder(&database, &files), options(false, log));
    let page = shown(&site, &site.post("/ticket", "ticket=%3Cx%3E"));
    assert_eq!(page, "ticket: Ticket does not have the right form. type;");
    assert!(logged(
        &WORDS,
        "ticket: invalid input syntax for type uuid: \"<x>\""
    ));
    let (status, problem) = send(&site, "POST", "/api/ticket", &json!({ "ticket": "y" }));
    let sentence = "The parameter \"ticket\" does not have the right form.";
    assert_eq!((status, &problem["detail"]), (400, &json!(sentence)));
    assert_eq!(
        problem["errors"],
        json!([{ "field": "ticket", "detail": sentence }])
    );
}

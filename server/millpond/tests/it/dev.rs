//! `serve --dev`: errors in the browser, and pages that reload.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::Deref;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use lab_testkit::terminal;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::live::EventStream;
use crate::support::{
    Connection, Response, Server, fail, millpond, new_site, serve, serve_with, write,
};

pub(crate) const PAGE: &str = "Accept: text/html,*/*;q=0.8";
const STREAM: &str = "/.millpond/live";
const ENTRY: &str = "/_millpond/dev/enter/";

/// A site with pages and a form that fail in each way.
fn failing() -> TempDir {
    let site = new_site();
    for (file, text) in [
        (
            "migrations/0002_member.sql",
            "create table member (id integer primary key, name text not null unique, password_hash text, note text);\n\
             insert into member values (1, '<script>alert(1)</script>', '$argon2id$secret-hash', 'seen');",
        ),
        (
            "pages/broken/[id].sql",
            "-- name: member :one\nselect id, name, password_hash, note from member where id = :id;\n\
             \n-- name: all :many\nselect id, name from member order by id;\n",
        ),
        (
            "pages/broken/[id].html",
            "<p>before</p>\n<p>{{ member.name }}</p>{% set marks = {'new': '*'} %}\n<p>{{ marks[member.note] }}</p>\n",
        ),
        ("pages/overflow.html", "{{ sum.x }}"),
        (
            "pages/overflow.sql",
            "-- param: q text\n-- name: sum :one\nselect abs(-9223372036854775808) as x, :q as q;\n",
        ),
        (
            "pages/first.sql",
            "-- name: members :many\nselect name from member where id < 0;\n",
        ),
        (
            "pages/first.html",
            "{% set first = members | first %}\n{{ first.name }}\n",
        ),
        ("pages/again.html", "{{ form.name }}|{{ errors.name }}"),
        (
            "pages/again.post.sql",
            "-- param: name text\n-- name: add :exec\ninsert into member (name, password_hash) values (:name, 'x');\n-- invalid: /again\n-- redirect: /\n",
        ),
        (
            "pages/leave.post.sql",
            "-- param: name text\n-- name: add :exec\ninsert into member (password_hash) values (:name);\n-- invalid: /again\n-- redirect: /\n",
        ),
        (
            "pages/join.post.sql",
            "-- param: name text\n-- param: secret text\n-- name: add :exec\ninsert into member (name, password_hash) values (:name, :secret || 'x');\n-- redirect: /\n",
        ),
    ] {
        write(site.path(), file, text);
    }
    site
}

/// A server in development, and the cookie of its developer as a field.
pub(crate) struct DevServer {
    server: Server,
    pub(crate) cookie: String,
}

impl Deref for DevServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl DevServer {
    pub(crate) fn start(site: &Path, arguments: &[&str]) -> Self {
        let server = serve_with(site, arguments);
        let cookie = entered(&server, &server.address().to_string());
        Self { server, cookie }
    }

    fn stop(self) -> (ExitStatus, String) {
        self.server.stop()
    }

    /// Sends a form as the developer's browser does.
    fn post(&self, target: &str, form: &str) -> Response {
        let mut connection = Connection::open(self.address());
        connection.send(format!(
            "POST {target} HTTP/1.1\r\nHost: {}\r\n{}\r\nContent-Length: {}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n\r\n{form}",
            self.address(),
            self.cookie,
            form.len()
        ));
        connection.receive()
    }

    /// Opens the stream that ends with the state `token`.
    fn await_change(&self, token: &str) -> Connection {
        let mut waiting = Connection::open(self.address());
        waiting.send(format!(
            "GET {STREAM}?state={token} HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n",
            self.cookie
        ));
        waiting
    }
}

/// The path with the secret in the notes of a server.
pub(crate) fn entry(notes: &str) -> String {
    let (_, rest) = notes.split_once(ENTRY).expect(notes);
    format!("{ENTRY}{}", rest.split(' ').next().unwrap())
}

/// Opens the printed address at a host. Returns the cookie as a field.
fn entered(server: &Server, host: &str) -> String {
    let path = entry(&server.wait_for("--no-dev: not"));
    let mut connection = Connection::open(server.address());
    connection.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let entered = connection.receive();
    let location = entered.field("location");
    assert_eq!((entered.status, location), (303, Some("/")));
    let cookie = entered.field("set-cookie").unwrap();
    assert!(cookie.ends_with("; HttpOnly; SameSite=Strict"), "{cookie}");
    format!("Cookie: {}", cookie.split(';').next().unwrap())
}

pub(crate) fn dev(site: &Path) -> DevServer {
    DevServer::start(site, &["--dev"])
}

pub(crate) fn ask(server: &Server, target: &str, fields: &[&str]) -> Response {
    let mut connection = Connection::open(server.address());
    let host = server.address();
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    connection.send(format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"
    ));
    connection.receive()
}

/// The text of a page, as a browser shows it.
pub(crate) fn shown(page: &Response) -> String {
    page.text().replace("&#x2f;", "/")
}

/// Asks as the developer.
pub(crate) fn ask_as_developer(server: &DevServer, target: &str, fields: &[&str]) -> Response {
    ask(server, target, &[&[&*server.cookie], fields].concat())
}

pub(crate) fn page(server: &DevServer, target: &str) -> Response {
    ask_as_developer(server, target, &[PAGE])
}

/// The state that a page has remembered.
fn state(page: &Response) -> String {
    let text = page.text();
    let (_, rest) = text.split_once("data-state=\"").expect(&text);
    rest.split('"').next().unwrap().to_owned()
}

#[test]
fn an_error_is_a_page_with_its_cause() {
    let site = failing();
    let server = dev(site.path());
    let broken = ask_as_developer(
        &server,
        "/broken/1?token=of-mail",
        &[
            PAGE,
            "Cookie: session=of-visitor",
            "Authorization: Basic of-visitor",
            "X-Api-Key: of-visitor",
        ],
    );
    let text = shown(&broken);
    assert_eq!(broken.status, 500);
    for there in [
        "pages/broken/[id].html:3:",
        "<mark>marks[member.note]</mark>",
        "<dt>id</dt><dd class=\"integer\">1</dd>",
        "from member where id = :id",
        "1 row",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "headers.accept",
        "<dt>query.token</dt><dd class=\"hidden\">hidden</dd>",
        "query took",
    ] {
        let is_there =
            text.contains(there) || there == "query took" && text.contains("queries took");
        assert!(is_there, "{there}: {text}");
    }
    for absent in ["of-visitor", "of-mail", "secret-hash", "<script>alert"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    let policy = broken.field("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'") && policy.contains("default-src 'none'"));
    assert_eq!(broken.field("cache-control"), Some("no-store"));
    assert_eq!(broken.field("millpond-report"), None);

    let sum = shown(&page(&server, "/overflow?q=1"));
    assert_eq!(page(&server, "/overflow?q=1").status, 400);
    assert!(sum.contains("integer overflow"), "{sum}");
    assert!(
        sum.contains("pages/overflow.sql:2") && sum.contains("failed"),
        "{sum}"
    );

    let first = shown(&page(&server, "/first"));
    assert!(
        first.contains("`first` has no value with this data"),
        "{first}"
    );
    assert!(first.contains("No row. Its columns: name"), "{first}");

    let json = ask_as_developer(&server, "/first", &["Accept: application/json"]);
    assert_eq!(json.field("content-type"), Some("application/problem+json"));
    let json: serde_json::Value = serde_json::from_slice(&json.body).unwrap();
    assert_eq!(json["status"], 500);
    assert_eq!(json["place"]["file"], "pages/first.html");
    assert_eq!(json["place"]["line"], 2);
    let hint = json["hint"].as_str().unwrap();
    assert!(
        hint.starts_with("`first` has no value with this data"),
        "{hint}"
    );
}

#[test]
fn an_error_in_a_sentence_is_a_page_too_and_reloads() {
    let site = failing();
    let server = dev(site.path());
    let missing = page(&server, "/overflow");
    let text = shown(&missing);
    assert_eq!(missing.status, 400);
    assert!(
        text.contains("<h1>The parameter &quot;q&quot; is missing</h1>"),
        "{text}"
    );
    assert!(
        text.contains("GET /overflow") && !state(&missing).is_empty(),
        "{text}"
    );
    let plain = ask_as_developer(&server, "/overflow", &[]);
    assert_eq!(plain.text(), "The parameter \"q\" is missing.\n");
    // The site's own page stays as it is.
    let not_found = page(&server, "/nowhere");
    assert!(
        not_found.text().contains("There is no such page here."),
        "{}",
        not_found.text()
    );
    assert!(!state(&not_found).is_empty());
}

#[test]
fn a_form_shows_the_constraint_and_no_password() {
    let site = failing();
    let server = dev(site.path());
    let join = || server.post("/join", "name=Ann&secret=of-visitor");
    assert_eq!(join().status, 303);
    let again = join();
    let text = shown(&again);
    assert_eq!(again.status, 409);
    assert!(
        text.contains("UNIQUE constraint failed: member.name"),
        "{text}"
    );
    assert!(
        text.contains("Visitors see: “This exists already.”"),
        "{text}"
    );
    assert!(
        text.contains("<dt>name</dt><dd class=\"text\">Ann</dd>"),
        "{text}"
    );
    assert!(text.contains(" data-post data-live-keep>"), "{text}");
    assert!(!text.contains("of-visitor"), "{text}");
}

/// Shows the developer the page to which a visitor is led back, but for a column that no visitor
/// can fill in.
#[test]
fn a_form_that_leads_back_does_so_for_the_developer() {
    let site = failing();
    let server = dev(site.path());
    let long = "n".repeat(5_000);
    let again = || server.post("/again", &format!("name={long}"));
    assert_eq!(again().status, 303);
    let page = again();
    let text = page.text();
    assert_eq!(page.status, 422);
    assert!(
        text.starts_with(&format!("{long}|Name exists already.")),
        "{text}"
    );
    let left_out = shown(&server.post("/leave", "name=Bob"));
    let hint = "the statement gives the column `name` no value";
    assert!(left_out.contains(hint), "{left_out}");
}

/// A program is written against the answers of a server in development: they are those of
/// production with further members.
#[test]
fn an_api_answers_as_it_does_without_dev() {
    let site = failing();
    let api = "-- param: name text\n-- name: add :one\ninsert into member (name, password_hash) values (:name, 'x') returning id;\n\n-- message: name unique = \"This name is taken.\"\n";
    write(site.path(), "pages/api/members.post.sql", api);
    write(
        site.path(),
        "pages/4xx.html",
        "<link rel=stylesheet href=/own.css><h1>Own {{ status }}</h1>{{ message }}",
    );
    let answer = |server: &Server, cookie: &str, accept: &str| {
        let mut connection = Connection::open(server.address());
        let host = server.address();
        connection.send(format!(
            "POST /api/members HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\nAccept: {accept}\r\nAccept-Encoding: gzip\r\n\
             Content-Type: application/json\r\nContent-Length: 15\r\n\r\n{{\"name\": \"Bob\"}}"
        ));
        connection.receive()
    };
    let plain = {
        let server = serve(site.path());
        assert_eq!(answer(&server, "Cookie: a=b", "*/*").status, 200);
        answer(&server, "Cookie: a=b", "*/*")
    };
    let server = dev(site.path());
    for accept in ["*/*", "application/json"] {
        let with = answer(&server, &server.cookie, accept);
        assert_eq!((with.status, plain.status), (409, 409));
        assert_eq!(with.field("content-type"), plain.field("content-type"));
        let mut document: serde_json::Value = serde_json::from_slice(&with.body).unwrap();
        let members = document.as_object_mut().unwrap();
        let cause = members.remove("cause").unwrap();
        assert_eq!(cause, "UNIQUE constraint failed: member.name");
        let place = members.remove("place").unwrap();
        assert_eq!(place["file"], "pages/api/members.post.sql");
        let plain: serde_json::Value = serde_json::from_slice(&plain.body).unwrap();
        assert_eq!(document, plain);
        assert_eq!(document["errors"][0]["detail"], "This name is taken.");
    }
    let browser = shown(&answer(
        &server,
        &server.cookie,
        PAGE.trim_start_matches("Accept: "),
    ));
    assert!(
        browser.contains("<h1>UNIQUE constraint failed"),
        "{browser}"
    );
    assert!(
        browser.contains("What programs get") && browser.contains("This name is taken."),
        "{browser}"
    );
}

/// The developer sees what visitors see too: the page of the site's own for the error.
#[test]
fn the_sites_own_error_page_is_shown_within_the_developers() {
    let site = failing();
    let own = "<link rel=stylesheet href=own.css><h1>Own {{ status }}</h1>{{ message }}";
    write(site.path(), "pages/4xx.html", own);
    write(site.path(), "pages/500.html", own);
    let server = dev(site.path());
    let mut connection = Connection::open(server.address());
    let host = server.address();
    let mut join = || {
        connection.send(format!(
            "POST /join HTTP/1.1\r\nHost: {host}\r\n{}\r\n{PAGE}\r\nAccept-Encoding: gzip\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 15\r\n\r\nname=A&secret=b",
            server.cookie
        ));
        connection.receive()
    };
    assert_eq!(join().status, 303);
    let again = join();
    let text = shown(&again);
    assert!(text.contains("<h1>UNIQUE constraint failed"), "{text}");
    assert!(
        text.contains("<iframe sandbox") && text.contains("&lt;h1&gt;Own 409&lt;/h1&gt;"),
        "{text}"
    );
    let broken = shown(&page(&server, "/broken/1"));
    assert!(broken.contains("&lt;h1&gt;Own 500&lt;/h1&gt;"), "{broken}");
    let visitor = ask(&server, "/broken/1", &[PAGE]);
    assert!(
        visitor.text().contains("<h1>Own 500</h1>"),
        "{}",
        visitor.text()
    );
}

/// Waits until the folder was read again after the state `token`.
fn next_state(server: &DevServer, token: &str) {
    let told = server.await_change(token).receive().text();
    assert!(told.ends_with("event: reload\ndata: 1\n\n"), "{told}");
}

/// Waits until the browser shows a page with `text`.
fn wait_for(server: &DevServer, text: &str) -> Response {
    loop {
        let now = page(server, "/");
        if shown(&now).contains(text) {
            return now;
        }
        next_state(server, &state(&now));
    }
}

#[test]
fn a_new_migration_is_applied_at_once_and_a_broken_one_is_shown() {
    let site = new_site();
    let server = dev(site.path());
    let migration = "migrations/0009_label.sql";
    // An editor has made the file: nothing is applied yet.
    write(site.path(), migration, "-- labels\n");
    write(
        site.path(),
        "pages/index.sql",
        "-- name: labels :many\nselect name from label;\n",
    );
    write(
        site.path(),
        "pages/index.html",
        "{% for label in labels %}[{{ label.name }}]{% endfor %}",
    );
    wait_for(&server, "label");
    write(
        site.path(),
        migration,
        "create table label (name text not null);\ninsert into lable values ('a');\n",
    );
    let broken = shown(&wait_for(&server, "no such table: lable"));
    assert!(broken.contains("migrations/0009_label.sql:2:"), "{broken}");
    let whole = "create table label (name text not null);\ninsert into label values ('a');\n";
    write(site.path(), migration, whole);
    wait_for(&server, "[a]");

    // One that was applied and is edited.
    write(site.path(), migration, "create table label (name text);\n");
    let edited = wait_for(&server, "edited since it was applied");
    assert!(shown(&edited).contains("put the change into a new migration"));
    assert_eq!(ask(&server, "/", &[]).status, 200);
    write(site.path(), migration, &whole.replace('\n', "\r\n"));
    wait_for(&server, "[a]");

    // A schema under pages that are in use is a fault at once, also after a change elsewhere.
    write(
        site.path(),
        "migrations/0010_rename.sql",
        "alter table label rename column name to title;\n",
    );
    let text = shown(&wait_for(&server, "no such column"));
    assert!(text.contains("pages/index.sql"), "{text}");
    let token = state(&page(&server, "/"));
    write(site.path(), "static/new.txt", "new");
    next_state(&server, &token);
    assert_eq!(page(&server, "/").status, 500);
    write(
        site.path(),
        "pages/index.sql",
        "-- name: labels :many\nselect title as name from label;\n",
    );
    wait_for(&server, "[a]");
    let (status, notes) = server.stop();
    assert!(status.success(), "{notes}");
    assert!(
        notes.contains("migrations/0009_label.sql is applied"),
        "{notes}"
    );
    assert!(notes.contains("edited since it was applied"), "{notes}");
    // The next start finds all of it applied.
    let server = dev(site.path());
    assert!(page(&server, "/").text().contains("[a]"));
}

#[test]
fn without_dev_nothing_of_it_is_there() {
    let site = failing();
    let server = serve(site.path());
    assert!(
        ask(&server, &format!("{STREAM}?state=0"), &[])
            .text()
            .contains("gone")
    );
    let plain = ask(&server, "/", &[PAGE]);
    assert!(!plain.text().contains("<script"), "{}", plain.text());
    assert_eq!(plain.body, ask(&server, "/", &[]).body);
    let broken = ask(&server, "/broken/1", &[PAGE]);
    assert_eq!(
        (broken.status, broken.text().contains("member")),
        (500, false)
    );

    // With it, programs and everybody but the developer see the same bytes as without it.
    let with = dev(site.path());
    assert!(page(&with, "/").text().contains("data-state"));
    assert_eq!(ask(&with, "/", &[]).body, plain.body);
    assert_eq!(ask_as_developer(&with, "/", &[]).body, plain.body);
    for proxied in ["X-Forwarded-For: 10.0.0.1", "Via: 1.1 proxy"] {
        let ask = |target| ask_as_developer(&with, target, &[PAGE, proxied]);
        assert_eq!(ask("/").body, plain.body);
        assert_eq!(ask("/broken/1").body, broken.body);
        assert!(ask(&format!("{STREAM}?state=0")).text().contains("gone"));
    }
    let mut connection = Connection::open(with.address());
    for (target, body) in [("/", &plain.body), ("/broken/1", &broken.body)] {
        connection.send(format!(
            "GET {target} HTTP/1.1\r\nHost: evil.example\r\n{}\r\n{PAGE}\r\n\r\n",
            with.cookie
        ));
        let rebound = connection.receive();
        assert_eq!(rebound.body, *body);
        assert_eq!(rebound.field("millpond-report"), None);
    }
}

/// *Counterexample*: a proxy whose connections are kept leaves no trace in a request, and everybody
/// was shown causes, SQL and names of files.
#[test]
fn what_a_silent_proxy_passes_on_is_answered_as_a_visitors() {
    let site = failing();
    let settings = site.path().join("millpond.toml");
    let log = "\n[log]\naccess = \"access.log\"\n";
    let text = std::fs::read_to_string(&settings).unwrap() + log;
    std::fs::write(&settings, text).unwrap();
    let plain = serve(site.path());
    let [page, broken] = ["/", "/broken/1"].map(|target| ask(&plain, target, &[PAGE]).body);
    plain.stop();
    let server = dev(site.path());
    let cookie = server.cookie.clone();
    let (name, secret) = cookie.split_once('=').unwrap();
    let cut = &secret[1..];
    let mut proxied = Connection::open(server.address());
    let mut get = |target: &str, field: &str| {
        proxied.send(format!(
            "GET {target} HTTP/1.1\r\nHost: {}\r\n{PAGE}\r\n{field}\r\n\r\n",
            server.address()
        ));
        proxied.receive()
    };
    for field in [
        "X: y",
        &format!("{name}={cut}"),
        &format!("{name}x={secret}"),
    ] {
        for _ in 0..3 {
            assert_eq!(get("/", field).body, page, "{field}");
            assert_eq!(get("/broken/1", field).body, broken, "{field}");
        }
        for target in [ENTRY, &format!("{ENTRY}{cut}")] {
            assert_eq!(get(target, field).status, 404, "{target} {field}");
        }
        let stream = get(&format!("{STREAM}?state=0"), field);
        assert!(stream.text().contains("gone"), "{field}");
    }
    assert!(
        get("/broken/1", &cookie)
            .text()
            .contains("marks[member.note]")
    );
    // The secret stays over a restart, and stands in the note of the start alone.
    let (_, notes) = server.stop();
    assert_eq!(notes.matches(secret).count(), 1, "{notes}");
    assert_eq!(
        notes
            .matches("a browser on this machine gets what visitors get")
            .count(),
        1
    );
    let lines = std::fs::read_to_string(site.path().join("access.log")).unwrap();
    assert!(
        lines.contains("GET /_millpond/dev/enter/ HTTP/1.1\" 303"),
        "{lines}"
    );
    assert!(!lines.contains(cut), "{lines}");
    assert_eq!(dev(site.path()).cookie, cookie);
    assert_ne!(
        dev(failing().path()).cookie.split_once('=').unwrap().0,
        name
    );
}

#[test]
fn a_page_in_a_browser_is_whole_and_not_kept_by_it() {
    let site = new_site();
    write(site.path(), "static/plain.html", "<p>file</p></body>");
    let server = dev(site.path());
    for target in ["/", "/plain.html"] {
        let first = ask(&server, target, &[]);
        let tag = first.field("etag").unwrap().to_owned();
        let conditions = [
            PAGE,
            &format!("If-None-Match: {tag}"),
            "Range: bytes=0-1",
            "Accept-Encoding: br, gzip",
        ];
        for _ in 0..3 {
            let shown = ask_as_developer(&server, target, &conditions);
            assert_eq!((shown.status, shown.field("content-encoding")), (200, None));
            assert_eq!(
                (shown.field("etag"), shown.field("cache-control")),
                (None, Some("no-store"))
            );
            assert!(
                shown.text().contains(" data-live-keep></script></body>"),
                "{}",
                shown.text()
            );
        }
        let part = ask_as_developer(
            &server,
            target,
            &[PAGE, "Range: bytes=0-1", "Sec-Fetch-Dest: empty"],
        );
        assert_eq!(part.status, 206);
    }
}

#[test]
fn a_change_of_a_file_is_told_and_a_fault_is_shown() {
    let site = new_site();
    let server = dev(site.path());
    let before = state(&page(&server, "/"));
    let mut waiting = server.await_change(&before);
    write(
        site.path(),
        "pages/index.html",
        "<h1>new</h1>\n{{ nothing.here }}",
    );
    let changed = waiting.receive();
    assert_eq!(changed.status, 200);
    assert!(changed.text().contains("event: reload"));

    let faults = page(&server, "/");
    let text = shown(&faults);
    assert_eq!(faults.status, 500);
    assert!(text.contains("1 fault"), "{text}");
    assert!(
        text.contains("pages/index.html:2:4") && text.contains("<mark>"),
        "{text}"
    );
    // Programs go on with the pages as they were.
    assert_eq!(ask(&server, "/", &[]).status, 200);
    let other = page(&server, "/notes/1");
    assert_eq!(other.status, 500, "{}", other.text());

    let token = state(&faults);
    write(site.path(), "pages/index.html", "<h1>mended</h1>");
    next_state(&server, &token);
    assert!(page(&server, "/").text().contains("mended"));
}

#[test]
fn a_folder_that_cannot_be_opened_is_served_once_it_is_mended() {
    let site = new_site();
    write(
        site.path(),
        "pages/index.sql",
        "-- name: notes :many\nselect nothing from nowhere;\n",
    );
    let server = dev(site.path());
    let faults = page(&server, "/any/address");
    let text = shown(&faults);
    assert_eq!(faults.status, 500);
    assert!(text.contains("The site cannot be opened"), "{text}");
    assert!(
        text.contains("nowhere") && text.contains("pages/index.sql"),
        "{text}"
    );
    let (_, script) = text.split_once("type=\"module\" src=\"").unwrap();
    let script = script.split('"').next().unwrap();
    assert_eq!(page(&server, script).status, 200);
    let elsewhere = ask(&server, "/", &[PAGE]);
    assert_eq!(
        (elsewhere.status, elsewhere.text().contains("nowhere")),
        (503, false)
    );

    let token = state(&faults);
    write(
        site.path(),
        "pages/index.sql",
        "-- name: notes :many\nselect id, title from note;\n",
    );
    write(site.path(), "pages/index.html", "<h1>open</h1>");
    next_state(&server, &token);
    wait_for(&server, "<h1>open</h1>");
    let (status, notes) = server.stop();
    assert!(status.success(), "{notes}");
    assert!(notes.contains("the site is open"), "{notes}");
}

#[test]
fn a_database_that_is_away_is_shown() {
    let site = new_site();
    let url = "postgres://ann:of-visitor@127.0.0.1:1/shop";
    let server = DevServer::start(site.path(), &["--dev", "--database", url]);
    let away = shown(&page(&server, "/"));
    assert!(away.contains("database.url"), "{away}");
    assert!(!away.contains("of-visitor"), "{away}");
    let (status, notes) = server.stop();
    assert!(status.success(), "{notes}");
}

#[test]
fn each_of_several_sites_shows_its_own_faults() {
    let dir = lab_testkit::fast_dir();
    let hosts = "[[host]]\nnames = [\"one.localhost\"]\nsite = \"one\"\n[[host]]\nnames = [\"two.localhost\"]\nsite = \"two\"\n";
    write(dir.path(), "millpond.toml", hosts);
    for name in ["one", "two"] {
        assert!(
            millpond(&["new", name])
                .current_dir(dir.path())
                .output()
                .unwrap()
                .status
                .success()
        );
    }
    let server = dev(dir.path());
    let mut connection = Connection::open(server.address());
    let mut get = |host: &str, target: &str| {
        let cookie = &server.cookie;
        connection.send(format!(
            "GET {target} HTTP/1.1\r\nHost: {host}.localhost\r\n{cookie}\r\n{PAGE}\r\n\r\n"
        ));
        connection.receive()
    };
    let token = state(&get("one", "/"));
    write(dir.path(), "one/pages/index.html", "{{ nothing }}");
    let told = get("one", &format!("{STREAM}?state={token}"));
    assert!(told.text().contains("event: reload"));
    assert_eq!(get("one", "/").status, 500);
    assert_eq!(get("two", "/").status, 200);
    assert_eq!(get("three", "/").status, 421);
}

#[test]
fn browsers_that_wait_hold_up_no_end() {
    let site = new_site();
    let server = dev(site.path());
    let token = state(&page(&server, "/"));
    let mut waiting: Vec<_> = (0..3).map(|_| server.await_change(&token)).collect();
    for one in &mut waiting {
        assert_eq!(one.receive_head().status, 200);
    }
    let (status, notes) = server.stop();
    assert!(status.success(), "{notes}");
}

/// One stream tells of the data of a live page and of the files of the site.
#[test]
fn a_live_page_in_development_has_one_stream() {
    let site = crate::live::site("");
    let server = dev(site.path());
    let shown = page(&server, "/comments");
    let token = state(&shown);
    assert_eq!(shown.text().matches("<script").count(), 2);
    let query = format!("page=/comments&state={token}");
    let mut stream = EventStream::open(&server, &query, &format!("{}\r\n", server.cookie));
    assert_eq!(stream.event(), ["retry: 500"]);
    assert!(stream.event()[0].starts_with("id: "));
    assert_eq!(server.post("/comment", "text=one").status, 303);
    assert!(stream.event()[0].starts_with("id: "));
    write(site.path(), "pages/comments.html", "<!doctype html><p>new");
    let mut event = stream.event();
    // The page of before may end first.
    while event[0].starts_with("retry: ") {
        stream = EventStream::open(&server, &query, &format!("{}\r\n", server.cookie));
        event = stream.event();
        if event[0] == "retry: 500" {
            event = stream.event();
        }
    }
    assert_eq!(event[0], "event: reload");
}

#[test]
fn dev_is_never_outside_of_this_machine() {
    let site = new_site();
    let folder = site.path().to_str().unwrap();
    for arguments in [
        &["serve", folder, "--dev", "--listen", "0.0.0.0:0"][..],
        &["serve", folder, "--dev", "--listen", "[::]:0"],
        &["serve", folder, "--dev", "--domain", "example.org"],
        &["serve", folder, "--dev", "--no-dev"],
    ] {
        let (status, said) = fail(site.path(), arguments);
        assert_eq!(status, 2, "{said}");
        let is_advice =
            said.contains("--listen 127.0.0.1:8080") || said.contains("cannot be used with");
        assert!(is_advice, "{said}");
    }
}

/// Returns true if a server on a terminal is for development: then it prints the address.
fn is_dev_on_terminal(site: &Path, arguments: &[&str]) -> bool {
    let (ours, theirs) = terminal();
    let mut command = millpond(&["serve", "--listen", "127.0.0.1:0", "--workers", "1"]);
    command.arg(site).args(arguments);
    let mut child = command
        .stdout(theirs)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(File::from(ours))
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("http://"), "{line}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut notes = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut notes).unwrap();
    child.wait().unwrap();
    notes.contains(ENTRY)
}

#[test]
fn a_terminal_on_loopback_is_for_development() {
    let site = new_site();
    assert!(is_dev_on_terminal(site.path(), &[]));
    assert!(!is_dev_on_terminal(site.path(), &["--no-dev"]));
    write(
        site.path(),
        "millpond.toml",
        "[server]\ndev = false\n[database]\nurl = \"sqlite:site.db\"\n",
    );
    assert!(!is_dev_on_terminal(site.path(), &[]));
    assert!(is_dev_on_terminal(site.path(), &["--dev"]));
}

/// *Counterexample*: the service of a developer kept bodies whole, so that no upload came through.
#[test]
fn a_file_can_be_sent_to_a_server_in_development() {
    let site = failing();
    let sql = "-- file: picture into uploads types (image/png)\n-- name: sent :exec\n\
               update member set note = :picture where id = 0;\n-- redirect: /first\n";
    std::fs::write(site.path().join("pages/send.post.sql"), sql).unwrap();
    let server = dev(site.path());
    let body = "--b\r\nContent-Disposition: form-data; name=\"picture\"; filename=\"a.png\"\r\n\r\n\
                PNG\r\n--b--\r\n";
    let mut connection = Connection::open(server.address());
    let host = server.address();
    let head = format!(
        "POST /send HTTP/1.1\r\nHost: {host}\r\nContent-Type: multipart/form-data; boundary=b\r\n\
         Content-Length: {}\r\n\r\n",
        body.len() + 5
    );
    let body = body.replace("PNG", "\u{1}PNG\r\n\u{1a}\n");
    let body = [
        &body.as_bytes()[..body.find('\u{1}').unwrap()],
        b"\x89",
        &body.as_bytes()[body.find('\u{1}').unwrap() + 1..],
    ]
    .concat();
    connection.send(head.as_bytes());
    connection.send(&body);
    let answer = connection.receive();
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert_eq!(
        std::fs::read_dir(site.path().join("uploads"))
            .unwrap()
            .count(),
        2
    );
}

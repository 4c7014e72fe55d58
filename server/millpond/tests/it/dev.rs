//! `serve --dev`: errors in the browser, and pages that reload.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use lab_testkit::terminal;
use tempfile::TempDir;

use crate::support::{
    Connection, Response, Server, fail, millpond, new_site, serve, serve_with, write,
};

pub(crate) const PAGE: &str = "Accept: text/html,*/*;q=0.8";
const SCRIPT: &str = "/_millpond/dev/reload.js";
const CHANGES: &str = "/_millpond/dev/changes";

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

pub(crate) fn dev(site: &Path) -> Server {
    serve_with(site, &["--dev"])
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

pub(crate) fn page(server: &Server, target: &str) -> Response {
    ask(server, target, &[PAGE])
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
    let broken = ask(
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

    let json = ask(&server, "/first", &["Accept: application/json"]);
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
    let plain = ask(&server, "/overflow", &[]);
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
    let mut connection = Connection::open(server.address());
    let mut join = || connection.post("/join", "name=Ann&secret=of-visitor");
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
    assert!(text.contains(" data-post defer"), "{text}");
    assert!(!text.contains("of-visitor"), "{text}");
}

/// What a visitor sees who is led back is shown to the developer too, but for a column that no
/// visitor can fill in.
#[test]
fn a_form_that_leads_back_does_so_for_the_developer() {
    let site = failing();
    let server = dev(site.path());
    let mut connection = Connection::open(server.address());
    let long = "n".repeat(5_000);
    let mut again = || connection.post("/again", &format!("name={long}"));
    assert_eq!(again().status, 303);
    let page = again();
    let text = page.text();
    assert_eq!(page.status, 422);
    assert!(
        text.starts_with(&format!("{long}|Name exists already.")),
        "{text}"
    );
    let left_out = shown(&connection.post("/leave", "name=Bob"));
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
    let answer = |server: &Server, accept: &str| {
        let mut connection = Connection::open(server.address());
        let host = server.address();
        connection.send(format!(
            "POST /api/members HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\nAccept-Encoding: gzip\r\n\
             Content-Type: application/json\r\nContent-Length: 15\r\n\r\n{{\"name\": \"Bob\"}}"
        ));
        connection.receive()
    };
    let plain = {
        let server = serve(site.path());
        assert_eq!(answer(&server, "*/*").status, 200);
        answer(&server, "*/*")
    };
    let server = dev(site.path());
    for accept in ["*/*", "application/json"] {
        let with = answer(&server, accept);
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
    let browser = shown(&answer(&server, PAGE.trim_start_matches("Accept: ")));
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
            "POST /join HTTP/1.1\r\nHost: {host}\r\n{PAGE}\r\nAccept-Encoding: gzip\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 15\r\n\r\nname=A&secret=b"
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
    let visitor = ask(&server, "/broken/1", &[PAGE, "Via: visitor"]);
    assert!(
        visitor.text().contains("<h1>Own 500</h1>"),
        "{}",
        visitor.text()
    );
}

/// The state that follows `token`, once the folder was read again.
fn next_state(server: &Server, token: &str) -> String {
    let mut waiting = Connection::open(server.address());
    waiting.send(format!(
        "GET {CHANGES}?{token} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    ));
    waiting.receive().text()
}

/// Waits until the browser shows a page with `text`.
fn wait_for(server: &Server, text: &str) -> Response {
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
    for target in [SCRIPT, CHANGES] {
        assert_eq!(page(&server, target).status, 404);
    }
    let plain = page(&server, "/");
    assert!(!plain.text().contains("_millpond"), "{}", plain.text());
    assert_eq!(plain.body, ask(&server, "/", &[]).body);
    let broken = page(&server, "/broken/1");
    assert_eq!(
        (broken.status, broken.text().contains("member")),
        (500, false)
    );

    // With it, programs and everybody but the developer see the same bytes as without it.
    let with = dev(site.path());
    assert!(page(&with, "/").text().contains(SCRIPT));
    assert_eq!(ask(&with, "/", &[]).body, plain.body);
    for proxied in ["X-Forwarded-For: 10.0.0.1", "Via: 1.1 proxy"] {
        assert_eq!(ask(&with, "/", &[PAGE, proxied]).body, plain.body);
        assert_eq!(ask(&with, "/broken/1", &[PAGE, proxied]).body, broken.body);
        assert_eq!(ask(&with, SCRIPT, &[proxied]).status, 404);
    }
    let mut connection = Connection::open(with.address());
    for (target, body) in [("/", &plain.body), ("/broken/1", &broken.body)] {
        connection.send(format!(
            "GET {target} HTTP/1.1\r\nHost: evil.example\r\n{PAGE}\r\n\r\n"
        ));
        let rebound = connection.receive();
        assert_eq!(rebound.body, *body);
        assert_eq!(rebound.field("millpond-report"), None);
    }
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
            let shown = ask(&server, target, &conditions);
            assert_eq!((shown.status, shown.field("content-encoding")), (200, None));
            assert_eq!(
                (shown.field("etag"), shown.field("cache-control")),
                (None, Some("no-store"))
            );
            assert!(
                shown.text().contains(" defer></script></body>"),
                "{}",
                shown.text()
            );
        }
        let part = ask(
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
    let mut waiting = Connection::open(server.address());
    waiting.send(format!(
        "GET {CHANGES}?{before} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    ));
    write(
        site.path(),
        "pages/index.html",
        "<h1>new</h1>\n{{ nothing.here }}",
    );
    let changed = waiting.receive();
    assert_eq!(changed.status, 200);
    assert_ne!(changed.text(), before);

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
    let json = ask(&server, "/notes/1", &[PAGE]);
    assert_eq!(json.status, 500, "{}", json.text());

    let token = state(&faults);
    write(site.path(), "pages/index.html", "<h1>mended</h1>");
    waiting.send(format!(
        "GET {CHANGES}?{token} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    ));
    assert_ne!(waiting.receive().text(), token);
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
    assert_eq!(page(&server, SCRIPT).status, 200);
    let elsewhere = ask(&server, "/", &[PAGE, "Via: 1.1 proxy"]);
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
    let mut waiting = Connection::open(server.address());
    let mut token = token;
    while !page(&server, "/").text().contains("<h1>open</h1>") {
        waiting.send(format!(
            "GET {CHANGES}?{token} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ));
        token = waiting.receive().text();
    }
    let (status, notes) = server.stop();
    assert!(status.success(), "{notes}");
    assert!(notes.contains("the site is open"), "{notes}");
}

#[test]
fn a_database_that_is_away_is_shown() {
    let site = new_site();
    let url = "postgres://ann:of-visitor@127.0.0.1:1/shop";
    let server = serve_with(site.path(), &["--dev", "--database", url]);
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
        connection.send(format!(
            "GET {target} HTTP/1.1\r\nHost: {host}.localhost\r\n{PAGE}\r\n\r\n"
        ));
        connection.receive()
    };
    let token = state(&get("one", "/"));
    write(dir.path(), "one/pages/index.html", "{{ nothing }}");
    get("one", &format!("{CHANGES}?{token}"));
    assert_eq!(get("one", "/").status, 500);
    assert_eq!(get("two", "/").status, 200);
    assert_eq!(get("three", "/").status, 421);
}

#[test]
fn browsers_that_wait_are_bounded_and_hold_up_no_end() {
    let site = new_site();
    let server = dev(site.path());
    let token = state(&page(&server, "/"));
    let address = server.address();
    let ask = || {
        let mut connection = Connection::open(address);
        connection.send(format!(
            "GET {CHANGES}?{token} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ));
        connection
    };
    let mut first = ask();
    let first = std::thread::spawn(move || first.receive().text());
    let mut waiting = Vec::new();
    while !first.is_finished() {
        waiting.push(ask());
    }
    // The oldest is to ask again: its state is that of now.
    assert_eq!(first.join().unwrap(), token);
    let (status, notes) = server.stop();
    assert!(status.success(), "{notes}");
    drop(waiting);
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

/// Whether a server on a terminal is for development.
fn is_dev_on_terminal(site: &Path, arguments: &[&str]) -> bool {
    let (ours, theirs) = terminal();
    let mut command = millpond(&["serve", "--listen", "127.0.0.1:0", "--workers", "1"]);
    command.arg(site).args(arguments);
    let mut child = command
        .stdout(theirs)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(File::from(ours))
        .read_line(&mut line)
        .unwrap();
    let (_, address) = line.trim().rsplit_once("http://").expect(&line);
    let mut connection = Connection::open(address.parse().unwrap());
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\n{PAGE}\r\n\r\n");
    connection.send(request);
    let page = connection.receive().text();
    child.kill().unwrap();
    child.wait().unwrap();
    page.contains(SCRIPT)
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

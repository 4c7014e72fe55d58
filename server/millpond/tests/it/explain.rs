//! `millpond explain`: what a running server reports of its own answers.

use std::path::Path;

use serde_json::Value;

use crate::support::{Connection, admin, fail, run, serve, serve_with, text, write};

fn site() -> tempfile::TempDir {
    let dir = lab_testkit::fast_dir();
    for (name, contents) in [
        ("millpond.toml", "[admin]\nlisten = \"127.0.0.1:0\"\n"),
        (
            "migrations/0001_start.sql",
            "create table article (id integer primary key, title text not null) strict;\n\
             insert into article values (1, 'first'), (2, 'second');\n",
        ),
        (
            "pages/read.sql",
            "-- param: id integer\n-- name: article :one\nselect title from article where id = :id;\n",
        ),
        ("pages/read.html", "{{ article.title }}"),
        (
            "pages/edit.post.sql",
            "-- param: id integer\n-- param: title text\n-- name: article :exec\n\
             update article set title = :title where id = :id;\n-- redirect: /read?id=:id\n",
        ),
        (
            "pages/mine.sql",
            "-- require: claims.user else /login\n-- name: article :one?\nselect title from article where id = :claims.user;\n",
        ),
        ("pages/mine.html", "{{ article.title }}"),
        ("static/a.txt", "a"),
    ] {
        write(dir.path(), name, contents);
    }
    dir
}

/// A second server of a folder, to try a copy of its database, needs another address for this too.
#[test]
fn the_command_line_says_where_explain_is_answered() {
    let site = site();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("[admin]\nlisten = \"{}\"\n", other.local_addr().unwrap());
    std::fs::write(site.path().join("millpond.toml"), taken).unwrap();
    let server = serve_with(site.path(), &["--admin-listen", "127.0.0.1:0"]);
    let found = explain(site.path(), &admin(&server), "/read?id=1");
    assert_eq!(found["route"], "/read", "{found}");
}

fn explain(dir: &Path, admin: &str, url: &str) -> Value {
    let output = run(dir, &["explain", url, "--admin", admin, "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_is_kept_fresh_ahead_says_how_often() {
    let site = site();
    let server = serve(site.path());
    let admin = admin(&server);
    for _ in 0..20 {
        server.get("/read?id=1");
    }
    Connection::open(server.address()).post("/edit", "id=1&title=x");
    let made = || explain(site.path(), &admin, "/read?id=1")["page"]["made_ahead"].clone();
    let is_made = (0..1000).any(|_| made()["times"] == 1);
    assert!(is_made, "nobody has asked since, and it was not made");
    let shown = run(site.path(), &["explain", "/read?id=1", "--admin", &admin]);
    let shown = text(&shown.stdout);
    let told = "kept fresh ahead: 1 before a request, 0 of them unused";
    assert!(shown.contains(told), "{shown}");
    assert!(shown.contains("in memory: nothing"), "{shown}");
}

#[test]
fn an_answer_and_what_ended_it_are_explained() {
    let site = site();
    let server = serve(site.path());
    let admin = admin(&server);
    let ask = |url: &str| explain(site.path(), &admin, url);
    let before = ask("/read?id=1");
    assert_eq!(
        (&before["kind"], &before["route"]),
        (&"page".into(), &"/read".into())
    );
    assert_eq!(before["page"]["state"], "miss");
    assert_eq!(before["parameters"]["id"], 1);

    server.get("/read?id=1");
    let hit = ask(&format!(
        "http://{}/read?id=1&utm_source=x",
        server.address()
    ));
    assert_eq!(hit["page"]["state"], "hit");
    assert_eq!(
        hit["queries"][0]["depends"][0],
        "article: rows with id = :id"
    );
    assert_eq!(hit["feed"]["within_bound"], true);

    // Another row, then this one.
    Connection::open(server.address()).post("/edit", "id=2&title=x");
    assert_eq!(ask("/read?id=1")["page"]["state"], "hit");
    Connection::open(server.address()).post("/edit", "id=1&title=x");
    let ended = ask("/read?id=1");
    assert_eq!(ended["page"]["state"], "miss");
    let cause = &ended["page"]["ended_by"];
    assert_eq!(cause["certain"], true);
    assert!(cause["transaction"].as_u64() > Some(0), "{ended}");
    assert_eq!(cause["tables"], serde_json::json!(["article"]));

    for (target, kind) in [
        ("/a.txt", "file"),
        ("/nothing", "nothing"),
        ("/edit", "form"),
    ] {
        assert_eq!(ask(target)["kind"], kind, "{target}");
    }
    assert!(
        ask("/read?id=x")["refused"]
            .as_str()
            .unwrap()
            .contains("id")
    );

    let shown = run(site.path(), &["explain", "/read?id=1", "--admin", &admin]);
    let shown = text(&shown.stdout);
    for part in [
        "is the page /read",
        "not in memory: a change",
        "its key is /read, id = 1, in reading ",
        "\nended by transaction",
        " ago, which changed article\n",
        "all pages of this route so far: ",
        "the bound is 1",
    ] {
        assert!(shown.contains(part), "{part:?} in\n{shown}");
    }
    // The change that ended the previous answer is still reported.
    server.get("/read?id=1");
    let before = ask("/read?id=1");
    assert_eq!(
        before["page"]["ended_before"]["transaction"],
        cause["transaction"]
    );
}

#[test]
fn no_other_client_may_ask_and_mistakes_are_reported() {
    let site = site();
    let server = serve(site.path());
    let admin = admin(&server);
    let mut connection = Connection::open(admin.parse().unwrap());
    connection.send("GET /explain?target=/read HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(connection.receive().status, 421);
    for (target, status) in [
        ("/explain", 400),
        ("/explain?target=read", 400),
        ("/nothing", 404),
    ] {
        let answer = Connection::open(admin.parse().unwrap()).get(target);
        assert_eq!(answer.status, status, "{target}");
    }
    let counters = Connection::open(admin.parse().unwrap()).get("/counters");
    let counters: Value = serde_json::from_slice(&counters.body).unwrap();
    assert_eq!(counters["bodies_ended"], 0);
    assert!(counters["refused"]["503"].is_u64(), "{counters}");
    let asked = |args: &[&str]| fail(site.path(), &[&["explain"], args].concat());
    let (status, said) = asked(&["read?id=1"]);
    assert!(status == 1 && said.contains("is no address"), "{said}");
    write(site.path(), "millpond.toml", "");
    let (status, said) = asked(&["/read?id=1"]);
    assert!(status == 1 && said.contains("admin.listen"), "{said}");
    drop(server);
    let (status, said) = asked(&["/read?id=1", "--admin", &admin]);
    assert!(status == 1 && said.contains("does not answer"), "{said}");
}

#[test]
fn a_page_for_signed_in_visitors_is_explained_for_one_of_them() {
    let site = site();
    let server = serve(site.path());
    let admin = admin(&server);
    let shown = |args: &[&str]| {
        let output = run(
            site.path(),
            &[&["explain", "/mine", "--admin", &admin], args].concat(),
        );
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let nobody = shown(&[]);
    for part in ["without a session", "--as 'user=…'", "led to /login"] {
        assert!(nobody.contains(part), "{part:?} in\n{nobody}");
    }
    let known = shown(&["--as", "user=2,role=editor"]);
    assert!(
        known.contains("a visitor with user = 2, role = \"editor\""),
        "{known}"
    );
    assert!(
        !known.contains("led to") && known.contains("depends on"),
        "{known}"
    );
    let asked = |args: &[&str]| {
        let args = [&["explain", "/mine", "--admin", &admin], args].concat();
        fail(site.path(), &args)
    };
    for (args, reason) in [
        (["--as", "user"], "no claim"),
        (["--cookie", "session"], "is no cookie"),
        (["--cookie", "session=1.x.y"], "no session of this site"),
    ] {
        let (status, said) = asked(&args);
        assert!(status == 1 && said.contains(reason), "{said}");
    }
}

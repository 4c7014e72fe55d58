//! Several sites behind one address.

use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::{Connection, Response, fail, run, serve, text, write};

const HOSTS: &str = "[[host]]\nnames = [\"one.example\", \"*.one.example\"]\nsite = \"one\"\n\n\
                     [[host]]\nnames = [\"two.example\"]\nsite = \"two\"\n";

/// A folder with two sites of their own.
fn folder(settings: &str) -> TempDir {
    let dir = lab_testkit::fast_dir();
    write(dir.path(), "millpond.toml", settings);
    for site in ["one", "two"] {
        let output = run(dir.path(), &["new", site]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        write(dir.path(), &format!("{site}/static/name.txt"), site);
    }
    dir
}

fn get(connection: &mut Connection, host: &str, target: &str) -> Response {
    connection.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    connection.receive()
}

#[test]
fn the_host_selects_the_site() {
    let dir = folder(HOSTS);
    let server = serve(dir.path());
    let mut connection = Connection::open(server.address());
    for (host, status, body) in [
        ("one.example", 200, "one"),
        ("ONE.example:8080", 200, "one"),
        ("www.one.example.", 200, "one"),
        ("Two.Example", 200, "two"),
        (
            "www.two.example",
            421,
            "This server has no site of that name.\n",
        ),
        ("127.0.0.1", 421, "This server has no site of that name.\n"),
    ] {
        let answer = get(&mut connection, host, "/name.txt");
        assert_eq!((answer.status, &*answer.text()), (status, body), "{host}");
    }
    // RFC 9112 section 3.2.2: a target in absolute form counts, and not the field.
    connection.send("GET http://two.example/name.txt HTTP/1.1\r\nHost: one.example\r\n\r\n");
    assert_eq!(connection.receive().text(), "two");
    let (status, notes) = server.stop();
    assert!(status.success(), "{notes}");
}

#[test]
fn each_site_has_its_own_database_cache_and_watch() {
    let dir = folder(HOSTS);
    write(dir.path(), "one/millpond.toml", "[server]\nworkers = 3\n");
    let server = serve(dir.path());
    let notes = server.wait_for("one/millpond.toml: server.workers do not count here");
    assert!(!notes.contains("two/millpond.toml"), "{notes}");
    let mut connection = Connection::open(server.address());
    for host in ["one.example", "two.example"] {
        get(&mut connection, host, "/");
        let hit = get(&mut connection, host, "/");
        assert_eq!(hit.field("cache-status"), Some("millpond; hit"));
    }
    let form = "title=Only+here&body=x";
    connection.send(format!(
        "POST /note HTTP/1.1\r\nHost: one.example\r\nOrigin: http://one.example\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    ));
    assert_eq!(connection.receive().status, 303);
    assert!(
        get(&mut connection, "one.example", "/")
            .text()
            .contains("Only here")
    );
    let other = get(&mut connection, "two.example", "/");
    assert_eq!(other.field("cache-status"), Some("millpond; hit"));
    assert!(!other.text().contains("Only here"));
    write(dir.path(), "two/static/name.txt", "changed");
    while get(&mut connection, "two.example", "/name.txt").text() != "changed" {
        std::thread::yield_now();
    }
    // SIGHUP reads all sites, and a fault of one leaves the others alone.
    write(dir.path(), "one/pages/broken.html", "{% if %}");
    server.signal(Signal::HUP);
    server.wait_for("error: one/pages/broken.html:1:");
    assert_eq!(get(&mut connection, "two.example", "/").status, 200);
    assert!(server.stop().0.success());
}

#[test]
fn a_site_may_answer_to_every_other_name() {
    let dir = folder(&HOSTS.replace("\"two.example\"", "\"*\""));
    let server = serve(dir.path());
    let mut connection = Connection::open(server.address());
    assert_eq!(
        get(&mut connection, "one.example", "/name.txt").text(),
        "one"
    );
    assert_eq!(
        get(&mut connection, "any.example", "/name.txt").text(),
        "two"
    );
    // HTTP/1.0 may leave the host out.
    connection.send("GET /name.txt HTTP/1.0\r\n\r\n");
    assert_eq!(connection.receive().text(), "two");
    assert!(server.stop().0.success());
}

#[test]
fn what_is_wrong_with_one_of_several_sites_is_named_with_its_folder() {
    let dir = folder(HOSTS);
    let output = run(dir.path(), &["check"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("two/pages/index.sql"),
        "{}",
        text(&output.stdout)
    );
    write(dir.path(), "two/pages/broken.html", "{% if %}");
    for command in ["check", "serve"] {
        let (status, said) = fail(dir.path(), &[command]);
        assert_eq!(status, 1);
        assert!(said.contains("error: two/pages/broken.html:1:"), "{said}");
    }
    write(
        dir.path(),
        "millpond.toml",
        &HOSTS.replace("\"two\"", "\"none\""),
    );
    let (_, said) = fail(dir.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(said.contains("none: there is no such folder"), "{said}");
    write(
        dir.path(),
        "millpond.toml",
        &format!("{HOSTS}[cache]\nenabled = false\n"),
    );
    let (_, said) = fail(dir.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(
        said.contains("`cache` beside [[host]] applies to no site"),
        "{said}"
    );
}

//! `millpond top`: what it shows of a server that was asked meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::{Connection, admin, run, serve, text, write};

#[test]
fn it_shows_the_routes_that_are_asked_for() {
    let dir = lab_testkit::fast_dir();
    for (name, contents) in [
        ("millpond.toml", "[admin]\nlisten = \"127.0.0.1:0\"\n"),
        ("pages/index.html", "hello"),
        ("pages/read/[id].html", "{{ params.id }}"),
        ("pages/read/[id].sql", "-- param: id integer\n"),
    ] {
        write(dir.path(), name, contents);
    }
    let server = serve(dir.path());
    let admin = admin(&server);
    let address = admin.trim_start_matches("http://").trim_end_matches('/');
    let is_over = AtomicBool::new(false);
    let shown = thread::scope(|scope| {
        scope.spawn(|| {
            let mut connection = Connection::open(server.address());
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                let status = connection.get(&format!("/read/{number}")).status;
                assert_eq!(status, 200);
                assert_eq!(connection.get("/").status, 200);
                assert_eq!(connection.get("/gone").status, 404);
            }
        });
        let output = run(dir.path(), &["top", "--admin", address, "--interval", "1"]);
        is_over.store(true, Ordering::Relaxed);
        output
    });
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let shown = text(&shown.stdout);
    for (line, what) in [("/read/{id}", "/s"), ("/ ", "%"), ("(error)", "/s")] {
        let found = shown.lines().find(|found| found.starts_with(line));
        assert!(
            found.is_some_and(|found| found.contains(what)),
            "{line}:\n{shown}"
        );
    }
    assert!(shown.contains("of pages from memory"), "{shown}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let dir = lab_testkit::fast_dir();
    write(dir.path(), "millpond.toml", "");
    let output = run(dir.path(), &["top"]);
    let error = text(&output.stderr);
    assert!(
        !output.status.success() && error.contains("admin.listen"),
        "{error}"
    );
}

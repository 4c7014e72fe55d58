//! Pages that lead elsewhere, on the wire: connections repeat an answer to equal bytes, and only
//! while a look into the store would give it.

use lab_testkit::fast_dir;

use crate::support::{Connection, Response, serve, write};

const FILES: [(&str, &str); 8] = [
    ("millpond.toml", ""),
    (
        "migrations/0001_start.sql",
        "create table moved (old text primary key, new text not null) strict;
         insert into moved values ('x', '/de/a');",
    ),
    (
        "pages/index.sql",
        "-- language: lang in (en, de)\n-- redirect: /:lang/start\n",
    ),
    (
        "pages/[lang]/[page].sql",
        "-- param: lang text in (en, de)\n",
    ),
    ("pages/[lang]/[page].html", "{{ request.path }}"),
    ("pages/[lang]/404.html", "{{ params.lang }}: nothing here"),
    (
        "pages/old/[slug].sql",
        "-- name: moved :one\nselect new as target from moved where old = :slug;\n\
         -- redirect: 301 :target\n",
    ),
    (
        "pages/move.post.sql",
        "-- param: to text\n-- name: moved :exec\nupdate moved set new = :to where old = 'x';\n\
         -- redirect: /\n",
    ),
];

fn led(answer: &Response) -> (u16, Option<&str>) {
    (answer.status, answer.field("location"))
}

#[test]
fn each_gets_the_present_target_in_the_visitors_language() {
    let dir = fast_dir();
    for (name, text) in FILES {
        write(dir.path(), name, text);
    }
    let server = serve(dir.path());
    let mut connections = [(); 3].map(|()| Connection::open(server.address()));
    for _ in 0..6 {
        for connection in &mut connections {
            for (language, to) in [
                ("de", "/de/start"),
                ("en-GB,en;q=0.5", "/en/start"),
                ("de-AT;q=0.9, fr", "/de/start"),
                ("fr", "/en/start"),
            ] {
                let field = format!("Accept-Language: {language}");
                let answer = connection.get_with("/", &[field.as_str()]);
                assert_eq!(led(&answer), (302, Some(to)), "{language}");
                assert_eq!(answer.field("vary"), Some("accept-language"));
            }
            let page = connection.get("/de/start");
            assert_eq!(page.text(), "&#x2f;de&#x2f;start");
            let missing = connection.get("/en/a/b");
            assert_eq!(
                (missing.status, missing.text()),
                (404, "en: nothing here".to_owned())
            );
        }
    }
    for round in 0..6 {
        let target = format!("/de/{round}");
        let sent = connections[0].post("/move", &format!("to={target}"));
        assert_eq!(led(&sent), (303, Some("/")));
        for connection in &mut connections {
            for _ in 0..4 {
                let answer = connection.get("/old/x");
                assert_eq!(led(&answer), (301, Some(target.as_str())));
            }
        }
    }
    assert!(server.stop().0.success());
}

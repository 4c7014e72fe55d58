//! What the configuration says about addresses, on the wire.

use crate::support::{Connection, run, serve, site_with, text, write};

#[test]
fn rules_and_files_on_one_connection() {
    let site = site_with(
        "[static]\nclean_urls = true\nlisting = [\"/files/\"]\nimmutable = true\n\n\
         [[redirect]]\nfrom = \"/old/*\"\nto = \"/new/*\"\n\n\
         [[rewrite]]\nfrom = \"/n/:id\"\nto = \"/notes/:id\"\n\n\
         [[fields]]\npath = \"/*\"\nset = { \"X-Frame-Options\" = \"DENY\" }\n",
    );
    write(site.path(), "static/about.html", "about");
    write(site.path(), "static/files/app.3f2a9c1b.js", "1");
    let server = serve(site.path());
    let mut connection = Connection::open(server.address());
    let moved = connection.get("/old/a%20b?c=d");
    assert_eq!(
        (moved.status, moved.field("location")),
        (308, Some("/new/a%20b?c=d"))
    );
    assert_eq!(moved.field("content-length"), Some("0"));
    assert_eq!(connection.get("/about").text(), "about");
    assert_eq!(
        connection.get("/about.html").field("location"),
        Some("/about")
    );
    assert!(connection.get("/files/").text().contains("app.3f2a9c1b.js"));
    let kept = connection.get("/files/app.3f2a9c1b.js");
    assert_eq!(
        kept.field("cache-control"),
        Some("public, max-age=31536000, immutable")
    );
    let note = connection.get("/n/1");
    assert_eq!(
        (note.status, note.field("x-frame-options")),
        (200, Some("DENY"))
    );
    let hit = connection.get("/notes/1");
    assert_eq!(hit.field("cache-status"), Some("millpond; hit"));
    assert_eq!(hit.field("x-frame-options"), Some("DENY"));
    assert!(server.stop().0.success());
}

#[test]
fn check_says_what_never_answers() {
    let site = site_with("[[redirect]]\nfrom = \"/style.css\"\nto = \"/other.css\"\n");
    let output = run(site.path(), &["check"]);
    assert!(output.status.success());
    let said = text(&output.stderr);
    assert!(
        said.contains("note: static/style.css: does not answer at /style.css: the redirect in line 1 of millpond.toml comes first"),
        "{said}"
    );
    assert!(said.contains("nothing is wrong, 1 note, "), "{said}");
}

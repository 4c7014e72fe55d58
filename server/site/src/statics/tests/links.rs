//! Which names are served, and where links may lead.

use super::*;

#[test]
fn what_is_hidden_or_outside_is_not_served() {
    let temp = folder(&[
        ("real/x.txt", b"x"),
        (".env", b"secret"),
        (".git/config", b"secret"),
        ("a/.hidden/y", b"secret"),
        ("a/.well-known/y", b"only in the folder itself"),
        (".well-known/security.txt", b"contact"),
        (".well-known/.hidden", b"secret"),
        ("x.html~", b"an editor's copy"),
        ("#x.html#", b"another"),
        ("old~/x", b"and a folder of them"),
    ]);
    let dir = temp.path().join("static");
    fs::write(temp.path().join("site.db"), "secret").unwrap();
    fs::create_dir(temp.path().join("static-not")).unwrap();
    fs::write(temp.path().join("static-not/z"), "secret").unwrap();
    for (target, link) in [
        ("../site.db", "db"),
        ("..", "up"),
        ("/etc/passwd", "passwd"),
        ("../static-not", "sibling"),
        (".env", "env"),
        ("a/.hidden", "hidden"),
        ("x.html~", "copy"),
        ("nowhere", "broken"),
        ("self", "self"),
        (".", "circle"),
        ("real", "alias"),
        ("real/x.txt", "x"),
        ("../static/real/x.txt", "round"),
        ("../x.txt", "real/up"),
        ("../real", "real/again"),
        (".well-known/security.txt", "security.txt"),
        ("a/.well-known/y", "not-well-known"),
    ] {
        symlink(target, dir.join(link)).unwrap();
    }
    // A pipe: opening it would wait for a writer for ever.
    rustix::fs::mknodat(
        rustix::fs::CWD,
        dir.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let statics = load(&temp, None);
    assert_eq!(
        paths(&statics),
        [
            "/.well-known/security.txt",
            "/alias/x.txt",
            "/real/x.txt",
            "/round",
            "/security.txt",
            "/x"
        ]
    );
    assert_eq!(content(&statics, "/round").unwrap(), b"x");
    // The type is that of the name that was asked for.
    let alias = respond(statics.find("/x").unwrap(), "GET", &[]);
    assert_eq!(
        alias.field("content-type"),
        Some("application/octet-stream")
    );
}

#[test]
fn links_across_end() {
    let temp = folder(&[("a/x", b"x"), ("b/y", b"y")]);
    symlink("../b", temp.path().join("static/a/b")).unwrap();
    symlink("../a", temp.path().join("static/b/a")).unwrap();
    let statics = load(&temp, None);
    assert_eq!(paths(&statics), ["/a/b/y", "/a/x", "/b/a/x", "/b/y"]);
}

#[test]
fn a_folder_too_deep_is_a_problem() {
    let deep = "d/".repeat(40) + "x";
    let temp = folder(&[(&deep, b"x")]);
    let problem =
        Statics::load(&temp.path().join("static"), &OPTIONS, &settings(), None).unwrap_err();
    assert!(problem.message.contains("deep"), "{problem}");
}

#[test]
fn links_lead_out_if_that_is_allowed() {
    let temp = folder(&[("x", b"x")]);
    let outside = tempfile::Builder::new().prefix("out").tempdir().unwrap();
    fs::create_dir_all(outside.path().join("in/.git")).unwrap();
    fs::write(outside.path().join("in/y"), "y").unwrap();
    fs::write(outside.path().join("in/.git/config"), "secret").unwrap();
    fs::write(temp.path().join("site.db"), "secret").unwrap();
    let link =
        |target: &Path, name| symlink(target, temp.path().join("static").join(name)).unwrap();
    link(&outside.path().join("in"), "in");
    link(&outside.path().join("in/y"), "y");
    link(temp.path(), "site");
    // What is hidden is not served from there either.
    fs::write(temp.path().join(".env"), "secret").unwrap();
    fs::create_dir_all(temp.path().join(".git/refs")).unwrap();
    fs::write(temp.path().join(".git/refs/head"), "secret").unwrap();
    link(Path::new("../.env"), "env");
    link(Path::new("../.git"), "repo");
    link(Path::new("../.git/refs"), "refs");
    link(&outside.path().join("in/.git/config"), "config");
    // The site itself is in a hidden folder here, which hides nothing.
    fs::write(temp.path().join("beside"), "beside").unwrap();
    link(Path::new("../beside"), "z");
    link(Path::new("/"), "everything");
    assert_eq!(paths(&load(&temp, None)), ["/x"]);
    let options = StaticOptions {
        follow_links: true,
        ..OPTIONS
    };
    let statics = load_with(&temp, &options, None);
    assert_eq!(paths(&statics), ["/in/y", "/x", "/y", "/z"]);
    assert_eq!(content(&statics, "/y").unwrap(), b"y");
}

#[test]
fn a_link_in_the_place_of_a_folder_is_not_followed() {
    let temp = folder(&[("a/x", &[b'x'; 100_000])]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x"), "secret").unwrap();
    let statics = load_open(&temp, 0, None);
    let file = statics.find("/a/x").unwrap();
    assert_eq!(body(&respond(file, "GET", &[])).len(), 100_000);
    // The file is opened for each request; since it was found, its folder has become a link.
    let a = temp.path().join("static/a");
    fs::rename(&a, temp.path().join("static/b")).unwrap();
    symlink(outside.path(), &a).unwrap();
    assert_eq!(respond(file, "GET", &[]).status(), 404);
    fs::remove_file(&a).unwrap();
    assert_eq!(respond(file, "GET", &[]).status(), 404);
}

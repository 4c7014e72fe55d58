//! `millpond demo` on a small workspace.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use crate::support::{Server, millpond, run, serve, text, write};

/// Where the only article is: numbers begin high, so that they look like those of a magazine with a past.
const ARTICLE: &str = "/read?id=50000001";

/// A workspace that is built from one crate, which lies beside it instead of in a registry.
fn workspace(dir: &Path) {
    let manifest = |name: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\nedition = \"2024\"\n")
    };
    let tides = "description = \"Up and down.\"\nlicense = \"MIT\"\nreadme = \"README.md\"\n";
    let text = "The moon pulls at the sea. ".repeat(40);
    write(dir, "vendor/tides/Cargo.toml", &(manifest("tides") + tides));
    write(
        dir,
        "vendor/tides/README.md",
        &format!("# Tides\n\n{text}\n"),
    );
    write(dir, "vendor/tides/src/lib.rs", "//! Tides.\n");
    write(dir, "vendor/tides/.cargo-checksum.json", "{\"files\":{}}");
    let vendored =
        "[source.crates-io]\nreplace-with = \"beside\"\n[source.beside]\ndirectory = \"vendor\"\n";
    write(dir, ".cargo/config.toml", vendored);
    write(
        dir,
        "Cargo.toml",
        &(manifest("sea") + "[dependencies]\ntides = \"1\"\n"),
    );
    write(dir, "src/lib.rs", "//! The sea.\n");
    let lock = "version = 4\n\n[[package]]\nname = \"sea\"\nversion = \"1.0.0\"\ndependencies = [\"tides\"]\n\n\
                [[package]]\nname = \"tides\"\nversion = \"1.0.0\"\n\
                source = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
    write(dir, "Cargo.lock", lock);
}

#[test]
fn the_experiment_is_printed_and_reported() {
    let here = tempfile::tempdir().unwrap();
    workspace(here.path());
    let output = run(
        here.path(),
        &[
            "demo",
            "--exit",
            "--listen",
            "127.0.0.1:0",
            "--dir",
            "magazine",
        ],
    );
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    let table = text(&output.stdout);
    for part in ["tides", "uncached", "under 1 KB", "report.html"] {
        assert!(table.contains(part), "no {part} in:\n{table}");
    }
    let report = fs::read_to_string(here.path().join("report.html")).unwrap();
    assert!(report.contains("<svg"));
    // The command, with each of its words in one piece.
    let command = "<span>millpond</span> <span>demo</span> <span>--exit</span>";
    assert!(report.contains(command), "no {command} in the report");
    // The folder is a site like any other.
    let server = serve(&here.path().join("magazine"));
    assert_eq!(server.get(ARTICLE).status, 200);
    assert_eq!(server.get("/style.css").status, 200);
    assert!(server.stop().0.success());
}

#[test]
fn it_serves_until_it_is_told_to_stop_and_leaves_no_folder() {
    let (here, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    workspace(here.path());
    let mut command = millpond(&["demo", "--listen", "127.0.0.1:0"]);
    command
        .current_dir(here.path())
        .env("TMPDIR", temporary.path());
    let server = Server::spawn(command);
    let front = server.get("/");
    assert_eq!(front.status, 200);
    assert!(front.text().contains(ARTICLE), "{}", front.text());
    server.signal(Signal::INT);
    let (status, notes) = server.wait();
    assert!(status.success(), "{notes}");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}

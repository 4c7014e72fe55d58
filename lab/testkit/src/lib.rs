//! Shared tools of tests: a server as a child process, clients of HTTP/1.1 and HTTP/2, a terminal,
//! random numbers, folders, listings of a guide; with the feature `browser` a browser, with
//! `pebble` a certificate authority; with `manuals` the man pages of a program.
//!
//! It knows processes, sockets and folders. It must not know any other crate of the project, so a
//! fault of another crate cannot hide in it. Everything but [`Client`] and [`http2`] panics where a
//! test should fail.

#[cfg(feature = "browser")]
mod browser;
mod client;
mod folder;
pub mod http2;
mod listings;
#[cfg(feature = "manuals")]
mod manuals;
#[cfg(feature = "pebble")]
mod pebble;
mod random;
mod server;
mod terminal;
#[cfg(feature = "pebble")]
pub mod tls;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(feature = "browser")]
pub use browser::{Browser, Window, has_no_browser};
pub use client::{Client, Connection, Response, exchange};
pub use folder::{fast_dir, fast_parent};
pub use listings::listings;
#[cfg(feature = "manuals")]
pub use manuals::write_manuals;
#[cfg(feature = "pebble")]
pub use pebble::Pebble;
pub use random::Random;
pub use server::Server;
pub use terminal::terminal;

/// How long a test waits for an event before it fails. No event is expected to take a hundredth of
/// it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The program `name` that `cargo xtask programs` has installed, of its newest version; `None` if
/// it is missing.
pub fn installed_program(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/programs");
    let folders = fs::read_dir(folder).ok()?.flatten();
    let programs = folders.map(|entry| entry.path().join(name));
    programs.filter(|program| program.is_file()).max()
}

/// The program `name` of another package, in the folder of `program`. Cargo names only the programs
/// of the package under test; `cargo test --workspace` and `cargo build` put all programs into one
/// folder.
///
/// # Panics
/// The program is not built.
pub fn program_beside(program: &Path, name: &str) -> PathBuf {
    let beside = program.with_file_name(name);
    assert!(
        beside.is_file(),
        "there is no {}: `cargo build --package {name}` first",
        beside.display()
    );
    beside
}

/// `bytes` as text; what is not UTF-8 is replaced.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The names of the commands that the `--help` of a program lists.
#[must_use]
pub fn commands_in_help(help: &str) -> Vec<&str> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        // Further in is the rest of a description that did not fit its line.
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

/// Writes `contents` to `name` below `dir`, with the folders that it needs.
///
/// # Panics
/// The file cannot be written.
pub fn write(dir: &Path, name: &str, contents: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

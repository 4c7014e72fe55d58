//! The program under test, and folders to serve.

use std::path::Path;
use std::process::{Command, Output};

use lab_testkit::fast_dir;
use tempfile::TempDir;

pub(crate) use lab_testkit::{Connection, PATIENCE, Response, Server, text, write};

/// `millpond` with arguments, not yet started.
pub(crate) fn millpond(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    // The key of `--dev` is kept there; and what `check` says must not depend on the machine's
    // `sqlite3`.
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.env("PATH", env!("CARGO_TARGET_TMPDIR"));
    command.args(args);
    command
}

/// Runs `millpond` to its end in `dir`.
pub(crate) fn run(dir: &Path, args: &[&str]) -> Output {
    millpond(args).current_dir(dir).output().unwrap()
}

/// Runs `millpond` and gives its exit status and what it wrote to standard error.
pub(crate) fn fail(dir: &Path, args: &[&str]) -> (i32, String) {
    let output = run(dir, args);
    (output.status.code().unwrap_or(-1), text(&output.stderr))
}

/// Copies an example with all that is in it, but for what `millpond serve` makes there.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let is_made = name
            .to_str()
            .is_some_and(|name| name.starts_with("site.db"));
        let to = to.join(&name);
        if is_made || name == "session.key" {
            continue;
        }
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The site of `millpond new`.
pub(crate) fn new_site() -> TempDir {
    new_site_in(fast_dir())
}

/// Makes the site of `millpond new` in an empty folder.
pub(crate) fn new_site_in(dir: TempDir) -> TempDir {
    let output = run(dir.path(), &["new", "."]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    dir
}

/// Makes the site of `millpond new` with this `millpond.toml`.
pub(crate) fn site_with(settings: &str) -> TempDir {
    let site = new_site();
    write(site.path(), "millpond.toml", settings);
    site
}

/// `millpond serve SITE` on a free port, ready to answer.
pub(crate) fn serve(site: &Path) -> Server {
    serve_with(site, &[])
}

/// Starts `millpond serve SITE` on a free port with more arguments, ready to answer.
pub(crate) fn serve_with(site: &Path, args: &[&str]) -> Server {
    let mut command = millpond(&["serve", "--listen", "127.0.0.1:0", "--workers", "2"]);
    command.arg(site).args(args);
    Server::spawn(command)
}

/// Returns the address at which the server answers its owner.
pub(crate) fn admin(server: &Server) -> String {
    let line = server.wait_for_line("is answered on", 1);
    line.rsplit(' ').next().unwrap().to_owned()
}

//! Rights of a server: its user, and its sandbox.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

use rustix::process::{Signal, geteuid};
use tempfile::TempDir;

use crate::support::{Connection, fail, new_site, serve, serve_with, write};
use crate::upgrade::Upgraded;

/// A user and a group that no program has.
const OWNER: u32 = 54_321;

/// Lines of `/proc/PID/status` by their names.
fn status(process: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(found, _)| *found == name).unwrap();
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A folder that is neither in the site nor one for temporary files.
fn outside() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn give_away(path: &Path) {
    chown(path, Some(OWNER), Some(OWNER)).unwrap();
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap();
        entries.for_each(|entry| give_away(&entry.unwrap().path()));
    }
}

#[test]
fn root_becomes_the_owner_of_the_site() {
    if !geteuid().is_root() {
        eprintln!("not root: not tested");
        return;
    }
    let site = new_site();
    give_away(site.path());
    let server = serve(site.path());
    let all = [OWNER; 4].map(|id| id.to_string()).join(" ");
    for (name, expected) in [
        ("Uid", &*all),
        ("Gid", &*all),
        ("Groups", ""),
        ("CapEff", "0000000000000000"),
    ] {
        assert_eq!(status(server.pid(), name), expected, "{name}");
    }
    let mut connection = Connection::open(server.address());
    assert_eq!(connection.post("/note", "title=a&body=b").status, 303);
    assert_eq!(
        fs::metadata(site.path().join("site.db")).unwrap().uid(),
        OWNER
    );
    let program = Path::new(env!("CARGO_BIN_EXE_millpond"));
    let is_open = |path: &Path| fs::metadata(path).is_ok_and(|of| of.mode() & 1 == 1);
    if !program.ancestors().all(is_open) {
        eprintln!("other users cannot start the program: no successor is tested");
        return;
    }
    // Its successor is that user's too, and has no way back.
    server.signal(Signal::USR2);
    let line = server.wait_for_line("has taken the place", 1);
    let successor = line
        .split_once("process ")
        .unwrap()
        .1
        .split(' ')
        .next()
        .unwrap();
    let successor = successor.parse().unwrap();
    assert_eq!(status(successor, "Uid"), all);
    assert_eq!(status(successor, "NoNewPrivs"), "1");
    let pid = rustix::process::Pid::from_raw(successor.cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    server.wait_for_end();
}

#[test]
fn root_becomes_the_user_that_is_named() {
    if !geteuid().is_root() {
        eprintln!("not root: not tested");
        return;
    }
    let site = new_site();
    give_away(site.path());
    let owner = OWNER.to_string();
    let server = serve_with(site.path(), &["--user", &owner]);
    assert!(status(server.pid(), "Uid").starts_with(&owner));
    let server = serve_with(site.path(), &["--user", "root"]);
    assert!(status(server.pid(), "Uid").starts_with("0 "));
    let (code, notes) = fail(
        site.path(),
        &[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--user",
            "nobody-at-all",
        ],
    );
    assert_eq!(code, 1);
    assert!(notes.contains("`nobody-at-all` is no user"), "{notes}");
}

/// A page whose template is a link to a file elsewhere.
fn link_to_a_secret(site: &Path, secret: &Path) {
    write(secret, "secret.html", "<p>secret");
    let _ = fs::remove_file(site.join("pages/secret.html"));
    symlink(secret.join("secret.html"), site.join("pages/secret.html")).unwrap();
}

#[test]
fn a_confined_server_opens_no_file_elsewhere() {
    let (site, secret) = (new_site(), outside());
    link_to_a_secret(site.path(), secret.path());
    let settings = site.path().join("millpond.toml");
    let before = fs::read_to_string(&settings).unwrap();
    // Without the sandbox the owner's link is followed.
    let open = before.replace("[server]\n", "[server]\nsandbox = false\n");
    fs::write(&settings, open).unwrap();
    let server = serve(site.path());
    assert_eq!(server.get("/secret").text(), "<p>secret");
    assert_eq!(status(server.pid(), "NoNewPrivs"), "1");
    assert_eq!(status(server.pid(), "Seccomp"), "0");
    drop(server);
    fs::write(&settings, before).unwrap();
    let (code, notes) = fail(site.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, 1);
    assert!(notes.contains("pages/secret.html"), "{notes}");
    assert!(notes.contains("denied"), "{notes}");
    // Nor once it runs.
    fs::remove_file(site.path().join("pages/secret.html")).unwrap();
    let server = serve(site.path());
    assert_eq!(status(server.pid(), "Seccomp"), "2");
    assert_eq!(status(server.pid(), "NoNewPrivs"), "1");
    link_to_a_secret(site.path(), secret.path());
    server.signal(Signal::HUP);
    let notes = server.wait_for("the site as it was stays");
    assert!(notes.contains("denied"), "{notes}");
    assert_eq!(server.get("/").status, 200);
}

#[test]
fn what_the_settings_name_elsewhere_is_within_reach() {
    let (site, elsewhere) = (new_site(), outside());
    fs::create_dir(elsewhere.path().join("data")).unwrap();
    fs::set_permissions(elsewhere.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let at = |name: &str| elsewhere.path().join(name).display().to_string();
    let settings = format!(
        "log.access = \"{}\"\ndatabase.url = \"sqlite:{}\"\n",
        at("access.log"),
        at("data/site.db")
    );
    write(site.path(), "millpond.toml", &settings);
    symlink(at("data"), site.path().join("uploads")).unwrap();
    let server = serve(site.path());
    let mut connection = Connection::open(server.address());
    assert_eq!(connection.post("/note", "title=a&body=b").status, 303);
    fs::rename(at("access.log"), at("access.log.1")).unwrap();
    server.signal(Signal::HUP);
    server.wait_for("the site was read again");
    assert_eq!(server.get("/").status, 200);
    assert!(server.stop().0.success());
    for name in ["access.log", "access.log.1", "data/site.db"] {
        assert!(fs::metadata(at(name)).unwrap().len() > 0, "{name}");
    }
}

/// *Counterexample*: code in the sandbox wrote the settings by which the next process had none.
#[test]
fn an_upgrade_leaves_no_sandbox_and_opens_the_folders_that_are_named_meanwhile() {
    let (site, elsewhere) = (new_site(), outside());
    let log = elsewhere.path().join("access.log");
    let mut server = Upgraded::new(serve(site.path()));
    let settings = format!(
        "server.sandbox = false\nlog.access = \"{}\"\n",
        log.display()
    );
    write(site.path(), "millpond.toml", &settings);
    server.server.signal(Signal::HUP);
    let line = server.server.wait_for_line("the log in use stays", 1);
    assert!(line.contains("an upgrade (SIGUSR2) or a restart"), "{line}");
    assert!(!log.exists());
    for round in 1..=2 {
        server.upgrade();
        server
            .server
            .wait_for_line("server.sandbox = false counts from the next restart", round);
        let process = server.process.as_raw_nonzero().get().unsigned_abs();
        assert_eq!(status(process, "Seccomp"), "2");
    }
    assert!(log.exists());
    server.stop();
    let server = serve(site.path());
    assert_eq!(status(server.pid(), "Seccomp"), "0");
}

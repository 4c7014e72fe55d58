//! Another process takes the place of a server, or a server is started again, under load.

mod load;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use lab_testkit::tls;
use rusqlite::Connection as Database;
use rustix::process::{Pid, Signal, kill_process};
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use tempfile::TempDir;

use crate::support::{Connection, Server, millpond, new_site, serve_with, site_with, write};
use crate::systemd::activate;
use load::Load;

/// Answers between two upgrades.
const BETWEEN: usize = 50;
const TAKEN: &str = "has taken the place of this one";

/// Rounds of each kind; `cargo xtask soak` makes more.
fn rounds() -> usize {
    let rounds = std::env::var("MILLPOND_UPGRADES").ok();
    rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(5)
}

/// A server whose process changes.
pub(crate) struct Upgraded {
    pub(crate) server: Server,
    pub(crate) process: Pid,
    upgrades: usize,
}

impl Upgraded {
    pub(crate) fn new(server: Server) -> Self {
        let process = Pid::from_raw(server.pid().cast_signed()).unwrap();
        Self {
            server,
            process,
            upgrades: 0,
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.process, signal).unwrap();
    }

    pub(crate) fn upgrade(&mut self) {
        self.signal(Signal::USR2);
        self.upgrades += 1;
        let line = self.server.wait_for_line(TAKEN, self.upgrades);
        let (_, rest) = line.split_once("process ").unwrap();
        let process = rest.split(' ').next().unwrap().parse().unwrap();
        self.process = Pid::from_raw(process).unwrap();
    }

    /// Ends the last process, and waits for all of them.
    pub(crate) fn stop(mut self) -> String {
        self.signal(Signal::TERM);
        let Self {
            server, process, ..
        } = &mut self;
        let notes = server.wait_for_end();
        // The first process, which is ended anyway.
        *process = Pid::from_raw(server.pid().cast_signed()).unwrap();
        notes
    }
}

impl Drop for Upgraded {
    fn drop(&mut self) {
        let _ = kill_process(self.process, Signal::KILL);
    }
}

fn rows(site: &Path) -> usize {
    let database = Database::open(site.join("site.db")).unwrap();
    let sql = "select count(*) from note where title = 'load'";
    let rows: i64 = database.query_row(sql, [], |row| row.get(0)).unwrap();
    usize::try_from(rows).unwrap()
}

/// Certificates for `localhost` with their keys.
fn certificates(count: usize) -> Vec<[String; 2]> {
    let certificates = (0..count).map(|_| tls::self_signed("localhost", [2020, 2120]));
    certificates.collect()
}

fn trusting(certificates: &[[String; 2]]) -> Arc<ClientConfig> {
    let roots = certificates
        .iter()
        .map(|[certificate, _]| CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap());
    Arc::new(tls::client_config(&roots.collect::<Vec<_>>()))
}

fn install(site: &Path, [certificate, key]: &[String; 2]) {
    write(site, "tls/a.pem", certificate);
    write(site, "tls/a.key", key);
}

fn secure_site(certificate: &[String; 2]) -> TempDir {
    let site = site_with("[tls]\ncertificate = \"tls/a.pem\"\nkey = \"tls/a.key\"\n");
    install(site.path(), certificate);
    site
}

#[test]
fn upgrades_lose_no_request() {
    let site = new_site();
    let mut plain = Upgraded::new(serve_with(site.path(), &[]));
    let certificates = certificates(1);
    let secure_site = secure_site(&certificates[0]);
    let secure = serve_with(secure_site.path(), &["--tls-listen", "127.0.0.1:0"]);
    let mut secure = Upgraded::new(secure);
    let load = Load::on(plain.server.address());
    let secure_load = Load::on_tls(secure.server.address(), &trusting(&certificates));
    for _ in 0..rounds() {
        load.wait_for(BETWEEN);
        plain.upgrade();
        secure.upgrade();
        secure_load.wait_for(BETWEEN / 10);
    }
    load.wait_for(BETWEEN);
    let forms = load.stop();
    secure_load.stop();
    assert_eq!(rows(site.path()), forms);
    for server in [plain, secure] {
        let notes = server.stop();
        let ended = notes.matches("millpond served").count();
        assert_eq!(ended, rounds() + 1, "{notes}");
        assert!(!notes.contains("error"), "{notes}");
    }
}

#[test]
fn reloads_of_a_site_and_its_certificate_lose_no_request() {
    let site = new_site();
    let server = serve_with(site.path(), &[]);
    let certificates = certificates(rounds() + 1);
    let secure_site = secure_site(&certificates[0]);
    let secure = serve_with(secure_site.path(), &["--tls-listen", "127.0.0.1:0"]);
    let load = Load::on(server.address());
    let secure_load = Load::on_tls(secure.address(), &trusting(&certificates));
    for (round, certificate) in (1..).zip(&certificates[1..]) {
        load.wait_for(BETWEEN);
        install(secure_site.path(), certificate);
        server.signal(Signal::HUP);
        secure.signal(Signal::HUP);
        server.wait_for_line("the site was read again", round);
        secure.wait_for_line("a new certificate is in use", round);
        secure_load.wait_for(BETWEEN / 10);
    }
    load.stop();
    secure_load.stop();
    for server in [server, secure] {
        assert!(server.stop().0.success());
    }
}

#[test]
fn restarts_with_a_socket_of_systemd_lose_no_request() {
    let site = new_site();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let start = || {
        let kept = socket.try_clone().unwrap();
        activate(site.path(), kept.into(), "blog.socket", &[])
    };
    let mut server = start();
    assert_eq!(server.address(), socket.local_addr().unwrap());
    let load = Load::on(server.address());
    for _ in 0..rounds() {
        load.wait_for(BETWEEN);
        let (status, notes) = server.stop();
        assert!(status.success(), "{notes}");
        server = start();
    }
    load.wait_for(BETWEEN);
    let forms = load.stop();
    assert_eq!(rows(site.path()), forms);
    assert!(server.stop().0.success());
}

#[test]
fn a_successor_has_the_hot_pages_before_it_serves() {
    let site = new_site();
    let mut server = Upgraded::new(serve_with(site.path(), &[]));
    for _ in 0..20 {
        assert_eq!(server.server.get("/").status, 200);
    }
    for _ in 0..3 {
        server.upgrade();
        // The old process has closed its sockets when it has told what it served.
        server
            .server
            .wait_for_line("millpond served", server.upgrades);
        let first = server.server.get("/");
        let status = first.field("cache-status").unwrap_or_default();
        assert!(status.contains("hit"), "{first:?}");
    }
    server.stop();
}

#[test]
fn a_server_whose_successor_fails_goes_on() {
    let site = new_site();
    let mut server = Upgraded::new(serve_with(site.path(), &[]));
    let good = fs::read(site.path().join("pages/index.sql")).unwrap();
    write(
        site.path(),
        "pages/index.sql",
        "-- name: notes :many\nselect nonsense;\n",
    );
    server.signal(Signal::USR2);
    let line = server
        .server
        .wait_for_line("no process takes the place of this one, which goes on", 1);
    assert!(line.contains("exit status: 1"), "{line}");
    assert_eq!(server.server.get("/").status, 200);
    // And it can be tried again.
    fs::write(site.path().join("pages/index.sql"), good).unwrap();
    server.upgrade();
    assert_eq!(
        Connection::open(server.server.address()).get("/").status,
        200
    );
    server.stop();
}

/// *Counterexamples*: a link to the program was resolved at the start, so its old target was
/// started again; and a program that said that it serves, and then ended, ended the site.
#[test]
fn a_link_leads_to_the_next_program_which_must_last() {
    let (site, versions) = (
        new_site(),
        tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
    );
    let current = versions.path().join("current");
    let lead_to = |version: &str| {
        let _ = fs::remove_file(&current);
        symlink(version, &current).unwrap();
    };
    for version in ["v1", "v2", "v3"] {
        fs::create_dir(versions.path().join(version)).unwrap();
        let program = versions.path().join(version).join("millpond");
        if version == "v2" {
            // It has the end for the answer behind the sockets.
            let script = "#!/bin/sh\neval \"echo ready $$ >&$((LISTEN_FDS + 2))\"\nexit 3\n";
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        } else {
            fs::hard_link(env!("CARGO_BIN_EXE_millpond"), &program).unwrap();
        }
    }
    lead_to("v1");
    let known = millpond(&["serve", "--listen", "127.0.0.1:0", "--workers", "2"]);
    let mut command = Command::new(current.join("millpond"));
    command.args(known.get_args()).arg(site.path());
    let mut server = Upgraded::new(Server::spawn(command));
    lead_to("v2");
    server.signal(Signal::USR2);
    let line = server.server.wait_for_line("which goes on", 1);
    let program = current.join("millpond");
    assert!(line.contains(program.to_str().unwrap()), "{line}");
    assert!(line.contains("exit status: 3"), "{line}");
    assert_eq!(server.server.get("/").status, 200);
    lead_to("v3");
    server.upgrade();
    let process = server.process.as_raw_nonzero();
    let program = fs::read_link(format!("/proc/{process}/exe")).unwrap();
    assert!(program.ends_with("v3/millpond"), "{program:?}");
    assert_eq!(server.server.get("/").status, 200);
    server.stop();
}

/// *Counterexample*: an upgrade counted as under way for ever.
#[test]
fn a_server_that_can_start_no_successor_says_so_and_goes_on() {
    let site = new_site();
    let server = serve_with(site.path(), &[]);
    let pid = server.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let starter = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
    kill_process(starter, Signal::KILL).unwrap();
    server.wait_for_line("has ended; a restart mends that", 1);
    server.signal(Signal::USR2);
    server.wait_for_line("the process that starts it is missing", 1);
    assert_eq!(server.get("/").status, 200);
    assert!(server.stop().0.success());
}

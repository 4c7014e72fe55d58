//! Certificates of an authority of the web, by the program: how they are got, and what a person in
//! trouble reads.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lab_pgtest::Postgres;
use lab_testkit::tls::{certificates_in, client_config, request};
use lab_testkit::{Client, Pebble};
use tempfile::TempDir;

use crate::https;
use crate::relay::Relay;
use crate::support::{Connection, PATIENCE, Server, fail, write};

/// A port on which nothing listens.
pub(crate) const CLOSED_PORT: u16 = 1;
/// Between two looks at something that comes about elsewhere.
const PAUSE: Duration = Duration::from_millis(20);

/// A running program, its folder, and where it redirects from.
pub(crate) struct ServingNode {
    pub(crate) server: Server,
    plain: SocketAddr,
    pub(crate) site: TempDir,
}

/// A folder whose page needs no database.
pub(crate) fn folder(settings: &str) -> TempDir {
    let site = lab_testkit::fast_dir();
    write(site.path(), "millpond.toml", settings);
    write(site.path(), "pages/index.html", "<h1>hello</h1>");
    site
}

/// `[tls]` for these names and this authority.
pub(crate) fn settings(pebble: &Pebble, names: &[&str]) -> String {
    tls(names, &pebble.directory(), Some(&pebble.trust()))
}

pub(crate) fn tls(names: &[&str], directory: &str, trust: Option<&Path>) -> String {
    let trust = trust.map_or(String::new(), |path| format!("acme_trust = {path:?}\n"));
    format!("[tls]\ndomains = {names:?}\nacme_directory = {directory:?}\n{trust}")
}

pub(crate) fn node(site: TempDir) -> ServingNode {
    let (server, plain) = https::serve(site.path(), &[]);
    ServingNode {
        server,
        plain: SocketAddr::from(([127, 0, 0, 1], plain)),
        site,
    }
}

/// The certificate and the response of a page by https, from a server that must prove its name.
pub(crate) fn page(
    address: SocketAddr,
    name: &str,
    root: &Path,
    target: &str,
) -> io::Result<(Vec<u8>, String)> {
    let client = Arc::new(client_config(&certificates_in(root)));
    let text = format!("GET {target} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
    let (tls, response) = request(address, name, &client, &text)?;
    let certificate = tls.peer_certificates().unwrap()[0].to_vec();
    Ok((certificate, response))
}

impl ServingNode {
    /// Redirects, and pages by the certificate of this machine's own authority.
    fn serves(&self) {
        let redirect = Connection::open(self.plain).get("/a");
        assert_eq!(redirect.status, 301, "{redirect:?}");
        let root = self.site.path().join("tls/localhost/authority.pem");
        let (_, response) = page(self.server.address(), "localhost", &root, "/").unwrap();
        assert!(response.ends_with("<h1>hello</h1>"), "{response}");
    }

    /// The certificate for `one.test`, as soon as it is shown.
    pub(crate) fn certificate(&self, root: &Path) -> Vec<u8> {
        until("one.test has a certificate", || {
            page(self.server.address(), "one.test", root, "/").ok()
        })
        .0
    }
}

/// Tries until there is a value.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let mut tries = 0;
    loop {
        if let Some(found) = look() {
            return found;
        }
        tries += 1;
        assert!(PAUSE * tries < PATIENCE, "{what}");
        thread::sleep(PAUSE);
    }
}

/// The file with the root of the certificates that the authority issues.
pub(crate) fn issuing_root(pebble: &Pebble, dir: &Path) -> std::path::PathBuf {
    let text = lab_testkit::tls::pem_text("CERTIFICATE", &pebble.issuing_root());
    write(dir, "issuing-root.pem", &text);
    dir.join("issuing-root.pem")
}

#[test]
fn a_site_is_served_while_its_first_certificate_is_asked_for_and_a_restart_asks_for_none() {
    let relay = Relay::new();
    let Some(pebble) = Pebble::start(relay.port(), CLOSED_PORT) else {
        return;
    };
    let site = folder(&settings(&pebble, &["localhost", "one.test"]));
    let root = issuing_root(&pebble, site.path());
    pebble.pause();
    let node = node(site);
    relay.lead_to(vec![node.server.address()]);
    node.serves();
    assert!(page(node.server.address(), "one.test", &root, "/").is_err());
    pebble.resume();
    node.server
        .wait_for("one.test: a new certificate, valid until ");
    let (first, response) = page(node.server.address(), "one.test", &root, "/").unwrap();
    assert!(response.ends_with("<h1>hello</h1>"), "{response}");
    node.serves();
    assert!(relay.connections() > 0, "the authority has looked");
    let orders = pebble.orders();

    let ServingNode { server, site, .. } = node;
    let (status, notes) = server.stop();
    assert!(status.success(), "{notes}");
    let asked = pebble.renewal_requests();
    let node = self::node(site);
    let (certificate, _) = page(node.server.address(), "one.test", &root, "/").unwrap();
    assert_eq!(certificate, first, "the first client gets it");
    until("the authority is asked when to renew", || {
        (pebble.renewal_requests() > asked).then_some(())
    });
    let (status, notes) = node.server.stop();
    assert!(status.success(), "{notes}");
    assert!(!notes.contains("a new certificate"), "{notes}");
    assert_eq!(pebble.orders(), orders);
}

#[test]
fn the_port_that_redirects_answers_challenges() {
    let relay = Relay::new();
    let Some(pebble) = Pebble::start(CLOSED_PORT, relay.port()) else {
        return;
    };
    let node = node(folder(&settings(&pebble, &["one.test"])));
    relay.lead_to(vec![node.plain]);
    node.server
        .wait_for("one.test: a new certificate, valid until ");
    assert!(relay.connections() > 0, "the authority has looked");
}

#[test]
fn each_refusal_is_printed_with_its_cause_and_stops_nothing() {
    let relay = Relay::new();
    let Some(pebble) = Pebble::start(relay.port(), CLOSED_PORT) else {
        return;
    };
    pebble.break_dns("lost.test");
    let names = ["localhost", "lost.test", "blocked.test", "one.test"];
    let node = node(folder(&settings(&pebble, &names)));
    relay.lead_to(vec![node.server.address()]);
    let notes = node.server.wait_for("one.test: a new certificate");
    let line = |name: &str| {
        let start = format!("millpond: {name}: no new certificate: ");
        let line = notes.lines().find(|line| line.contains(&start));
        line.unwrap_or_else(|| panic!("{name}: {notes}"))
    };
    let lost = line("lost.test");
    assert!(lost.contains("check its A and AAAA records"), "{lost}");
    assert!(lost.contains("; the next try is at "), "{lost}");
    let blocked = line("blocked.test");
    assert!(
        blocked.contains("does not issue certificates for such a name"),
        "{blocked}"
    );
    node.serves();
    let (status, notes) = node.server.stop();
    assert!(status.success(), "{notes}");
}

#[test]
fn an_authority_that_cannot_be_reached_is_named_and_stops_nothing() {
    let directory = format!("https://127.0.0.1:{CLOSED_PORT}/dir");
    let node = node(folder(&tls(&["localhost", "one.test"], &directory, None)));
    let notes = node.server.wait_for("; the next try is at ");
    assert!(
        notes.contains("the authority cannot be reached: 127.0.0.1: no connection"),
        "{notes}"
    );
    assert!(notes.contains("acme_directory"), "{notes}");
    node.serves();
    let site = folder(&tls(&["one.test"], &directory, Some(Path::new("none.pem"))));
    let (status, said) = fail(
        site.path(),
        &[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tls-listen",
            "127.0.0.1:0",
        ],
    );
    assert_eq!(status, 1, "{said}");
    assert!(
        said.contains("none.pem") && said.contains("acme_trust"),
        "{said}"
    );
}

#[test]
fn an_authority_is_asked_once_the_ports_are_served() {
    let postgres = Postgres::start().unwrap();
    let database = postgres.database().unwrap();
    let mut client = postgres::Client::connect(&database.url(), postgres::NoTls).unwrap();
    // "millpond" in ASCII: the lock of nodes that apply migrations.
    client
        .batch_execute("select pg_advisory_lock(7883951835687382628)")
        .unwrap();
    let directory = TcpListener::bind("127.0.0.1:0").unwrap();
    directory.set_nonblocking(true).unwrap();
    let url = format!("https://{}/dir", directory.local_addr().unwrap());
    let settings = tls(&["one.test"], &url, None);
    let site = folder(&format!(
        "{settings}[database]\nurl = \"{}\"\nfeed = \"triggers\"\n",
        database.url()
    ));
    let starting = thread::spawn(move || node(site));
    let waiting = "select count(*) from pg_stat_activity \
        where application_name = 'millpond' and query like '%pg_try_advisory_lock%'";
    until("the start waits for its migrations", || {
        let found: i64 = client.query_one(waiting, &[]).unwrap().get(0);
        (found > 0).then_some(())
    });
    let asked = directory.accept().map_err(|error| error.kind());
    assert_eq!(asked.map(drop), Err(io::ErrorKind::WouldBlock));
    client
        .batch_execute("select pg_advisory_unlock_all()")
        .unwrap();
    let node = starting.join().unwrap();
    until("the authority is asked", || directory.accept().ok());
    Client::open(node.plain, PATIENCE).unwrap();
}

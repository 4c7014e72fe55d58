//! A private authority for tests: Let's Encrypt's Pebble, with a DNS server of its own.
//!
//! `cargo xtask programs` installs the programs (`xtask/src/programs.rs`), and `cargo ci` does.
//! Where they are missing, the tests say so and are left out.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;

use crate::tls::{client_config, pem_text, request};
use crate::{PATIENCE, exchange, installed_program, text};

/// File of the names that the programs write, in the authority's folder.
const NAMES_LOG: &str = "names.log";
const AUTHORITY_LOG: &str = "authority.log";
/// Between two looks whether a program answers.
const PAUSE: Duration = Duration::from_millis(20);

/// A running authority; it ends with the test.
pub struct Pebble {
    folder: tempfile::TempDir,
    children: Vec<Child>,
    directory: SocketAddr,
    management: SocketAddr,
    dns_management: SocketAddr,
    /// For the authority's own servers.
    client: Arc<ClientConfig>,
}

impl Pebble {
    /// An authority that looks for challenges at these ports of 127.0.0.1; `None` if Pebble is not
    /// installed.
    ///
    /// # Panics
    /// Pebble does not start.
    #[must_use]
    pub fn start(tls_port: u16, http_port: u16) -> Option<Self> {
        let [authority, names] = ["pebble", "pebble-challtestsrv"].map(installed_program);
        let (Some(authority), Some(names)) = (authority, names) else {
            println!("Pebble is not installed (cargo xtask programs): not tested");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let host = own_address();
        let [directory, management, dns, dns_management] =
            PORTS.map(|port| SocketAddr::new(host, port));
        let root = write_certificate(folder.path(), host);
        write_config(folder.path(), directory, management, tls_port, http_port);
        let mut pebble = Self {
            children: Vec::new(),
            directory,
            management,
            dns_management,
            client: Arc::new(client_config(&[root])),
            folder,
        };
        let dns_text = dns.to_string();
        let mut names = Command::new(names);
        names.args(["-http01", "", "-https01", "", "-doh", "", "-tlsalpn01", ""]);
        names.args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""]);
        names.args(["-dnsserver", &dns_text]);
        names.args(["-management", &dns_management.to_string()]);
        pebble.run(names, NAMES_LOG);
        let mut authority = Command::new(authority);
        authority.args(["-strict", "-dnsserver", &dns_text, "-config", "config.json"]);
        authority.env("PEBBLE_VA_NOSLEEP", "1");
        // Orders prove their names also at a renewal, but for one in a hundred: Pebble takes this
        // number of per cent and one more.
        authority.env("PEBBLE_AUTHZREUSE", "0");
        // One in ten requests is refused for its nonce (RFC 8555 section 6.5).
        authority.env("PEBBLE_WFE_NONCEREJECT", "10");
        pebble.run(authority, AUTHORITY_LOG);
        for address in [directory, management, dns, dns_management] {
            pebble.wait_for(address);
        }
        Some(pebble)
    }

    fn run(&mut self, mut command: Command, log: &str) {
        let log = File::create(self.folder.path().join(log)).unwrap();
        command.current_dir(self.folder.path());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.children.push(command.spawn().unwrap());
    }

    fn wait_for(&mut self, address: SocketAddr) {
        let mut tries = 0;
        while TcpStream::connect(address).is_err() {
            for child in &mut self.children {
                assert_eq!(child.try_wait().unwrap(), None, "Pebble has ended");
            }
            tries += 1;
            assert!(PAUSE * tries < PATIENCE, "Pebble does not start");
            std::thread::sleep(PAUSE);
        }
    }

    /// The URL of the directory.
    #[must_use]
    pub fn directory(&self) -> String {
        format!("https://{}/dir", self.directory)
    }

    /// The PEM file with the root behind the directory's certificate.
    #[must_use]
    pub fn trust(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// The root of the certificates that the authority issues.
    ///
    /// # Panics
    /// The authority does not answer.
    #[must_use]
    pub fn issuing_root(&self) -> CertificateDer<'static> {
        let response = self.manage("GET /roots/0 HTTP/1.0\r\n\r\n");
        CertificateDer::from_pem_slice(response.as_bytes()).unwrap()
    }

    /// Sets what the authority says of the renewal of a certificate.
    ///
    /// # Panics
    /// The authority refuses.
    pub fn set_renewal_info(&self, certificate: &CertificateDer<'_>, info: &str) {
        let certificate = pem_text("CERTIFICATE", certificate);
        let body = json!({ "certificate": certificate, "ariResponse": info }).to_string();
        let response = self.manage(&post("/set-renewal-info/", &body));
        assert!(response.starts_with("HTTP/1.0 200"), "{response}");
    }

    /// How many orders it has taken.
    #[must_use]
    pub fn orders(&self) -> usize {
        self.logged("Added order")
    }

    /// How often it was asked when a certificate should be renewed (RFC 9773).
    #[must_use]
    pub fn renewal_requests(&self) -> usize {
        self.logged("/renewalInfo/ -> calling")
    }

    fn logged(&self, text: &str) -> usize {
        let log = std::fs::read_to_string(self.folder.path().join(AUTHORITY_LOG)).unwrap();
        log.matches(text).count()
    }

    /// Answers nothing until [`Pebble::resume`].
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Goes on after [`Pebble::pause`].
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let authority = self.children.last().unwrap();
        kill_process(Pid::from_child(authority), signal).unwrap();
    }

    /// Lets DNS fail for a host.
    ///
    /// # Panics
    /// The DNS server refuses.
    pub fn break_dns(&self, host: &str) {
        let body = json!({ "host": format!("{host}.") }).to_string();
        let request = post("/set-servfail", &body);
        let response = exchange(self.dns_management, request.as_bytes());
        let response = text(&response);
        assert!(response.starts_with("HTTP/1.0 200"), "{response}");
    }

    fn manage(&self, text: &str) -> String {
        let response = request(
            self.management,
            &self.management.ip().to_string(),
            &self.client,
            text,
        );
        response.unwrap().1
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            for log in [NAMES_LOG, AUTHORITY_LOG] {
                let text = std::fs::read_to_string(self.folder.path().join(log));
                println!("{log}:\n{}", text.unwrap_or_default());
            }
        }
    }
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.0\r\nuser-agent: test\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// Ports of the directory, its management, DNS and its management. They lie below those that a
/// system gives to programs which ask for any port.
const PORTS: [u16; 4] = [14000, 15000, 8053, 8055];

/// An address of the loopback network that no other test uses: by process and by test.
fn own_address() -> IpAddr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let host = NEXT.fetch_add(1, Ordering::SeqCst);
    Ipv4Addr::new(127, high | 0x80, low, host).into()
}

/// The certificate of the authority's own servers; its root.
fn write_certificate(folder: &Path, host: IpAddr) -> CertificateDer<'static> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![host.to_string()]).unwrap();
    let leaf = leaf.signed_by(&key, &root).unwrap();
    std::fs::write(folder.join("root.pem"), root.pem()).unwrap();
    std::fs::write(folder.join("server.pem"), leaf.pem()).unwrap();
    std::fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
    root.der().clone()
}

fn write_config(
    folder: &Path,
    directory: SocketAddr,
    management: SocketAddr,
    tls_port: u16,
    http_port: u16,
) {
    let config = json!({ "pebble": {
        "listenAddress": directory.to_string(),
        "managementListenAddress": management.to_string(),
        "certificate": "server.pem",
        "privateKey": "server.key",
        "httpPort": http_port,
        "tlsPort": tls_port,
        "ocspResponderURL": "",
        "externalAccountBindingRequired": false,
        "domainBlocklist": ["blocked.test"],
        "retryAfter": { "authz": 1, "order": 1 },
        "keyAlgorithm": "ecdsa",
        "profiles": {
            "default": { "description": "ninety days", "validityPeriod": 7_776_000 },
            "shortlived": { "description": "six days", "validityPeriod": 518_400 },
        },
    }});
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
}

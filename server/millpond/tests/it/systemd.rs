//! A service under systemd: sockets that are handed over, and states that are reported.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};

use lab_testkit::Client;
use rustix::process::Signal;

use crate::support::{Connection, PATIENCE, Server, millpond, new_site, site_with};

/// Starts a server of two workers with a socket that is kept elsewhere.
pub(crate) fn activate(site: &Path, socket: OwnedFd, names: &str, more: &[&str]) -> Server {
    let script = format!(
        "export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES={names}; exec \"$@\" 3<&0 </dev/null"
    );
    let served = millpond(&["serve", "--workers", "2"]);
    let mut command = Command::new("sh");
    command
        .args(["-c", &script, "sh"])
        .arg(served.get_program())
        .args(served.get_args())
        .args(more)
        .arg(site)
        .stdin(socket);
    Server::spawn(command)
}

#[test]
fn a_socket_that_is_handed_over_has_its_part_by_its_name() {
    let site = new_site();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let server = activate(
        site.path(),
        socket.into(),
        "admin",
        &["--listen", "127.0.0.1:0"],
    );
    assert_ne!(server.address(), address);
    assert_eq!(Connection::open(address).get("/live").status, 200);
    assert_eq!(server.get("/").status, 200);
}

#[test]
fn what_does_not_listen_is_refused_by_its_number() {
    let site = new_site();
    let (socket, _other) = UnixStream::pair().unwrap();
    let mut command = Command::new("sh");
    let script = "export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$@\" 3<&0 </dev/null";
    command
        .args(["-c", script, "sh"])
        .arg(env!("CARGO_BIN_EXE_millpond"));
    let output = command
        .arg("serve")
        .arg(site.path())
        .stdin(OwnedFd::from(socket))
        .output();
    let notes = lab_testkit::text(&output.unwrap().stderr);
    assert!(notes.contains("descriptor 3"), "{notes}");
    assert!(notes.contains("does not listen"), "{notes}");
}

#[test]
fn a_socket_for_which_the_settings_have_no_use_is_closed() {
    let site = new_site();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let more = ["--listen", "127.0.0.1:0"];
    let server = activate(site.path(), socket.into(), "https", &more);
    server.wait_for(&format!("the socket `https` on {address} was handed over"));
    assert!(TcpStream::connect(address).is_err());
    assert_eq!(server.get("/").status, 200);
}

/// One request by a unix socket.
fn get_by_path(path: &Path) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
        .write_all(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A server that prints an address which is none of IP is waited for by its socket to systemd.
fn told(socket: &UnixDatagram) -> String {
    let mut buffer = [0; 1024];
    let length = socket.recv(&mut buffer).unwrap();
    lab_testkit::text(&buffer[..length])
}

#[test]
fn a_unix_socket_serves_and_is_taken_over() {
    let site = site_with("server.listen = \"unix:site.sock\"\nlog.access = \"access.log\"\n");
    let path = site.path().join("site.sock");
    // A program that has ended has left one.
    drop(UnixListener::bind(&path).unwrap());
    for round in 0..2 {
        let name = format!("millpond-test-{}-{round}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap());
        let socket = socket.unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut command = millpond(&["serve", "--workers", "2"]);
        command
            .arg(site.path())
            .env("NOTIFY_SOCKET", format!("@{name}"));
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let ready = told(&socket);
        assert!(ready.starts_with("READY=1\n"), "{ready}");
        assert!(
            ready.contains(&format!("STATUS=serving on unix:{}", path.display())),
            "{ready}"
        );
        for _ in 0..8 {
            let answer = get_by_path(&path);
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, Signal::TERM).unwrap();
        assert!(told(&socket).starts_with("STOPPING=1\n"));
        assert!(child.wait().unwrap().success());
    }
    let log = std::fs::read_to_string(site.path().join("access.log")).unwrap();
    assert_eq!(log.matches("127.0.0.1 - - ").count(), 16, "{log}");
}

#[test]
fn every_address_means_both_families() {
    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("there is no IPv6: not tested");
        return;
    }
    let site = new_site();
    let mut command = millpond(&["serve", "--listen", "[::]:0"]);
    command.arg(site.path());
    let server = Server::spawn(command);
    for host in ["127.0.0.1", "[::1]"] {
        let address = format!("{host}:{}", server.address().port())
            .parse()
            .unwrap();
        let mut client = Client::open(address, PATIENCE).unwrap();
        assert_eq!(client.get("/", &[]).unwrap().status, 200, "{host}");
    }
}

#[test]
fn systemd_hears_of_each_state() {
    let site = new_site();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = millpond(&["serve", "--listen", "127.0.0.1:0"]);
    command
        .arg(site.path())
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "20000");
    let server = Server::spawn(command);
    let ready = told(&socket);
    assert!(ready.starts_with("READY=1\nMAINPID="), "{ready}");
    assert!(
        ready.contains(&format!("STATUS=serving on {}", server.url())),
        "{ready}"
    );
    assert_eq!(told(&socket), "WATCHDOG=1");
    assert_eq!(told(&socket), "WATCHDOG=1");
    let but_watchdog = || loop {
        match told(&socket) {
            told if told == "WATCHDOG=1" => {}
            told => return told,
        }
    };
    server.signal(Signal::HUP);
    let reloading = but_watchdog();
    let (_, moment) = reloading
        .split_once("RELOADING=1\nMONOTONIC_USEC=")
        .unwrap();
    assert!(moment.parse::<u64>().unwrap() > 0);
    assert_eq!(but_watchdog(), "READY=1");
    server.signal(Signal::USR2);
    // The new process does not call itself the main one: the old one does, once it is certain.
    let ready = but_watchdog();
    assert!(ready.starts_with("READY=1\nSTATUS="), "{ready}");
    let pid = but_watchdog();
    assert!(pid.starts_with("MAINPID="), "{pid}");
    assert_ne!(pid, format!("MAINPID={}", server.pid()));
    let pid = pid.split_once('=').unwrap().1.parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert!(but_watchdog().starts_with("STOPPING=1\n"));
    server.wait_for_end();
}

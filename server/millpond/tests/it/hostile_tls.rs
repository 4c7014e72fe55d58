//! Attacks over TLS and HTTP/2 against the program: each has its stated end and bounded memory, and
//! a well-behaved client beside them is answered throughout.

use std::io::Write as _;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use lab_testkit::http2::{END_HEADERS, Frames, HEADERS, field, head};
use lab_torture::http::BaselineClient;
use lab_torture::http::site;
use lab_torture::secure::{SecureAttack, SecureTarget, secure_visitor};
use tempfile::TempDir;

use crate::memory::{connections, forget_peak, memory};
use crate::support::{Server, millpond, write};

const MIB: u64 = 1 << 20;
/// Connections that attack at once.
const ATTACKERS: usize = 20;
/// Memory that they may take together, of which 32 MiB are the budget of the worker.
const GROWTH: u64 = 48 * MIB;

/// A site with a certificate of its own authority, on one worker.
struct Site {
    _folder: TempDir,
    server: Server,
    target: SecureTarget,
}

impl Site {
    fn start(settings: &str) -> Self {
        let folder = lab_testkit::fast_dir();
        site::write(folder.path()).unwrap();
        let settings = format!("[database]\nurl = \"sqlite:site.db\"\n{settings}");
        write(folder.path(), "millpond.toml", &settings);
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--workers", "1"];
        let mut command = millpond(&arguments);
        command.args(["--tls-listen", "127.0.0.1:0", "--domain", "localhost"]);
        command.arg(folder.path());
        let server = Server::spawn(command);
        let target = SecureTarget::localhost(server.address());
        Self {
            _folder: folder,
            server,
            target,
        }
    }

    /// Small limits of time, so that what stands still ends soon.
    fn impatient() -> Self {
        Self::start(
            "[limits]\nhead_timeout = \"3s\"\nidle_timeout = \"4s\"\nprogress_timeout = \"3s\"\n",
        )
    }

    fn visitor(&self) -> BaselineClient {
        secure_visitor(self.target.clone(), "/mills", Duration::from_millis(5)).unwrap()
    }

    /// Ends the program, which has not panicked.
    fn stop(self) {
        let (status, notes) = self.server.stop();
        assert!(status.success() && !notes.contains("panicked"), "{notes}");
    }
}

#[track_caller]
fn check_undisturbed(visitor: BaselineClient) {
    let visits = visitor.stop();
    assert_eq!(visits.errors, 0, "{:?}", visits.first_errors);
    assert!(visits.good > 0);
}

fn withstands(attacks: &[SecureAttack]) {
    let site = Site::impatient();
    for attack in attacks {
        let visitor = site.visitor();
        forget_peak(&site.server);
        let before = memory(&site.server, "VmRSS");
        let ends: Vec<_> = thread::scope(|scope| {
            let attackers: Vec<_> = (0..ATTACKERS)
                .map(|_| scope.spawn(|| attack.run(&site.target)))
                .collect();
            let ends = attackers.into_iter().map(|one| one.join().unwrap());
            ends.collect()
        });
        let growth = memory(&site.server, "VmHWM").saturating_sub(before);
        eprintln!("{}: {} KiB more", attack.name(), growth >> 10);
        check_undisturbed(visitor);
        for end in ends {
            assert_eq!(end.unwrap(), attack.end(), "{}", attack.name());
        }
        assert!(growth < GROWTH, "{}: {growth}", attack.name());
    }
    site.stop();
}

#[test]
fn floods_of_frames_over_tls_end_with_their_error() {
    use SecureAttack as A;
    withstands(&[
        A::RapidReset,
        A::MadeYouReset,
        A::Continuations,
        A::HpackBomb,
        A::CookieBomb,
        A::SettingsFlood,
        A::PingFlood,
        A::EmptyData,
    ]);
}

#[test]
fn streams_that_stand_still_over_tls_end() {
    use SecureAttack as A;
    withstands(&[A::StalledStreams, A::DrippingWindows, A::OpenHead]);
}

#[test]
fn handshakes_and_records_that_stand_still_end() {
    use SecureAttack as A;
    withstands(&[
        A::Silent,
        A::HalfHello,
        A::HelloByteByByte,
        A::EndlessHello,
        A::HandshakeAndNothing,
        A::PartialRecord,
    ]);
}

#[test]
fn floods_of_records_end() {
    use SecureAttack as A;
    withstands(&[
        A::Renegotiation,
        A::HelloRequests,
        A::KeyUpdates,
        A::EmptyRecords,
        A::PaddedRecords,
        A::Alerts,
    ]);
}

/// How much more memory the program takes while `count` connections hold what `hold` sends on them,
/// with a visitor beside them.
fn growth<H>(count: usize, what: &str, hold: impl Fn(&SecureTarget) -> H) -> u64 {
    let site = Site::start("");
    let visitor = site.visitor();
    forget_peak(&site.server);
    let before = memory(&site.server, "VmRSS");
    let held: Vec<H> = (0..count).map(|_| hold(&site.target)).collect();
    check_undisturbed(visitor);
    let growth = memory(&site.server, "VmHWM").saturating_sub(before);
    eprintln!("{count} {what}: {} KiB more", growth >> 10);
    drop(held);
    growth
}

/// A socket with the beginning of a ClientHello of 64 KB in four records.
fn partial_hello(target: &SecureTarget) -> TcpStream {
    let mut socket = TcpStream::connect(target.address).unwrap();
    let mut message = vec![1, 0, 0xff, 0xf0, 3, 3];
    message.resize(60_000, 0);
    for part in message.chunks(16_000) {
        let len = u16::try_from(part.len()).unwrap().to_be_bytes();
        let record = [&[22, 3, 1, len[0], len[1]], part].concat();
        // A server that ends a handshake early does not take all of it.
        let _ = socket.write_all(&record);
    }
    socket
}

/// A socket with most of a record behind a complete handshake.
fn partial_record(target: &SecureTarget) -> TcpStream {
    let (_, mut socket) = target.connect(b"http/1.1").unwrap().into_parts();
    let mut record = vec![23, 3, 3, 0x40, 0];
    record.resize(16_000, 0);
    let _ = socket.write_all(&record);
    socket
}

/// A head of 63,000 bytes of HTTP/1.1 through TLS, without its end.
fn partial_head(target: &SecureTarget) -> impl Sized + use<> {
    let mut stream = target.connect(b"http/1.1").unwrap();
    let head = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nA: {}",
        "a".repeat(63_000)
    );
    let _ = stream.write_all(head.as_bytes());
    stream
}

/// A head of 60,000 bytes in frames without END_HEADERS.
fn open_head(target: &SecureTarget) -> Frames {
    let mut frames = Frames::open(target.connect(b"h2").unwrap(), &[]).unwrap();
    let mut block = head("GET", "/");
    field(&mut block, b"a", &[b'v'; 15_000]);
    let _ = frames.send(HEADERS, 0, 1, &block);
    for _ in 0..3 {
        let mut block = Vec::new();
        field(&mut block, b"a", &[b'v'; 15_000]);
        let _ = frames.send(9, 0, 1, &block);
    }
    frames
}

/// A hundred streams with complete heads of 16 KB, whose bodies do not come.
fn open_streams(target: &SecureTarget) -> Frames {
    let mut frames = Frames::open(target.connect(b"h2").unwrap(), &[]).unwrap();
    let mut block = head("POST", "/");
    field(&mut block, b"a", &[b'v'; 16_000]);
    for number in 0..100 {
        let _ = frames.send(HEADERS, END_HEADERS, 1 + 2 * number, &block);
    }
    frames
}

fn all_growths(count: usize) -> [(u64, &'static str); 5] {
    let count = connections(count);
    [
        (
            growth(count, "partial ClientHellos", partial_hello),
            "hello",
        ),
        (growth(count, "partial records", partial_record), "record"),
        (growth(count, "partial heads", partial_head), "head"),
        (growth(count, "open HEADERS", open_head), "open head"),
        (
            growth(count / 10, "times 100 streams", open_streams),
            "streams",
        ),
    ]
}

#[test]
fn what_does_not_end_over_tls_takes_bounded_memory() {
    for (growth, what) in all_growths(2_000) {
        assert!(growth < 64 * MIB, "{what}: {growth}");
    }
}

#[test]
#[ignore = "opens ten thousand connections"]
fn ten_thousand_connections_over_tls_take_bounded_memory() {
    for (growth, what) in all_growths(9_900) {
        assert!(growth < 100_000_000, "{what}: {growth}");
    }
}

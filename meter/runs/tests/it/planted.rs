//! Servers with a known bottleneck. Each is a process of its own: this test program, started again.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// The variable that says which server the process becomes.
const KIND: &str = "MILLPOND_PLANTED";
const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
/// Bytes that a request writes, past the page cache: so the disk has most of the work.
const WRITE: usize = 1 << 19;
/// Alignment of such writes that every disk accepts.
const ALIGN: usize = 4096;
/// Before the port, on a line of standard output.
const MARK: &str = "listening on ";

/// A server's process; it ends with this.
pub(crate) struct Planted {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Planted {
    /// Starts the server `kind`.
    pub(crate) fn start(kind: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "planted::serve", "--ignored", "--nocapture"])
            .args(["--test-threads", "1"])
            .env(KIND, kind)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let address = output
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.split_once(MARK)?.1.trim().parse().ok())
            .expect("the server says where it listens");
        Self { child, address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server at once.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test: the body of a planted server.
#[test]
#[ignore = "the body of a server that other tests start"]
fn serve() {
    let Ok(kind) = std::env::var(KIND) else {
        return;
    };
    // The server ends with its parent in every case.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{MARK}{}", listener.local_addr().unwrap());
    match kind.as_str() {
        "spin" => one_thread(&listener, || spin(Duration::from_millis(1))),
        "sync" => {
            let mut file = unnamed_file();
            let aligned = vec![b'x'; WRITE + ALIGN];
            let start = aligned.as_ptr().align_offset(ALIGN);
            one_thread(&listener, move || {
                file.rewind().unwrap();
                file.write_all(&aligned[start..start + WRITE]).unwrap();
                file.sync_data().unwrap();
            });
        }
        "lock" => {
            let lock = Mutex::new(());
            per_connection(&listener, || {
                let _held = lock.lock().unwrap();
                std::thread::park_timeout(Duration::from_millis(2));
            });
        }
        "sleep" => per_connection(&listener, || {
            std::thread::park_timeout(Duration::from_millis(20));
        }),
        "fast" => per_connection(&listener, || ()),
        "full" => {
            // Listening again changes the length of the queue.
            rustix::net::listen(&listener, 1).unwrap();
            let (first, _) = listener.accept().unwrap();
            loop_on(&first, |mut stream, _| {
                let _ = stream.write_all(HELLO);
            });
        }
        other => panic!("no server is called {other}"),
    }
}

/// A file beside the test program, on a disk and not in memory. It has no name and disappears with
/// the process.
fn unnamed_file() -> File {
    let folder = std::env::current_exe().unwrap();
    let path = folder.with_file_name(format!("planted-{}", std::process::id()));
    let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    let file = options.clone().custom_flags(direct).open(&path);
    // A file system in memory has no cache to go past.
    let file = file.or_else(|_| options.open(&path)).unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

/// Computes for this much CPU time, however long the machine lets it wait.
fn spin(time: Duration) {
    let used = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
    };
    let begin = used();
    let mut n = 0_u64;
    while used() - begin < time {
        n = std::hint::black_box(n.wrapping_mul(31).wrapping_add(7));
    }
}

/// One thread accepts connections, the other does all the work, one request after the other.
fn one_thread(listener: &TcpListener, mut work: impl FnMut() + Send) {
    let (sender, requests) = std::sync::mpsc::channel::<(TcpStream, usize)>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for (mut stream, count) in requests {
                for _ in 0..count {
                    work();
                    let _ = stream.write_all(HELLO);
                }
            }
        });
        per_connection_with(listener, |stream, count| {
            let _ = sender.send((stream.try_clone().unwrap(), count));
        });
    });
}

/// A thread for each connection.
fn per_connection(listener: &TcpListener, work: impl Fn() + Sync) {
    per_connection_with(listener, |mut stream, count| {
        (0..count).for_each(|_| work());
        let _ = stream.write_all(&HELLO.repeat(count));
    });
}

/// Calls `answer` with the number of requests that have come at once.
fn per_connection_with(listener: &TcpListener, answer: impl Fn(&TcpStream, usize) + Sync) {
    std::thread::scope(|scope| {
        for stream in listener.incoming().flatten() {
            let answer = &answer;
            scope.spawn(move || loop_on(&stream, answer));
        }
    });
}

/// Calls `answer` for the requests of one connection, until it is closed.
fn loop_on(mut stream: &TcpStream, answer: impl Fn(&TcpStream, usize)) {
    stream.set_nodelay(true).unwrap();
    let (mut buffer, mut filled) = ([0; 16 * 1024], 0);
    while let Ok(count @ 1..) = stream.read(&mut buffer[filled..]) {
        filled += count;
        let (mut ends, mut last) = (0, None);
        for end in memchr::memmem::find_iter(&buffer[..filled], b"\r\n\r\n") {
            (ends, last) = (ends + 1, Some(end));
        }
        if let Some(last) = last {
            answer(stream, ends);
            buffer.copy_within(last + 4..filled, 0);
            filled -= last + 4;
        }
    }
}

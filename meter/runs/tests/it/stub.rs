//! Servers of a few lines on threads of their own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millrace_client::{Plan, Stop};
use millrace_runs::{Loop, Run, run};
use millrace_stats::Hdr;

/// A good response of five bytes.
pub(crate) const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A server; its listener ends with it.
pub(crate) struct StubServer {
    pub(crate) address: SocketAddr,
    /// Connections accepted so far.
    pub(crate) accepted: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl StubServer {
    /// Calls `handle` with every connection, each on a thread of its own.
    pub(crate) fn start(handle: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        Self::bind("127.0.0.1:0", handle)
    }

    pub(crate) fn bind(address: &str, handle: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let (address, handle) = (listener.local_addr().unwrap(), Arc::new(handle));
        let (accepted, stop) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (count, stopped) = (Arc::clone(&accepted), Arc::clone(&stop));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
                let handle = Arc::clone(&handle);
                std::thread::spawn(move || handle(stream));
            }
        });
        Self {
            address,
            accepted,
            stop,
        }
    }

    /// Answers every request with the same bytes, and keeps the connection as the client wishes.
    pub(crate) fn fixed(answer: &'static [u8]) -> Self {
        Self::start(move |stream| {
            serve(&stream, |_, _| Some(answer.to_vec()));
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for StubServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// Reads requests and writes the response that `answer` makes from the request's number and head;
/// `None` closes the connection.
pub(crate) fn serve(mut stream: &TcpStream, mut answer: impl FnMut(u64, &str) -> Option<Vec<u8>>) {
    let mut reader = BufReader::new(stream);
    let _ = stream.set_nodelay(true);
    for number in 0.. {
        let Some(head) = read_head(&mut reader) else {
            return;
        };
        let Some(bytes) = answer(number, &head) else {
            return;
        };
        if stream.write_all(&bytes).is_err() || head.contains("Connection: close") {
            return;
        }
    }
}

/// A head with the body that it announces, the body dropped.
fn read_head(reader: &mut BufReader<&TcpStream>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    if let Some(length) = length {
        std::io::copy(
            &mut reader.take(length.parse().unwrap()),
            &mut std::io::sink(),
        )
        .ok()?;
    }
    Some(head)
}

/// A plan of `count` requests.
pub(crate) fn counted(url: String, connections: usize, count: u64) -> Plan {
    let timeout = Duration::from_secs(60);
    Plan::new(url).with(|plan| {
        plan.load.connections = connections;
        plan.length.stop = Stop::Requests(count);
        plan.load.threads = 2;
        plan.request.timeout = timeout;
    })
}

/// Runs a plan and checks what must hold of every run.
pub(crate) fn measure(plan: &Plan) -> Run {
    let run = run(plan, None, &AtomicBool::new(false)).unwrap();
    check(&run);
    run
}

/// True if `attempt` succeeds once within a minute, and in four attempts at least: every measured
/// time includes turns of other programs on the cores.
pub(crate) fn once(attempt: impl FnMut(usize) -> bool) -> bool {
    let began = Instant::now();
    (0..)
        .take_while(|number| *number < 4 || began.elapsed() < Duration::from_secs(60))
        .any(attempt)
}

/// Checks a run: the accounting, the sums, and that its JSON says the same.
pub(crate) fn check(run: &Run) {
    let all = &run.accounting;
    assert_eq!(
        all.issued,
        all.answered + all.failed + all.shed + all.abandoned + all.in_flight,
        "{run:#?}"
    );
    assert_eq!(run.requests, all.answered);
    assert_eq!(
        all.good,
        run.latency_us.service.map_or(0, |service| service.count)
    );
    assert_eq!(
        run.histogram.iter().map(|bucket| bucket.count).sum::<u64>(),
        all.good
    );
    let points = &run.series.points;
    assert_eq!(
        points.iter().map(|point| point.requests).sum::<u64>(),
        all.answered + all.failed + all.shed
    );
    let errors = run.errors.total() - run.errors.count("unsolicited");
    assert_eq!(errors, all.failed + all.shed + all.answered - all.good);
    assert_eq!(run.errors.count("shed"), all.shed);
    assert_eq!(points.iter().map(|point| point.errors).sum::<u64>(), errors);
    let json = serde_json::to_string(run).unwrap();
    let back: Run = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&back.accounting, &back.errors, &back.reasons),
        (&run.accounting, &run.errors, &run.reasons)
    );
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let is_open = run.kind == Loop::Open;
    assert_eq!(json["loop"], if is_open { "open" } else { "closed" });
    assert_eq!(json["verdict"], run.verdict.to_string());
    let response = &json["latency_us"]["response"];
    assert_eq!(response.is_null(), !is_open || all.good == 0, "{response}");
    for time in ["send_lag", "waiting", "lateness"] {
        assert!(is_open || json["latency_us"][time].is_null(), "{time}");
    }
    check_series(run, is_open);
}

/// The histograms of the intervals have every sample of the run; a closed loop has only one kind.
fn check_series(run: &Run, is_open: bool) {
    let series = &run.series;
    let samples = |times: &[Option<Hdr>]| -> u64 { times.iter().flatten().map(Hdr::samples).sum() };
    assert_eq!(samples(&series.histograms), run.accounting.good);
    let (service, send_lag) = (samples(&series.service), samples(&series.send_lag));
    if is_open {
        let sent = run.latency_us.send_lag.map_or(0, |lag| lag.count);
        assert_eq!((service, send_lag), (run.accounting.good, sent));
        assert_eq!(series.service.len(), series.points.len());
        assert_eq!(series.send_lag.len(), series.points.len());
    } else {
        assert!(series.service.is_empty() && series.send_lag.is_empty());
    }
}

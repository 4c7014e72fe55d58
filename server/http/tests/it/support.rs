//! A server on a free port with a service that does what its paths say, and a client that speaks in
//! bytes.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use base_clock::Boottime;
use bytes::Bytes;
pub(crate) use lab_testkit::Response as Answer;
use lab_testkit::{Connection, PATIENCE};
use millpond_http::{
    BodyHandling, Limits, Listener, Parts, Prepared, Reply, Request, Response, Service, Validity,
    ValidityCheck, WorkerGroup, listen, run_worker,
};
use socket2::SockRef;
use tokio::sync::Semaphore;

use crate::streamed_responses::BodyMaker;
use crate::streaming::BodyTaker;

/// Call as the service saw it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ServiceCall {
    /// `/later`, `/careless` or `/block` was called and waits for the gate.
    Waiting,
    Done {
        target: String,
        status: u16,
        body_bytes: u64,
    },
    Refused(u16),
    /// The receiver of a body was dropped, and the body was not complete.
    Dropped,
}

/// See [`App::call`].
struct App {
    gate: Arc<Semaphore>,
    file: Option<Arc<File>>,
    seen: Sender<ServiceCall>,
    value: Rc<RefCell<String>>,
    /// True if it wants to be told.
    is_told: bool,
    calls: Cell<usize>,
    prepared: Prepared,
}

/// Returns the label of the responses at a path.
pub(crate) fn label(path: &str) -> u32 {
    let labelled = ["/kept", "/large", "/big", "/later"];
    let at = labelled.iter().position(|labelled| *labelled == path);
    at.map_or(0, |at| at as u32 + 7)
}

/// Makes the response of `/prepared`.
pub(crate) fn prepared() -> Prepared {
    Prepared::new(Parts {
        status: 200,
        media_type: "text/plain",
        fields: &[("Cache-Control", "no-cache")],
        body: "0123456789".repeat(100).into(),
        last_modified: None,
        compressible: false,
    })
}

/// An answer that is good for as long as the value is the same; whether it is good when that is
/// `panic` makes one.
struct SameValue {
    value: Rc<RefCell<String>>,
    was: String,
}

impl ValidityCheck for SameValue {
    fn is_valid(&self, _received: Boottime) -> bool {
        assert_ne!(*self.value.borrow(), "panic", "asked for");
        *self.value.borrow() == self.was
    }
}

impl App {
    /// Waits for the gate, then stores the body and answers with it.
    async fn later(gate: Arc<Semaphore>, value: Rc<RefCell<String>>, body: Bytes) -> Response {
        gate.acquire().await.unwrap().forget();
        *value.borrow_mut() = String::from_utf8_lossy(&body).into_owned();
        Response::builder(200)
            .body(body)
            .with_label(label("/later"))
    }

    /// Waits for the gate while nothing else of the worker goes on, then answers.
    fn block(gate: &Semaphore, seen: &Sender<ServiceCall>) -> Response {
        seen.send(ServiceCall::Waiting).unwrap();
        loop {
            match gate.try_acquire() {
                Ok(permit) => break permit.forget(),
                Err(_) => std::thread::yield_now(),
            }
        }
        Response::text(200, "blocked")
    }

    fn reply(&self, request: &Request<'_>) -> Reply {
        self.calls.set(self.calls.get() + 1);
        match request.path {
            "/kept" => Response::text(200, &self.value.borrow()).into(),
            "/large" => Response::builder(200).body(vec![b'l'; 20 << 10]).into(),
            "/calls" => Response::text(200, &self.calls.get().to_string()).into(),
            "/set" => {
                let text = String::from_utf8_lossy(&request.body).into_owned();
                self.value.replace(text.clone());
                Response::text(200, &text).into()
            }
            "/echo" => Response::builder(200).body(request.body.clone()).into(),
            "/value" => Response::text(200, &self.value.borrow()).into(),
            "/later" => {
                self.seen.send(ServiceCall::Waiting).unwrap();
                Reply::later(Self::later(
                    Arc::clone(&self.gate),
                    Rc::clone(&self.value),
                    request.body.clone(),
                ))
            }
            "/careless" => {
                self.seen.send(ServiceCall::Waiting).unwrap();
                let gate = Arc::clone(&self.gate);
                Reply::later(async move {
                    gate.acquire().await.unwrap().forget();
                    Response::text(200, "whatever it was")
                })
            }
            "/block" => Self::block(&self.gate, &self.seen).into(),
            "/block-later" => {
                let (gate, seen) = (Arc::clone(&self.gate), self.seen.clone());
                Reply::later(async move { Self::block(&gate, &seen) })
            }
            "/medium" => Response::builder(200).body(vec![b'x'; 200 << 10]).into(),
            "/big" => Response::builder(200).body(vec![b'x'; 32 << 20]).into(),
            "/file" => {
                let file = Arc::clone(self.file.as_ref().unwrap());
                let len = file.metadata().unwrap().len();
                let more = request.query.map_or(0, |more| more.parse().unwrap());
                Response::builder(200).file(file, 0, len + more).into()
            }
            "/prepared" => self.prepared.respond(request, Bytes::new()).into(),
            "/client" => {
                let (client, peer) = (request.client().address(), request.peer);
                let text = format!("{client} {peer} {}", request.is_secure);
                Response::text(200, &text).into()
            }
            "/none" => Response::builder(204).body("not sent").into(),
            "/close" => Response::text(200, "bye").closing().into(),
            "/panic" => panic!("asked for"),
            "/panic-later" => Reply::later(async { panic!("asked for") }),
            path if path.starts_with("/made") => BodyMaker::reply(request, &self.gate, &self.seen),
            path => Response::text(200, path).into(),
        }
    }
}

impl Service for App {
    fn body_begins(&self, request: &Request<'_>) -> BodyHandling {
        match request.path {
            "/unwanted" => BodyHandling::Refused(Response::text(403, "unwanted")),
            "/panic-at-body" => panic!("asked for"),
            path if path.starts_with("/stream") => {
                let taker = BodyTaker::new(request, &self.gate, &self.seen);
                BodyHandling::Streamed(Box::new(taker))
            }
            _ => BodyHandling::Whole,
        }
    }

    fn call(&self, request: &Request<'_>) -> Reply {
        match self.reply(request) {
            Reply::Ready(response) if matches!(request.path, "/kept" | "/large") => {
                let validity = SameValue {
                    value: Rc::clone(&self.value),
                    was: self.value.borrow().clone(),
                };
                let response = response.with_label(label(request.path));
                Reply::Reusable(Box::new((response, Validity::Check(Box::new(validity)))))
            }
            Reply::Ready(response) => response.with_label(label(request.path)).into(),
            reply => reply,
        }
    }

    fn wants_done(&self) -> bool {
        self.is_told
    }

    fn done(&self, request: &Request<'_>, status: u16, body_bytes: u64, _label: u32) {
        if request.path == "/panic-in-log" {
            panic!("asked for");
        }
        // A test that has ended does not listen any more.
        let _ = self.seen.send(ServiceCall::Done {
            target: request.target.to_owned(),
            status,
            body_bytes,
        });
    }

    fn refused(&self, _peer: SocketAddr, status: u16) {
        let _ = self.seen.send(ServiceCall::Refused(status));
    }
}

/// A running worker; it is shut down and awaited when dropped.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    pub(crate) shared: Arc<WorkerGroup>,
    pub(crate) gate: Arc<Semaphore>,
    pub(crate) seen: Receiver<ServiceCall>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(limits: Limits) -> Self {
        Self::with_file(limits, None)
    }

    pub(crate) fn with_file(limits: Limits, file: Option<File>) -> Self {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        Self::on(listener, limits, file, true)
    }

    /// Its service does not want to be told of requests.
    pub(crate) fn untold() -> Self {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        Self::on(listener, Limits::default(), None, false)
    }

    /// Its sockets take little at once.
    pub(crate) fn with_small_sockets() -> Self {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        SockRef::from(&listener)
            .set_send_buffer_size(8 << 10)
            .unwrap();
        Self::on(listener, Limits::default(), None, true)
    }

    pub(crate) fn on(
        listener: impl Into<Listener>,
        limits: Limits,
        file: Option<File>,
        is_told: bool,
    ) -> Self {
        let listener = listener.into();
        let addr = listener.socket.local_addr().unwrap();
        let (sender, seen) = mpsc::channel();
        let (shared, gate) = (WorkerGroup::new(), Arc::new(Semaphore::new(0)));
        let thread = std::thread::spawn({
            let (shared, gate) = (Arc::clone(&shared), Arc::clone(&gate));
            move || {
                let app = App {
                    gate,
                    file: file.map(Arc::new),
                    seen: sender,
                    value: Rc::default(),
                    is_told,
                    calls: Cell::default(),
                    prepared: prepared(),
                };
                run_worker(listener, app, limits, shared).unwrap();
            }
        });
        Self {
            addr,
            shared,
            gate,
            seen,
            thread: Some(thread),
        }
    }

    pub(crate) fn connect(&self) -> Client {
        Client::open(self.addr)
    }

    /// The server still does what it is for.
    #[track_caller]
    pub(crate) fn check_serves(&self) {
        let mut client = self.connect();
        client.get("/ok");
        assert_eq!(client.response().text(), "/ok");
    }

    #[track_caller]
    pub(crate) fn next_seen(&self) -> ServiceCall {
        self.seen.recv_timeout(PATIENCE).unwrap()
    }

    /// Waits for the worker's thread to end.
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.shutdown();
        self.gate.add_permits(100);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap();
            }
        }
    }
}

/// A client that speaks in bytes.
pub(crate) struct Client(Connection);

impl Client {
    /// Sends bytes; also such as no client should send.
    #[track_caller]
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.send(bytes);
    }

    pub(crate) fn open(addr: SocketAddr) -> Self {
        Self(Connection::open(addr))
    }

    pub(crate) fn get(&mut self, target: &str) {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
    }

    pub(crate) fn post(&mut self, target: &str, body: &str) {
        let len = body.len();
        self.send(format!(
            "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\n{body}"
        ));
    }

    /// The next response, with its body.
    #[track_caller]
    pub(crate) fn response(&mut self) -> Answer {
        self.0.receive()
    }

    /// The head of the next response only.
    #[track_caller]
    pub(crate) fn head(&mut self) -> Answer {
        self.0.receive_head()
    }

    /// True if the server closes here, without another byte.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.0.is_closed()
    }

    /// Reads once; a reset counts as the end.
    #[track_caller]
    pub(crate) fn read(&mut self) -> usize {
        self.0.fill()
    }

    /// Bytes received that belong to no response yet.
    pub(crate) fn buffered(&self) -> usize {
        self.0.buffered()
    }

    /// The socket.
    pub(crate) fn stream(&self) -> &TcpStream {
        self.0.stream()
    }
}

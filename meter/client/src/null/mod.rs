//! The null server: the least that an HTTP server can do, for measuring the client.
//!
//! It answers every request with the same bytes: at once, after a given delay, or after given work.
//! It can log when the kernel received each request, when it was read, and when its response was
//! sent. What a client measures against it is the client's own: its highest rate, its shortest
//! time, and, with the log, the error of its percentiles. It searches heads for their end and three
//! fields and does not validate them, so it is no server for other purposes.

mod connection;
mod delay;
mod scan;
mod timestamps;
mod worker;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use socket2::{Domain, Socket, Type};

use crate::Error;
pub use delay::Delay;
use worker::Worker;

/// Connections that the kernel holds until they are accepted, limited by `net.core.somaxconn`.
const BACKLOG: i32 = 4096;
/// The largest response.
const LARGEST: usize = 1 << 30;

/// Configuration of a null server.
#[derive(Clone, Debug)]
pub struct NullPlan {
    /// Address to listen at; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// Bytes of the body of its responses.
    pub body: usize,
    /// How long it waits between reading a request and sending the response.
    pub delay: Delay,
    /// How long a thread then works on each response, by the clock, one after the other; at most a
    /// second. The rate does not depend on the speed of its core, except for system calls and for
    /// time in which the core is taken away. Requests that are not read yet wait in the kernel.
    pub work: Duration,
    /// Threads, each with an epoll loop and its share of the connections; at least 1.
    pub threads: usize,
    /// Cores to pin the threads to, in turn; empty is none.
    pub cores: Vec<usize>,
    /// True if the threads never sleep. They then read a request on arrival, without waiting for a
    /// core to wake up, and use their cores fully.
    pub spin: bool,
    /// Responses that each thread keeps in its log, 32 bytes each; the newest replace the oldest.
    /// With a log the kernel is asked for timestamps of received packets, which it then makes for
    /// all sockets of the machine.
    pub log: usize,
}

impl Default for NullPlan {
    /// An empty body at once, from one thread, on a port of 127.0.0.1 that the kernel chooses,
    /// without a log.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            body: 0,
            delay: Delay::None,
            work: Duration::ZERO,
            threads: 1,
            cores: Vec::new(),
            spin: false,
            log: 0,
        }
    }
}

/// One response of a null server. Times are nanoseconds of `CLOCK_MONOTONIC`, which all processes
/// of a machine share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NullAnswer {
    /// When the end of the request's head had been read.
    pub arrived_ns: u64,
    /// When the response was handed to the system. The actual delay, work included, is the
    /// difference to `arrived_ns`.
    pub answered_ns: u64,
    /// When the kernel received the last packet of the read, independent of the server's thread;
    /// over loopback this is on the sender's core. `None` before the kernel has begun to stamp
    /// packets, some moments after the server's start.
    pub received_ns: Option<u64>,
}

/// Counts and delays of a null server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NullLog {
    /// The responses in the order in which their requests arrived.
    pub answers: Vec<NullAnswer>,
    /// Older answers for which the log had no room.
    pub lost: u64,
}

/// A running null server. It ends when it is stopped or dropped.
#[derive(Debug)]
pub struct NullServer {
    address: SocketAddr,
    shared: Arc<NullShared>,
    workers: Vec<JoinHandle<Result<NullLog, Error>>>,
}

/// State that the threads of one server share.
#[derive(Debug)]
struct NullShared {
    stop: AtomicBool,
    /// Requests that have had their delay.
    number: AtomicU64,
    mailboxes: Vec<Mailbox>,
}

/// Hands connections to a thread and wakes it.
#[derive(Debug)]
struct Mailbox {
    wake: OwnedFd,
    inbox: Mutex<Vec<OwnedFd>>,
}

impl Mailbox {
    fn wake_thread(&self) {
        // Fails only if the counter is full, and then the thread is already woken.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

impl NullServer {
    /// Starts a server; it listens when this returns.
    ///
    /// # Errors
    /// The plan cannot be carried out, or the system refuses the address, a core, a thread or a
    /// descriptor.
    pub fn start(plan: &NullPlan) -> Result<Self, Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        if plan.threads == 0 || plan.threads > 1024 {
            return refuse("a null server has from 1 to 1024 threads");
        }
        if plan.body > LARGEST {
            return refuse("the answers of a null server have at most 1 GiB");
        }
        if plan.work > Duration::from_secs(1) {
            return refuse("a null server works at most a second for an answer");
        }
        if matches!(&plan.delay, Delay::Listed(list) if list.is_empty()) {
            return refuse("the list of delays is empty");
        }
        let listener = listen(plan.listen)?;
        if plan.log > 0 {
            timestamps::enable(&listener).map_err(failed("have the kernel stamp what comes"))?;
        }
        let address = listener.local_addr().map_err(failed("ask for the port"))?;
        let mailboxes = (0..plan.threads).map(|_| mailbox());
        let shared = Arc::new(NullShared {
            stop: AtomicBool::new(false),
            number: AtomicU64::new(0),
            mailboxes: mailboxes.collect::<Result<_, _>>()?,
        });
        let mut server = Self {
            address,
            shared: Arc::clone(&shared),
            workers: Vec::with_capacity(plan.threads),
        };
        let mut listener = Some(OwnedFd::from(listener));
        let (pinned, results) = mpsc::channel();
        for thread in 0..plan.threads {
            let worker = Worker::new(plan, &shared, thread, listener.take())?;
            let core = plan.cores.get(thread % plan.cores.len().max(1)).copied();
            let pinned = pinned.clone();
            let body = move || {
                let result = core.map_or(Ok(()), crate::limits::pin);
                let is_pinned = result.is_ok();
                // `start` waits for this result.
                let _ = pinned.send(result);
                drop(pinned);
                if is_pinned {
                    worker.run()
                } else {
                    Ok(NullLog::default())
                }
            };
            let started = std::thread::Builder::new()
                .name(format!("null-{thread}"))
                .spawn(body);
            server
                .workers
                .push(started.map_err(failed("start a thread"))?);
        }
        drop(pinned);
        results.iter().collect::<Result<(), _>>()?;
        Ok(server)
    }

    /// Returns the address at which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its root.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Ends it, with its connections, and gives its log.
    ///
    /// # Errors
    /// A thread had failed meanwhile.
    pub fn stop(mut self) -> Result<NullLog, Error> {
        self.end()
    }

    fn end(&mut self) -> Result<NullLog, Error> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.mailboxes.iter().for_each(Mailbox::wake_thread);
        let mut log = NullLog::default();
        for worker in self.workers.drain(..) {
            let part = worker.join().map_err(|_| Error::Thread)??;
            log.answers.extend(part.answers);
            log.lost += part.lost;
        }
        log.answers.sort_unstable();
        Ok(log)
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        // No caller is left to receive the error of a thread.
        let _ = self.end();
    }
}

/// The length of the head of a response with a body of `body` bytes.
pub fn head_length(body: usize) -> usize {
    connection::head(body).len()
}

fn listen(address: SocketAddr) -> Result<std::net::TcpListener, Error> {
    let cannot =
        |source: std::io::Error| Error::Plan(format!("cannot listen on {address}: {source}"));
    let open = || {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM.nonblocking().cloexec(),
            None,
        )?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    open().map_err(cannot)
}

fn mailbox() -> Result<Mailbox, Error> {
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    Ok(Mailbox {
        wake: wake
            .map_err(std::io::Error::from)
            .map_err(failed("create an eventfd"))?,
        inbox: Mutex::default(),
    })
}

fn failed(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::System { what, source }
}

//! A server: listeners, workers, the threads that may block, and their end.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use millpond_access_log::{AccessLog, LogFormat};
use millpond_http::{Compressor, Limits, Listener, ServerConfig, Stats, WorkerGroup, listen_group};
use millpond_pages::{Admission, Capacity};
use millpond_process::{SignalListener, WorkerEnd, Workers, worker_count};
use parking_lot::Mutex;

use crate::error::{StartError, debug_as_display};
use crate::limits::{BLOCKING_QUEUE, BLOCKING_THREADS, PAGE_DEADLINE};
use crate::pool::BlockingPool;
use crate::routes::Routes;
use crate::service::{RouteService, Shared};
use crate::tls;

/// Time that workers have beyond the drain to close what is left.
const GRACE: Duration = Duration::from_secs(2);

/// Settings of a server; [`serve`](ServerSettings::serve) starts it.
///
/// ```
/// use std::time::Duration;
/// use millpond::{Limits, Routes, ServerSettings};
///
/// let server = ServerSettings::new()
///     .listen("127.0.0.1:0")
///     .workers(2)
///     .limits(Limits { body: 64 << 10, idle_timeout: Duration::from_secs(5), ..Limits::default()
///   })
///     .serve(Routes::new())?;
/// println!("{}", server.url());
/// # Ok::<(), millpond::StartError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ServerSettings {
    listen: String,
    workers: usize,
    limits: Limits,
    blocking_threads: usize,
    blocking_queue: usize,
    access_log: Option<PathBuf>,
    tls: Option<Arc<ServerConfig>>,
    tls_files: Option<[PathBuf; 2]>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self::new()
    }
}

impl ServerSettings {
    /// `127.0.0.1:8080`, a worker for each core, 32 threads that may block with 256 places in their
    /// queue, the limits of `millpond serve`, no log.
    #[must_use]
    pub fn new() -> Self {
        Self {
            listen: "127.0.0.1:8080".to_owned(),
            workers: 0,
            limits: Limits::default(),
            blocking_threads: BLOCKING_THREADS,
            blocking_queue: BLOCKING_QUEUE,
            access_log: None,
            tls: None,
            tls_files: None,
        }
    }

    /// The address with its port; port 0 is any free one, which [`WebServer::address`] says.
    #[must_use]
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.listen = address.into();
        self
    }

    /// Threads that serve connections; 0 is one for each core.
    #[must_use]
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = count;
        self
    }

    /// Sets the limits of a client on a connection, in size and time: the names are those of
    /// `[limits]` in `millpond.toml`.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Threads for handlers that [may block](crate::blocking), at least 1. They are started when
    /// they are needed first.
    #[must_use]
    pub fn blocking_threads(mut self, count: usize) -> Self {
        self.blocking_threads = count;
        self
    }

    /// Requests that may wait for such a thread; one more is answered with 503 at once.
    #[must_use]
    pub fn blocking_queue(mut self, count: usize) -> Self {
        self.blocking_queue = count;
        self
    }

    /// Writes a line for each request, in the combined format; `-` is standard output.
    #[must_use]
    pub fn access_log(mut self, path: impl Into<PathBuf>) -> Self {
        self.access_log = Some(path.into());
        self
    }

    /// Serves https and HTTP/2 with a certificate (and those of the authorities above it) and its
    /// key, from files in PEM.
    #[must_use]
    pub fn tls_files(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls_files = Some([certificate.into(), key.into()]);
        self
    }

    /// Serves https with this configuration of `rustls`. With `h2` among its `alpn_protocols`,
    /// clients speak HTTP/2.
    #[must_use]
    pub fn tls(mut self, config: Arc<ServerConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// Serves until SIGTERM or Ctrl-C: all that the `main` of a service needs. The first argument
    /// of the program, if there is one, is the address, before that of
    /// [`listen`](ServerSettings::listen). Writes the URL to standard output, and why the server
    /// does not start, or ended, to standard error.
    ///
    /// ```no_run
    /// use millpond::{Request, Routes, ServerSettings, quick};
    /// use std::process::ExitCode;
    ///
    /// fn main() -> ExitCode {
    ///     let mut routes = Routes::new();
    ///     routes.get("/", quick(|_: &Request| "Hello!"));
    ///     ServerSettings::new().run(routes)
    /// }
    /// ```
    #[must_use]
    pub fn run(mut self, routes: Routes) -> ExitCode {
        if let Some(address) = std::env::args().nth(1) {
            self.listen = address;
        }
        match self.run_to_end(routes) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                // A closed standard error is no reason to panic.
                let _ = writeln!(io::stderr(), "error: {error}");
                ExitCode::FAILURE
            }
        }
    }

    fn run_to_end(self, routes: Routes) -> Result<(), Box<dyn std::error::Error>> {
        let server = self.serve(routes)?;
        let _ = writeln!(io::stdout(), "serving {}", server.url());
        Ok(server.run_until_signal()?)
    }

    /// Starts the server.
    ///
    /// # Errors
    /// A mistake in a route, an address that is none or is taken, a log that cannot be written.
    pub fn serve(self, routes: Routes) -> Result<WebServer, StartError> {
        routes.check()?;
        let address = self.listen.parse::<SocketAddr>();
        let address = address.map_err(|_| StartError::Address(self.listen.clone()))?;
        let tls = match &self.tls_files {
            Some([certificate, key]) => {
                Some(tls::from_files(certificate, key).map_err(StartError::Tls)?)
            }
            None => self.tls.clone(),
        };
        let workers = worker_count(self.workers);
        let sockets = listen_group(address, workers)
            .map_err(|error| StartError::Listen { address, error })?;
        let log = match &self.access_log {
            Some(path) => Some(AccessLog::open(path, LogFormat::Combined).map_err(|error| {
                StartError::AccessLog {
                    path: path.clone(),
                    error,
                }
            })?),
            None => None,
        };
        // A thread of the program reads and renders.
        let capacity = Capacity {
            readers: self.blocking_threads,
            writers: self.blocking_threads,
            workers: 0,
        };
        let admission = Admission::new(capacity, PAGE_DEADLINE);
        admission.look_regularly().map_err(StartError::Threads)?;
        let shared = Arc::new(Shared {
            routes,
            pool: BlockingPool::new(self.blocking_threads, self.blocking_queue),
            admission,
            compressor: Compressor::start(),
            log,
            whole_body: self.limits.body as u64,
        });
        for warning in shared.routes.begin_serving() {
            // A closed standard error is no reason to panic.
            let _ = writeln!(io::stderr(), "warning: {warning}");
        }
        let listeners = sockets.into_iter().map(|socket| Listener {
            socket,
            tls: tls.clone(),
            fields: String::new(),
        });
        let is_secure = tls.is_some();
        let server = WebServer::start(listeners.collect(), &self.limits, &shared, is_secure);
        server.map_err(StartError::Threads)
    }
}

/// A server that runs. Dropping it shuts it down.
#[derive(Debug)]
pub struct WebServer {
    address: SocketAddr,
    is_secure: bool,
    group: Arc<WorkerGroup>,
    shared: SharedServer,
    // In a lock, so that threads may share the server.
    workers: Mutex<Workers>,
}

struct SharedServer(Arc<Shared>);

impl std::fmt::Debug for SharedServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedServer").finish_non_exhaustive()
    }
}

/// Shuts a server down, from any thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ShutdownHandle(Arc<WorkerGroup>);

impl ShutdownHandle {
    /// No new connections are accepted, idle ones are closed, requests in flight are answered for
    /// at most `limits.drain_timeout`. Returns at once; [`WebServer::wait`] waits.
    pub fn shutdown(&self) {
        self.0.shutdown();
    }
}

/// A server that did not end well.
#[non_exhaustive]
pub enum ServeError {
    /// A worker ended by itself.
    Worker(String),
    /// Handlers that must not block did: this number of workers did not end in time.
    Stuck(usize),
    /// Signals cannot be listened for.
    Signals(io::Error),
}

impl std::fmt::Display for ServeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Worker(reason) => write!(f, "a worker ended: {reason}"),
            Self::Stuck(workers) => write!(
                f,
                "{workers} workers did not end in time: a handler that is not `blocking` blocks"
            ),
            Self::Signals(error) => write!(f, "cannot listen for signals: {error}"),
        }
    }
}

debug_as_display!(ServeError);

impl std::error::Error for ServeError {}

impl WebServer {
    fn start(
        listeners: Vec<Listener>,
        limits: &Limits,
        shared: &Arc<Shared>,
        is_secure: bool,
    ) -> io::Result<Self> {
        let service = {
            let shared = Arc::clone(shared);
            move || RouteService::new(Arc::clone(&shared))
        };
        let workers = Workers::start(service, "worker", listeners, (limits, GRACE), |_| ());
        let workers = workers.inspect_err(|_| shared.stop())?;
        let address = workers.address().ip();
        Ok(Self {
            address: address.ok_or_else(|| io::Error::other("no IP address"))?,
            is_secure,
            group: Arc::clone(workers.group()),
            shared: SharedServer(Arc::clone(shared)),
            workers: Mutex::new(workers),
        })
    }

    /// Returns the address at which the server answers.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address as the beginning of a URL, without a slash at its end.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Shuts it down from elsewhere.
    #[must_use]
    pub fn handle(&self) -> ShutdownHandle {
        ShutdownHandle(Arc::clone(&self.group))
    }

    /// Returns the counts of the server's connections since the start.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.group.stats()
    }

    /// Waits until a [handle](WebServer::handle) has shut it down and the requests in flight are
    /// answered.
    ///
    /// # Errors
    /// [`ServeError::Worker`], after which the others are shut down; [`ServeError::Stuck`].
    pub fn wait(mut self) -> Result<(), ServeError> {
        let workers = self.workers.get_mut();
        let first = workers.first_end();
        let (left, others) = workers.stop();
        let rest = self.finish(left, others);
        first.map_err(ServeError::Worker).and(rest)
    }

    /// Shuts it down and waits for the end.
    ///
    /// # Errors
    /// [`ServeError::Stuck`].
    pub fn shutdown(mut self) -> Result<(), ServeError> {
        let (left, ended) = self.workers.get_mut().stop();
        self.finish(left, ended)
    }

    /// Waits for SIGTERM or SIGINT, or for a handle, and shuts it down. A second signal ends the
    /// process at once.
    ///
    /// # Errors
    /// [`ServeError::Signals`]; those of [`wait`](WebServer::wait).
    pub fn run_until_signal(self) -> Result<(), ServeError> {
        let handle = self.handle();
        let at_once = |signal| {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        };
        let listening = SignalListener::start(false, move |_| handle.shutdown(), at_once);
        let listening = listening.map_err(ServeError::Signals)?;
        let ended = self.wait();
        listening.close();
        ended
    }

    /// Ends the threads that may block; `left` workers have not ended.
    fn finish(&mut self, left: usize, ended: WorkerEnd) -> Result<(), ServeError> {
        if left > 0 {
            self.shared.0.pool.stop();
            return Err(ServeError::Stuck(left));
        }
        self.shared.0.stop();
        ended.map_err(ServeError::Worker)
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        let workers = self.workers.get_mut();
        if workers.is_running() {
            let (left, ended) = workers.stop();
            let _ = self.finish(left, ended);
        }
    }
}

//! A server: what tests hold.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use postgres::{Client, NoTls};

use crate::cluster::Cluster;
use crate::database::Database;
use crate::error::{Error, sql, system};
use crate::options::Options;
use crate::postmaster::Postmaster;
use base_clock::Deadline;

/// How long a server may take until it answers.
const STARTUP: Duration = Duration::from_secs(60);
/// Attempts to start: another process may take the port between the kernel's choice and the start.
const ATTEMPTS: usize = 5;

/// A private server. It ends, and its files go, when this is dropped.
#[derive(Debug)]
pub struct Postgres {
    // The server ends before its files go: fields are dropped in this order.
    postmaster: Option<Postmaster>,
    cluster: Cluster,
    port: u16,
    arguments: Vec<String>,
    databases: AtomicU64,
}

impl Postgres {
    /// A server with the default options.
    ///
    /// # Errors
    /// See [`Options::start`].
    pub fn start() -> Result<Self, Error> {
        Options::new().start()
    }

    /// The one server that all tests of this process share; each test takes a
    /// [`database`](Self::database) of its own. The server ends with the process.
    ///
    /// # Errors
    /// The server could not be started, now or at the first call.
    pub fn shared() -> Result<&'static Self, &'static Error> {
        static SHARED: LazyLock<Result<Postgres, Error>> = LazyLock::new(Postgres::start);
        SHARED.as_ref()
    }

    pub(crate) fn with(options: &Options) -> Result<Self, Error> {
        Self::on(
            Cluster::make(options.programs.as_deref())?,
            options.arguments(),
        )
    }

    /// A standby of this server, with the same options. On return the standby has replayed what was
    /// committed here, and it follows. This server needs a `max_wal_senders`, as
    /// [`Options::logical`] gives it.
    ///
    /// # Errors
    /// The cluster could not be copied, or the standby could not be started.
    pub fn standby(&self) -> Result<Self, Error> {
        let primary = format!("host=127.0.0.1 user=postgres port={}", self.port);
        let copy = self.cluster.copy(&mut self.superuser()?, &primary)?;
        Self::on(copy, self.arguments.clone())
    }

    fn on(cluster: Cluster, arguments: Vec<String>) -> Result<Self, Error> {
        let mut server = Self {
            postmaster: None,
            cluster,
            port: 0,
            arguments,
            databases: AtomicU64::new(0),
        };
        for attempt in 1.. {
            server.port = free_port().map_err(system("find a free port"))?;
            match server.launch() {
                Err(Error(said)) if attempt < ATTEMPTS && said.contains("could not bind") => {}
                outcome => return outcome.map(|()| server),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// A connection URL of the server's `postgres` database over TCP, as its superuser.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    pub(crate) fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Returns a connection URL over the server's unix socket.
    pub fn socket_url(&self) -> String {
        let folder = self.cluster.folder().display().to_string();
        let folder = folder.replace('%', "%25").replace('/', "%2F");
        format!("postgres://postgres@{folder}:{}/postgres", self.port)
    }

    /// The TCP port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process of the postmaster, if the server runs.
    pub fn pid(&self) -> Option<u32> {
        let postmaster = self.postmaster.as_ref()?;
        Some(postmaster.pid().as_raw_nonzero().get().cast_unsigned())
    }

    /// The folder of the database files.
    pub fn data_folder(&self) -> std::path::PathBuf {
        self.cluster.data()
    }

    /// The end of the server's log.
    pub fn log_tail(&self) -> String {
        self.cluster.log_tail()
    }

    /// A new empty database. It is dropped with its value, even if clients are still connected.
    ///
    /// # Errors
    /// The server refused to create it.
    pub fn database(&self) -> Result<Database<'_>, Error> {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        Database::create(self, format!("test_{number}"))
    }

    /// A fast shutdown: everybody is disconnected, open transactions are rolled back.
    pub fn stop(&mut self) {
        if let Some(mut postmaster) = self.postmaster.take() {
            postmaster.shut_down();
            // An ended watchdog has no server to end.
            let _ = self.cluster.watchdog.watch(None);
        }
    }

    /// Starts the server again on the same files and port, after a fast shutdown if it still runs.
    ///
    /// # Errors
    /// It does not come up; the message has the end of the log.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop();
        self.launch()
    }

    /// SIGKILL to every process of the server; [`restart`](Self::restart) lets it recover.
    pub fn kill_hard(&mut self) {
        if let Some(mut postmaster) = self.postmaster.take() {
            postmaster.kill_hard();
            let _ = self.cluster.watchdog.watch(None);
        }
    }

    /// SIGSTOP to every process of the server: connections stay open and get no answer.
    ///
    /// # Errors
    /// The server is stopped.
    pub fn freeze(&self) -> Result<(), Error> {
        self.postmaster
            .as_ref()
            .ok_or_else(Error::stopped)?
            .freeze();
        Ok(())
    }

    /// Lets a frozen server go on.
    ///
    /// # Errors
    /// The server is stopped.
    pub fn thaw(&self) -> Result<(), Error> {
        self.postmaster.as_ref().ok_or_else(Error::stopped)?.thaw();
        Ok(())
    }

    fn launch(&mut self) -> Result<(), Error> {
        let mut command = self.cluster.serve(self.port, &self.arguments)?;
        let mut postmaster = Postmaster::spawn(&mut command)?;
        let watched = self.cluster.watchdog.watch(Some(postmaster.pid()));
        match watched.and_then(|()| self.ready(&mut postmaster)) {
            Ok(()) => {
                self.postmaster = Some(postmaster);
                Ok(())
            }
            Err(error) => {
                postmaster.shut_down();
                let _ = self.cluster.watchdog.watch(None);
                Err(error)
            }
        }
    }

    /// Connects until the server answers. A server that starts or recovers refuses at once, hence
    /// the pause.
    fn ready(&self, postmaster: &mut Postmaster) -> Result<(), Error> {
        let deadline = Deadline::after(STARTUP);
        let config = self.url().parse::<postgres::Config>();
        let mut config = config.map_err(sql("read the server's own URL"))?;
        config.connect_timeout(Duration::from_secs(5));
        loop {
            let refusal = match config
                .connect(NoTls)
                .and_then(|mut c| c.simple_query("select 1"))
            {
                Ok(_) => return Ok(()),
                Err(refusal) => refusal,
            };
            let what = match postmaster.ended() {
                Some(status) => format!("it ended with {status}"),
                None if deadline.left().is_zero() => {
                    format!("it takes no connection within {STARTUP:?} ({refusal})")
                }
                None => {
                    // A recovering server refuses connections, and there is no event for the end of
                    // recovery.
                    thread::sleep(Duration::from_millis(10));
                    continue;
                }
            };
            let log = self.log_tail();
            return Err(Error(format!(
                "PostgreSQL did not start: {what}; the end of its log:\n{log}"
            )));
        }
    }

    pub(crate) fn superuser(&self) -> Result<Client, Error> {
        Client::connect(&self.url(), NoTls).map_err(sql("connect to the private server"))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

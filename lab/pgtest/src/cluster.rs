//! The files of a server: a fresh cluster in a temporary folder.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Pid;
use tempfile::TempDir;

use crate::Error;
use crate::account::Account;
use crate::error::system;
use crate::programs;
use crate::watchdog::Watchdog;

/// A socket's path has at most 107 bytes, of which its name takes twenty.
const LONGEST_FOLDER: usize = 80;
/// How much of a log an error shows, in bytes.
const TAIL: u64 = 4096;

/// The cluster of one server.
#[derive(Debug)]
pub(crate) struct Cluster {
    programs: PathBuf,
    account: Account,
    pub(crate) watchdog: Watchdog,
    folder: TempDir,
}

impl Cluster {
    /// Makes a cluster with `initdb`, of these programs or the usual ones: user `postgres`, no
    /// password, UTF-8, sorted by code point.
    pub(crate) fn make(programs: Option<&Path>) -> Result<Self, Error> {
        let mut cluster = Self::empty(programs)?;
        let mut command = cluster.command("initdb");
        command.arg("-D").arg(cluster.data()).args([
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        ]);
        cluster.fill(command, "initdb")?;
        Ok(cluster)
    }

    /// Copies the cluster of the server on `port`, as a standby of it, with `pg_basebackup`.
    pub(crate) fn copy(port: u16) -> Result<Self, Error> {
        let mut cluster = Self::empty(None)?;
        let mut command = cluster.command("pg_basebackup");
        command.arg("-D").arg(cluster.data());
        command.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string()]);
        command.args([
            "--write-recovery-conf",
            "--checkpoint=fast",
            "--wal-method=stream",
            "--no-sync",
        ]);
        cluster.fill(command, "pg_basebackup")?;
        Ok(cluster)
    }

    fn empty(programs: Option<&Path>) -> Result<Self, Error> {
        let programs = match programs {
            Some(programs) => programs.to_owned(),
            None => programs::folder()?,
        };
        let account = Account::unprivileged()?;
        let folder = folder().map_err(system("make a temporary folder"))?;
        account.own(folder.path())?;
        Ok(Self {
            programs,
            account,
            watchdog: Watchdog::start(folder.path())?,
            folder,
        })
    }

    /// Has `program` make the database files.
    fn fill(&mut self, mut command: Command, program: &'static str) -> Result<(), Error> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = command.spawn();
        let child = started.map_err(system(format!("start {program}")))?;
        self.watchdog.watch(Some(Pid::from_child(&child)))?;
        let output = child
            .wait_with_output()
            .map_err(system(format!("wait for {program}")))?;
        self.watchdog.watch(None)?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        Err(Error(format!(
            "{program} made no cluster; it said:\n{said}"
        )))
    }

    /// The command that serves the cluster, its words going to the log.
    pub(crate) fn serve(&self, port: u16, arguments: &[String]) -> Result<Command, Error> {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .map_err(system("open the server's log"))?;
        let errors = log.try_clone().map_err(system("open the server's log"))?;
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data());
        command.args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k"]);
        command.arg(self.folder());
        command.args(arguments).stdout(log).stderr(errors);
        Ok(command)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        self.account.run(&mut command);
        command
            .current_dir(self.folder())
            .stdin(Stdio::null())
            // The test must not see the tester's settings of PostgreSQL and language.
            .env_clear()
            .env("LC_ALL", "C.UTF-8")
            // Out of reach of the Ctrl-C that ends the test: the watchdog sees to the end.
            .process_group(0);
        command
    }

    /// Returns the folder of the sockets.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The database files.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder().join("log")
    }

    /// The end of the server's log.
    pub(crate) fn log_tail(&self) -> String {
        let read = || -> io::Result<String> {
            let mut file = fs::File::open(self.log())?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().unwrap_or_else(|error| format!("(no log: {error})"))
    }
}

/// A folder in memory where that has room, whose path is short enough for sockets.
fn folder() -> io::Result<TempDir> {
    let usual = lab_testkit::fast_parent();
    let root = if usual.as_os_str().len() > LONGEST_FOLDER - 20 {
        Path::new("/tmp")
    } else {
        &usual
    };
    tempfile::Builder::new()
        .prefix("millpond-pg-")
        .tempdir_in(root)
}

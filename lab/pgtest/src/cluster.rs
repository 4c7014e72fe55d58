//! The files of a server: a fresh cluster in a temporary folder.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use postgres::Client;
use rustix::process::Pid;
use tempfile::TempDir;

use crate::Error;
use crate::account::Account;
use crate::error::{sql, system};
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
        cluster.fill(command)?;
        Ok(cluster)
    }

    /// Copies the files of a server that runs, as a standby of the server with this connection
    /// string: a base backup by hand, as not all packages of PostgreSQL have `pg_basebackup`.
    pub(crate) fn copy(&self, client: &mut Client, primary: &str) -> Result<Self, Error> {
        let copy = Self::empty(Some(&self.programs))?;
        let data = copy.data();
        let mut ask = |text: &str| client.query_one(text, &[]).map_err(sql(text));
        let version: i32 = ask("select current_setting('server_version_num')::integer")?.get(0);
        let (begin, end) = match version {
            ..150_000 => (
                "select pg_start_backup('standby', true, false)",
                "select labelfile from pg_stop_backup(false)",
            ),
            _ => (
                "select pg_backup_start('standby', true)",
                "select labelfile from pg_backup_stop()",
            ),
        };
        ask(begin)?;
        copy.copy_files(&self.data(), &data)?;
        let label: String = ask(end)?.get(0);
        // With what was written to the log meanwhile, which the standby begins with.
        copy.copy_files(&self.data().join("pg_wal"), &data.join("pg_wal"))?;
        let settings = fs::read_to_string(data.join("postgresql.auto.conf")).unwrap_or_default();
        let settings = format!("{settings}primary_conninfo = '{primary}'\n");
        for (name, text) in [
            ("backup_label", label.as_str()),
            ("standby.signal", ""),
            ("postgresql.auto.conf", settings.as_str()),
        ] {
            let path = data.join(name);
            fs::write(&path, text).map_err(system(format!("write {}", path.display())))?;
            copy.account.own(&path)?;
        }
        Ok(copy)
    }

    /// Copies a folder of database files, but for what belongs to the server that runs there.
    fn copy_files(&self, from: &Path, to: &Path) -> Result<(), Error> {
        let failed = |source| system(format!("copy {}", from.display()))(source);
        fs::create_dir_all(to).map_err(failed)?;
        fs::set_permissions(to, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        self.account.own(to)?;
        for entry in fs::read_dir(from).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (path, copy) = (entry.path(), to.join(entry.file_name()));
            if from.ends_with("pg_replslot") || entry.file_name() == "postmaster.pid" {
                continue;
            }
            if entry.file_type().map_err(failed)?.is_dir() {
                self.copy_files(&path, &copy)?;
                continue;
            }
            match fs::copy(&path, &copy) {
                Ok(_) => self.account.own(&copy)?,
                // It went meanwhile, as a dropped table's file does.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
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

    /// Has `initdb` make the database files.
    fn fill(&mut self, mut command: Command) -> Result<(), Error> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = command.spawn();
        let child = started.map_err(system("start initdb"))?;
        self.watchdog.watch(Some(Pid::from_child(&child)))?;
        let output = child
            .wait_with_output()
            .map_err(system("wait for initdb"))?;
        self.watchdog.watch(None)?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        Err(Error(format!("initdb made no cluster; it said:\n{said}")))
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

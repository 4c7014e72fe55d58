//! A site with joins, on SQLite or on a PostgreSQL of its own.

use std::{fs, net::SocketAddr, path::Path, time::Duration};

use lab_pgtest::{Options, Postgres};
use lab_testkit::{Client, Server};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::{Result, cpu, files::write, server};

/// Kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    pub(super) const BOTH: [Self; 2] = [Self::Sqlite, Self::Postgres];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

/// The pages of a site with their names.
pub(super) type Pages<'a> = &'a [(&'a str, &'a str)];

/// A site that is served. All that it needs ends with the value.
pub(super) struct Shop {
    pub(super) server: Server,
    pub(super) address: SocketAddr,
    pub(super) postgres: Option<Postgres>,
    _folder: TempDir,
}

impl Shop {
    /// Fills a database with `tables` and serves `pages`. PostgreSQL is reached by the port that
    /// `through` makes of its own, and by `pool` connections that read.
    pub(super) fn start(
        millpond: &Path,
        kind: Kind,
        tables: &str,
        pages: Pages<'_>,
        pool: u32,
        through: impl FnOnce(u16) -> Result<u16>,
    ) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
        let mut postgres = None;
        let settings = match kind {
            Kind::Sqlite => {
                let file = folder.path().join("site.db");
                let filled = Connection::open(&file).and_then(|database| {
                    database.execute_batch("pragma journal_mode = wal; begin")?;
                    database.execute_batch(tables)?;
                    database.execute_batch("commit; analyze")
                });
                filled.map_err(|error| error.to_string())?;
                format!("url = \"sqlite:{}\"", file.display())
            }
            Kind::Postgres => {
                cpu::pin(server::SERVER_CORE)?;
                let server = Options::new().logical().start();
                cpu::pin(server::CLIENT_CORE)?;
                let server = server.map_err(|error| error.to_string())?;
                let filled = connect(&server)?.batch_execute(&format!(
                    "begin; {tables} create publication millpond for all tables; commit; analyze"
                ));
                filled.map_err(|error| error.to_string())?;
                let port = through(server.port())?;
                postgres = Some(server);
                format!("url = \"postgres://postgres@127.0.0.1:{port}/postgres\"\npool = {pool}")
            }
        };
        write(
            &folder.path().join("millpond.toml"),
            &format!("[database]\n{settings}\n[cache]\nmax_staleness = \"1s\"\n"),
        )?;
        for (name, text) in pages {
            write(&folder.path().join("pages").join(name), text)?;
        }
        let server = server::millpond(millpond, folder.path())?;
        let address = server.address();
        Ok(Self {
            server,
            address,
            postgres,
            _folder: folder,
        })
    }

    /// A connection to the server.
    pub(super) fn client(&self) -> Result<Client> {
        let client = Client::open(self.address, Duration::from_secs(30));
        client.map_err(|error| error.to_string())
    }

    /// The CPU that the server has used so far, with that of the database's processes.
    pub(super) fn cpu(&self) -> Result<Duration> {
        let mut sum = cpu::run_time(self.server.pid())?;
        if let Some(postmaster) = self.postgres.as_ref().and_then(Postgres::pid) {
            sum += cpu::run_time(postmaster)?;
            for child in children(postmaster) {
                // It may have ended meanwhile.
                sum += cpu::run_time(child).unwrap_or_default();
            }
        }
        Ok(sum)
    }
}

/// A connection past the server.
pub(super) fn connect(server: &Postgres) -> Result<postgres::Client> {
    let client = postgres::Client::connect(&server.url(), postgres::NoTls);
    client.map_err(|error| error.to_string())
}

/// The processes that a process has started and that still run.
fn children(of: u32) -> Vec<u32> {
    let tasks = format!("/proc/{of}/task/{of}/children");
    let text = fs::read_to_string(tasks).unwrap_or_default();
    let numbers = text.split_ascii_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}

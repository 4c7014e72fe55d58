//! A private PostgreSQL with two tables, and a site on it.

use lab_pgtest::{Options, Postgres};
use lab_testkit::Server;
use postgres::{Client, NoTls};
use tempfile::TempDir;

use crate::{Result, files::write, server};

/// The rows of `note` in each group.
pub(super) const IN_GROUP: i32 = 2;

/// Tables of [`Site::start_joined`], each with a key into the next.
pub(super) const PARTS: usize = 5;

/// A database, a site on it, and the server of that site. All end with this value.
pub(super) struct Site {
    pub(super) server: Server,
    postgres: Postgres,
    url: String,
    _folder: TempDir,
}

const MILLPOND: &str = "[cache]\nmemory = \"2GB\"\nmax_staleness = \"10s\"\n";
const PAGES: [(&str, &str); 3] = [
    (
        "note/[id].sql",
        "-- param: id integer\n-- name: note :one\nselect id, version from note where id = :id;\n",
    ),
    (
        "group/[id].sql",
        "-- param: id integer\n-- name: notes :many\nselect id, version from note where groupe = :id order by id;\n",
    ),
    (
        "elsewhere.sql",
        "-- name: other :many\nselect id, text from other order by id;\n",
    ),
];

impl Site {
    /// `note` has `groups` times [`IN_GROUP`] rows and this replica identity; `other` has twenty.
    /// Both belong to the publication.
    pub(super) fn start(millpond: &std::path::Path, groups: i32, identity: &str) -> Result<Self> {
        Self::start_with(millpond, groups, identity, "", "")
    }

    /// Starts a server with [`PARTS`] tables of a row for each group, and a page that joins all of
    /// them along keys.
    pub(super) fn start_joined(millpond: &std::path::Path, groups: i32) -> Result<Self> {
        let mut tables = String::new();
        let mut joins = String::new();
        let mut key = "n.groupe".to_owned();
        for part in 1..=PARTS {
            tables += &format!(
                "create table part_{part} (id int primary key, next int not null, version bigint not null);
                 insert into part_{part} select i, i, 0 from generate_series(0, {groups} - 1) i;"
            );
            joins += &format!(" join part_{part} p{part} on p{part}.id = {key}");
            key = format!("p{part}.next");
        }
        let page = format!(
            "-- param: id integer\n-- name: note :one\nselect n.id, p{PARTS}.version from note n{joins} where n.id = :id;\n"
        );
        Self::start_with(millpond, groups, "default", &tables, &page)
    }

    fn start_with(
        millpond: &std::path::Path,
        groups: i32,
        identity: &str,
        tables: &str,
        joined: &str,
    ) -> Result<Self> {
        let postgres = Options::new()
            .logical()
            .start()
            .map_err(|error| error.to_string())?;
        let url = postgres.url();
        let mut client = connect(&url)?;
        let rows = groups * IN_GROUP;
        client
            .batch_execute(&format!(
                "create table note (id int primary key, groupe int not null, version bigint not null, text text not null);
                 insert into note select i, i / {IN_GROUP}, 0, repeat('x', 200) from generate_series(0, {rows} - 1) i;
                 create index on note (groupe);
                 create table other (id int primary key, text text not null);
                 insert into other select i, repeat('x', 200) from generate_series(1, 20) i;
                 alter table note replica identity {identity};
                 {tables}
                 create publication millpond for all tables;
                 analyze"
            ))
            .map_err(|error| to_message(&error))?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        write(
            &folder.path().join("millpond.toml"),
            &format!("[database]\nurl = \"{url}\"\n{MILLPOND}"),
        )?;
        let pages = folder.path().join("pages");
        for (name, text) in PAGES {
            write(&pages.join(name), text)?;
        }
        if !joined.is_empty() {
            write(&pages.join("joined/[id].sql"), joined)?;
        }
        let server = server::millpond(millpond, folder.path())?;
        Ok(Self {
            server,
            postgres,
            url,
            _folder: folder,
        })
    }

    /// Another connection to the database.
    pub(super) fn client(&self) -> Result<Client> {
        debug_assert!(self.postgres.pid().is_some());
        connect(&self.url)
    }
}

/// Returns the message of the server, or of the driver.
pub(super) fn to_message(error: &postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| error.to_string(), |said| said.message().to_owned())
}

fn connect(url: &str) -> Result<Client> {
    Client::connect(url, NoTls).map_err(|error| to_message(&error))
}

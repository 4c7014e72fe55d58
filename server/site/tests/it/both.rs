//! The same site on both databases: a visitor cannot see which database it is.

use std::{ops::Deref, path::Path};

use lab_pgtest::Database;
use millpond_site::SiteOptions;

use crate::{
    postgres,
    support::{self, TestSite},
};

/// Makes two tests of each function that takes a [`Kind`], one for each database.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[test] fn $test() { super::$test(crate::both::Kind::Sqlite); })+
        }
        mod on_postgresql {
            $(#[test] fn $test() { super::$test(crate::both::Kind::Postgres); })+
        }
    };
}
pub(crate) use on_both;

/// Kind of database.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

/// A site without database settings, and its database. Settings with `sqlite:site.db` mean the
/// database in use.
pub(crate) struct Housed {
    site: TestSite,
    // Dropped last: a slot of the feed would keep it.
    database: Option<Database<'static>>,
}

impl Deref for Housed {
    type Target = TestSite;

    fn deref(&self) -> &TestSite {
        &self.site
    }
}

impl Housed {
    pub(crate) fn new(kind: Kind, files: &[(&str, &str)]) -> Self {
        match kind {
            Kind::Sqlite => Self {
                site: TestSite::new(files),
                database: None,
            },
            Kind::Postgres => Self::on(postgres::database(), files, |url| url.to_owned()),
        }
    }

    /// On PostgreSQL, by the URL that is made of the database's own.
    pub(crate) fn on(
        database: Database<'static>,
        files: &[(&str, &str)],
        url: impl FnOnce(&str) -> String,
    ) -> Self {
        let dir = postgres::folder(&database, files);
        let settings = dir.path().join("millpond.toml");
        let text = std::fs::read_to_string(&settings).unwrap();
        let text = text.replace("sqlite:site.db", &url(&database.url()));
        support::write(dir.path(), &[("millpond.toml", &text)]);
        let site = TestSite::open(dir, SiteOptions::default());
        let mut client = postgres::client(&database);
        let mut number = |sql: &str| client.query_one(sql, &[]).unwrap().get::<_, i64>(0);
        let begun = number("select txid_current()");
        // Nothing is kept while a transaction from before the feed is open, also in the databases
        // of other tests.
        site.until("older transactions are over", || {
            number("select txid_snapshot_xmin(txid_current_snapshot())") >= begun
        });
        drop(client);
        Self {
            site,
            database: Some(database),
        }
    }

    /// Opens the folder and database again, as if they were served by another process.
    pub(crate) fn restart_after(self, change: impl FnOnce(&Path)) -> Self {
        Self {
            site: self.site.restart_after(change),
            database: self.database,
        }
    }

    /// Another program writes.
    pub(crate) fn run(&self, sql: &str) {
        match &self.database {
            None => self.site.foreign().execute_batch(sql).unwrap(),
            Some(database) => postgres::client(database).batch_execute(sql).unwrap(),
        }
    }

    /// The one value, a text, that another program reads.
    pub(crate) fn text(&self, sql: &str) -> String {
        match &self.database {
            None => {
                let read = self.site.foreign().query_row(sql, [], |row| row.get(0));
                read.unwrap()
            }
            Some(database) => {
                let row = postgres::client(database).query_one(sql, &[]);
                row.unwrap().get(0)
            }
        }
    }
}

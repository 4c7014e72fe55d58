//! The database on real PostgreSQL servers.

mod batches;
mod beside_rows;
mod chinook;
mod columns;
mod connections;
mod feed;
mod first_rows;
mod migrations;
mod model;
mod reads;
mod replicas;
mod requirements;
mod rewritten;
mod same;
mod silence;
mod standbys;
mod tls;
mod triggers;
mod types;
mod visibility;
mod writes;

use std::sync::LazyLock;
use std::time::Duration;

use lab_pgtest::{Options, Postgres};
use millpond_db::{
    Bind, Call, Database, Error, Expect, PostgresOptions, Query, ReadResult, ResultRows, Value,
    WriteResult, WriteStep,
};

use crate::support::wait;

/// One server for all tests, each with a database of its own; it ends with the process.
pub(super) fn server() -> &'static Postgres {
    static SERVER: LazyLock<Postgres> =
        LazyLock::new(|| Options::new().logical().start().expect("PostgreSQL starts"));
    &SERVER
}

/// Far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn options(url: impl Into<String>) -> PostgresOptions {
    PostgresOptions {
        pool: 2,
        statement_timeout: PATIENCE,
        ..PostgresOptions::new(url)
    }
}

/// An open database; nothing in it is kept, as no feed was started.
pub(super) struct Fixture {
    pub(super) database: Database,
    scratch: lab_pgtest::Database<'static>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.database.stop();
    }
}

impl Fixture {
    pub(super) fn new(schema: &str) -> Self {
        Self::with(schema, |_| {})
    }

    pub(super) fn with(schema: &str, adjust: impl FnOnce(&mut PostgresOptions)) -> Self {
        let scratch = server().database().unwrap();
        let mut client = postgres::Client::connect(&scratch.url(), postgres::NoTls).unwrap();
        client.batch_execute(schema).unwrap();
        let mut options = options(scratch.url());
        adjust(&mut options);
        let database = Database::connect(options).unwrap();
        Self { database, scratch }
    }

    /// Another program.
    pub(super) fn foreign(&self) -> postgres::Client {
        postgres::Client::connect(&self.scratch.url(), postgres::NoTls).unwrap()
    }

    pub(super) fn url(&self) -> String {
        self.scratch.url()
    }

    pub(super) fn prepare(&self, sql: &str) -> Query {
        prepare(&self.database, sql)
    }

    pub(super) fn try_read(&self, query: &Query, params: Vec<Value>) -> Result<ReadResult, Error> {
        try_read(&self.database, query, params)
    }

    pub(super) fn rows(&self, sql: &str, params: Vec<Value>) -> Vec<Vec<Value>> {
        let read = self.try_read(&self.prepare(sql), params);
        let mut read = read.unwrap_or_else(|error| panic!("{error}, in: {sql}"));
        read.results.remove(0).rows
    }

    pub(super) fn value(&self, sql: &str, params: Vec<Value>) -> Value {
        self.rows(sql, params).remove(0).remove(0)
    }

    pub(super) fn step(&self, sql: &str, bind: Vec<Bind>, expect: Expect) -> WriteStep {
        WriteStep {
            query: self.prepare(sql),
            bind,
            expect,
        }
    }

    pub(super) fn try_write(&self, sql: &str, params: Vec<Value>) -> Result<WriteResult, Error> {
        let bind = params.into_iter().map(Bind::Value).collect();
        wait(
            self.database
                .write(vec![self.step(sql, bind, Expect::Many)]),
        )
    }

    pub(super) fn write(&self, sql: &str, params: Vec<Value>) -> ResultRows {
        self.try_write(sql, params)
            .unwrap_or_else(|error| panic!("{error}, in: {sql}"))
            .results
            .remove(0)
    }
}

pub(super) fn prepare(database: &Database, sql: &str) -> Query {
    database
        .prepare(sql)
        .unwrap_or_else(|error| panic!("{error}, in: {sql}"))
}

pub(super) fn try_read(
    database: &Database,
    query: &Query,
    params: Vec<Value>,
) -> Result<ReadResult, Error> {
    let query = query.clone();
    wait(database.read(vec![Call { query, params }]))
}

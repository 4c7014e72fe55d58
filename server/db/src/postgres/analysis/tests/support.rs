//! A database of its own, with the owner's schema.

use expect_test::Expect;
use lab_pgtest::{Database, Postgres};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

use crate::postgres::analysis::{Analysis, analyse};
use crate::postgres::catalog::Catalog;
use crate::query::QueryAnalysis as _;
use crate::{FeedKind, SqlError};

pub(crate) struct AnalysisFixture {
    pub(crate) runtime: Runtime,
    pub(crate) client: Client,
    pub(crate) catalog: Catalog,
    /// Dropped last.
    _database: Database<'static>,
}

impl AnalysisFixture {
    /// With this schema, and everything published that can be.
    pub(crate) fn new(schema: &str) -> Self {
        Self::bare(&format!(
            "{schema}; create publication millpond for all tables;"
        ))
    }

    /// With nothing but what the script makes.
    pub(crate) fn bare(script: &str) -> Self {
        let database = Postgres::shared().unwrap().database().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let client = connect(&runtime, &database.url());
        let mut fixture = Self {
            runtime,
            client,
            catalog: Catalog::default(),
            _database: database,
        };
        fixture.run(script);
        fixture.reload();
        fixture
    }

    pub(crate) fn run(&self, script: &str) {
        self.runtime
            .block_on(self.client.batch_execute(script))
            .unwrap_or_else(|error| panic!("{:?}, in: {script}", error.as_db_error()));
    }

    pub(crate) fn reload(&mut self) {
        self.catalog = self
            .runtime
            .block_on(Catalog::load(&self.client, FeedKind::Logical, "millpond"))
            .unwrap();
    }

    pub(crate) fn texts(&self, sql: &str) -> Vec<String> {
        let rows = self.runtime.block_on(self.client.query(sql, &[])).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// True if publications of the server may leave out rows and columns, and have whole schemas:
    /// since PostgreSQL 15.
    pub(crate) fn has_partial_publications(&self) -> bool {
        self.texts("show server_version_num")[0].as_str() >= "150000"
    }

    /// A table's oid by its name.
    pub(crate) fn catalog_oid(&self, table: &str) -> Option<u32> {
        let oid = self.texts(&format!("select '{table}'::regclass::oid::text"));
        oid.first()?.parse().ok()
    }

    /// The parameters `$1`, `$2`, … are called a, b, ….
    pub(crate) fn analyse(&self, sql: &str) -> Result<Analysis, SqlError> {
        self.analyse_with(sql, None)
    }

    pub(crate) fn analyse_with(
        &self,
        sql: &str,
        depends: Option<&[String]>,
    ) -> Result<Analysis, SqlError> {
        let names: Vec<String> = ('a'..='h').map(String::from).collect();
        self.runtime.block_on(async {
            let statement = self
                .client
                .prepare(sql)
                .await
                .map_err(|error| crate::postgres::server_error::refused(&error))?;
            analyse(
                &self.client,
                &self.catalog,
                sql,
                &names,
                depends,
                &statement,
            )
            .await
        })
    }

    /// Each query with what it depends on.
    pub(crate) fn check(&self, queries: &[&str], expected: &Expect) {
        let mut actual = String::new();
        for sql in queries {
            actual += &format!("{sql}\n");
            match self.analyse(sql) {
                Ok(analysis) => {
                    for line in analysis.describe() {
                        actual += &format!("    {line}\n");
                    }
                    if !analysis.facts.readonly {
                        actual += "    writes\n";
                    }
                }
                Err(error) => actual += &format!("    error: {error}\n"),
            }
        }
        expected.assert_eq(&actual);
    }
}

fn connect(runtime: &Runtime, url: &str) -> Client {
    let (client, connection) = runtime
        .block_on(tokio_postgres::connect(url, NoTls))
        .unwrap();
    runtime.spawn(connection);
    client
}

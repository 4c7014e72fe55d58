//! The databases that transactions run on, as far as these differ.

use std::error::Error;
use std::time::Duration;

use bytes::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use rusqlite::{Connection, params_from_iter};

/// A parameter of a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StatementValue<'a> {
    Integer(i64),
    /// A text or null.
    Text(Option<&'a str>),
}

/// A connection. The parameters of a statement are `$1`, `$2` and so on.
pub(crate) trait SqlConnection {
    type Error: std::fmt::Display;

    /// Empties a table at once, as the database does it best.
    const EMPTY: &'static str;

    /// Runs a statement that gives one row with one integer.
    fn number(
        &mut self,
        statement: &str,
        values: &[StatementValue<'_>],
    ) -> Result<i64, Self::Error>;

    /// Runs a `select` of one row, which no other writer changes before the transaction ends.
    fn locked(&mut self, select: &str, values: &[StatementValue<'_>]) -> Result<i64, Self::Error>;

    /// Runs a statement without a result.
    fn run(&mut self, statement: &str, values: &[StatementValue<'_>]) -> Result<(), Self::Error>;

    /// Runs several statements without parameters.
    fn batch(&mut self, statements: &str) -> Result<(), Self::Error>;
}

impl SqlConnection for postgres::Client {
    type Error = postgres::Error;

    const EMPTY: &'static str = "truncate";

    fn number(
        &mut self,
        statement: &str,
        values: &[StatementValue<'_>],
    ) -> Result<i64, Self::Error> {
        let row = self.query_one(statement, &references(values))?;
        match row.columns()[0].type_() {
            &Type::INT4 => row.try_get::<_, i32>(0).map(i64::from),
            _ => row.try_get(0),
        }
    }

    fn locked(&mut self, select: &str, values: &[StatementValue<'_>]) -> Result<i64, Self::Error> {
        self.number(&format!("{select} for update"), values)
    }

    fn run(&mut self, statement: &str, values: &[StatementValue<'_>]) -> Result<(), Self::Error> {
        self.execute(statement, &references(values)).map(drop)
    }

    fn batch(&mut self, statements: &str) -> Result<(), Self::Error> {
        self.batch_execute(statements)
    }
}

fn references<'a>(values: &'a [StatementValue<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    let values = values.iter().map(|value| value as &(dyn ToSql + Sync));
    values.collect()
}

impl ToSql for StatementValue<'_> {
    fn to_sql(
        &self,
        r#type: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Integer(number) if *r#type == Type::INT4 => {
                ToSql::to_sql(&i32::try_from(*number)?, r#type, out)
            }
            Self::Integer(number) => ToSql::to_sql(number, r#type, out),
            Self::Text(text) => ToSql::to_sql(text, r#type, out),
        }
    }

    fn accepts(r#type: &Type) -> bool {
        [Type::INT4, Type::INT8, Type::TEXT].contains(r#type)
    }

    to_sql_checked!();
}

/// A transaction on SQLite has the whole file to itself from its beginning on: it begins as
/// `immediate`.
impl SqlConnection for Connection {
    type Error = rusqlite::Error;

    const EMPTY: &'static str = "delete from";

    fn number(
        &mut self,
        statement: &str,
        values: &[StatementValue<'_>],
    ) -> Result<i64, Self::Error> {
        let mut statement = self.prepare_cached(&numbered(statement))?;
        statement.query_one(params_from_iter(values), |row| row.get(0))
    }

    fn locked(&mut self, select: &str, values: &[StatementValue<'_>]) -> Result<i64, Self::Error> {
        self.number(select, values)
    }

    fn run(&mut self, statement: &str, values: &[StatementValue<'_>]) -> Result<(), Self::Error> {
        let mut statement = self.prepare_cached(&numbered(statement))?;
        statement.execute(params_from_iter(values)).map(drop)
    }

    fn batch(&mut self, statements: &str) -> Result<(), Self::Error> {
        self.execute_batch(statements)
    }
}

/// `$1` is a name on SQLite, and `?1` a number.
fn numbered(statement: &str) -> String {
    statement.replace('$', "?")
}

impl rusqlite::ToSql for StatementValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        match self {
            Self::Integer(number) => rusqlite::ToSql::to_sql(number),
            Self::Text(text) => rusqlite::ToSql::to_sql(text),
        }
    }
}

/// Opens a file as another program does, which waits a while for locks of others.
pub(crate) fn open(file: &std::path::Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    Ok(connection)
}

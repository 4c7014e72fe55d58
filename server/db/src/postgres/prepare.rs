//! Statements as one connection has prepared them.
//!
//! Results are asked for in binary. A column whose type is not read from its binary form is cast to
//! text by the server: the statement is put into another that selects its columns by number, so
//! that equal names of columns do not matter and the order of the rows stays.

use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use tokio_postgres::types::Kind;
use tokio_postgres::{Client, Statement};

use super::failure::{DatabaseError, chain, is_lost, refused};
use super::shape::{Shape, columns_of};
use super::sql::Rewritten;
use super::types::Decoder;
use crate::SqlError;

/// A statement that the driver can run on this connection.
pub(super) struct PreparedStatement {
    /// Statement that is run.
    pub(super) statement: Statement,
    /// The owner's statement as the server describes it; `statement` itself if no column is cast.
    pub(super) described: Statement,
    /// Shape of the statement for any connection.
    pub(super) shape: Arc<Shape>,
}

impl PreparedStatement {
    fn new(text: &str, statement: Statement, described: Statement, decoders: Vec<Decoder>) -> Self {
        Self {
            shape: Arc::new(Shape::new(text, &statement, &described, decoders)),
            statement,
            described,
        }
    }
}

/// Checks that the columns of a statement with casts are still those that it was prepared for. For
/// other statements the server says so.
pub(super) async fn is_current(
    shape: &Shape,
    client: &Client,
    sql: &Rewritten,
) -> Result<bool, PrepareError> {
    let now = client.prepare(&sql.text).await;
    let now = now.map_err(|error| PrepareError::of(&error, sql))?;
    Ok(columns_of(&now) == shape.described)
}

/// Prepares one of Millpond's own statements, whose columns are text.
pub(super) async fn own(
    client: &Client,
    sql: &str,
) -> Result<Rc<PreparedStatement>, tokio_postgres::Error> {
    let statement = client.prepare(sql).await?;
    let decoders = statement.columns().iter().map(|_| Decoder::Text).collect();
    let ready = PreparedStatement::new(sql, statement.clone(), statement, decoders);
    Ok(Rc::new(ready))
}

/// Why a statement could not be prepared.
pub(super) enum PrepareError {
    /// The server refuses it.
    Refused(SqlError),
    /// Something that passes has kept the server from it, such as a lock that it waited for until
    /// the statement's time was over.
    Prevented(DatabaseError),
    /// The connection is gone, with the reason.
    Lost(String),
}

impl PrepareError {
    /// Sorts what the server or the driver says of `sql`.
    pub(super) fn of(error: &tokio_postgres::Error, sql: &Rewritten) -> Self {
        if is_lost(error) {
            return Self::Lost(chain(error));
        }
        let trouble = DatabaseError::from(error);
        match trouble.is_passing() {
            true => Self::Prevented(trouble),
            false => Self::Refused(refused(error, sql, 0)),
        }
    }
}

/// Prepares the owner's statement.
pub(super) async fn prepare(
    client: &Client,
    sql: &Rewritten,
) -> Result<PreparedStatement, PrepareError> {
    let plain = client.prepare(&sql.text).await;
    let plain = plain.map_err(|error| PrepareError::of(&error, sql))?;
    let decoders: Vec<Option<Decoder>> = plain
        .columns()
        .iter()
        .map(|column| Decoder::of(column.type_()))
        .collect();
    if let Some(decoders) = decoders.iter().cloned().collect::<Option<Vec<Decoder>>>() {
        return Ok(PreparedStatement::new(
            &sql.text,
            plain.clone(),
            plain,
            decoders,
        ));
    }
    for text in wrapped(&sql.text, &plain) {
        match client.prepare_typed(&text, plain.params()).await {
            Ok(statement) => {
                let columns = statement.columns().iter();
                let decoders = columns.map(|column| Decoder::of(column.type_())).collect();
                if let Some(decoders) = decoders {
                    return Ok(PreparedStatement::new(&text, statement, plain, decoders));
                }
            }
            Err(error) => match PrepareError::of(&error, sql) {
                // It is not a statement that can be put into another in this way.
                PrepareError::Refused(_) => {}
                other => return Err(other),
            },
        }
    }
    Err(PrepareError::Refused(uncastable(&plain)))
}

/// The statement within another that casts what has to be cast: as a subquery, or as a table
/// expression if it changes something.
fn wrapped(sql: &str, plain: &Statement) -> [String; 2] {
    let mut names = String::new();
    let mut columns = String::new();
    for (index, column) in plain.columns().iter().enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        let cast = match column.type_().kind() {
            _ if Decoder::of(column.type_()).is_some() => "",
            Kind::Array(_) => "::text[]",
            _ => "::text",
        };
        // A String takes all that is written.
        let _ = write!(names, "{comma}c{index}");
        let _ = write!(columns, "{comma}q.c{index}{cast}");
    }
    // The statement may end in a comment, which the line break ends.
    [
        format!("select {columns} from ({sql}\n) as q({names})"),
        format!("with q({names}) as ({sql}\n) select {columns} from q"),
    ]
}

fn uncastable(plain: &Statement) -> SqlError {
    let column = plain
        .columns()
        .iter()
        .find(|column| Decoder::of(column.type_()).is_none());
    let (name, kind) = column.map_or(("?", "?"), |column| (column.name(), column.type_().name()));
    let message = format!("the column {name} is of the type {kind}, which cannot be read");
    SqlError::new(message).with_hint(format!("cast it, as in {name}::text"))
}

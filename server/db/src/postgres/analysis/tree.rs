//! Lets PostgreSQL parse a statement, and takes the tree that it makes of it.
//!
//! The tree is that of a function in standard SQL (PostgreSQL 14 and later), whose body is kept as
//! it was understood: names resolved, conversions written out. The function is made in the
//! session's temporary schema and dropped in the same transaction, so no other session ever sees
//! it; it is never called. A plan would not do: it leaves out what this planner, with these
//! statistics, need not look at (joins that change nothing, partitions, conditions that are never
//! true), and the next one may look at it.

use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::column_reads;
use super::constants;
use super::functions::FunctionText;
use super::nodes::{self, TreeNode};
use crate::SqlError;
use crate::postgres::server_error::refused;
use crate::postgres::sql::ends_transaction;

/// A statement as PostgreSQL understands it.
pub(crate) enum Tree {
    /// The query; `Nothing` if the statement is empty.
    Query(TreeNode),
    /// A statement that is no query, such as SET or CREATE.
    Utility,
    /// Why it could not be found out.
    Unknown(String),
}

/// Asks for the tree of `sql`, which PostgreSQL has accepted as one statement with these
/// parameters.
pub(crate) async fn of(client: &Client, sql: &str, params: &[Type]) -> Result<Tree, SqlError> {
    // Counterexample: `end` would close the function's body, and what is behind it the transaction,
    // in which the function is left.
    if ends_transaction(sql) {
        return Ok(Tree::Utility);
    }
    // One message, so one transaction: it cannot be left open by a caller that gives up.
    let types: Vec<String> = params.iter().map(type_name).collect();
    let body = format!("select 1, c.oid from pg_catalog.pg_class c; {sql}");
    let tree = match of_body(client, &types.join(", "), "void", &body).await {
        Ok(tree) => tree,
        Err(error) => return sort(&error),
    };
    let unreadable =
        || Tree::Unknown("this version of PostgreSQL writes trees in another form".into());
    let Some(tree) = tree.as_deref().and_then(nodes::parse) else {
        return Ok(unreadable());
    };
    Ok(second(&tree).map_or_else(unreadable, Tree::Query))
}

/// Asks for the tree of the body of a function in SQL whose body is a text, with names resolved as
/// a call in this session would resolve them; none if PostgreSQL takes it in no other form.
pub(crate) async fn of_function(
    client: &Client,
    function: &FunctionText,
) -> Result<Option<String>, SqlError> {
    let [arguments, result, source] = function;
    if ends_transaction(source) {
        return Ok(None);
    }
    match of_body(client, arguments, result, source).await {
        Err(error) if error.as_db_error().is_none() => Err(refused(&error)),
        tree => Ok(tree.unwrap_or_default()),
    }
}

/// Makes a function of these parameters and statements, and gives the tree of its body.
async fn of_body(
    client: &Client,
    parameters: &str,
    result: &str,
    body: &str,
) -> Result<Option<String>, tokio_postgres::Error> {
    let script = format!(
        "set transaction read write; \
         create function pg_temp.millpond_analysis({parameters}) returns {result} language sql begin atomic {body}\n; end; \
         select prosqlbody::text from pg_catalog.pg_proc where oid = 'pg_temp.millpond_analysis'::pg_catalog.regproc; \
         drop function pg_temp.millpond_analysis;"
    );
    let messages = client.simple_query(&script).await?;
    Ok(messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}

/// The tree of the second statement. The first is there to see how constants are written, and the
/// numbers of the columns that are read: it reads the first column of a table.
fn second(tree: &TreeNode) -> Option<TreeNode> {
    let [statements] = tree.items() else {
        return None;
    };
    let (probe, rest) = statements.items().split_first()?;
    let probe = probe.object()?;
    let target = probe.get("targetList").items().first()?.object()?;
    let table = probe.get("rtable").items().first()?.object()?;
    let readable = constants::are_readable(target.get("expr").object()?)
        && column_reads::selected(probe, table) == Some(vec![1]);
    match rest {
        _ if !readable => None,
        [] => Some(TreeNode::Nothing),
        [query] => Some(query.clone()),
        _ => None,
    }
}

/// Sorts the error of making the function.
fn sort(error: &tokio_postgres::Error) -> Result<Tree, SqlError> {
    let Some(said) = error.as_db_error() else {
        return Err(refused(error));
    };
    let code = said.code();
    // PostgreSQL has taken the statement by itself, so it is only as a function's body that it is
    // refused: what controls transactions is not even in the grammar there.
    let unsupported = *code == SqlState::FEATURE_NOT_SUPPORTED;
    let in_body = said.routine() == Some("interpret_AS_clause");
    if unsupported && in_body || *code == SqlState::SYNTAX_ERROR {
        return Ok(Tree::Utility);
    }
    let reason = if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        format!(
            "Millpond's role may make no temporary objects, by which it finds out what a query depends on ({}); \
             \"grant temporary on database … to …\" lets it",
            said.message()
        )
    // A standby may not even ask for a transaction that writes.
    } else if *code == SqlState::READ_ONLY_SQL_TRANSACTION || unsupported {
        format!(
            "what a query depends on cannot be found out on a standby ({})",
            said.message()
        )
    } else {
        format!(
            "PostgreSQL does not tell what it depends on: {}",
            said.message()
        )
    };
    Ok(Tree::Unknown(reason))
}

/// The type's name as SQL, wherever it is.
fn type_name(param: &Type) -> String {
    let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    format!("{}.{}", quote(param.schema()), quote(param.name()))
}

//! Which file has the row of a key, on PostgreSQL.

use super::file_rows::text;
use super::session::PostgresSession;
use crate::data_file::{FILE_COLUMN, TableColumn, quoted};
use crate::{Error, Value};

/// For each key, the file whose row has it. Keys are compared by the columns' types, or, if one of
/// them is no value of its type, as texts.
pub(super) fn key_owners(
    session: &mut PostgresSession,
    table: &str,
    columns: &[TableColumn],
    keys: &[Vec<Value>],
) -> Result<Vec<Option<String>>, Error> {
    let texts = |key: &Vec<Value>| key.iter().map(text).collect::<Vec<_>>();
    let texts: Vec<Vec<Option<String>>> = keys.iter().map(texts).collect();
    let texts = serde_json::json!(texts).to_string();
    let typed =
        |name: &str, given: &str, type_name: &str| format!("t.{name} = ({given})::{type_name}");
    let plain = |name: &str, given: &str, _: &str| format!("t.{name}::text = {given}");
    let rows = match session.query(&query(table, columns, typed), &[&texts]) {
        Err(error) if !matches!(error, Error::Unavailable { .. }) => {
            session.query(&query(table, columns, plain), &[&texts])?
        }
        rows => rows?,
    };
    let mut owners = vec![None; keys.len()];
    for row in rows {
        let mut values = row.into_iter().map(Option::unwrap_or_default);
        let place: usize = values.next().and_then(|it| it.parse().ok()).unwrap_or(0);
        if let Some(owner) = place.checked_sub(1).and_then(|at| owners.get_mut(at)) {
            *owner = values.next();
        }
    }
    Ok(owners)
}

fn query(
    table: &str,
    columns: &[TableColumn],
    equal: impl Fn(&str, &str, &str) -> String,
) -> String {
    let conditions = columns.iter().enumerate().map(|(at, column)| {
        let given = format!("k.texts->>{at}");
        equal(&quoted(&column.name), &given, &column.type_name)
    });
    format!(
        "select k.place::text, t.{}::text from pg_catalog.json_array_elements($1::json) \
         with ordinality as k (texts, place) join {} as t on {}",
        quoted(FILE_COLUMN),
        quoted(table),
        conditions.collect::<Vec<_>>().join(" and ")
    )
}

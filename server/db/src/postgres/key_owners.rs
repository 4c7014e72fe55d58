//! Which file has the row of a key, on PostgreSQL.

use super::file_rows::text;
use super::session::PostgresSession;
use crate::data_file::{FILE_COLUMN, quoted};
use crate::{Error, Value};

/// For each key, the file whose row has it. Keys are compared as texts.
pub(crate) fn key_owners(
    session: &mut PostgresSession,
    table: &str,
    columns: &[String],
    keys: &[Vec<Value>],
) -> Result<Vec<Option<String>>, Error> {
    let texts = |key: &Vec<Value>| key.iter().map(text).collect::<Vec<_>>();
    let texts: Vec<Vec<Option<String>>> = keys.iter().map(texts).collect();
    let equal = columns.iter().enumerate();
    let equal = equal.map(|(at, column)| format!("t.{}::text = k.texts->>{at}", quoted(column)));
    let sql = format!(
        "select k.place::text, t.{}::text from pg_catalog.json_array_elements($1::json) \
         with ordinality as k (texts, place) join {} as t on {}",
        quoted(FILE_COLUMN),
        quoted(table),
        equal.collect::<Vec<_>>().join(" and ")
    );
    let texts = serde_json::json!(texts).to_string();
    let mut owners = vec![None; keys.len()];
    for row in session.query(&sql, &[&texts])? {
        let mut values = row.into_iter().map(Option::unwrap_or_default);
        let place: usize = values.next().and_then(|it| it.parse().ok()).unwrap_or(0);
        if let Some(owner) = place.checked_sub(1).and_then(|at| owners.get_mut(at)) {
            *owner = values.next();
        }
    }
    Ok(owners)
}

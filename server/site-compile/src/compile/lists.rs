//! Lists that a statement takes for what they are not on PostgreSQL.

use millpond_db::{self as db, ValueKind, sql::Lexer};

use super::parameters::SqlFile;
use millpond_site_format::{
    Problem,
    script::{Declaration, NamedQuery},
};

/// Functions that give a row for each member of a JSON object, with the like for arrays.
const OF_OBJECTS: [(&str, &str); 4] = [
    ("json_each", "json_array_elements"),
    ("json_each_text", "json_array_elements"),
    ("jsonb_each", "jsonb_array_elements"),
    ("jsonb_each_text", "jsonb_array_elements"),
];

/// Functions of JSON arrays, with the like for the database's arrays.
const OF_ARRAYS: [(&str, &str); 5] = [
    ("json_array_elements", "unnest"),
    ("jsonb_array_elements", "unnest"),
    ("json_array_elements_text", "unnest"),
    ("jsonb_array_elements_text", "unnest"),
    ("json_array_length", "cardinality"),
];

/// # Errors
/// PostgreSQL is to read a list as what it is not: several files are a JSON array there, any other
/// list is an array of the database. On SQLite both are what `json_each` takes, and the database
/// gives parameters no kind.
pub(super) fn not_as_json(
    source: SqlFile<'_>,
    declared: &Declaration,
    named: &NamedQuery,
    param: &db::Param,
) -> Result<(), Problem> {
    let name = &param.name;
    let mut files = source.script.files.iter();
    let is_files = files.any(|file| file.is_list && file.name == *name);
    if !(is_files || declared.is_list) || param.kind != Some(ValueKind::Other) {
        return Ok(());
    }
    let tokens = Lexer::new(&named.sql, source.dialect).significant();
    let found = tokens.windows(3).find_map(|three| {
        let is_name = three[1].is_sign("(") && three[2].parameter() == Some(name);
        let function = three[0].text.to_ascii_lowercase();
        let of_arrays = OF_ARRAYS.iter().filter(|_| !is_files);
        let mut functions = OF_OBJECTS.iter().chain(of_arrays);
        let (function, like) = functions.find(|(known, _)| *known == function)?;
        let like = if is_files || *like == "cardinality" {
            like
        } else {
            "unnest"
        };
        is_name.then_some((*function, like))
    });
    let Some((function, like)) = found else {
        return Ok(());
    };
    let what = match is_files {
        true => "several files, which are a JSON array on PostgreSQL and no object",
        false => "a list, which is an array on PostgreSQL and no JSON",
    };
    let message = format!("`:{name}` is {what}");
    let hint = format!("write `{like}(:{name})` in the place of `{function}(:{name})`");
    Err(source.at_query(named, name, message).hint(hint))
}

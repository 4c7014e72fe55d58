//! The files of a form: checked, and with the places of their values.

use millpond_db as db;

use super::parameters::SqlFile;
use crate::page::UploadField;
use millpond_site_format::{
    Problem,
    params::Param,
    script::{ColumnName, NamedQuery},
    suggest::closest,
};

/// The files that a form takes.
pub(super) fn uploads(source: SqlFile<'_>, params: &[Param]) -> Result<Vec<UploadField>, Problem> {
    let lines = source.script.files.iter();
    let fields = lines.map(|line| {
        let is_own = |param: &Param| param.name == line.name;
        let place = params.iter().position(is_own).unwrap_or_default();
        if params[place].in_path.is_some() {
            let message = format!(
                "`{}` is a part of the path, and no file comes there",
                line.name
            );
            let problem = Problem::new(source.file, message).at(line.line, 1);
            return Err(problem.hint("give the file another name"));
        }
        Ok(UploadField {
            line: line.clone(),
            place,
        })
    });
    fields.collect()
}

/// The steps with the columns in which the addresses of files are that go when the form is done.
pub(super) fn deleted_files(
    source: SqlFile<'_>,
    prepared: &[(&NamedQuery, db::Query)],
) -> Result<Vec<(usize, String)>, Problem> {
    let columns = source.script.deleted_files.iter();
    let places = columns.map(|(name, line)| {
        place(name, prepared).map_err(|(message, hint)| {
            let problem = Problem::new(source.file, message).at(*line, 1);
            problem.hint(hint)
        })
    });
    places.collect()
}

/// The step and the column of a name such as `old.picture`.
///
/// # Errors
/// What is wrong with it, and what to do.
pub(super) fn place(
    name: &ColumnName,
    prepared: &[(&NamedQuery, db::Query)],
) -> Result<(usize, String), (String, String)> {
    let ColumnName { query, column } = name;
    let mut named = prepared.iter();
    let Some(step) = named.position(|(named, _)| named.name == *query) else {
        let names = prepared.iter().map(|(named, _)| named.name.as_str());
        let hint = match closest(query, names) {
            Some(near) => format!("did you mean `{near}.{column}`?"),
            None => format!(
                "read it first, for example: -- name: {query} :one, and select {column} from …"
            ),
        };
        return Err((format!("there is no query `{query}` here"), hint));
    };
    let columns = prepared[step].1.columns();
    if columns.iter().any(|known| **known == **column) {
        return Ok((step, column.clone()));
    }
    let names = columns.iter().map(|name| &**name);
    let hint = match closest(column, names) {
        Some(near) => format!("did you mean `{query}.{near}`?"),
        None => format!("select it there, or return it: returning {column}"),
    };
    Err((format!("query `{query}` has no column `{column}`"), hint))
}

/// The first line about files in the queries of a page, where there can be none.
pub(super) fn misplaced(source: SqlFile<'_>, stem: &str) -> Option<Problem> {
    let script = source.script;
    let files = script.files.iter().map(|line| line.line);
    let deleted = script.deleted_files.iter().map(|(_, line)| *line);
    let line = files.chain(deleted).min()?;
    let problem = Problem::new(source.file, "only a form takes and removes files").at(line, 1);
    Some(problem.hint(format!("this line belongs into pages/{stem}.post.sql")))
}

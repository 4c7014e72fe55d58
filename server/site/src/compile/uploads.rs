//! The files of a form: checked, and with the places of their values.

use super::parameters::SqlFile;
use crate::{Problem, page::ArgumentSource, params::Param, uploads::UploadField};

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

/// The columns with the addresses of files that go when the form is done. `argument` gives what a
/// name means.
pub(super) fn deleted_files(
    source: SqlFile<'_>,
    argument: impl Fn(&str) -> Option<ArgumentSource>,
) -> Result<Vec<ArgumentSource>, Problem> {
    let names = source.script.deleted_files.iter();
    let sources = names.map(|(name, line)| match argument(name) {
        Some(column @ ArgumentSource::Column { .. }) => Ok(column),
        found => {
            let message = match found {
                Some(_) => format!(
                    "`:{name}` comes from the visitor, who could have any file removed with it"
                ),
                None => format!("no `:one` query gives a column `{name}`"),
            };
            let problem = Problem::new(source.file, message).at(*line, 1);
            Err(problem.hint(format!(
                "read it first, for example: -- name: old :one, and select picture as {name} from …"
            )))
        }
    });
    sources.collect()
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

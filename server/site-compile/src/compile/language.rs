//! The `-- language:` line of a page.

use super::parameters::SqlFile;
use millpond_site_format::{Problem, params::Param, script::Script};

/// The place of the parameter among those of the page.
pub(super) fn place(script: &Script, params: &[Param]) -> Option<usize> {
    let (name, _) = script.language.as_ref()?;
    params.iter().position(|param| param.name == *name)
}

/// A part of the path, of which the address always says what it is.
pub(super) fn in_path(source: SqlFile<'_>) -> Option<Problem> {
    let (name, line) = source.script.language.as_ref()?;
    source.in_path(name)?;
    let list = source.declared(name)?;
    let texts = list
        .choices
        .iter()
        .map(millpond_site_format::param_value::shown);
    let texts = texts.collect::<Vec<_>>().join(", ");
    let message = format!("`{name}` is a part of the path, so the address chooses it");
    let hint = format!("write -- param: {name} text in ({texts})");
    Some(Problem::new(source.file, message).at(*line, 1).hint(hint))
}

/// Refuses the line in a file that has no answer of its own for each language.
///
/// # Errors
/// The line stands in a form, or beside a template.
pub(super) fn of_page_alone(source: SqlFile<'_>) -> Result<(), Problem> {
    let Some((_, line)) = source.script.language else {
        return Ok(());
    };
    let problem = Problem::new(source.file, "only a page is chosen by a language");
    Err(problem
        .at(line, 1)
        .hint("this line belongs into the .sql file of a page"))
}

//! What the steps of a form return: nothing where rows are expected, and columns that have the name
//! of a parameter.

use millpond_db as db;

use super::{
    answer::Target, parameters::SqlFile, redirect::names, same_value::is_same_value, signing,
};
use millpond_site_format::{
    Problem,
    script::{NamedQuery, Rows},
};

/// A step that is to give rows and whose statement returns none. Without the fault a `:one` of this
/// kind is always the answer of a missing row, and what it wrote is rolled back.
pub(super) fn without_columns(
    source: SqlFile<'_>,
    named: &NamedQuery,
    query: &db::Query,
) -> Option<Problem> {
    let kind = match named.rows {
        Rows::One => ":one",
        Rows::Optional => ":one?",
        Rows::Many => ":many",
        Rows::Exec => return None,
    };
    if query.is_readonly() || !query.columns().is_empty() {
        return None;
    }
    let name = &named.name;
    let message = format!("query `{name}` is `{kind}` and gives no columns, so no row comes of it");
    Some(
        Problem::new(source.file, message)
            .at(named.line, 1)
            .hint(format!(
                "add `returning …` to the statement, or say `-- name: {name} :exec`"
            )),
    )
}

/// Names that could be a parameter or the column of a step before: the parameter is taken, and the
/// other value may be meant. *Counterexample*: `returning id` below `pages/customers/[id]`, and
/// then `:id` for what was inserted. A column that a query only reads beside a declared parameter
/// is no trouble: `select title …` of the old row, and `:title` of the form.
pub(super) fn ambiguous(
    source: SqlFile<'_>,
    prepared: &[(&NamedQuery, db::Query)],
    target: Option<&Target<'_>>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (step, (named, query)) in prepared.iter().enumerate() {
        if !matches!(named.rows, Rows::One | Rows::Optional) {
            continue;
        }
        for column in query.columns().iter() {
            let what = match (source.in_path(column), source.declared(column)) {
                (Some(_), _) => format!("the part `[{column}]` of the path"),
                (None, Some(_)) if !query.is_readonly() => "the declared parameter".to_owned(),
                _ => continue,
            };
            if is_same_value(&named.sql, source.dialect, column) {
                continue;
            }
            let Some(found) = use_of(source, &prepared[step + 1..], target, column) else {
                continue;
            };
            let name = &named.name;
            let message = format!(
                "`:{column}` is {what} here, and query `{name}` above has a column of this name"
            );
            problems.push(Problem { message, ..found }.hint(format!(
                "name the column otherwise, such as `{column} as {name}_{column}` in `{name}`, and write `:{name}_{column}` where it is meant"
            )));
        }
    }
    problems
}

/// The first place after a step that names a value: a later step, the target, a `-- claims:` line.
fn use_of(
    source: SqlFile<'_>,
    later: &[(&NamedQuery, db::Query)],
    target: Option<&Target<'_>>,
    name: &str,
) -> Option<Problem> {
    let uses = |query: &db::Query| query.params().iter().any(|param| param.name == name);
    let mut later = later.iter();
    if let Some((named, _)) = later.find(|(_, query)| uses(query)) {
        return Some(source.at_query(named, name, String::new()));
    }
    let at = |line: usize| Problem::new(source.file, "").at(line, 1);
    if let Some(target) = target.filter(|target| names(target.path).any(|found| found == name)) {
        return Some(at(target.line));
    }
    let line = signing::claim_of_param(&source.script.session, name)?;
    Some(at(line.number))
}

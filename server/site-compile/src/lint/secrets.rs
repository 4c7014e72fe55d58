//! Columns with a secret that a program gets because a query selects all of them.

use millpond_db::Query;

use crate::{
    compile::Pages,
    page::{Form, FormAnswer, Page},
};
use millpond_site_format::{Problem, script::Rows, secret_names::is_secret};

/// Notes on pages and writes whose answer has such a column. What a query names itself is meant.
pub(super) fn unnamed(pages: &Pages) -> Vec<Problem> {
    let mut notes = Vec::new();
    for endpoint in &pages.endpoints {
        notes.extend(endpoint.page.iter().flat_map(|page| of_page(page)));
        notes.extend(endpoint.forms.iter().flat_map(|form| of_form(form)));
    }
    notes
}

fn of_page(page: &Page) -> Vec<Problem> {
    if page.template.is_some() || page.redirect.is_some() || page.bytes.is_some() {
        return Vec::new();
    }
    let queries = page.queries.iter().enumerate();
    let given = queries.filter(|(at, _)| page.bare.is_none_or(|bare| bare == *at));
    let notes = given.filter_map(|(_, query)| {
        let message = secret_of(&query.statements[0].query, &query.name, &page.route)?;
        Some(note(Problem::new(&query.file, message).at(query.line, 1)))
    });
    notes.collect()
}

fn of_form(form: &Form) -> Vec<Problem> {
    let FormAnswer::Json { bare, .. } = form.answer else {
        return Vec::new();
    };
    let steps = form.steps.iter().enumerate().skip(form.signing.lookups);
    let given = steps.filter(|(at, step)| match bare {
        Some(bare) => bare == *at,
        None => step.rows != Rows::Exec,
    });
    let notes = given.filter_map(|(_, step)| {
        let message = secret_of(&step.query, &step.name, &form.to_string())?;
        Some(note(Problem::new(&form.file, message).at(step.line, 1)))
    });
    notes.collect()
}

/// Describes the first secret column that a query gives without naming it.
fn secret_of(query: &Query, name: &str, address: &str) -> Option<String> {
    let columns = query.columns();
    let secret = columns
        .iter()
        .find(|column| is_secret(column) && !query.names(column))?;
    Some(format!(
        "{address} gives everyone whom it answers the column `{secret}` of `{name}`"
    ))
}

fn note(problem: Problem) -> Problem {
    problem.hint("name the columns that may be seen in the place of the `*`")
}

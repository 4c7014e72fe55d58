//! Queries that say who may enter (`-- require: member`): which they are in a page or a form.

use millpond_db as db;

use super::parameters::SqlFile;
use crate::page::guard::Guard;
use millpond_site_format::{
    Problem,
    access::GuardLine,
    script::{NamedQuery, Rows},
    suggest::closest,
};

/// The guards of a page or a form, in their order.
///
/// # Errors
/// A line that names no query, or one that cannot say who may enter.
pub(super) fn guards(source: SqlFile<'_>) -> Result<Box<[Guard]>, Problem> {
    let lines = source.script.session.guards.iter();
    lines.map(|line| guard(source, line)).collect()
}

fn guard(source: SqlFile<'_>, line: &GuardLine) -> Result<Guard, Problem> {
    let at = |message: String| {
        let (number, column) = line.line.place(&line.query);
        Problem::new(source.file, message).at(number, column)
    };
    let name = &line.query;
    let queries = &source.script.queries;
    let Some(query) = queries.iter().position(|named| named.name == *name) else {
        let known = queries.iter().map(|named| named.name.as_str());
        let hint = match closest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "name a `:one` query of this file; a claim is written: -- require: claims.{name}"
            ),
        };
        return Err(at(format!("there is no query `{name}` here")).hint(hint));
    };
    let named = &queries[query];
    if named.rows != Rows::One {
        let message = format!(
            "`-- require: {name}` needs a `:one` query: a visitor without its row may not enter"
        );
        return Err(at(message).hint(format!("make it one: -- name: {name} :one")));
    }
    if let Some(status) = named.otherwise {
        let message = format!("query `{name}` says who may enter, so `else {status}` never counts");
        return Err(at(message).hint("leave one of the two out"));
    }
    let mut all = source.script.session.guards.iter();
    if all.any(|other| other.line.number < line.line.number && other.query == *name) {
        return Err(at(format!("query `{name}` is required twice")).hint("keep one of the lines"));
    }
    let mut messages = source.script.messages.iter();
    let is_about = |of: &str| of == name.as_str();
    let message = messages
        .find(|message| is_about(&message.of) || message.about.as_deref().is_some_and(is_about));
    if let Some(message) = message {
        let said = format!("no form shows a sentence about `{name}`, which says who may enter");
        return Err(Problem::new(source.file, said)
            .at(message.line, 1)
            .hint("leave the line out: who may not enter is led elsewhere, or gets a 403"));
    }
    Ok(Guard {
        query,
        otherwise: line.otherwise.clone(),
    })
}

/// Compiles the guards of a form, whose transaction begins with them. `first` is the first step of
/// the form.
///
/// # Errors
/// As for a page; one that writes; one that stands elsewhere.
pub(super) fn guards_of_form(
    source: SqlFile<'_>,
    prepared: &[(&NamedQuery, db::Query)],
    first: usize,
) -> Result<Box<[Guard]>, Problem> {
    let guards = guards(source)?;
    for guard in &guards {
        let (named, query) = &prepared[guard.query];
        let name = &named.name;
        let problem = |message: String| Problem::new(source.file, message).at(named.line, 1);
        if !query.is_readonly() {
            let message = format!("query `{name}` says who may enter, and writes");
            return Err(problem(message).hint("let it only read"));
        }
        if guard.query < first {
            let message = format!("query `{name}` says who may enter, above `-- verify:`");
            return Err(
                problem(message).hint("put it below that line, where the transaction begins")
            );
        }
        if guard.query >= first + guards.len() {
            let message = format!("query `{name}` says who may enter, below other queries");
            return Err(problem(message).hint("put it above them: it is looked at first"));
        }
    }
    Ok(guards)
}

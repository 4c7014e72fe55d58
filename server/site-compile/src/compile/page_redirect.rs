//! The `-- redirect:` line of a page: where its values come from, and what is wrong with it.

use std::cell::Cell;

use millpond_db::Query;

use super::{
    answer::Shows,
    parameters::SqlFile,
    redirect::{names, redirect},
    same_value::is_same_value,
    signing,
    statements::Prepared,
};
use crate::page::{
    redirect::{PageRedirect, STATUS},
    redirect_target::{ArgumentSource, RedirectPiece},
};
use millpond_site_format::{
    Problem,
    params::Param,
    route::Segment,
    script::{NamedQuery, Rows, Script},
    suggest::closest,
};

/// The line of a script's redirect.
fn line(script: &Script) -> Option<usize> {
    let next = script.session.next.as_ref().map(|(_, line)| line.number);
    let path = script.redirect.as_ref().map(|(_, line)| *line);
    path.or(next)
}

/// True if a page's redirect takes this parameter.
pub(super) fn uses(script: &Script, name: &str) -> bool {
    let path = script.redirect.as_ref().map_or("", |(path, _)| path);
    let next = script.session.next.as_ref().map(|(next, _)| next.as_str());
    names(path).chain(next).any(|found| found == name)
}

/// Refuses a redirect that a page may have and a form may not.
pub(super) fn of_form(source: SqlFile<'_>) -> Result<(), Problem> {
    let script = source.script;
    let problem = |message: &str, line: usize, hint: &str| {
        let problem = Problem::new(source.file, message);
        Err(problem.at(line, 1).hint(hint))
    };
    match (
        script.redirect_status,
        &script.session.next,
        &script.redirect,
    ) {
        (Some(_), ..) => problem(
            "a form is answered with 303, so its redirect has no status",
            line(script).unwrap_or(1),
            "remove the number",
        ),
        (None, Some((_, line)), None) => problem(
            "a redirect to a parameter says where to go if that is no path of this site",
            line.number,
            "for example: -- redirect: :next else /account",
        ),
        _ => Ok(()),
    }
}

/// The redirect of what has no address.
pub(super) fn of_partial(source: SqlFile<'_>) -> Option<Problem> {
    let line = line(source.script)?;
    let problem = Problem::new(source.file, "only a page or a form redirects");
    Some(
        problem
            .at(line, 1)
            .hint("put the line into a .sql file below pages/"),
    )
}

pub(super) fn page_redirect(
    source: SqlFile<'_>,
    prepared: &[Prepared<'_>],
    params: &[Param],
    shows: Shows,
) -> Result<Option<PageRedirect>, Problem> {
    let script = source.script;
    let Some(line) = line(script) else {
        return Ok(None);
    };
    beside(source, shows, line)?;
    let sources = Sources {
        source,
        prepared,
        params,
        line,
    };
    let next = script.session.next.as_ref();
    let next = next.map(|(name, _)| sources.named(name)).transpose()?;
    let mut values = Vec::new();
    let pieces = script.redirect.as_ref().map(|(path, _)| {
        signing::check_target(source.file, &script.session, params, path, line)?;
        sources.pieces(path, &mut values)
    });
    let pieces = pieces.transpose()?;
    if let Some((path, _)) = &script.redirect
        && leads_to_itself(source, path, &values)
    {
        let message = "the redirect leads to the page itself, again and again";
        let problem = Problem::new(source.file, message).at(line, 1);
        return Err(problem.hint(
            "lead to another address, or name a column that is null where the page is to be shown",
        ));
    }
    Ok(Some(PageRedirect {
        status: script.redirect_status.unwrap_or(STATUS),
        next,
        pieces,
        values,
        file: source.file.to_owned(),
        line,
    }))
}

/// Another line that would be the answer.
fn beside(source: SqlFile<'_>, shows: Shows, line: usize) -> Result<(), Problem> {
    let script = source.script;
    let bytes = script
        .bytes
        .as_ref()
        .map(|bytes| ("bytes", bytes.line.number));
    let json = script.json.as_ref().map(|(_, line)| ("json", *line));
    let (message, line) = match (bytes.or(json), shows) {
        (Some((word, line)), _) => (
            format!("`-- {word}:` beside `-- redirect:`, of which only one is the answer"),
            line,
        ),
        (None, Shows::Csv) => ("a page of CSV leads nowhere".to_owned(), line),
        (None, Shows::Template | Shows::Json) => return Ok(()),
    };
    let problem = Problem::new(source.file, message).at(line, 1);
    Err(problem.hint(
        "a page with a redirect has a template for what is shown otherwise, or no other answer",
    ))
}

/// Sources of the values of the line.
struct Sources<'s> {
    source: SqlFile<'s>,
    prepared: &'s [Prepared<'s>],
    params: &'s [Param],
    line: usize,
}

impl Sources<'_> {
    /// The pieces of a path; their values are places among `values`.
    fn pieces(
        &self,
        path: &str,
        values: &mut Vec<ArgumentSource>,
    ) -> Result<Vec<RedirectPiece>, Problem> {
        for name in names(path) {
            values.push(self.named(name)?);
        }
        let count = Cell::new(0);
        let place = |_: &str| Some(ArgumentSource::Param(count.replace(count.get() + 1)));
        Ok(redirect(path, place).unwrap_or_default())
    }

    /// The parameter, or the column of a row, of this name.
    fn named(&self, name: &str) -> Result<ArgumentSource, Problem> {
        let column = self.column(name);
        let param = self.params.iter().position(|param| param.name == name);
        match (param, column) {
            (Some(at), None) => Ok(ArgumentSource::Param(at)),
            (Some(at), Some((_, named, _)))
                if is_same_value(&named.sql, self.source.dialect, name) =>
            {
                Ok(ArgumentSource::Param(at))
            }
            (Some(_), Some((_, named, _))) => {
                let query = &named.name;
                let message = format!(
                    "`:{name}` is a parameter here, and query `{query}` has a column of this name"
                );
                let hint = format!(
                    "name the column otherwise, such as `{name} as {query}_{name}`, and write `:{query}_{name}` where it is meant"
                );
                Err(self.problem(message).hint(hint))
            }
            (None, Some((step, ..))) => Ok(ArgumentSource::Column {
                step,
                column: name.to_owned(),
            }),
            (None, None) => Err(self.unknown(name)),
        }
    }

    /// The last query of one row with this column.
    fn column(&self, name: &str) -> Option<(usize, &NamedQuery, &Query)> {
        let mut rows = self.rows();
        rows.rfind(|(_, _, query)| query.columns().iter().any(|column| **column == *name))
    }

    /// The queries that give one row.
    fn rows(&self) -> impl DoubleEndedIterator<Item = (usize, &NamedQuery, &Query)> {
        let all = self.prepared.iter().enumerate();
        all.filter(|(_, (named, _))| matches!(named.rows, Rows::One | Rows::Optional))
            .map(|(at, (named, all))| (at, *named, &all[0].1))
    }

    fn unknown(&self, name: &str) -> Problem {
        let columns = self.rows().flat_map(|(_, _, query)| {
            let columns = query.columns();
            columns.iter().map(ToString::to_string).collect::<Vec<_>>()
        });
        let params = self.params.iter().map(|param| param.name.clone());
        let known: Vec<String> = params.chain(columns).collect();
        let problem = self.problem(format!(
            "the redirect names `:{name}`, which is neither a parameter nor a column of a `:one` or `:one?` query"
        ));
        match closest(name, known.iter().map(String::as_str)) {
            Some(near) => problem.hint(format!("did you mean `:{near}`?")),
            None => problem.hint(format!("declare it: -- param: {name} text = null")),
        }
    }

    fn problem(&self, message: String) -> Problem {
        Problem::new(self.source.file, message).at(self.line, 1)
    }
}

/// True if the path is the page's own with any values.
fn leads_to_itself(source: SqlFile<'_>, path: &str, values: &[ArgumentSource]) -> bool {
    let is_column = |value: &ArgumentSource| matches!(value, ArgumentSource::Column { .. });
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let parts = source.pattern.segments.iter().map(|segment| match segment {
        Segment::Literal(text) => format!("/{text}"),
        Segment::Param(name) | Segment::Rest(name) => format!("/:{name}"),
    });
    !values.iter().any(is_column) && path.trim_end_matches('/') == parts.collect::<String>()
}

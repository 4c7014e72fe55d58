//! The lines that say what a write answers, or what a page gives as JSON.

use millpond_db as db;

use super::{parameters::SqlFile, statements::Prepared, uploads::place};
use crate::page::{FormAnswer, redirect_target::RedirectPiece};
use millpond_site_format::{
    Problem,
    script::{NamedQuery, Rows},
    suggest::closest,
};

/// An address at the end of a write, in which parameters are filled in.
#[derive(Clone, Copy)]
pub(super) struct Target<'s> {
    pub(super) path: &'s str,
    pub(super) line: usize,
    /// Word for the line in messages.
    pub(super) word: &'static str,
}

/// The lines of a write that agree with each other.
#[derive(Clone, Copy)]
pub(super) struct AnswerLines<'s> {
    source: SqlFile<'s>,
}

impl<'s> AnswerLines<'s> {
    pub(super) fn of(source: SqlFile<'s>) -> Result<Self, Problem> {
        let script = source.script;
        let (word, other) = match (&script.redirect, &script.created, &script.json) {
            (Some(_), Some(created), _) => ("created", created),
            (Some(_), None, Some(json)) => ("json", json),
            _ => return Ok(Self { source }),
        };
        let message = format!("`-- {word}:` beside `-- redirect:`, which is the whole answer");
        Err(Problem::new(source.file, message)
            .at(other.1, 1)
            .hint("keep the redirect for a form in a page, the other for a program"))
    }

    /// The address at the end.
    pub(super) fn target(self) -> Option<Target<'s>> {
        let target = |(path, line): &'s (String, usize), word| Target {
            path,
            line: *line,
            word,
        };
        let script = self.source.script;
        let redirect = script.redirect.iter().map(|line| target(line, "redirect"));
        let created = script
            .created
            .iter()
            .map(|line| target(line, "`-- created:` line"));
        redirect.chain(created).next()
    }

    /// Compiles the answer of a form. `pieces` are those of the address at the end.
    pub(super) fn answer(
        self,
        prepared: &[(&NamedQuery, db::Query)],
        pieces: Vec<RedirectPiece>,
    ) -> Result<FormAnswer, Problem> {
        let script = self.source.script;
        if script.redirect.is_some() {
            return Ok(FormAnswer::Redirect(pieces));
        }
        let queries: Vec<&NamedQuery> = prepared.iter().map(|(named, _)| *named).collect();
        if let (Some(_), Some((_, line))) = (&script.total, &script.json) {
            let problem = Problem::new(self.source.file, "a write has no total");
            let hint = "write the name of the query alone: the answer is what was written";
            return Err(problem.at(*line, 1).hint(hint));
        }
        let bare = bare(self.source, &queries)?;
        let after = script
            .session
            .verify
            .as_ref()
            .map_or(0, |verify| verify.after);
        if let (Some(at), Some((name, line))) = (bare.filter(|at| *at < after), &script.json) {
            let message = format!("query `{name}` stands above `-- verify:`");
            return Err(Problem::new(self.source.file, message)
                .at(*line, 1)
                .hint(format!(
                    "nothing is answered of what is read before the password is verified; select it below: -- name: {}_known :one",
                    queries[at].name
                )));
        }
        Ok(FormAnswer::Json {
            created: script.created.is_some().then_some(pieces),
            bare,
        })
    }
}

/// The place of the query whose rows alone are the JSON.
pub(super) fn bare(source: SqlFile<'_>, queries: &[&NamedQuery]) -> Result<Option<usize>, Problem> {
    let Some((name, line)) = &source.script.json else {
        return Ok(None);
    };
    let at = queries.iter().position(|named| named.name == *name);
    let (message, hint) = match at {
        Some(at) if queries[at].rows != Rows::Exec => return Ok(Some(at)),
        Some(_) => (
            format!("query `{name}` is `:exec` and gives nothing"),
            "make it :one, :one? or :many, with `returning` if it writes".to_owned(),
        ),
        None => {
            let known = queries.iter().map(|named| named.name.as_str());
            let hint = match closest(name, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "name a query of this file".to_owned(),
            };
            (format!("there is no query `{name}` here"), hint)
        }
    };
    let problem = Problem::new(source.file, message);
    Err(problem.at(*line, 1).hint(hint))
}

/// The query and the column that say how many rows there are in all.
pub(super) fn total(
    source: SqlFile<'_>,
    prepared: &[Prepared<'_>],
) -> Result<Option<(usize, String)>, Problem> {
    let (Some(name), Some((_, line))) = (&source.script.total, &source.script.json) else {
        return Ok(None);
    };
    let single: Vec<(&NamedQuery, db::Query)> = prepared
        .iter()
        .filter_map(|(named, all)| Some((*named, all.first()?.1.clone())))
        .collect();
    let found = place(name, &single).and_then(|place| match single[place.0].0.rows {
        Rows::One | Rows::Optional => Ok(place),
        Rows::Many | Rows::Exec => Err((
            format!("query `{}` gives no single row", name.query),
            "count in a query of one row, such as -- name: counted :one, and select count(*) as n from …".to_owned(),
        )),
    });
    found.map(Some).map_err(|(message, hint)| {
        let problem = Problem::new(source.file, message);
        problem.at(*line, 1).hint(hint)
    })
}

/// Returns the problem of a page that has a line that only forms may have.
pub(super) fn of_page(source: SqlFile<'_>, stem: &str, shows: Shows) -> Option<Problem> {
    let script = source.script;
    let line = |found: &Option<(String, usize)>| found.as_ref().map(|(_, line)| *line);
    let message = script.messages.first().map(|message| message.line);
    let of_writes = [
        (line(&script.created), "created"),
        (line(&script.invalid), "invalid"),
        (message, "message"),
        (script.otherwise(), "name … else"),
    ];
    for (found, word) in of_writes {
        if let Some(line) = found {
            let message = format!("a page has no `-- {word}:`");
            let hint = format!("it belongs into what writes, such as pages/{stem}.post.sql");
            return Some(Problem::new(source.file, message).at(line, 1).hint(hint));
        }
    }
    let has_rows = shows == Shows::Csv && script.bytes.is_none();
    if let (false, Some((_, line))) = (has_rows, &script.csv) {
        let problem = Problem::new(source.file, "only a page of CSV has this line");
        let hint = "remove it, or let the page's name end with `.csv.sql`";
        return Some(problem.at(*line, 1).hint(hint));
    }
    let (message, hint) = match shows {
        Shows::Json => return None,
        Shows::Template => (
            "a page with a template is no JSON",
            "remove the line, or put the query into a page without a template",
        ),
        Shows::Csv => (
            "a page of CSV is no JSON",
            "remove the line, or leave `.csv` out of the page's name",
        ),
    };
    let (_, line) = script.json.as_ref()?;
    Some(Problem::new(source.file, message).at(*line, 1).hint(hint))
}

/// Kind of a page, by the things that it shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    Template,
    Csv,
    Json,
}

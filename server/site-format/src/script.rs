//! A page's `.sql` file: named queries and the lines that steer them.

use std::{path::Path, time::Duration};

use crate::{
    Problem,
    access::{DirectiveLine, SessionLines, WORDS},
    duration,
    parameter_names::{foreign_parameter, is_name},
    text_format::TextFormat,
    time_zone::SiteZone,
};

mod bytes;
mod declare;
mod files;
mod json;
mod language;
mod message;
mod misspelt;
mod range;
mod redirect;
mod until;

pub use bytes::{BytesLine, ColumnName, TextSource, is_media_type};
pub use declare::{Declaration, OrderLine};
pub use files::{FileLine, FilePlace};
pub use message::{ANY_FIELD, MessageLine};
pub use until::UntilLine;

/// How many rows a query is to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// One; without it the page does not exist.
    One,
    /// One or none.
    Optional,
    /// Any number.
    Many,
    /// None: the statement writes.
    Exec,
}

/// A `-- name:` line with its statement.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedQuery {
    pub name: String,
    pub rows: Rows,
    /// The status if a `:one` of a write gives no row, in place of 404.
    pub otherwise: Option<u16>,
    pub sql: String,
    /// Byte of the file at which the statement begins.
    pub offset: usize,
    pub line: usize,
    pub max_age: Option<Duration>,
    /// Tables that the owner declares in addition to those that the database names (`-- depends:`).
    pub depends: Vec<String>,
}

/// A whole `.sql` file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    pub params: Vec<Declaration>,
    /// The parameter that the visitor's browser chooses, with its line.
    pub language: Option<(String, usize)>,
    /// Each is a parameter too.
    pub orders: Vec<OrderLine>,
    /// Each gives parameters too.
    pub files: Vec<FileLine>,
    /// The columns of `-- delete-file:` lines, each with its line.
    pub deleted_files: Vec<(ColumnName, usize)>,
    pub queries: Vec<NamedQuery>,
    /// Lower-case names of request fields that are part of the page's key.
    pub vary: Vec<String>,
    /// The target, with its line.
    pub redirect: Option<(String, usize)>,
    /// The status of a page's redirect.
    pub redirect_status: Option<u16>,
    /// The address of what a write creates, with its line.
    pub created: Option<(String, usize)>,
    /// The query whose rows alone are the JSON, with its line.
    pub json: Option<(String, usize)>,
    /// The reader that a page of CSV is for (`-- csv: spreadsheet`), with its line.
    pub csv: Option<(String, usize)>,
    /// The column that says how many rows there are beyond those of the answer.
    pub total: Option<ColumnName>,
    /// Address of the page where a refused form is filled in again, with the line.
    pub invalid: Option<(String, usize)>,
    pub messages: Vec<MessageLine>,
    pub session: SessionLines,
    /// Bytes that the page answers with, if it does not answer with all its queries.
    pub bytes: Option<BytesLine>,
    /// The moments at which the page ends by itself.
    pub until: Vec<UntilLine>,
    /// The line that asks crawlers to stay away (`-- crawl: no`).
    pub uncrawled: Option<usize>,
    /// The line that keeps those who look at the page up to date (`-- live`).
    pub live: Option<usize>,
    /// The time zone of the site.
    pub zone: SiteZone,
}

/// True for a line of a block comment above the first query, in which nothing steers.
fn is_comment(line: &str, is_open: &mut bool) -> bool {
    let text = line.trim();
    let inner = match *is_open {
        true => Some(text),
        false => text.strip_prefix("/*"),
    };
    let Some(inner) = inner else {
        return false;
    };
    let behind = inner.split_once("*/").map(|(_, behind)| behind.trim());
    *is_open = behind.is_none();
    behind.is_none_or(|behind| behind.is_empty() || behind.starts_with("--"))
}

const DIRECTIVES: &str = "\
    name param order language file delete-file redirect created json csv bytes invalid message \
    max-age depends vary until crawl live";

impl Script {
    /// Reads the text of a `.sql` file of a site in this time zone.
    pub fn parse_in(file: &Path, text: &str, zone: SiteZone) -> Result<Self, Problem> {
        let mut script = Self::parse(file, text)?;
        script.zone = zone;
        for declared in &mut script.params {
            if declared.rules.format == Some(TextFormat::DateTime) {
                declared.rules.zone = zone;
            }
        }
        Ok(script)
    }

    /// Reads the text of a `.sql` file.
    pub fn parse(file: &Path, text: &str) -> Result<Self, Problem> {
        let mut script = Self::default();
        let mut offset = 0;
        let mut is_in_comment = false;
        for (index, raw) in text.split_inclusive('\n').enumerate() {
            let line = index + 1;
            let start = offset;
            offset += raw.len();
            if script.queries.is_empty() && is_comment(raw, &mut is_in_comment) {
                continue;
            }
            match directive(raw) {
                Some((word, rest)) => {
                    let written = DirectiveLine {
                        number: line,
                        text: raw.trim_end().to_owned(),
                    };
                    script
                        .apply_directive(word, rest, &written, offset)
                        .map_err(|problem| Problem {
                            file: file.to_owned(),
                            ..problem
                        })?
                }
                None => {
                    if let Some(meant) = misspelt::meant(raw) {
                        return Err(misspelling(file, raw, line, &meant));
                    }
                    script.statement_line(file, raw, line, start)?;
                }
            }
        }
        script.finish(file)
    }

    /// The first line with the status of a `:one` that gives no row.
    pub fn otherwise(&self) -> Option<usize> {
        let mut queries = self.queries.iter();
        let query = queries.find(|query| query.otherwise.is_some())?;
        Some(query.line)
    }

    /// Takes up a line that steers. The file of a problem is filled in by the caller.
    fn apply_directive(
        &mut self,
        word: &str,
        rest: &str,
        line: &DirectiveLine,
        next: usize,
    ) -> Result<(), Problem> {
        let number = line.number;
        let at_word = |(place, message, hint): (String, String, String), line: &DirectiveLine| {
            let (line, column) = line.place(&place);
            Problem::new("", message).at(line, column).hint(hint)
        };
        if WORDS.contains(&word) {
            let above = self.queries.len();
            let taken = self
                .session
                .apply_directive(word, rest, line.clone(), above);
            return taken.map_err(|fault| at_word(fault, line));
        }
        let mut rest = rest;
        if word == "redirect" {
            let plain = |(message, hint): Complaint| Problem {
                hint,
                ..Problem::new("", message).at(number, 1)
            };
            let status;
            (status, rest) = redirect::status(rest).map_err(plain)?;
            self.redirect_status = status.or(self.redirect_status);
            if self.redirect.is_some() || self.session.next.is_some() {
                return Err(plain((
                    "a second redirect".to_owned(),
                    Some("keep one".to_owned()),
                )));
            }
            if let Some(next) = self.session.next(rest, line.clone()) {
                match next.map_err(|fault| at_word(fault, line))? {
                    Some(path) => rest = path,
                    None => return Ok(()),
                }
            }
        }
        if word == "bytes" {
            let read = bytes::parse(rest, line.clone()).map_err(|fault| at_word(fault, line))?;
            return match self.bytes.replace(read) {
                None => Ok(()),
                Some(_) => Err(Problem::new("", "a second `bytes`")
                    .at(number, 1)
                    .hint("keep one")),
            };
        }
        if word == "until" {
            let read = until::until(rest, line).map_err(|fault| at_word(fault, line))?;
            self.until.extend(read);
            return Ok(());
        }
        if word == "vary" {
            for field in rest.split(',').map(str::trim) {
                match self.session.vary(field) {
                    Some(taken) => taken.map_err(|fault| at_word(fault, line))?,
                    None => self.vary.push(field.to_ascii_lowercase()),
                }
            }
            return Ok(());
        }
        self.apply_plain_directive(word, rest, number, next)
            .map_err(|(message, hint)| Problem {
                hint,
                ..Problem::new("", message).at(number, 1)
            })
    }

    fn apply_plain_directive(
        &mut self,
        word: &str,
        rest: &str,
        line: usize,
        next: usize,
    ) -> Result<(), Complaint> {
        match word {
            "name" => self.queries.push(named(rest, line, next)?),
            "param" => self.declare(declare::declaration(rest, line)?)?,
            "order" => {
                let order = declare::order(rest, line)?;
                self.declare(order.declaration())?;
                self.orders.push(order);
            }
            "language" => {
                let declared = language::language(rest, line)?;
                once(
                    &mut self.language,
                    "`-- language:` line",
                    &declared.name,
                    line,
                )?;
                self.declare(declared)?;
            }
            "file" => {
                let file = files::file(rest, line)?;
                for declaration in file.declarations() {
                    self.declare(declaration)?;
                }
                self.files.push(file);
            }
            "delete-file" => self.deleted_files.push((files::deleted(rest)?, line)),
            "redirect" => once(&mut self.redirect, "redirect", path(word, rest)?, line)?,
            "invalid" => once(
                &mut self.invalid,
                "`-- invalid:` line",
                path(word, rest)?,
                line,
            )?,
            "message" => self.messages.push(message::message(rest, line)?),
            "created" => once(
                &mut self.created,
                "`-- created:` line",
                path(word, rest)?,
                line,
            )?,
            "json" => {
                let (name, total) = json::json(rest)?;
                once(&mut self.json, "`-- json:` line", name, line)?;
                self.total = total;
            }
            "csv" if rest == "spreadsheet" => {
                once(&mut self.csv, "`-- csv:` line", rest, line)?;
            }
            "csv" => {
                let message = format!("`{rest}` is no reader of CSV that is known");
                let hint = "write -- csv: spreadsheet, or remove the line".to_owned();
                return Err((message, Some(hint)));
            }
            "live" if rest.is_empty() => self.live = Some(line),
            "live" => {
                let message = "a `-- live` line says nothing else".to_owned();
                let hint = "write -- live; what is live is the whole page".to_owned();
                return Err((message, Some(hint)));
            }
            "crawl" if rest == "no" => self.uncrawled = Some(line),
            "crawl" => {
                let message = format!("`{rest}` says nothing of crawlers");
                let hint =
                    "write -- crawl: no, or remove the line: a page may be crawled".to_owned();
                return Err((message, Some(hint)));
            }
            "max-age" => {
                let age = duration::parse(rest)
                    .map_err(|why| (why, Some("for example: -- max-age: 60s".to_owned())))?;
                self.last_query(word)?.max_age = Some(age);
            }
            _ => {
                let tables = tables(rest)?;
                self.last_query(word)?.depends.extend(tables);
            }
        }
        Ok(())
    }

    /// The query that a line below its name belongs to.
    fn last_query(&mut self, word: &str) -> Result<&mut NamedQuery, Complaint> {
        let last = self.queries.last_mut();
        last.ok_or_else(|| {
            let hint = "put it below the `-- name:` line of the query it belongs to".to_owned();
            (format!("`{word}` before the first query"), Some(hint))
        })
    }

    fn declare(&mut self, declaration: Declaration) -> Result<(), Complaint> {
        let name = &declaration.name;
        if self.params.iter().any(|other| other.name == *name) {
            let message = format!("parameter `{name}` is declared twice");
            return Err((message, Some("keep one of the two lines".to_owned())));
        }
        self.params.push(declaration);
        Ok(())
    }

    fn statement_line(
        &mut self,
        file: &Path,
        raw: &str,
        line: usize,
        start: usize,
    ) -> Result<(), Problem> {
        let Some(query) = self.queries.last_mut() else {
            let text = raw.trim();
            if text.is_empty() || text.starts_with("--") {
                return Ok(());
            }
            return Err(Problem::new(file, "SQL before the first `-- name:` line")
                .at(line, 1)
                .hint("give the query a name, for example: -- name: article :one"));
        };
        if query.sql.is_empty() {
            query.offset = start;
        }
        query.sql.push_str(raw);
        Ok(())
    }

    fn finish(mut self, file: &Path) -> Result<Self, Problem> {
        for query in &mut self.queries {
            let end = query.sql.trim_end().len();
            query.sql.truncate(end);
            let only_comments = query
                .sql
                .lines()
                .all(|line| line.trim().is_empty() || line.trim_start().starts_with("--"));
            if only_comments {
                return Err(
                    Problem::new(file, format!("query `{}` has no statement", query.name))
                        .at(query.line, 1),
                );
            }
        }
        for (index, query) in self.queries.iter().enumerate() {
            if self.queries[..index]
                .iter()
                .any(|other| other.name == query.name)
            {
                return Err(
                    Problem::new(file, format!("a second query named `{}`", query.name))
                        .at(query.line, 1),
                );
            }
        }
        Ok(self)
    }
}

/// A comment that was probably meant as a line that steers.
fn misspelling(file: &Path, raw: &str, line: usize, meant: &str) -> Problem {
    let column = raw.chars().take_while(|c| c.is_whitespace()).count() + 1;
    Problem::new(file, format!("`{}` would be a comment", raw.trim()))
        .at(line, column)
        .hint(format!(
            "did you mean `{meant}`? If it is a comment, begin it with another word"
        ))
}

/// A message and a hint.
type Complaint = (String, Option<String>);

/// Returns the path behind `-- redirect:` or `-- created:`: a path of this site.
fn path<'r>(word: &str, rest: &'r str) -> Result<&'r str, Complaint> {
    if let Some(fault) = foreign_parameter(rest) {
        return Err((fault, None));
    }
    if rest.starts_with('/') && !rest.starts_with("//") && !rest.starts_with("/\\") {
        return Ok(rest);
    }
    let (what, example) = match word {
        "redirect" => ("a redirect goes to", "redirect: /read?id=:id"),
        "invalid" => ("a refused form leads back to", "invalid: /albums/new"),
        _ => ("what is created has", "created: /items/:id"),
    };
    Err((
        format!("{what} a path of this site, beginning with one `/`"),
        Some(format!("for example: -- {example}")),
    ))
}

/// Takes a line that there is once in a file.
fn once(
    place: &mut Option<(String, usize)>,
    what: &str,
    rest: &str,
    line: usize,
) -> Result<(), Complaint> {
    match place.replace((rest.to_owned(), line)) {
        None => Ok(()),
        Some(_) => Err((format!("a second {what}"), Some("keep one".to_owned()))),
    }
}

/// `-- word: rest`, if the line is one and the word is ours or nearly so.
fn directive(line: &str) -> Option<(&str, &str)> {
    let text = line.trim().strip_prefix("--")?.trim();
    if matches!(text, "logout" | "live") {
        return Some((text, ""));
    }
    let (word, rest) = text.split_once(':')?;
    let is_ours = DIRECTIVES.split(' ').any(|known| known == word) || WORDS.contains(&word);
    is_ours.then_some((word, rest.trim()))
}

fn named(rest: &str, line: usize, next: usize) -> Result<NamedQuery, Complaint> {
    let (name, rows) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if !is_name(name) {
        return Err((
            format!("`{name}` is no name for a query"),
            Some("letters, digits and `_`, not beginning with a digit".to_owned()),
        ));
    }
    let (rows, otherwise) = otherwise(name, rows.trim())?;
    let rows = match rows {
        ":one" => Rows::One,
        ":one?" => Rows::Optional,
        ":many" => Rows::Many,
        ":exec" => Rows::Exec,
        other => {
            let what = if other.is_empty() {
                "does not say how many rows it gives".to_owned()
            } else {
                format!("has the unknown kind `{other}`")
            };
            return Err((
                format!("query `{name}` {what}"),
                Some("one of :one, :one?, :many, :exec".to_owned()),
            ));
        }
    };
    Ok(NamedQuery {
        name: name.to_owned(),
        rows,
        otherwise,
        sql: String::new(),
        offset: next,
        line,
        max_age: None,
        depends: Vec::new(),
    })
}

/// Cuts `else 409` off what stands behind a query's name.
fn otherwise<'r>(name: &str, rest: &'r str) -> Result<(&'r str, Option<u16>), Complaint> {
    let (rows, status) = match rest.split_once(" else") {
        None => return Ok((rest, None)),
        Some((rows, status)) => (rows.trim(), status.trim()),
    };
    if rows != ":one" {
        return Err((
            format!("`else` behind query `{name}`, which need not give a row"),
            Some("only a `:one` has it: -- name: saved :one else 409".to_owned()),
        ));
    }
    match status {
        "409" => Ok((rows, Some(409))),
        "412" => Ok((rows, Some(412))),
        _ => Err((
            format!("`{status}` is no status for a row that has changed meanwhile"),
            Some(
                "409 (conflict) or 412 (a condition is false); without `else` it is 404".to_owned(),
            ),
        )),
    }
}

/// The tables of a `-- depends:` line: `comment, shop.item`.
fn tables(rest: &str) -> Result<Vec<String>, Complaint> {
    let tables: Vec<_> = rest
        .split(',')
        .map(|table| table.trim().to_owned())
        .collect();
    let is_table = |table: &String| {
        let mut parts = table.split('.');
        table.split('.').count() <= 2 && parts.all(is_name)
    };
    match tables.iter().find(|table| !is_table(table)) {
        None => Ok(tables),
        Some(other) => Err((
            format!("`{other}` is no name of a table"),
            Some("for example: -- depends: comment, shop.item".to_owned()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use millpond_db::Value;

    use super::*;

    fn parse(text: &str) -> Result<Script, String> {
        Script::parse(Path::new("pages/a.sql"), text).map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_script_is_read() {
        let text = "-- A page.\n-- param: id integer\n-- param: q text = 'it''s'\n-- vary: Accept-Language\n\n-- name: a :one\n-- max-age: 60s\n-- depends: t, shop.u\n-- a comment: kept\nselect :id;\n\n-- name: b :many\nselect 2;\n-- redirect: /x?id=:id\n";
        let script = parse(text).unwrap();
        assert_eq!(script.params.len(), 2);
        assert_eq!(script.params[1].default, Some(Value::from("it's")));
        assert_eq!(script.vary, ["accept-language"]);
        assert_eq!(script.queries[0].sql, "-- a comment: kept\nselect :id;");
        assert_eq!(&text[script.queries[0].offset..][..4], "-- a");
        assert_eq!(script.queries[0].max_age, Some(Duration::from_secs(60)));
        assert_eq!(script.queries[0].depends, ["t", "shop.u"]);
        assert!(script.queries[1].depends.is_empty());
        assert_eq!(script.queries[1].rows, Rows::Many);
        assert_eq!(script.redirect.as_ref().unwrap().0, "/x?id=:id");
    }

    #[test]
    fn faults_are_named_with_their_line() {
        for (text, expected) in [
            ("select 1", "pages/a.sql:1:1: SQL before"),
            (
                "-- name: a\nselect 1",
                "pages/a.sql:1:1: query `a` does not say how many",
            ),
            (
                "-- name: a :two\nselect 1",
                "pages/a.sql:1:1: query `a` has the unknown kind `:two`",
            ),
            (
                "-- name: a :one\n\n-- x",
                "pages/a.sql:1:1: query `a` has no statement",
            ),
            (
                "-- name: a :one\nselect 1\n-- name: a :one\nselect 1",
                "pages/a.sql:3:1: a second query",
            ),
            (
                "-- param: a int",
                "pages/a.sql:1:1: parameter `a` has the unknown type",
            ),
            (
                "-- param: a integer = x",
                "pages/a.sql:1:1: `x` is no integer",
            ),
            (
                "-- param: a boolean = 1",
                "pages/a.sql:1:1: `1` is neither true nor false",
            ),
            (
                "-- param: a text = x",
                "pages/a.sql:1:1: a text default stands in quotes",
            ),
            (
                "-- depends: t",
                "pages/a.sql:1:1: `depends` before the first query",
            ),
            (
                "-- name: a :one\n-- depends: t,, u\nselect 1",
                "pages/a.sql:2:1: `` is no name of a table",
            ),
            (
                "-- name: a :one\n  -- parm: b text\nselect 1",
                "pages/a.sql:2:3: `-- parm: b text` would be a comment",
            ),
            (
                "-- param: a text\n-- order: a: b = \"c\"",
                "pages/a.sql:2:1: parameter `a` is declared twice",
            ),
            (
                "-- redirect: //evil.example/",
                "pages/a.sql:1:1: a redirect goes to a path",
            ),
            (
                "-- created: items/:id",
                "pages/a.sql:1:1: what is created has a path",
            ),
            ("-- json: a b", "pages/a.sql:1:1: `b` says nothing about"),
            (
                "-- json: a\n-- json: b",
                "pages/a.sql:2:1: a second `-- json:` line",
            ),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.starts_with(expected), "{text:?}: {problem}");
        }
    }
}

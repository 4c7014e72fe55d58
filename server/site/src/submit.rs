//! A POST: one transaction, then a redirect. What concerns passwords and sessions is in `sign`.

use std::{ops::Range, sync::Arc};

use base_clock::Boottime;
use bytes::Bytes;
use millpond_db::{Bind, ConstraintKind, Error, Expect, Position, ResultRows, Value, WriteStep};
use millpond_http::{OwnedRequest, Response};
use percent_encoding::utf8_percent_encode;

use crate::{
    cached::PageFailure,
    core::{Core, Generation, away, busy, slow},
    form::{self, Encoding, Refused},
    page::{ArgumentSource, Form, FormStep, RedirectPiece},
    params::Given,
    rules::{VALUE, local},
    session::Session,
    sign::column,
};

/// A form that was sent.
pub(crate) struct Submission {
    pub(crate) core: Arc<Core>,
    pub(crate) generation: Arc<Generation>,
    pub(crate) form: Arc<Form>,
    /// Where the form wants to know it.
    pub(crate) session: Option<Session>,
    pub(crate) path_values: Vec<String>,
    /// The request without its body.
    pub(crate) request: OwnedRequest,
    pub(crate) body: Bytes,
    pub(crate) encoding: Encoding,
}

impl Submission {
    /// Answers.
    pub(crate) async fn submit(mut self) -> Response {
        // The body and its fields go when they have become values: a form may be large.
        let body = std::mem::take(&mut self.body);
        let query = self.request.as_request().query.map(str::to_owned);
        let fields = match form::read(self.encoding.clone(), &body).await {
            Ok(fields) => fields,
            Err(Refused(status, sentence)) => return refusal(status, sentence),
        };
        let path: Vec<&str> = self.path_values.iter().map(String::as_str).collect();
        let given = Given {
            path: &path,
            form: &fields,
            query: query.as_deref(),
        };
        let mut values = match given.values(&self.form.params) {
            Ok(values) => values,
            Err(bad) if bad.is_in_path => return self.not_found(),
            Err(bad) => return refusal(400, &bad.sentence),
        };
        drop(fields);
        drop(body);
        values.extend(self.form.needs.values(self.session.as_ref()));
        match self.perform(values).await {
            Ok(response) | Err(response) => response,
        }
    }

    /// Performs the form in this order: look up, verify, hash, write, session. The first step that
    /// fails ends it.
    async fn perform(&self, mut values: Vec<Value>) -> Result<Response, Response> {
        let mut results = self.look_up(&values).await?;
        self.verify(&values, &results).await?;
        let steps = self.form.steps.iter().zip(&results);
        let is_missing = |(step, rows): (&FormStep, &ResultRows)| {
            step.expect == Expect::One && rows.rows.is_empty()
        };
        if steps.into_iter().any(is_missing) {
            return Err(self.not_found());
        }
        self.hash(&mut values).await?;
        let (written, position) = self.write(&values, &results).await?;
        results.extend(written);
        let seen = self.seen(position);
        let Ok(cookie) = self.cookie(&values, &results) else {
            return Err(self.broken_after_write(seen));
        };
        let target = match self.next(&values) {
            Some(next) => next,
            None => local(&target(&self.form.redirect, &values, &results)),
        };
        Ok(see_other(&target, cookie.into_iter().chain(seen)))
    }

    /// Runs the statements after the look-ups in one transaction. The answer is sent after the
    /// change was applied to the store, so every later request sees the change.
    async fn write(
        &self,
        values: &[Value],
        found: &[ResultRows],
    ) -> Result<(Vec<ResultRows>, Option<Position>), Response> {
        let steps = self.form.steps[found.len()..].iter().map(|step| WriteStep {
            query: step.query.clone(),
            bind: step
                .bind
                .iter()
                .map(|source| bind(source, values, found))
                .collect(),
            expect: step.expect,
        });
        if steps.len() == 0 {
            return Ok((Vec::new(), None));
        }
        match self.core.database.write(steps.collect()).await {
            Ok(written) => Ok((written.results, Some(written.position))),
            Err(Error::NoRow { .. }) => Err(self.not_found()),
            Err(Error::TooLarge { limit })
                if values.iter().any(|value| value.heap_size() > limit) =>
            {
                Err(refusal(
                    413,
                    "A field is larger than this site's database accepts.",
                ))
            }
            Err(Error::Constraint { kind, message }) => {
                self.core
                    .log(&format!("POST {}: {message}", self.form.route));
                Err(violated(kind))
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// The `Set-Cookie` that lets the other nodes show this visitor what was written here.
    fn seen(&self, position: Option<Position>) -> Option<String> {
        let sessions = &self.generation.sessions;
        sessions.note_write(&position?, &self.request.as_request(), Boottime::now())
    }

    /// The answer to a form that has written and then failed. *Counterexample* without the cookie:
    /// a visitor who continues may not see the write on another node.
    fn broken_after_write(&self, seen: Option<String>) -> Response {
        let line = seen.map(|seen| format!("Set-Cookie: {seen}\r\n"));
        let request = self.request.as_request();
        let error = &self.generation.error;
        error.respond(&request, line.unwrap_or_default().into())
    }

    fn not_found(&self) -> Response {
        let request = self.request.as_request();
        self.generation.not_found.respond(&request, Bytes::new())
    }

    /// The answer where the database did not do its part.
    pub(crate) fn failed(&self, error: &Error) -> Response {
        let Form { route, params, .. } = &*self.form;
        let place = self.form.place_of(error);
        match self.core.failure(route, params, place.as_deref(), error) {
            PageFailure::Busy => busy(),
            PageFailure::Slow => slow(),
            PageFailure::Away => away(),
            PageFailure::NoSuchPage => self.not_found(),
            PageFailure::Parameter(sentence) => refusal(400, &sentence),
            PageFailure::Internal => {
                let request = self.request.as_request();
                self.generation.error.respond(&request, Bytes::new())
            }
        }
    }
}

/// Where a step's value comes from; what was looked up before the transaction is a value already.
fn bind(source: &ArgumentSource, values: &[Value], found: &[ResultRows]) -> Bind {
    match source {
        ArgumentSource::Param(at) => Bind::Value(values[*at].clone()),
        ArgumentSource::Column { step, column: name } => match found.get(*step) {
            Some(rows) => Bind::Value(column(rows, name).unwrap_or(Value::Null)),
            None => Bind::Column {
                step: *step - found.len(),
                column: name.clone(),
            },
        },
    }
}

/// The address that a redirect leads to.
pub(crate) fn target(pieces: &[RedirectPiece], values: &[Value], results: &[ResultRows]) -> String {
    let mut target = String::new();
    let mut of_values = Vec::new();
    for piece in pieces {
        let start = target.len();
        match piece {
            RedirectPiece::Text(text) => target.push_str(text),
            RedirectPiece::Value(ArgumentSource::Param(at)) => push(&mut target, &values[*at]),
            RedirectPiece::Value(ArgumentSource::Column { step, column: name }) => {
                if let Some(value) = column(&results[*step], name) {
                    push(&mut target, &value);
                }
            }
        }
        if matches!(piece, RedirectPiece::Value(_)) {
            of_values.push(start..target.len());
        }
    }
    without_dot_segments(&target, &of_values)
}

/// `target` without the segments of its path that are `.` or `..` by one of the values, which are
/// in `of_values`. Such a segment would lead to another place, however it is encoded (RFC 3986
/// section 5.2.4; the URL standard reads `%2e` as a dot). It is left empty rather than refused,
/// because the form has been performed.
fn without_dot_segments(target: &str, of_values: &[Range<usize>]) -> String {
    let path_end = target.find(['?', '#']).unwrap_or(target.len());
    let mut kept = String::with_capacity(target.len());
    let mut start = 0;
    for segment in target[..path_end].split_inclusive('/') {
        let place = start..start + segment.len();
        start = place.end;
        let name = segment.strip_suffix('/').unwrap_or(segment);
        let has_value = |value: &Range<usize>| value.start < place.end && place.start < value.end;
        if matches!(name, "." | "..") && of_values.iter().any(has_value) {
            kept.push_str(&segment[name.len()..]);
        } else {
            kept.push_str(segment);
        }
    }
    kept + &target[path_end..]
}

fn push(target: &mut String, value: &Value) {
    match value {
        Value::Null | Value::Blob(_) => {}
        Value::Integer(integer) => target.push_str(&integer.to_string()),
        Value::Real(real) => target.push_str(&real.to_string()),
        Value::Boolean(truth) => target.push_str(if *truth { "true" } else { "false" }),
        Value::Text(text) => target.extend(utf8_percent_encode(text, VALUE)),
        Value::Json(json) => target.extend(utf8_percent_encode(&json.to_string(), VALUE)),
    }
}

/// RFC 9110, section 15.4.4: the result is found elsewhere, with GET.
pub(crate) fn see_other(target: &str, cookies: impl IntoIterator<Item = String>) -> Response {
    let response = Response::builder(303)
        .field("Location", target)
        .field("Cache-Control", "no-store")
        .field("X-Content-Type-Options", "nosniff");
    let cookies = cookies.into_iter();
    let response = cookies.fold(response, |response, cookie| {
        response.field("Set-Cookie", &cookie)
    });
    response.empty()
}

/// A duplicate, a reference to a missing row, and a row that others refer to are conflicts (409); a
/// value that the schema never allows cannot be processed (422).
fn violated(kind: ConstraintKind) -> Response {
    match kind {
        ConstraintKind::Unique | ConstraintKind::PrimaryKey => refusal(409, "This exists already."),
        ConstraintKind::ForeignKey => refusal(409, "This refers to something that does not exist."),
        ConstraintKind::StillReferenced => {
            refusal(409, "This is still in use: something else refers to it.")
        }
        ConstraintKind::EitherReference => refusal(
            409,
            "This refers to something that does not exist, or something else still refers to it.",
        ),
        ConstraintKind::NotNull => refusal(422, "A field that must be filled in is empty."),
        ConstraintKind::Check | ConstraintKind::Other => {
            refusal(422, "A field is too short, too long or not allowed.")
        }
    }
}

/// A refusal as a small page, because a person at a form reads it.
pub(crate) fn refusal(status: u16, sentence: &str) -> Response {
    Response::builder(status)
        .field("Content-Type", "text/plain; charset=utf-8")
        .field("X-Content-Type-Options", "nosniff")
        .field("Cache-Control", "no-store")
        .body(format!("{sentence}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_does_not_leave_its_segment() {
        let text = |text: &str| RedirectPiece::Text(text.to_owned());
        let value = |at| RedirectPiece::Value(ArgumentSource::Param(at));
        let pieces = [text("/x/"), value(0), value(1), text("/y?q="), value(0)];
        for (first, second, expected) in [
            ("a", "", "/x/a/y?q=a"),
            ("..", "", "/x//y?q=.."),
            (".", "", "/x//y?q=."),
            (".", ".", "/x//y?q=."),
            ("", "..", "/x//y?q="),
            ("...", "", "/x/.../y?q=..."),
            ("..", "a", "/x/..a/y?q=.."),
            ("%2e%2e", "", "/x/%252e%252e/y?q=%252e%252e"),
            ("../..", "", "/x/..%2F../y?q=..%2F.."),
        ] {
            let values = [first, second].map(|value| Value::Text(value.into()));
            assert_eq!(target(&pieces, &values, &[]), expected, "{first} {second}");
        }
        let at_end = [text("/x/"), value(0)];
        assert_eq!(target(&at_end, &[Value::Text("..".into())], &[]), "/x/");
        let of_owner = [text("/x/../"), value(0)];
        assert_eq!(target(&of_owner, &[Value::Integer(1)], &[]), "/x/../1");
    }
}

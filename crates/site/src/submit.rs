//! A POST: one transaction, then a redirect.

use std::sync::Arc;

use bytes::Bytes;
use millpond_db::{Bind, ConstraintKind, Error, Rows, Step, Value};
use millpond_http::{OwnedRequest, Response};
use percent_encoding::utf8_percent_encode;

use crate::{
    core::{Core, Generation, unavailable},
    form::{self, Encoding, Refused},
    page::{Form, Piece, Source},
    params::{BadParam, Given},
    rules::{VALUE, local},
};

/// A form that was sent.
pub(crate) struct Submission {
    pub(crate) core: Arc<Core>,
    pub(crate) generation: Arc<Generation>,
    pub(crate) form: Arc<Form>,
    pub(crate) path_values: Vec<String>,
    pub(crate) request: OwnedRequest,
    pub(crate) encoding: Encoding,
}

impl Submission {
    /// Runs the form's statements in one transaction. The answer goes out after the change has been applied to the store, so
    /// whatever is asked after it sees the change.
    pub(crate) async fn submit(self) -> Response {
        let request = self.request.as_request();
        let (query, body) = (request.query.map(str::to_owned), request.body.clone());
        let fields = match form::read(self.encoding, body).await {
            Ok(fields) => fields,
            Err(Refused(status, sentence)) => return refusal(status, sentence),
        };
        let path: Vec<&str> = self.path_values.iter().map(String::as_str).collect();
        let given = Given {
            path: &path,
            form: &fields,
            query: query.as_deref(),
        };
        let values = match given.values(&self.form.params) {
            Ok(values) => values,
            Err(BadParam(sentence)) => return refusal(400, &sentence),
        };
        let steps = self.form.steps.iter().map(|step| Step {
            query: step.query.clone(),
            bind: step
                .bind
                .iter()
                .map(|source| bind(source, &values))
                .collect(),
            expect: step.expect,
        });
        match self.core.database.write(steps.collect()).await {
            Ok(written) => see_other(&local(&target(
                &self.form.redirect,
                &values,
                &written.results,
            ))),
            Err(Error::Parameter { name, message }) => {
                refusal(400, &BadParam::refused(&name, &message).0)
            }
            Err(Error::NoRow { .. }) => self.generation.not_found.respond(&request, Bytes::new()),
            Err(Error::Constraint { kind, message }) => {
                self.core
                    .log(&format!("POST {}: {message}", self.form.route));
                violated(kind)
            }
            Err(error @ (Error::Overloaded | Error::Timeout | Error::Unavailable { .. })) => {
                self.core.failure(&self.form.route, &error);
                unavailable()
            }
            Err(error) => {
                self.core.failure(&self.form.route, &error);
                self.generation.error.respond(&request, Bytes::new())
            }
        }
    }
}

fn bind(source: &Source, values: &[Value]) -> Bind {
    match source {
        Source::Param(at) => Bind::Value(values[*at].clone()),
        Source::Column { step, column } => Bind::Column {
            step: *step,
            column: column.clone(),
        },
    }
}

fn target(pieces: &[Piece], values: &[Value], results: &[Rows]) -> String {
    let mut target = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => target.push_str(text),
            Piece::Value(Source::Param(at)) => push(&mut target, &values[*at]),
            Piece::Value(Source::Column { step, column }) => {
                let rows = &results[*step];
                let at = rows.columns.iter().position(|name| **name == **column);
                if let Some(value) = at.and_then(|at| rows.rows.first()?.get(at)) {
                    push(&mut target, value);
                }
            }
        }
    }
    target
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
fn see_other(target: &str) -> Response {
    Response::builder(303)
        .field("Location", target)
        .field("Cache-Control", "no-store")
        .field("X-Content-Type-Options", "nosniff")
        .empty()
}

/// What is there already, or refers to something that is not, is a conflict (409); what the schema does not allow at all cannot be
/// processed (422).
fn violated(kind: ConstraintKind) -> Response {
    match kind {
        ConstraintKind::Unique | ConstraintKind::PrimaryKey => refusal(409, "This exists already."),
        ConstraintKind::ForeignKey => refusal(409, "This refers to something that does not exist."),
        ConstraintKind::NotNull => refusal(422, "A field that must be filled in is empty."),
        ConstraintKind::Check | ConstraintKind::Other => {
            refusal(422, "A field is too short, too long or not allowed.")
        }
    }
}

/// A refusal as a small page: it is a person at a form who reads it.
pub(crate) fn refusal(status: u16, sentence: &str) -> Response {
    Response::builder(status)
        .field("Content-Type", "text/plain; charset=utf-8")
        .field("X-Content-Type-Options", "nosniff")
        .field("Cache-Control", "no-store")
        .body(format!("{sentence}\n"))
}

//! A write: one transaction, then its answer. What concerns passwords and sessions is in `sign`.

use std::sync::{Arc, OnceLock};

use base_clock::Boottime;
use bytes::Bytes;
use millpond_db::{Bind, ConstraintKind, Error, Expect, Position, ResultRows, Value, WriteStep};
use millpond_http::{OwnedRequest, Request, Response};
use millpond_pages::Writing;

use super::{
    body::{BodyKind, WriteBody},
    refused_page::FormPage,
};
use crate::{
    answer::cached::PageFailure,
    core::{
        Core, Generation,
        error_answer::{ErrorAnswer, refusal_answer},
    },
    dev::{Report, failures, refusals},
    form::Encoding,
    session::Session,
    uploads::Received,
};
use millpond_site_compile::{
    page::{
        Form, FormStep,
        redirect_target::{ArgumentSource, column},
    },
    refusal::invalid::Back,
};

/// A form, or another write, that was sent.
pub(crate) struct Submission {
    pub(crate) core: Arc<Core>,
    pub(crate) generation: Arc<Generation>,
    pub(crate) form: Arc<Form>,
    /// Session of the visitor, if the form asks for it.
    pub(crate) session: Option<Session>,
    pub(crate) path_values: Vec<String>,
    /// The request without its body.
    pub(crate) request: OwnedRequest,
    pub(crate) body: Bytes,
    pub(crate) body_kind: BodyKind,
    /// The values as they were sent, for the developer.
    pub(crate) shown: OnceLock<Vec<Value>>,
    /// Page to which the visitor is led back if the form is refused.
    pub(crate) back: Option<Back>,
    /// Its files.
    pub(crate) received: Received,
}

impl Submission {
    /// Answers.
    pub(crate) async fn submit(mut self) -> Response {
        // The body and its fields go when they have become values: a form may be large.
        let body = std::mem::take(&mut self.body);
        let nothing = BodyKind::Form(Encoding::Urlencoded);
        let kind = std::mem::replace(&mut self.body_kind, nothing);
        let query = self.request.as_request().query.map(str::to_owned);
        let fields = match WriteBody::read(kind, &body).await {
            Ok(fields) => fields,
            Err((status, sentence)) => return self.refuse(status, &sentence),
        };
        let path: Vec<&str> = self.path_values.iter().map(String::as_str).collect();
        let given = fields.given(&path, query.as_deref());
        let invalid = self.form.invalid.as_ref().filter(|_| self.leads_back());
        self.back = invalid.and_then(|invalid| invalid.back(&self.form.params, &given));
        let files = self
            .received
            .refusals(&self.form.uploads, |name| fields.gives(name));
        let mut values = match fields.values(&self.form.params, &path, query.as_deref()) {
            Err(bad) => {
                let refused = match bad.iter().any(|bad| bad.is_in_path) {
                    true => self.not_found(),
                    false => self.refuse_inputs(&given, &bad, &files).await,
                };
                return self.explained(refused, |core, request| {
                    refusals::of_inputs(core, &self.form, &given, request, &bad)
                });
            }
            Ok(_) if !files.is_empty() || self.bad_passwords(&given).next().is_some() => {
                return self.refuse_inputs(&given, &[], &files).await;
            }
            Ok(values) => values,
        };
        drop(fields);
        drop(body);
        self.received.fill(&self.form.uploads, &mut values);
        values.extend(
            self.form
                .needs
                .values(self.session.as_ref().map(Session::claims)),
        );
        if self.core.dev.is_some() {
            let _ = self.shown.set(values.clone());
        }
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
        if let Some(step) = steps.into_iter().position(is_missing) {
            return Err(self.without_row(step).await);
        }
        self.hash(&mut values).await?;
        let (written, position) = self.write(&values, &results).await?;
        results.extend(written);
        self.delete_files(&results);
        let seen = self.seen(position);
        let Ok(change) = self.change_session(&values, &results) else {
            return Err(self.broken_after_write(seen));
        };
        Ok(self.done(&values, results, &change, seen))
    }

    /// Admits the write.
    ///
    /// # Errors
    /// The answer while there are too many.
    fn admitted(&self) -> Result<Writing, Response> {
        let request = self.request.as_request();
        let admitted = self.core.admission.write(Boottime::now());
        admitted.map_err(|refused| {
            let is_api = !self.form.is_for_people();
            self.generation.refuse_busy(&request, is_api, 503, refused)
        })
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
        let published = self.received.publish().await;
        published.map_err(|refusal| self.answer_error(&refusal_answer(&refusal)))?;
        let writing = self.admitted()?;
        let written = self.core.database.write(steps.collect()).await;
        drop(writing);
        if let Err(error) = &written {
            self.note_failure(error);
        }
        match written {
            Ok(written) => Ok((written.results, Some(written.position))),
            Err(Error::NoRow { step }) => Err(self.without_row(found.len() + step).await),
            Err(Error::TooLarge { limit })
                if values.iter().any(|value| value.heap_size() > limit) =>
            {
                let sentence = "A field is larger than this site's database accepts.";
                Err(self.refuse(413, sentence))
            }
            Err(error @ Error::Constraint { .. }) => Err(self.refused_by_constraint(&error).await),
            Err(error) => Err(self.failed(&error).await),
        }
    }

    /// The files that were stored for a transaction that has failed are removed, unless it may have
    /// happened all the same.
    fn note_failure(&self, error: &Error) {
        if self.received.failed(error) {
            self.core.log_request(&format!(
                "{}: it is not known whether the form was stored, so its files are kept",
                self.form
            ));
        }
    }

    /// Removes the files of `-- delete-file:` lines.
    fn delete_files(&self, results: &[ResultRows]) {
        let mut addresses = Vec::new();
        for (step, name) in &self.form.deleted_files {
            let Some(result) = results.get(*step) else {
                continue;
            };
            let at = result.columns.iter().position(|column| **column == **name);
            let values = result.rows.iter().filter_map(|row| row.get(at?));
            addresses.extend(values.filter_map(|value| match value {
                Value::Text(address) if !address.is_empty() => Some(address.to_string()),
                _ => None,
            }));
        }
        if !addresses.is_empty() {
            self.core.uploads.remove(&addresses);
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
        let is_api = !self.form.is_for_people();
        let extra = line.unwrap_or_default().into();
        self.generation.broken(&request, is_api, extra)
    }

    pub(crate) fn not_found(&self) -> Response {
        let request = self.request.as_request();
        let is_api = !self.form.is_for_people();
        self.generation.missing(&request, is_api, Bytes::new())
    }

    /// The answer with an error.
    pub(crate) fn refuse(&self, status: u16, sentence: &str) -> Response {
        self.answer_error(&ErrorAnswer::new(status, sentence))
    }

    pub(crate) fn answer_error(&self, error: &ErrorAnswer<'_>) -> Response {
        let error = error.of_api(!self.form.is_for_people());
        self.generation.refuse(&self.request.as_request(), &error)
    }

    /// The answer to values that a constraint of the schema forbids.
    async fn refused_by_constraint(&self, error: &Error) -> Response {
        let Error::Constraint {
            kind,
            message,
            violated: about,
            sql,
        } = error
        else {
            return self.failed(error).await;
        };
        let place = self.form.place_of(error);
        let place = place.map_or_else(String::new, |place| format!("{place}: "));
        let left_out = self.form.texts.left_out(*kind, about, sql);
        let why = left_out.as_ref();
        let why = why.map_or_else(String::new, |hint| format!(" ({hint})"));
        let line = format!("{}: {place}{message}{why}", self.form);
        self.core.log_request(&line);
        let (status, sentence) = violated(*kind);
        if left_out.is_some() && self.core.dev.is_some() {
            // No visitor can fill it in, so the developer is not led back either.
            return self.report(self.refuse(status, sentence), error);
        }
        let refused = self.refuse_constraint(*kind, (about, sql), (status, sentence));
        self.report(refused.await, error)
    }

    /// The answer where the database did not do its part.
    pub(crate) async fn failed(&self, error: &Error) -> Response {
        let Form { route, params, .. } = &*self.form;
        let place = self.form.place_of(error);
        let failure = self.core.failure(route, params, place.as_deref(), error);
        let request = self.request.as_request();
        let is_api = !self.form.is_for_people();
        let response = match &failure {
            PageFailure::Parameter { sentence, .. } => self.refuse_value(error, sentence).await,
            _ => self.generation.failed(&request, is_api, &failure),
        };
        self.report(response, error)
    }

    /// The answer where the `:one` at this place gave no row.
    async fn without_row(&self, step: usize) -> Response {
        let refused = match self.form.guard(step) {
            Some(guard) => {
                let (request, is_api) = (self.request.as_request(), !self.form.is_for_people());
                self.generation.refuse_guarded(guard, &request, is_api)
            }
            None => self.refuse_missing(step).await,
        };
        self.explained(refused, |core, request| {
            let values = self.shown.get().map_or(&[][..], Vec::as_slice);
            refusals::of_step(core, &self.form, values, request, step)
        })
    }

    /// The response to a form that is refused, with why for the developer, unless it is the page of
    /// the form.
    fn explained(
        &self,
        response: Response,
        report: impl FnOnce(&Core, &Request<'_>) -> Arc<Report>,
    ) -> Response {
        if response.note::<FormPage>().is_some() {
            return response;
        }
        let request = self.request.as_request();
        let report = || report(&self.core, &request);
        self.core.explained(response, report)
    }

    /// The response, with why for the developer. A visitor who is led back is not kept from that.
    fn report(&self, response: Response, error: &Error) -> Response {
        let is_page = response.note::<FormPage>().is_some();
        let is_shown = !failures::is_of_visitor(error) && response.status() >= 400 && !is_page;
        if self.core.dev.is_none() || !is_shown {
            return response;
        }
        let values = self.shown.get().map_or(&[][..], Vec::as_slice);
        let request = self.request.as_request();
        response.with_note(failures::of_form(
            &self.core, &self.form, values, &request, error,
        ))
    }
}

/// Binds the source of a step's value; a value that was looked up before the transaction is a value
/// already.
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

/// A duplicate, a reference to a missing row, and a row that others refer to are conflicts (409); a
/// value that the schema never allows cannot be processed (422). What a policy forbids, another
/// visitor may do (403).
const fn violated(kind: ConstraintKind) -> (u16, &'static str) {
    match kind {
        ConstraintKind::Unique | ConstraintKind::PrimaryKey => (409, "This exists already."),
        ConstraintKind::ForeignKey => (409, "This refers to something that does not exist."),
        ConstraintKind::StillReferenced => {
            (409, "This is still in use: something else refers to it.")
        }
        ConstraintKind::EitherReference => (
            409,
            "This refers to something that does not exist, or something else still refers to it.",
        ),
        ConstraintKind::NotNull => (422, "A field that must be filled in is empty."),
        ConstraintKind::Policy => (403, "You may not write this."),
        ConstraintKind::Check | ConstraintKind::Other => {
            (422, "A field is too short, too long or not allowed.")
        }
    }
}

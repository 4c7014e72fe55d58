//! Which forms are received as they arrive: those with files.

use std::sync::Arc;

use base_clock::Boottime;
use millpond_http::{BodyHandling, BodyReceiver, Reply, Request, Response, path};

use super::admission::Admission;
use crate::{
    SiteService,
    core::{Generation, error_answer::refusal_answer},
    form::{Encoding, body::BodyKind, submit::Submission},
    labels::{KnownRoute, Labeler},
    service::context::RequestContext,
    uploads::FileReceiver,
};
use millpond_site_format::{rules::split, write_method::WriteMethod};

impl SiteService {
    /// Decides about the body of a request whose head has arrived. Each check that needs no field
    /// of the form is made now.
    pub(crate) fn form_begins(
        &self,
        generation: &Arc<Generation>,
        request: &Request<'_>,
        route: &KnownRoute,
    ) -> BodyHandling {
        let Some(path) = path::normalize(request.path)
            .ok()
            .filter(|_| WriteMethod::of(request.method).is_some())
        else {
            return BodyHandling::Whole;
        };
        let handling = match &generation.rules {
            None => self.at_path(generation, request, &path, route),
            Some(rules) if rules.redirect(&path, request.query).is_some() => {
                return BodyHandling::Whole;
            }
            Some(rules) => match rules.rewrite(&path, request.query) {
                None => self.at_path(generation, request, &path, route),
                Some(target) => {
                    let (path, query) = split(&target);
                    let path = generation.place_of(&path);
                    let mut inner = request.clone();
                    inner.path = target.split_once('?').map_or(&*target, |(path, _)| path);
                    inner.query = query;
                    inner.target = &target;
                    self.at_path(generation, &inner, path, route)
                }
            },
        };
        let admission = match handling {
            Begun::Whole => return BodyHandling::Whole,
            _ => admit(generation, request, &path),
        };
        match (admission, handling) {
            (Err(response), _) | (Ok(_), Begun::Refused(response)) => {
                BodyHandling::Refused(generation.with_fields(&path, response))
            }
            (Ok(admission), Begun::Streamed(begun)) => {
                let (submission, files) = *begun;
                BodyHandling::Streamed(Box::new(FormReceiver {
                    submission,
                    files,
                    generation: Arc::clone(generation),
                    path: path.into_owned(),
                    admission,
                    labeler: self.labeler(request, route),
                }))
            }
            (Ok(_), Begun::Whole) => BodyHandling::Whole,
        }
    }

    /// Decides about the body at a path in its normal form.
    fn at_path(
        &self,
        generation: &Arc<Generation>,
        request: &Request<'_>,
        path: &str,
        route: &KnownRoute,
    ) -> Begun {
        let Some(found) = generation.pages.router.find(path) else {
            return Begun::Whole;
        };
        let Some(method) = WriteMethod::of(request.method) else {
            return Begun::Whole;
        };
        let form = generation.pages.endpoints[found.page].form(method);
        if form.is_none_or(|form| form.uploads.is_empty()) {
            return Begun::Whole;
        }
        let at = RequestContext {
            generation,
            request,
            path,
            route,
        };
        at.note_route(&found);
        let submission = match self.submission(at, method, &found) {
            Ok(submission) => submission,
            Err(refused) => return Begun::Refused(refused),
        };
        let BodyKind::Form(Encoding::Multipart(boundary)) = submission.body_kind.clone() else {
            return Begun::Whole;
        };
        let is_api = !submission.form.is_for_people();
        let uploads = Arc::clone(&submission.core.uploads);
        let form = (&submission.form, submission.leads_back());
        let length = request.fields.get("content-length");
        let length = length.and_then(|length| std::str::from_utf8(length).ok()?.parse().ok());
        match FileReceiver::begin(form, length, &boundary, &uploads) {
            Ok(files) => Begun::Streamed(Box::new((submission, files))),
            Err(refusal) => {
                let answer = refusal_answer(&refusal).of_api(is_api);
                Begun::Refused(generation.refuse(request, &answer))
            }
        }
    }
}

/// Decides if the request is answered at all.
fn admit(
    generation: &Generation,
    request: &Request<'_>,
    path: &str,
) -> Result<Admission, Response> {
    let by_token = generation.admit_token(request)?;
    let by_rules = generation.admit_at(request, path)?;
    Ok(by_token.and(by_rules))
}

/// Decision about a body, before rules add their fields.
enum Begun {
    Whole,
    Refused(Response),
    Streamed(Box<(Submission, FileReceiver)>),
}

/// Takes the body of a form with files, and answers with the fields that rules add at its path.
struct FormReceiver {
    submission: Submission,
    files: FileReceiver,
    generation: Arc<Generation>,
    path: String,
    admission: Admission,
    labeler: Labeler,
}

impl BodyReceiver for FormReceiver {
    fn limit(&self) -> u64 {
        self.files.limit()
    }

    fn poll_ready(&mut self, context: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        self.files.poll_ready(context)
    }

    fn receive(&mut self, piece: &[u8]) -> Result<(), Response> {
        let received = self.files.receive(piece);
        received.map_err(|refusal| {
            let response = self.submission.refuse_upload(&refusal);
            let mut response = self.generation.with_fields(&self.path, response);
            self.labeler.label(&mut response);
            response
        })
    }

    fn finish(self: Box<Self>, _: &Request<'_>) -> Reply {
        let Self {
            submission,
            files,
            generation,
            path,
            admission,
            labeler,
        } = *self;
        let reply = match admission.is_over(Boottime::now()) {
            true => refuse_late(&submission),
            false => submit(submission, files),
        };
        let reply = admission.apply(reply);
        let mut reply = match &generation.rules {
            Some(rules) => rules.with_fields(&path, reply),
            None => reply,
        };
        labeler.label_reply(&mut reply);
        reply
    }
}

/// Submits a form whose body is there.
fn submit(mut submission: Submission, files: FileReceiver) -> Reply {
    let (fields, received) = match files.finish() {
        Ok(received) => received,
        Err(refusal) => return submission.refuse_upload(&refusal).into(),
    };
    // The body may have taken longer than the session lasted.
    let session = submission.session.as_ref();
    if session.is_some_and(|session| session.expiry().is_over(Boottime::now())) {
        return refuse_late(&submission);
    }
    submission.body_kind = BodyKind::Form(Encoding::Read(fields));
    submission.received = received;
    Reply::later(submission.submit())
}

/// The answer to a body that took longer than the session that admitted its sender lasted.
fn refuse_late(submission: &Submission) -> Reply {
    let sentence = "You were signed out while the form was sent.";
    submission.refuse(403, sentence).into()
}

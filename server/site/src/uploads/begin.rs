//! Which forms are received as they arrive: those with files.

use std::sync::Arc;

use base_clock::Boottime;
use millpond_http::{BodyHandling, BodyReceiver, Reply, Request, Response, path};

use super::UploadReceiver;
use crate::{
    SiteService, admission::Admission, core::Generation, form::Encoding, methods::WriteMethod,
    rules::split, write_body::BodyKind,
};

impl SiteService {
    /// What becomes of the body of a request whose head has arrived. All that can refuse a form
    /// without its fields refuses it now.
    pub(crate) fn form_begins(
        &self,
        generation: &Arc<Generation>,
        request: &Request<'_>,
    ) -> BodyHandling {
        let Some(path) = path::normalize(request.path)
            .ok()
            .filter(|_| WriteMethod::of(request.method).is_some())
        else {
            return BodyHandling::Whole;
        };
        let handling = match &generation.rules {
            None => self.at_path(generation, request, &path),
            Some(rules) if rules.redirect(&path, request.query).is_some() => {
                return BodyHandling::Whole;
            }
            Some(rules) => match rules.rewrite(&path, request.query) {
                None => self.at_path(generation, request, &path),
                Some(target) => {
                    let (path, query) = split(&target);
                    let path = generation.place_of(&path);
                    let mut inner = request.clone();
                    inner.path = target.split_once('?').map_or(&*target, |(path, _)| path);
                    inner.query = query;
                    inner.target = &target;
                    self.at_path(generation, &inner, path)
                }
            },
        };
        let admission = match handling {
            Begun::Whole => return BodyHandling::Whole,
            _ => admit(generation, request, &path),
        };
        match (admission, handling) {
            (Err(response), _) | (Ok(_), Begun::Refused(response)) => {
                BodyHandling::Refused(with_fields(generation, &path, response))
            }
            (Ok(admission), Begun::Streamed(receiver)) => {
                BodyHandling::Streamed(Box::new(WithFields {
                    receiver,
                    generation: Arc::clone(generation),
                    path: path.into_owned(),
                    admission,
                }))
            }
            (Ok(_), Begun::Whole) => BodyHandling::Whole,
        }
    }

    /// The same at a path in its normal form.
    fn at_path(&self, generation: &Arc<Generation>, request: &Request<'_>, path: &str) -> Begun {
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
        let submission = match self.submission(generation, method, request, &found) {
            Ok(submission) => submission,
            Err(refused) => return Begun::Refused(refused),
        };
        let BodyKind::Form(Encoding::Multipart(boundary)) = submission.body_kind.clone() else {
            return Begun::Whole;
        };
        let is_api = !submission.form.is_for_people();
        let uploads = Arc::clone(&submission.core.uploads);
        match UploadReceiver::begin(submission, &boundary, &uploads) {
            Ok(receiver) => Begun::Streamed(Box::new(receiver)),
            Err(refusal) => {
                let answer = refusal.answer().of_api(is_api);
                Begun::Refused(generation.refuse(request, &answer))
            }
        }
    }
}

/// Whether the request is answered at all.
fn admit(
    generation: &Generation,
    request: &Request<'_>,
    path: &str,
) -> Result<Admission, Response> {
    let by_token = generation.admit_token(request)?;
    let by_rules = generation.admit_at(request, path)?;
    Ok(by_token.and(by_rules))
}

/// What becomes of a body, before rules add their fields.
enum Begun {
    Whole,
    Refused(Response),
    Streamed(Box<UploadReceiver>),
}

/// A receiver whose answers get the fields that rules add at a path.
struct WithFields {
    receiver: Box<UploadReceiver>,
    generation: Arc<Generation>,
    path: String,
    admission: Admission,
}

impl BodyReceiver for WithFields {
    fn limit(&self) -> u64 {
        self.receiver.limit()
    }

    fn poll_ready(&mut self, context: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        self.receiver.poll_ready(context)
    }

    fn receive(&mut self, piece: &[u8]) -> Result<(), Response> {
        let received = self.receiver.receive(piece);
        received.map_err(|response| with_fields(&self.generation, &self.path, response))
    }

    fn finish(self: Box<Self>, request: &Request<'_>) -> Reply {
        let Self {
            receiver,
            generation,
            path,
            admission,
        } = *self;
        let reply = match admission.is_over(Boottime::now()) {
            true => receiver.refuse_late(),
            false => receiver.finish(request),
        };
        let reply = admission.apply(reply);
        match &generation.rules {
            Some(rules) => rules.with_fields(&path, reply),
            None => reply,
        }
    }
}

/// A response at a path with the fields that rules add.
pub(crate) fn with_fields(generation: &Generation, path: &str, response: Response) -> Response {
    match &generation.rules {
        Some(rules) => rules.with_fields_of(path, response),
        None => response,
    }
}

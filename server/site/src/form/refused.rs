//! The answers to a form that is refused: the way back to the page that has it, or a plain error.

use base_clock::Boottime;
use millpond_db::{ConstraintKind, Error, Violated};
use millpond_http::{Response, path::normalize};

use super::submit::Submission;
use crate::{
    core::{
        error_answer::{ErrorAnswer, refusal_answer},
        problem_details::wants_json,
    },
    service::see_other::see_other,
};
use millpond_site_compile::refusal::{
    fault_kind,
    faults::{FormFault, SpokenTexts},
    flash::{Flash, FlashError},
    upload::UploadRefusal,
    values::FORM,
};
use millpond_site_format::params::{BadParam, Given};

impl Submission {
    /// True if the form leads back if it is refused; it may turn out that it has no address to lead
    /// to. A program gets a plain answer.
    pub(crate) fn leads_back(&self) -> bool {
        let is_api = !self.form.is_for_people();
        self.form.invalid.is_some() && !wants_json(&self.request.as_request(), is_api)
    }

    /// The sentences in the language of the request's path.
    fn texts(&self) -> SpokenTexts<'_> {
        self.form.texts.spoken(&self.path_values)
    }

    /// Leads back to the form with what is wrong; or refuses it with a status and a sentence, where
    /// the form does not say where it is filled in.
    async fn lead_back(&self, plain: &ErrorAnswer<'_>, faults: Vec<FormFault>) -> Response {
        let Some(back) = &self.back else {
            return self.refuse_plainly(plain, &faults);
        };
        let request = self.request.as_request();
        let errors = faults.iter().map(|fault| FlashError {
            field: fault.field.clone(),
            kind: fault.kind.to_owned(),
            sentence: fault.sentence.clone(),
        });
        let flash = Flash {
            path: back.path.clone(),
            action: normalize(request.path).map_or_else(|_| String::new(), |path| path.into()),
            values: back.values.clone(),
            errors: errors.collect(),
        };
        let sessions = &self.generation.sessions;
        let now = Boottime::now();
        if let Some(cookie) = sessions.flash(&flash, &request, now) {
            return see_other(&back.target, [cookie]);
        }
        let page = self.refused_form_page(back, &flash).await;
        page.unwrap_or_else(|| self.refuse_plainly(plain, &faults))
    }

    /// Refuses the form without the way back: with the owner's sentence if there is one, and for a
    /// program with the fields.
    fn refuse_plainly(&self, plain: &ErrorAnswer<'_>, faults: &[FormFault]) -> Response {
        let errors = FormFault::of_fields(faults);
        let own = faults.first().filter(|fault| fault.is_own);
        let plain = ErrorAnswer {
            sentence: own.map_or(plain.sentence, |fault| &fault.detail),
            errors: &errors,
            ..*plain
        };
        self.answer_error(&plain)
    }

    /// The answer to what was sent and is not taken: parameters that are missing or cannot be read,
    /// files, and passwords that are too short or too long. All of them are said at once.
    pub(crate) async fn refuse_inputs(
        &self,
        given: &Given<'_>,
        bad: &[BadParam],
        files: &[UploadRefusal],
    ) -> Response {
        // In place of a file there may be a text, which is no value of the file's parameter either.
        let is_file = |bad: &&BadParam| {
            files
                .iter()
                .any(|file| file.field_name() == Some(&bad.name))
        };
        let bad: Vec<&BadParam> = bad.iter().filter(|bad| !is_file(bad)).collect();
        let params = &self.form.params;
        let texts = self.texts();
        let mut faults = texts.of_inputs(params, given, (&bad, files));
        let passwords: Vec<(&str, String)> = self.bad_passwords(given).collect();
        let of_passwords = passwords.iter();
        faults.extend(
            of_passwords
                .map(|(field, sentence)| texts.plain(field, fault_kind::PASSWORD, sentence)),
        );
        let plain = match (&bad[..], files, &passwords[..]) {
            ([bad, ..], ..) => ErrorAnswer::new(400, &bad.sentence),
            (_, [file, ..], _) => refusal_answer(file),
            (.., [(_, sentence), ..]) => ErrorAnswer::new(422, sentence),
            _ => ErrorAnswer::new(400, "The form cannot be read."),
        };
        self.lead_back(&plain, faults).await
    }

    /// The answer to a file that is refused while it arrives.
    pub(crate) fn refuse_upload(&self, refusal: &UploadRefusal) -> Response {
        let faults: Vec<FormFault> = self.texts().of_file(refusal).into_iter().collect();
        self.refuse_plainly(&refusal_answer(refusal), &faults)
    }

    /// The answer to a violated constraint; `status` and `sentence` are what it is
    /// without a page to lead back to.
    pub(crate) async fn refuse_constraint(
        &self,
        kind: ConstraintKind,
        violated: (&Violated, &str),
        (status, sentence): (u16, &str),
    ) -> Response {
        let params = &self.form.params;
        let texts = self.texts();
        let fault = texts.of_constraint(params, kind, violated, sentence);
        self.lead_back(&ErrorAnswer::new(status, sentence), vec![fault])
            .await
    }

    /// The answer to a value that the database cannot use.
    pub(crate) async fn refuse_value(&self, error: &Error, sentence: &str) -> Response {
        let fault = self.texts().of_value(&self.form.params, error, sentence);
        self.lead_back(&ErrorAnswer::new(400, sentence), vec![fault])
            .await
    }

    /// The answer to a password that is too short or too long; `at` is its place.
    pub(crate) async fn refuse_password(&self, at: usize, sentence: &str) -> Response {
        let field = self.form.params.get(at).map_or(FORM, |param| &param.name);
        let fault = self.texts().plain(field, fault_kind::PASSWORD, sentence);
        self.lead_back(&ErrorAnswer::new(422, sentence), vec![fault])
            .await
    }

    /// The answer to an unknown account or a wrong password, whose place is `at`. It is said at the
    /// password if the owner has a sentence for it there.
    pub(crate) async fn refuse_account(&self, at: usize) -> Response {
        let sentence = "The account or the password is wrong.";
        let texts = self.texts();
        let param = self.form.params.get(at);
        let own = param.filter(|param| texts.has_message(&param.name, fault_kind::PASSWORD));
        let field = own.map_or(FORM, |param| &param.name);
        let fault = texts.plain(field, fault_kind::PASSWORD, sentence);
        self.lead_back(&ErrorAnswer::new(422, sentence), vec![fault])
            .await
    }

    /// The answer where a `:one` step gave no row: there is no such thing, unless the owner has a
    /// sentence for that, or says that the row has changed meanwhile.
    pub(crate) async fn refuse_missing(&self, step: usize) -> Response {
        let conflict = self.form.steps.get(step).and_then(|step| step.otherwise);
        let texts = self.texts();
        let (status, fault) = match conflict {
            None => match texts.of_step(step, fault_kind::MISSING) {
                None => return self.not_found(),
                Some(fault) => (404, fault),
            },
            Some(status) => {
                let sentence = "This has changed meanwhile. Please look at it again.";
                let own = texts.of_step(step, fault_kind::CONFLICT);
                let plain = || texts.plain(FORM, fault_kind::CONFLICT, sentence);
                (status, own.unwrap_or_else(plain))
            }
        };
        let plain = ErrorAnswer::new(status, &fault.detail);
        self.lead_back(&plain, vec![fault.clone()]).await
    }
}

//! A form that was refused and is filled in again (`-- invalid:`).
//!
//! Nothing was written. The visitor is redirected to the page that has the form, and a cookie takes
//! what was typed and what is wrong to that page, and to no other (coherence.md, rule 24).

use base_clock::Boottime;
use millpond_db::{ConstraintKind, Error, Value, Violated, WrittenSchema};
use millpond_http::{Response, path::normalize};

use crate::{
    error_answer::ErrorAnswer,
    flash_kind,
    form_values::FORM,
    page::RedirectPiece,
    params::{BadParam, Given, Param},
    problem_details::FieldError,
    rules::local,
    session::{Flash, FlashError, RESERVED, fitting},
    submit::{Submission, see_other, target},
    uploads::UploadRefusal,
};

/// The lines of a form, understood.
#[derive(Debug)]
pub(crate) struct Invalid {
    pub(crate) target: Vec<RedirectPiece>,
    /// The line of the target.
    pub(crate) line: usize,
    /// For each parameter, whether what was typed comes back to the visitor.
    pub(crate) is_kept: Vec<bool>,
    pub(crate) messages: Vec<Message>,
    pub(crate) steps: Vec<StepColumns>,
}

/// A sentence of the owner's.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) of: MessageOf,
    pub(crate) kind: Option<&'static str>,
    pub(crate) sentence: String,
}

/// What a sentence is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MessageOf {
    /// A parameter, or `form`.
    Field(String),
    /// The row of a `:one` step is missing.
    Step(usize),
}

/// What a step writes.
#[derive(Debug)]
pub(crate) struct StepColumns {
    pub(crate) sql: Box<str>,
    /// Each column with the places of the parameters that come into it.
    pub(crate) columns: Vec<(String, Vec<usize>)>,
    pub(crate) schema: WrittenSchema,
}

/// Where a visitor is led back to, and with what.
pub(crate) struct Back {
    target: String,
    path: String,
    values: Vec<(String, Vec<String>)>,
}

/// The names in the query of an address.
pub(crate) fn query_of(target: &str) -> Vec<String> {
    let target = target.split('#').next().unwrap_or_default();
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let pairs = form_urlencoded::parse(query.as_bytes());
    pairs.map(|(name, _)| name.into_owned()).collect()
}

impl Invalid {
    /// Where a form with these fields leads back to. None if a value that the address needs is not
    /// there: then there is no page to lead to.
    pub(crate) fn back(&self, params: &[Param], given: &Given<'_>) -> Option<Back> {
        let is_needed = |at: usize| {
            let mut pieces = self.target.iter();
            pieces
                .any(|piece| *piece == RedirectPiece::Value(crate::page::ArgumentSource::Param(at)))
        };
        let values = params.iter().enumerate().map(|(at, param)| {
            let param = std::slice::from_ref(param);
            match is_needed(at) {
                true => given.values(param).ok()?.pop(),
                false => Some(Value::Null),
            }
        });
        let values = values.collect::<Option<Vec<Value>>>()?;
        let target = local(&target(&self.target, &values, &[]));
        let path = normalize(target.split(['?', '#']).next()?)
            .ok()?
            .into_owned();
        let kept = params.iter().zip(&self.is_kept).filter(|(_, kept)| **kept);
        let typed = kept.map(|(param, _)| (param.name.clone(), given.texts(param)));
        Some(Back {
            target,
            path,
            values: fitting(typed.filter(|(_, texts)| !texts.is_empty())),
        })
    }

    /// The owner's sentence, if there is one for this.
    fn message(&self, of: &MessageOf, kind: &str) -> Option<&str> {
        let mut found = self
            .messages
            .iter()
            .filter(|message| message.of == *of && message.kind.is_none_or(|known| known == kind));
        // That of this very fault comes first.
        let exact = found.clone().find(|message| message.kind.is_some());
        let message = exact.or_else(|| found.next())?;
        Some(&message.sentence)
    }

    fn error(&self, field: &str, kind: &str, sentence: String) -> FlashError {
        let own = self.message(&MessageOf::Field(field.to_owned()), kind);
        FlashError {
            field: field.to_owned(),
            kind: kind.to_owned(),
            sentence: own.map_or(sentence, str::to_owned),
        }
    }

    /// What is wrong with a field, as behind its name.
    fn field_error(&self, field: &str, kind: &str, wrong: &str) -> FlashError {
        self.error(field, kind, flash_kind::sentence(field, wrong))
    }

    /// The parameter that a violated constraint is about, if one is.
    fn field_of(
        &self,
        kind: ConstraintKind,
        (violated, sql): (&Violated, &str),
        params: &[Param],
    ) -> Option<usize> {
        let own = self.steps.iter().filter(|step| *step.sql == *sql);
        let own: Vec<&StepColumns> = own.collect();
        // A constraint that is deferred is violated by any of them.
        let steps = if own.is_empty() {
            self.steps.iter().collect()
        } else {
            own
        };
        steps
            .into_iter()
            .find_map(|step| step.field(kind, violated, params))
    }
}

impl StepColumns {
    /// The first parameter that comes into a column of the constraint. A part of the path is none:
    /// it has no field.
    fn field(&self, kind: ConstraintKind, violated: &Violated, params: &[Param]) -> Option<usize> {
        let written = self.columns.iter().filter(|(_, params)| !params.is_empty());
        let written: Vec<&str> = written.map(|(column, _)| column.as_str()).collect();
        let columns = self.schema.columns_of(kind, violated, &written);
        let of = |column: &String| {
            let mut written = self.columns.iter();
            let (_, params) = written
                .find(|(name, params)| name.eq_ignore_ascii_case(column) && !params.is_empty())?;
            params.first().copied()
        };
        let has_field = |at: &usize| params.get(*at).is_some_and(|param| param.in_path.is_none());
        columns.iter().filter_map(of).filter(has_field).min()
    }
}

impl Submission {
    /// Leads back to the form with what is wrong; or refuses it with a status and a sentence, where
    /// the form does not say where it is filled in.
    fn lead_back(
        &self,
        plain: &ErrorAnswer<'_>,
        errors: impl FnOnce(&Invalid) -> Vec<FlashError>,
    ) -> Response {
        let led = self.form.invalid.as_ref().zip(self.back.as_ref());
        let led = led.and_then(|(invalid, back)| {
            let flash = Flash {
                path: back.path.clone(),
                values: back.values.clone(),
                errors: errors(invalid),
            };
            let sessions = &self.generation.sessions;
            let cookie = sessions.flash(flash, &self.request.as_request(), Boottime::now())?;
            Some(see_other(&back.target, [cookie]))
        });
        led.unwrap_or_else(|| self.answer_error(plain))
    }

    /// The answer to parameters that are missing or cannot be read.
    pub(crate) fn refuse_params(&self, given: &Given<'_>, all: &[BadParam]) -> Response {
        let errors: Vec<FieldError> = all.iter().map(BadParam::error).collect();
        let sentence = errors.first().map_or("", |error| &error.detail);
        let plain = ErrorAnswer::new(400, sentence).errors(&errors);
        self.lead_back(&plain, |invalid| {
            let bad = all.iter().filter_map(|bad| {
                let mut params = self.form.params.iter();
                let param = params.find(|param| param.name == bad.name)?;
                let kind = kind_of(param, given, bad);
                let wrong = match kind {
                    flash_kind::MISSING => "must be filled in",
                    _ => &bad.wrong,
                };
                Some(invalid.field_error(&param.name, kind, wrong))
            });
            bad.collect()
        })
    }

    /// The answer to a violated constraint; `status` and `sentence` are what it is
    /// without a page to lead back to.
    pub(crate) fn refuse_constraint(
        &self,
        kind: ConstraintKind,
        (violated, sql): (&Violated, &str),
        (status, sentence): (u16, &str),
    ) -> Response {
        self.lead_back(&ErrorAnswer::new(status, sentence), |invalid| {
            let (word, wrong) = flash_kind::of_constraint(kind);
            let field = invalid.field_of(kind, (violated, sql), &self.form.params);
            vec![match field.and_then(|at| self.form.params.get(at)) {
                Some(param) => invalid.field_error(&param.name, word, wrong),
                None => invalid.error(FORM, word, sentence.to_owned()),
            }]
        })
    }

    /// The answer to a value that the database cannot use.
    pub(crate) fn refuse_value(&self, error: &Error, sentence: &str) -> Response {
        self.lead_back(&ErrorAnswer::new(400, sentence), |invalid| {
            let (names, wrong) = match error {
                Error::Parameter { name, message } => {
                    (std::slice::from_ref(name), message.as_str())
                }
                Error::Value { names, .. } => (&names[..], "has a value that cannot be used"),
                _ => (&[][..], ""),
            };
            let mut own = names.iter().filter(|name| {
                !name.starts_with(RESERVED)
                    && self.form.params.iter().any(|param| param.name == **name)
            });
            vec![match (own.next(), own.next()) {
                (Some(name), None) => invalid.field_error(name, flash_kind::TYPE, wrong),
                _ => invalid.error(FORM, flash_kind::TYPE, sentence.to_owned()),
            }]
        })
    }

    /// The answer to a file that is missing.
    pub(crate) fn refuse_file(&self, refusal: &UploadRefusal) -> Response {
        self.lead_back(&refusal.answer(), |invalid| {
            let field = refusal.field.as_deref().unwrap_or(FORM);
            vec![invalid.error(field, flash_kind::MISSING, refusal.sentence.clone())]
        })
    }

    /// The answer to a password that is too short or too long; `at` is its place.
    pub(crate) fn refuse_password(&self, at: usize, sentence: &str) -> Response {
        self.lead_back(&ErrorAnswer::new(422, sentence), |invalid| {
            let field = self.form.params.get(at).map_or(FORM, |param| &param.name);
            vec![invalid.error(field, flash_kind::PASSWORD, sentence.to_owned())]
        })
    }

    /// The answer to an unknown account or a wrong password.
    pub(crate) fn refuse_account(&self) -> Response {
        let sentence = "The account or the password is wrong.";
        self.lead_back(&ErrorAnswer::new(422, sentence), |invalid| {
            vec![invalid.error(FORM, flash_kind::PASSWORD, sentence.to_owned())]
        })
    }

    /// The answer where a `:one` step gave no row: there is no such thing, unless the owner has a
    /// sentence for that.
    pub(crate) fn refuse_missing(&self, step: usize) -> Response {
        let invalid = self.form.invalid.as_ref();
        let of = MessageOf::Step(step);
        let sentence = invalid.and_then(|invalid| invalid.message(&of, flash_kind::MISSING));
        match sentence {
            None => self.not_found(),
            Some(sentence) => self.lead_back(&ErrorAnswer::new(404, sentence), |_| {
                vec![FlashError {
                    field: FORM.to_owned(),
                    kind: flash_kind::MISSING.to_owned(),
                    sentence: sentence.to_owned(),
                }]
            }),
        }
    }
}

/// Which fault a value has that a parameter does not take.
fn kind_of(param: &Param, given: &Given<'_>, bad: &BadParam) -> &'static str {
    let is_empty = given.texts(param).iter().all(String::is_empty);
    if is_empty {
        flash_kind::MISSING
    } else if param.range().as_ref() == Some(&bad.wrong) {
        flash_kind::RANGE
    } else if !param.choices.is_empty() && bad.wrong.starts_with("must be one of") {
        flash_kind::CHOICE
    } else {
        flash_kind::TYPE
    }
}

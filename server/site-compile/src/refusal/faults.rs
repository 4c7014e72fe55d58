//! What can be wrong with a form, field by field, and the sentence for each fault.

use millpond_db::{ConstraintKind, Error, Violated, WrittenSchema};

use super::{fault_kind, upload::UploadRefusal, values::FORM};
use millpond_site_format::{
    access::RESERVED,
    params::{BadParam, FieldError, Given, MISSING, Param},
    script::ANY_FIELD,
};

/// The sentences of a form, and what they need to know of its statements.
#[derive(Debug, Default)]
pub struct FormTexts {
    /// Messages, first those of one language.
    pub messages: Vec<Message>,
    pub steps: Vec<StepColumns>,
}

/// The sentences of a form for one request.
#[derive(Clone, Copy, Debug)]
pub struct SpokenTexts<'t> {
    texts: &'t FormTexts,
    /// The parts of the request's path that are parameters.
    path: &'t [String],
}

/// A sentence of the owner's (`-- message:`).
#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    /// The field that it is shown at: a parameter, `form`, or [`ANY_FIELD`].
    pub field: String,
    pub about: MessageAbout,
    /// The part of the path, and the value of it, for which the sentence is.
    pub language: Option<(usize, String)>,
    pub sentence: String,
}

/// Subject of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageAbout {
    /// Anything that is wrong with the field.
    Any,
    /// One kind of fault of the field.
    Kind(&'static str),
    /// The constraint of this name, wherever it would be shown otherwise.
    Constraint(String),
    /// The row of a `:one` step is missing.
    Step(usize),
}

/// Columns that a step writes.
#[derive(Debug)]
pub struct StepColumns {
    pub sql: Box<str>,
    /// Each column with the places of the parameters that come into it.
    pub columns: Vec<(String, Vec<usize>)>,
    pub schema: WrittenSchema,
}

/// Fault of one field, or of the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormFault {
    /// The name of the field; `form` of what belongs to none.
    pub field: String,
    /// One word for templates, such as `unique`.
    pub kind: &'static str,
    /// The sentence at the field.
    pub sentence: String,
    /// The sentence for a client that is not led back.
    pub detail: String,
    /// True if both are the owner's.
    pub is_own: bool,
}

impl FormFault {
    /// The faults of fields, for a program.
    pub fn of_fields(faults: &[Self]) -> Vec<FieldError> {
        let faults = faults.iter().filter(|fault| fault.field != FORM);
        let errors = faults.map(|fault| FieldError {
            field: fault.field.clone(),
            detail: fault.detail.clone(),
        });
        errors.collect()
    }
}

impl FormTexts {
    /// The sentences for a request with these parts of its path.
    pub const fn spoken<'t>(&'t self, path: &'t [String]) -> SpokenTexts<'t> {
        SpokenTexts { texts: self, path }
    }

    /// Describes the remedy for a column that must have a value and that the statement leaves out:
    /// a fault of the site.
    pub fn left_out(&self, kind: ConstraintKind, violated: &Violated, sql: &str) -> Option<String> {
        let column = violated.columns.first()?;
        let mut steps = self.steps.iter();
        let step = steps.find(|step| *step.sql == *sql)?;
        let mut written = step.columns.iter();
        let is_written = written.any(|(name, _)| name.eq_ignore_ascii_case(column));
        let is_left_out =
            kind == ConstraintKind::NotNull && !step.columns.is_empty() && !is_written;
        is_left_out.then(|| {
            format!(
                "the statement gives the column `{column}` no value, and it has no default: add it there"
            )
        })
    }
}

impl<'t> SpokenTexts<'t> {
    /// The sentences of this request's language, then those of all languages.
    fn messages(self) -> impl Iterator<Item = &'t Message> + Clone {
        self.texts.messages.iter().filter(move |message| {
            let language = message.language.as_ref();
            language.is_none_or(|(at, text)| self.path.get(*at) == Some(text))
        })
    }

    /// The owner's sentence about a fault of a field, if there is one.
    fn message(self, field: &str, kind: &str) -> Option<&'t str> {
        let about = self.messages().filter(|message| match message.about {
            MessageAbout::Any => true,
            MessageAbout::Kind(known) => known == kind,
            _ => false,
        });
        let own = about.filter(|message| message.field == field || message.field == ANY_FIELD);
        // That of this very fault comes first, but after any in the visitor's language.
        let first = own.min_by_key(|message| {
            let is_of_any = message.field == ANY_FIELD;
            let is_of_all = message.about == MessageAbout::Any;
            (message.language.is_none(), is_of_any, is_of_all)
        });
        first.map(|message| message.sentence.as_str())
    }

    /// True if the owner has a sentence for a fault of a field.
    pub fn has_message(self, field: &str, kind: &str) -> bool {
        self.message(field, kind).is_some()
    }

    /// A fault with these sentences, if the owner has none for it.
    pub fn fault(
        self,
        field: &str,
        kind: &'static str,
        (sentence, detail): (String, String),
    ) -> FormFault {
        let own = self.message(field, kind);
        FormFault {
            field: field.to_owned(),
            kind,
            sentence: own.map_or(sentence, str::to_owned),
            detail: own.map_or(detail, str::to_owned),
            is_own: own.is_some(),
        }
    }

    /// A fault that has one sentence for all.
    pub fn plain(self, field: &str, kind: &'static str, sentence: &str) -> FormFault {
        let sentences = (sentence.to_owned(), sentence.to_owned());
        self.fault(field, kind, sentences)
    }

    /// A fault of which is known what stands behind the field's name.
    fn behind_name(self, field: &str, kind: &'static str, wrong: &str) -> FormFault {
        self.plain(field, kind, &fault_kind::sentence(field, wrong))
    }

    fn own(message: &Message, kind: &'static str) -> FormFault {
        FormFault {
            field: message.field.clone(),
            kind,
            sentence: message.sentence.clone(),
            detail: message.sentence.clone(),
            is_own: true,
        }
    }

    /// Lists the faults of the values that were sent, in the order of the parameters: those that
    /// are missing or cannot be read, and files that are not taken.
    pub fn of_inputs(
        self,
        params: &[Param],
        given: &Given<'_>,
        (bad, files): (&[&BadParam], &[UploadRefusal]),
    ) -> Vec<FormFault> {
        let faults = params.iter().filter_map(|param| {
            if let Some(bad) = bad.iter().find(|bad| bad.name == param.name) {
                let kind = kind_of(param, given, bad);
                let wrong = match kind {
                    fault_kind::MISSING => "must be filled in",
                    _ => &bad.wrong,
                };
                let sentence = fault_kind::sentence(&param.name, wrong);
                return Some(self.fault(&param.name, kind, (sentence, bad.sentence.clone())));
            }
            let of_field = |file: &&UploadRefusal| file.field_name() == Some(&param.name);
            self.of_file(files.iter().find(of_field)?)
        });
        faults.collect()
    }

    /// Returns the fault of a file, if it can be said at a field.
    pub fn of_file(self, refusal: &UploadRefusal) -> Option<FormFault> {
        let fault = refusal.fault.as_ref()?;
        let sentence = fault_kind::sentence(&fault.field, &fault.wrong);
        let sentences = (sentence, refusal.sentence.clone());
        Some(self.fault(&fault.field, fault.kind, sentences))
    }

    /// The fault that a violated constraint is; `sentence` is what is said of it without a field.
    pub fn of_constraint(
        self,
        params: &[Param],
        kind: ConstraintKind,
        (violated, sql): (&Violated, &str),
        sentence: &str,
    ) -> FormFault {
        let (word, wrong) = fault_kind::of_constraint(kind);
        let steps = self.steps_of(sql);
        let named = self.messages().find(|message| match &message.about {
            MessageAbout::Constraint(name) => {
                let mut steps = steps.iter();
                steps.any(|step| step.schema.is_named(name, kind, violated))
            }
            _ => false,
        });
        if let Some(message) = named {
            return Self::own(message, word);
        }
        let mut steps = steps.iter();
        let field = steps.find_map(|step| step.field(kind, violated, params));
        match field.and_then(|at| params.get(at)) {
            Some(param) => self.behind_name(&param.name, word, wrong),
            None => self.plain(FORM, word, sentence),
        }
    }

    /// The fault of a value that the database cannot use; `sentence` is what is said of it without
    /// a field.
    pub fn of_value(self, params: &[Param], error: &Error, sentence: &str) -> FormFault {
        let (names, wrong) = match error {
            Error::Parameter { name, message, .. } => {
                (std::slice::from_ref(name), message.as_str())
            }
            Error::Value { names, .. } => (&names[..], "has a value that cannot be used"),
            _ => (&[][..], ""),
        };
        let mut own = names.iter().filter(|name| {
            !name.starts_with(RESERVED) && params.iter().any(|param| param.name == **name)
        });
        match (own.next(), own.next()) {
            (Some(name), None) => {
                let at_field = fault_kind::sentence(name, wrong);
                self.fault(name, fault_kind::TYPE, (at_field, sentence.to_owned()))
            }
            _ => self.plain(FORM, fault_kind::TYPE, sentence),
        }
    }

    /// The owner's sentence about a `:one` step without a row.
    pub fn of_step(self, step: usize, kind: &'static str) -> Option<FormFault> {
        let mut messages = self.messages();
        let message = messages.find(|message| message.about == MessageAbout::Step(step))?;
        Some(Self::own(message, kind))
    }

    /// The steps that a violated constraint may be of.
    fn steps_of(self, sql: &str) -> Vec<&'t StepColumns> {
        let steps = self.texts.steps.iter();
        let own: Vec<&StepColumns> = steps.clone().filter(|step| *step.sql == *sql).collect();
        // A constraint that is deferred is violated by any of them.
        match own.is_empty() {
            true => steps.collect(),
            false => own,
        }
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

/// Returns the kind of fault of a value that a parameter does not take.
fn kind_of(param: &Param, given: &Given<'_>, bad: &BadParam) -> &'static str {
    let texts = given.texts(param);
    // What is a member of JSON has no text here.
    let is_empty = !texts.is_empty() && texts.iter().all(String::is_empty);
    if is_empty || bad.wrong == MISSING {
        fault_kind::MISSING
    } else if param.range().as_ref() == Some(&bad.wrong) {
        fault_kind::RANGE
    } else if !param.choices.is_empty() && bad.wrong.starts_with("must be one of") {
        fault_kind::CHOICE
    } else {
        fault_kind::TYPE
    }
}

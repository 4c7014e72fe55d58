//! `-- message:` lines of forms: what each is about.

use std::path::Path;

use millpond_db::{self as db, written_columns};

use crate::refusal::{
    fault_kind,
    faults::{FormTexts, Message, MessageAbout, StepColumns},
    values::FORM,
};
use millpond_site_format::{
    Problem,
    params::Param,
    script::{ANY_FIELD, MessageLine, NamedQuery, Rows, Script},
    suggest::closest,
};

use super::statements::PreparedStatements;

/// Compiles the lines.
pub(super) fn texts(
    file: &Path,
    script: &Script,
    prepared: &PreparedStatements<'_>,
    params: &[Param],
) -> Result<FormTexts, Problem> {
    let steps = prepared.iter();
    let steps: Vec<StepColumns> = steps
        .map(|(named, query)| columns(script, named, query, params))
        .collect();
    let lines = MessageLines {
        file,
        script,
        prepared,
        params,
        steps: &steps,
    };
    let messages = script.messages.iter().map(|line| lines.message(line));
    let messages: Vec<Option<Message>> = messages.collect::<Result<_, Problem>>()?;
    let mut messages: Vec<Message> = messages.into_iter().flatten().collect();
    messages.sort_by_key(|message| message.language.is_none());
    Ok(FormTexts { messages, steps })
}

/// Names that the words of a line may have.
#[derive(Clone, Copy)]
struct MessageLines<'m> {
    file: &'m Path,
    script: &'m Script,
    prepared: &'m PreparedStatements<'m>,
    params: &'m [Param],
    steps: &'m [StepColumns],
}

impl<'m> MessageLines<'m> {
    /// Compiles a line; none for one of a folder that is of no language of this form.
    fn message(self, line: &MessageLine) -> Result<Option<Message>, Problem> {
        let language = match self.language(line) {
            Err(_) if line.line == 0 => return Ok(None),
            language => language?,
        };
        let is_field = [FORM, ANY_FIELD].contains(&&*line.of)
            || self.params.iter().any(|param| param.name == line.of);
        let (field, about) = match (&line.about, is_field) {
            (None, true) => (&*line.of, MessageAbout::Any),
            (Some(word), true) => (&*line.of, self.about(line, word)?),
            (None, false) => (FORM, self.step(line)?),
            (Some(_), false) => return Err(self.no_field(line)),
        };
        if line.of == ANY_FIELD && !matches!(about, MessageAbout::Any | MessageAbout::Kind(_)) {
            let word = line.about.as_deref().unwrap_or_default();
            let message = format!("`{word}` belongs to one field, not to all of them");
            return Err(self
                .at(line, message)
                .hint("name the field in place of `*`"));
        }
        self.check_password(line, &about)?;
        Ok(Some(Message {
            field: field.to_owned(),
            about,
            language,
            sentence: line.sentence.clone(),
        }))
    }

    /// The part of the path that can be the value for which a line is.
    fn language(self, line: &MessageLine) -> Result<Option<(usize, String)>, Problem> {
        let Some(language) = &line.language else {
            return Ok(None);
        };
        let in_path = self.params.iter().filter(|param| param.in_path.is_some());
        let with_texts: Vec<(&Param, Vec<String>)> =
            in_path.map(|param| (param, param.texts())).collect();
        let mut found = with_texts
            .iter()
            .filter(|(_, texts)| texts.contains(language));
        if let (Some((param, _)), None) = (found.next(), found.next()) {
            return Ok(param.in_path.map(|at| (at, language.clone())));
        }
        let message = format!("`[{language}]` is the value of no one part of this form's path");
        let problem = self.at(line, message);
        let texts = with_texts.iter().flat_map(|(_, texts)| texts);
        Err(match closest(language, texts.map(String::as_str)) {
            Some(near) => problem.hint(format!("did you mean `[{near}]`?")),
            None => problem.hint(format!(
                "the part says which values it has: -- param: lang text in (en, {language})"
            )),
        })
    }

    /// Finds the meaning of the word behind a field: a kind of fault, a constraint, or a `:one`
    /// query.
    fn about(self, line: &MessageLine, word: &str) -> Result<MessageAbout, Problem> {
        if let Some(kind) = fault_kind::ALL.iter().find(|kind| **kind == word) {
            self.check_kind(line, kind)?;
            return Ok(MessageAbout::Kind(kind));
        }
        if let Some((step, _)) = self.ones().find(|(_, name)| *name == word) {
            return Ok(MessageAbout::Step(step));
        }
        let constraints = || self.steps.iter().flat_map(|step| step.schema.constraints());
        if constraints().any(|name| name.eq_ignore_ascii_case(word)) {
            return Ok(MessageAbout::Constraint(word.to_owned()));
        }
        let kinds = || fault_kind::ALL.iter().copied();
        let known = kinds().chain(constraints());
        let known = known.chain(self.ones().map(|(_, name)| name));
        let problem = self.at(
            line,
            format!("there is no fault `{word}`, nor a constraint of this name"),
        );
        Err(match closest(word, known) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem.hint(format!(
                "one of {}, a named constraint of a table that is written here, or a `:one` query",
                kinds().collect::<Vec<_>>().join(", ")
            )),
        })
    }

    /// Some faults are of files alone, and a conflict is of the form.
    fn check_kind(self, line: &MessageLine, kind: &str) -> Result<(), Problem> {
        let field = &line.of;
        if field == ANY_FIELD {
            return Ok(());
        }
        let is_file = || self.script.files.iter().any(|file| file.name == *field);
        let (message, hint) = match kind {
            fault_kind::SIZE | fault_kind::COUNT if !is_file() => (
                format!("`{kind}` is a fault of a file, and `{field}` is none"),
                format!("a violated constraint is: -- message: {field} check = \"…\""),
            ),
            fault_kind::CONFLICT if self.script.otherwise().is_none() => (
                "no query of this file says that a row has changed meanwhile".to_owned(),
                "for example: -- name: saved :one else 409".to_owned(),
            ),
            fault_kind::CONFLICT if field != FORM => (
                format!("a conflict belongs to the form, not to `{field}`"),
                "write -- message: form conflict, or the query's name in place of `conflict`"
                    .to_owned(),
            ),
            _ => return Ok(()),
        };
        Err(self.at(line, message).hint(hint))
    }

    /// The step that a message without a field is of: one whose row may be missing.
    fn step(self, line: &MessageLine) -> Result<MessageAbout, Problem> {
        let mut ones = self.ones();
        let found = ones.find(|(_, name)| *name == line.of);
        let (step, _) = found.ok_or_else(|| self.no_field(line))?;
        Ok(MessageAbout::Step(step))
    }

    fn no_field(self, line: &MessageLine) -> Problem {
        let name = &line.of;
        let message = format!("`{name}` is neither a parameter of the form nor a `:one` query");
        let problem = self.at(line, message);
        let params = self.params.iter().map(|param| param.name.as_str());
        let known = self.ones().map(|(_, name)| name).chain(params);
        match closest(name, known.chain([FORM])) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem.hint("`form` is what belongs to no field"),
        }
    }

    /// The `:one` queries with their places.
    fn ones(self) -> impl Iterator<Item = (usize, &'m str)> {
        let steps = self.prepared.iter().enumerate();
        let ones = steps.filter(|(_, (named, _))| named.rows == Rows::One);
        ones.map(|(step, (named, _))| (step, named.name.as_str()))
    }

    /// Refuses a sentence about a wrong password that leads elsewhere: it is never shown.
    fn check_password(self, line: &MessageLine, about: &MessageAbout) -> Result<(), Problem> {
        let session = &self.script.session;
        let Some(verify) = &session.verify else {
            return Ok(());
        };
        let Some(elsewhere) = &verify.otherwise else {
            return Ok(());
        };
        let is_hashed = |name: &str| session.hashes.iter().any(|hash| hash.password == name);
        let is_about = match about {
            MessageAbout::Any => line.of == verify.password,
            MessageAbout::Kind(fault_kind::PASSWORD) => {
                line.of == verify.password || line.of == FORM
            }
            _ => false,
        };
        if !is_about || is_hashed(&verify.password) {
            return Ok(());
        }
        let message = format!("this message is never shown: a wrong password leads to {elsewhere}");
        let hint = "leave out `else …` of the `-- verify:` line, and say where the form is filled in: -- invalid: /login";
        Err(self.at(line, message).hint(hint))
    }

    fn at(self, line: &MessageLine, message: String) -> Problem {
        Problem::new(self.file, message).at(line.line, 1)
    }
}

/// The columns that a step writes, with the parameters that come into each.
fn columns(
    script: &Script,
    named: &NamedQuery,
    query: &db::Query,
    params: &[Param],
) -> StepColumns {
    let hashes = &script.session.hashes;
    // A hash stands for its password.
    let place = |name: &String| {
        let hash = hashes.iter().find(|hash| hash.name == *name);
        let name = hash.map_or(name, |hash| &hash.password);
        params.iter().position(|param| param.name == *name)
    };
    let written = written_columns(&named.sql).into_iter();
    StepColumns {
        sql: query.sql().into(),
        columns: written
            .map(|(column, names)| (column, names.iter().filter_map(place).collect()))
            .collect(),
        schema: query.written_schema(),
    }
}

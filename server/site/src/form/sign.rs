//! Forms that sign in and out: accounts are looked up, passwords are verified and hashed, sessions
//! begin and end.
//!
//! A password is verified between two visits to the database. The queries above `-- verify:` are
//! read first; the transaction of the statements below begins if the password was right. So no
//! transaction is open while a password is hashed, and a wrong password begins none.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use millpond_db::{Call, ResultRows, Value};
use millpond_http::{Request, Response};

use super::submit::Submission;
use crate::{
    core::error_answer::{BUSY, ErrorAnswer},
    service::see_other::see_other,
    session::{Attempt, BegunSession, LONGEST_PASSWORD, PasswordRefusal, SHORTEST_PASSWORD},
};
use millpond_site_compile::page::{
    Verify,
    redirect_target::{ArgumentSource, column, target},
};
use millpond_site_format::{
    access::{Claims, is_path},
    params::Given,
    rules::local,
};

/// Claims that no cookie can hold.
pub(crate) struct NoCookie;

/// Change of the session by a form.
pub(crate) enum SessionChange {
    Unchanged,
    Begun(BegunSession),
    /// The value of Set-Cookie that ends it in the browser.
    Ended(String),
}

impl SessionChange {
    /// The value of Set-Cookie.
    pub(crate) fn cookie(&self) -> Option<&str> {
        match self {
            Self::Unchanged => None,
            Self::Begun(begun) => Some(&begun.cookie),
            Self::Ended(cookie) => Some(cookie),
        }
    }
}

impl Submission {
    /// Reads the queries above the `-- verify:` line.
    pub(crate) async fn look_up(&self, values: &[Value]) -> Result<Vec<ResultRows>, Response> {
        let lookups = &self.form.steps[..self.form.signing.lookups];
        if lookups.is_empty() {
            return Ok(Vec::new());
        }
        let value = |source: &ArgumentSource| match source {
            ArgumentSource::Param(at) => values[*at].clone(),
            // Refused when the form was compiled.
            ArgumentSource::Column { .. } => Value::Null,
        };
        let calls = lookups.iter().map(|step| Call {
            query: step.query.clone(),
            params: step.bind.iter().map(value).collect(),
        });
        match self.core.database.read(calls.collect()).await {
            Ok(read) => Ok(read.results),
            Err(error) => Err(self.failed(&error).await),
        }
    }

    /// Verifies the password against the account that was looked up.
    pub(crate) async fn verify(
        &self,
        values: &[Value],
        found: &[ResultRows],
    ) -> Result<(), Response> {
        let Some(verify) = &self.form.signing.verify else {
            return Ok(());
        };
        let known = match column(&found[verify.step], &verify.column) {
            Some(Value::Text(hash)) => Some(hash),
            _ => None,
        };
        let account = self.account(known.as_ref(), values);
        let attempt = self.attempt(Some(&account))?;
        let password = text(&values[verify.password]);
        let is_right = if password.len() > LONGEST_PASSWORD {
            false
        } else {
            let verified = self.core.passwords.verify(password, known);
            verified.await.map_err(|refused| {
                self.core.attempts.forgive(attempt);
                self.refused(refused)
            })?
        };
        if is_right {
            self.core.attempts.forgive(attempt);
            Ok(())
        } else {
            Err(self.wrong(verify, values).await)
        }
    }

    /// Hashes the passwords that the statements are given the hashes of.
    pub(crate) async fn hash(&self, values: &mut Vec<Value>) -> Result<(), Response> {
        let passwords = &self.form.signing.hashes;
        if passwords.is_empty() {
            return Ok(());
        }
        self.attempt(None)?;
        for at in passwords {
            let password = text(&values[*at]);
            if let Some(sentence) = wrong_length(&password) {
                return Err(self.refuse_password(*at, &sentence).await);
            }
            let hash = self.core.passwords.hash(password).await;
            let hash = hash.map_err(|refused| self.refused(refused))?;
            values.push(hash.as_str().into());
        }
        Ok(())
    }

    /// The fields with a new password that is too short or too long, each with the sentence.
    pub(crate) fn bad_passwords(&self, given: &Given<'_>) -> impl Iterator<Item = (&str, String)> {
        let hashes = self.form.signing.hashes.iter();
        hashes.filter_map(|at| {
            let param = &self.form.params[*at];
            let texts = given.texts(param);
            Some((param.name.as_str(), wrong_length(texts.first()?)?))
        })
    }

    /// Begins or ends the session, as the form says.
    ///
    /// # Errors
    /// No cookie can hold the claims. The owner has been notified.
    pub(crate) fn change_session(
        &self,
        values: &[Value],
        results: &[ResultRows],
    ) -> Result<SessionChange, NoCookie> {
        let signing = &self.form.signing;
        let sessions = &self.generation.sessions;
        let request = self.request.as_request();
        if let Some(session) = sessions.of(&request)
            && (signing.is_logout || !signing.claims.is_empty())
        {
            self.core.live.end_session(session.mark());
        }
        if signing.is_logout {
            return Ok(SessionChange::Ended(sessions.end()));
        }
        if signing.claims.is_empty() {
            return Ok(SessionChange::Unchanged);
        }
        let claims = signing.claims.iter().map(|(name, source)| {
            let value = match source {
                ArgumentSource::Param(at) => values[*at].clone(),
                ArgumentSource::Column { step, column: name } => {
                    column(&results[*step], name).unwrap_or(Value::Null)
                }
            };
            (name.clone(), value)
        });
        let claims = claims.filter(|(_, value)| *value != Value::Null).collect();
        let begun = sessions.begin(Claims::new(claims), request.received);
        let Some(begun) = begun else {
            self.core.log(&format!(
                "{}: the claims are too long for a cookie, or one of them is neither a text nor a number nor true or false",
                self.form
            ));
            return Err(NoCookie);
        };
        self.warn_about_http(&request);
        Ok(SessionChange::Begun(begun))
    }

    /// The path that a parameter or a column names, if the form follows one and it is a path of
    /// this site.
    pub(crate) fn next(&self, values: &[Value], results: &[ResultRows]) -> Option<String> {
        let next = match self.form.signing.next.as_ref()? {
            ArgumentSource::Param(at) => text(&values[*at]),
            ArgumentSource::Column { step, column: name } => text(&column(&results[*step], name)?),
        };
        is_path(&next).then_some(next)
    }

    /// Explains to the owner why visitors do not stay signed in.
    fn warn_about_http(&self, request: &Request<'_>) {
        let origin = request.fields.get("origin");
        let origin = origin.and_then(|origin| std::str::from_utf8(origin).ok());
        let Some(origin) = origin.filter(|origin| self.generation.sessions.is_dropped_at(origin))
        else {
            return;
        };
        if !self.core.has_told_of_http.swap(true, Ordering::Relaxed) {
            self.core.log(&format!(
                "a visitor has signed in at {origin}, and browsers keep a secure cookie over https only: put https in front of this \
                 server, or set `secure = false` under [session]"
            ));
        }
    }

    /// Counts an attempt, or says when the next may be made.
    fn attempt(&self, account: Option<&str>) -> Result<Attempt, Response> {
        let begun = self
            .core
            .attempts
            .begin(&self.request.as_request(), account);
        begun.map_err(|wait| self.too_many(wait))
    }

    /// The account that is tried: the name of the account that was found, in the database's
    /// spelling; else the submitted name.
    fn account(&self, known: Option<&Arc<str>>, values: &[Value]) -> String {
        if let Some(hash) = known {
            return format!("found {hash}");
        }
        let signing = &self.form.signing;
        let lookups = &self.form.steps[..signing.lookups];
        let mut account = format!("asked {}", self.form.route);
        for source in lookups.iter().flat_map(|step| &step.bind) {
            if let ArgumentSource::Param(at) = source {
                account.push('\0');
                account.push_str(&text(&values[*at]).trim().to_lowercase());
            }
        }
        account
    }

    fn refused(&self, refused: PasswordRefusal) -> Response {
        if refused == PasswordRefusal::Failed {
            self.core.log(&format!(
                "{}: a password could not be hashed: the system gives no memory, no thread or no random bytes",
                self.form
            ));
        }
        self.answer_error(&BUSY)
    }

    /// An unknown account and a wrong password are one answer.
    async fn wrong(&self, verify: &Verify, values: &[Value]) -> Response {
        match &verify.otherwise {
            Some(pieces) => see_other(&local(&target(pieces, values, &[])), None),
            None => self.refuse_account(verify.password).await,
        }
    }

    /// RFC 6585 section 4.
    fn too_many(&self, wait: Duration) -> Response {
        let seconds = wait.as_nanos().div_ceil(1_000_000_000).max(1);
        let sentence = format!("Too many attempts. Please try again in {seconds} seconds.");
        let seconds = seconds.to_string();
        let answer = ErrorAnswer::new(429, &sentence);
        self.answer_error(&answer.with(&[("Retry-After", &seconds)]))
    }
}

/// Returns the fault of a new password's length, if it has one.
fn wrong_length(password: &str) -> Option<String> {
    if password.chars().count() < SHORTEST_PASSWORD {
        return Some(format!(
            "A password has at least {SHORTEST_PASSWORD} characters."
        ));
    }
    let is_long = password.len() > LONGEST_PASSWORD;
    is_long.then(|| format!("A password has at most {LONGEST_PASSWORD} bytes."))
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        Value::Integer(integer) => integer.to_string(),
        Value::Real(real) => real.to_string(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Null | Value::Blob(_) | Value::Json(_) => String::new(),
    }
}

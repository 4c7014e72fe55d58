//! The answer to a write that is done: a redirect for people, or JSON for programs.

use std::sync::Arc;

use millpond_db::{ResultRows, Value};
use millpond_http::Response;
use serde_json::{Map, Value as Json};

use super::{sign::SessionChange, submit::Submission};
use crate::{service::see_other::see_other, session::BegunSession};
use millpond_site_compile::{
    object::QueryResult,
    page::{Form, FormAnswer, redirect_target::target},
    page_type::JSON,
};
use millpond_site_format::{rules::local, script::Rows};

impl Submission {
    /// The answer. `results` has the rows of each step.
    pub(crate) fn done(
        &self,
        values: &[Value],
        results: Vec<ResultRows>,
        change: &SessionChange,
        seen: Option<String>,
    ) -> Response {
        let cookies = change.cookie().map(str::to_owned).into_iter().chain(seen);
        let (created, bare) = match &self.form.answer {
            FormAnswer::Redirect(pieces) => {
                let next = self.next(values, &results);
                let to = next.unwrap_or_else(|| local(&target(pieces, values, &results)));
                return see_other(&to, cookies);
            }
            FormAnswer::Json { created, bare } => (created, *bare),
        };
        let location = created.as_ref().map(|pieces| {
            let to = target(pieces, values, &results);
            local(&to)
        });
        let mut document = document(&self.form, bare, results);
        if let SessionChange::Begun(begun) = change
            && self.generation.sessions.take_tokens()
        {
            document = with_token(document, begun);
        }
        let status = match (&location, &document) {
            (Some(_), _) => 201,
            (None, Some(_)) => 200,
            (None, None) => 204,
        };
        let response = Response::builder(status)
            .field("Cache-Control", "no-store")
            .field("X-Content-Type-Options", "nosniff");
        let location = location.iter().map(|to| ("Location", to.clone()));
        let cookies = cookies.map(|cookie| ("Set-Cookie", cookie));
        let lines = location.chain(cookies);
        let response = lines.fold(response, |response, (name, value)| {
            response.field(name, &value)
        });
        match document {
            Some(document) => response
                .field("Content-Type", JSON)
                .body(document.to_string()),
            None => response.empty(),
        }
    }
}

/// The members of a token in an answer.
pub(crate) const TOKEN_MEMBERS: [&str; 3] = ["access_token", "token_type", "expires_in"];

/// The members of a token beside the others (RFC 6749 section 5.1). A list or a single value has no
/// members, and takes none.
fn with_token(document: Option<Json>, begun: &BegunSession) -> Option<Json> {
    let mut members = match document {
        None => Map::new(),
        Some(Json::Object(members)) => members,
        other => return other,
    };
    let values = [
        Json::from(&*begun.token),
        "Bearer".into(),
        begun.lifetime.as_secs().into(),
    ];
    members.extend(TOKEN_MEMBERS.map(str::to_owned).into_iter().zip(values));
    Some(Json::Object(members))
}

/// Makes the document of the steps, as a page without a template shows it; none if nothing is
/// given. The steps above `-- verify:` are left out, as they know the hash of a password, and so
/// are guards.
fn document(form: &Form, bare: Option<usize>, results: Vec<ResultRows>) -> Option<Json> {
    let steps = form.steps.iter().zip(results).enumerate();
    let given = steps.filter(|(at, (step, _))| {
        *at >= form.signing.lookups
            && step.rows != Rows::Exec
            && bare.map_or(form.guard(*at).is_none(), |bare| bare == *at)
    });
    let mut members = given.map(|(_, (step, data))| {
        let result = QueryResult {
            rows: step.rows,
            data: Arc::new(data),
        };
        (step.name.clone(), result.json())
    });
    if bare.is_some() {
        return members.next().map(|(_, rows)| rows);
    }
    let members: Map<String, Json> = members.collect();
    (!members.is_empty()).then_some(Json::Object(members))
}

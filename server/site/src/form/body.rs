//! What a write is given in its body: the fields of a form, or the members of a JSON object.

use bytes::Bytes;
use millpond_db::Value;
use millpond_http::{Request, Response};

use super::json::JsonBody;
use crate::{
    core::{Generation, error_answer::ErrorAnswer},
    form::{self, Encoding, Fields, Refused},
    service::methods::types_field,
};
use millpond_site_format::{
    params::{BadParam, Given, Param, uneven},
    write_method::WriteMethod,
};

/// The media types of bodies, as `Accept` lists them.
pub(crate) const ACCEPTED: &str =
    "application/json, application/x-www-form-urlencoded, multipart/form-data";

/// Kind of a request's body.
#[derive(Clone, Debug)]
pub(crate) enum BodyKind {
    Form(Encoding),
    Json,
}

impl BodyKind {
    /// The kind that the request declares.
    pub(crate) fn of(request: &Request<'_>, method: WriteMethod) -> Result<Self, Refused> {
        if method == WriteMethod::Delete {
            // RFC 9110 section 9.3.5: it has no meaning there, and what stands between may drop it.
            return if request.body.is_empty() {
                Ok(Self::Form(Encoding::Urlencoded))
            } else {
                Err(Refused(
                    400,
                    "DELETE takes no body: send the parameters in the address.",
                ))
            };
        }
        if is_json(request) {
            Ok(Self::Json)
        } else {
            form::encoding(request).map(Self::Form)
        }
    }
}

impl Refused {
    /// The answer to a write that is refused before its body is read. RFC 9110 section 15.5.16: a
    /// type that is not taken is answered with those that are.
    pub(crate) fn answer(
        self,
        generation: &Generation,
        method: WriteMethod,
        request: &Request<'_>,
        is_api: bool,
    ) -> Response {
        let Self(status, sentence) = self;
        let error = ErrorAnswer::new(status, sentence).of_api(is_api);
        let field = types_field(method).filter(|_| status == 415);
        let types = field.map(|field| [("Accept", ACCEPTED), (field, ACCEPTED)]);
        let fields = match &types {
            Some(fields) => &fields[..],
            None if status == 415 => &[("Accept", ACCEPTED)],
            None => &[],
        };
        generation.refuse(request, &error.with(fields))
    }
}

/// True if the body is declared as JSON, or as a type that is written in JSON (RFC 6839).
fn is_json(request: &Request<'_>) -> bool {
    let declared = request.fields.get("content-type").unwrap_or_default();
    let declared = std::str::from_utf8(declared).unwrap_or_default();
    let media_type = declared.split(';').next().unwrap_or_default().trim();
    let media_type = media_type.to_ascii_lowercase();
    media_type == "application/json"
        || (media_type.starts_with("application/") && media_type.ends_with("+json"))
}

#[derive(Debug)]
pub(crate) enum WriteBody<'b> {
    Form(Fields<'b>),
    Json(JsonBody<'b>),
}

impl<'b> WriteBody<'b> {
    /// Reads a body.
    ///
    /// # Errors
    /// The status and the sentence for the client.
    pub(crate) async fn read(kind: BodyKind, body: &'b Bytes) -> Result<Self, (u16, String)> {
        match kind {
            BodyKind::Form(encoding) => {
                let fields = form::read(encoding, body).await;
                let fields =
                    fields.map_err(|Refused(status, sentence)| (status, sentence.to_owned()));
                fields.map(Self::Form)
            }
            BodyKind::Json => {
                let members = JsonBody::read(body).map_err(|sentence| (400, sentence));
                members.map(Self::Json)
            }
        }
    }

    /// True if there is more than nothing under a name.
    pub(crate) fn gives(&self, name: &str) -> bool {
        match self {
            Self::Form(fields) => {
                let mut fields = fields.iter();
                fields.any(|(field, text)| field == name && !text.is_empty())
            }
            Self::Json(members) => members.has(name),
        }
    }

    /// Returns the values that are given as texts; members of JSON are none.
    pub(crate) fn given<'g>(&'g self, path: &'g [&'g str], query: Option<&'g str>) -> Given<'g> {
        let form = match self {
            Self::Form(fields) => &fields[..],
            Self::Json(_) => &[],
        };
        Given { path, form, query }
    }

    /// The declared parameters, typed: from the path, else the body, else the query string.
    ///
    /// # Errors
    /// All that are not right.
    pub(crate) fn values(
        &self,
        params: &[Param],
        path: &[&str],
        query: Option<&str>,
    ) -> Result<Vec<Value>, Vec<BadParam>> {
        let given = self.given(path, query);
        let value = |param: &Param| match self {
            Self::Json(members) if param.today.is_none() => members.value(param, &given),
            _ => given.value(param),
        };
        let (mut values, mut bad) = (Vec::with_capacity(params.len()), Vec::new());
        for param in params {
            match value(param) {
                Ok(value) => values.push(value),
                Err(wrong) => bad.push(wrong),
            }
        }
        bad.extend(uneven(params, &values).filter(|_| values.len() == params.len()));
        if bad.is_empty() { Ok(values) } else { Err(bad) }
    }
}

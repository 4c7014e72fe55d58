//! Classes and their steps: the request, the good responses, and the values taken from them.

use regex::bytes::Regex;

use super::cookies::field_values;
use super::template::Template;
use crate::Think;
use crate::body::BodyCheck;

/// Bytes of an extracted value at most.
const LONGEST: usize = 64 * 1024;

/// A rendered request, and which parts of its response are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RenderedRequest {
    /// The class, as an index into [`Workload::classes`](super::Workload::classes).
    pub(crate) class: u16,
    /// The method is HEAD: the response has no body.
    pub(crate) head: bool,
    /// [`VisitorSession::answered`](super::VisitorSession::answered) needs the body of the
    /// response.
    pub(crate) wants_body: bool,
    /// The response's fields are needed too.
    pub(crate) wants_fields: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseVerdict {
    /// The response is as expected.
    Good,
    /// Another status than expected.
    BadStatus,
    /// The body fails a check, for this reason.
    BadBody(&'static str),
    /// A value that later steps need was not found, or cannot be sent.
    NoMatch(&'static str),
}

/// One kind of session.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) steps: Vec<RequestStep>,
    /// True if its sessions keep cookies.
    pub(crate) cookies: bool,
    /// How many values its steps extract.
    pub(crate) slots: usize,
}

/// One request of a session, sent once or several times in a row.
#[derive(Debug)]
pub(crate) struct RequestStep {
    /// The method; `None` is the recorded one.
    pub(crate) method: Option<Box<[u8]>>,
    pub(crate) target: Template,
    /// The fields up to the cookies and the length, which depend on the session.
    pub(crate) fields: Template,
    pub(crate) body: Option<Template>,
    /// Good statuses; if empty, 200 to 399 and the recorded status.
    pub(crate) expect: Vec<u16>,
    pub(crate) check: Option<BodyRule>,
    pub(crate) extract: Vec<Extract>,
    /// The pause after it.
    pub(crate) think: Option<Think>,
    /// The least and greatest number of times that it is sent.
    pub(crate) repeat: (u32, u32),
}

/// A condition on the body of a good response.
#[derive(Debug)]
pub(crate) enum BodyRule {
    Body(BodyCheck),
    Contains(Box<[u8]>),
}

/// A value taken from a response.
#[derive(Debug)]
pub(crate) struct Extract {
    /// The slot that stores the value.
    pub(crate) slot: usize,
    pub(crate) from: ExtractSource,
}

/// Part of a response in which a value is found.
#[derive(Debug)]
pub(crate) enum ExtractSource {
    /// The first group of the first match in the body; without groups the whole match.
    Regex(Box<Regex>),
    /// A place in a JSON body (RFC 6901).
    Pointer(String),
    /// The first field with this name.
    Field(String),
}

impl RequestStep {
    pub(crate) fn wants_body(&self) -> bool {
        self.check.is_some()
            || self
                .extract
                .iter()
                .any(|extract| !matches!(extract.from, ExtractSource::Field(_)))
    }

    pub(crate) fn wants_fields(&self) -> bool {
        self.extract
            .iter()
            .any(|extract| matches!(extract.from, ExtractSource::Field(_)))
    }

    /// True if `status` is good, for a request that had the status `recorded` before.
    pub(crate) fn expects(&self, status: u16, recorded: Option<u16>) -> bool {
        if self.expect.is_empty() {
            (200..400).contains(&status) || recorded == Some(status)
        } else {
            self.expect.contains(&status)
        }
    }
}

impl BodyRule {
    /// Why `body` is wrong, if it is.
    pub(crate) fn fault(&self, body: &[u8]) -> Option<&'static str> {
        match self {
            Self::Body(check) => check.judge(body).err(),
            Self::Contains(text) => memchr::memmem::find(body, text)
                .is_none()
                .then_some("the body does not contain the check's text"),
        }
    }
}

impl Extract {
    /// The value in this response, or why there is none.
    pub(crate) fn find(&self, fields: &[u8], body: &[u8]) -> Result<Vec<u8>, &'static str> {
        let value = match &self.from {
            ExtractSource::Regex(regex) => {
                let found = regex
                    .captures(body)
                    .ok_or("an extraction's regex found nothing")?;
                let group = found
                    .get(1)
                    .or_else(|| found.get(0).filter(|_| found.len() == 1));
                group
                    .ok_or("the group of an extraction's regex is not in the match")?
                    .as_bytes()
                    .to_vec()
            }
            ExtractSource::Pointer(pointer) => pointed(body, pointer)?,
            ExtractSource::Field(name) => {
                let value = field_values(fields, name).next();
                value
                    .ok_or("a field to extract is not in the answer")?
                    .to_vec()
            }
        };
        if value.len() > LONGEST {
            return Err("an extracted value is longer than 64 KiB");
        }
        Ok(value)
    }
}

fn pointed(body: &[u8], pointer: &str) -> Result<Vec<u8>, &'static str> {
    use serde_json::Value;
    let json: Value =
        serde_json::from_slice(body).map_err(|_| "a body to extract from is not JSON")?;
    match json.pointer(pointer) {
        Some(Value::String(text)) => Ok(text.clone().into_bytes()),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string().into_bytes()),
        Some(_) => Err("an extraction's pointer leads to no text, number or truth value"),
        None => Err("an extraction's pointer found nothing"),
    }
}

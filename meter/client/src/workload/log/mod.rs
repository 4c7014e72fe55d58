//! Learning from access logs: how often each target is requested and how requests arrive; or a
//! replay of the log.

mod arrivals;
mod class;
mod error;
mod learned;
mod rank;
mod read;
mod replay;
#[cfg(test)]
mod tests;

pub use arrivals::{ArrivalKind, ArrivalPattern};
pub use error::LogError;
pub use learned::{Learned, LearnedClass};
pub use read::LogLines;
pub use replay::Replay;

use super::step::{Class, RequestStep};
use super::template::{Encoding, Template, TemplatePart, Value};
use crate::url::Url;
use crate::{Error, RequestPlan};

/// A class that requests a given target once.
fn class(request: &RequestPlan, url: &Url, target: Value) -> Result<Class, Error> {
    let mut fields = Template::default();
    fields.push_text(
        crate::request::head_fields(request, &url.authority)
            .map_err(Error::Plan)?
            .as_bytes(),
    );
    let target = Template {
        parts: vec![TemplatePart::Value(target, Encoding::Target)],
    };
    Ok(Class {
        steps: vec![RequestStep {
            method: None,
            target,
            fields,
            body: None,
            expect: request.expect.clone(),
            check: None,
            extract: Vec::new(),
            think: None,
            repeat: (1, 1),
        }],
        cookies: false,
        slots: 0,
    })
}

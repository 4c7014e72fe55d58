//! Learning from access logs: what is asked for how often, and how requests arrive; or a replay of the log itself.

mod arrivals;
mod class;
mod error;
mod frequent;
mod learned;
mod line;
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

use super::step::{Class, Step};
use super::template::{Encoding, Part, Template, Value};
use crate::url::Url;
use crate::{Error, RequestPlan};

/// A class that asks once for a target that is ready.
fn class(request: &RequestPlan, url: &Url, target: Value) -> Result<Class, Error> {
    let mut fields = Template::default();
    fields.push_text(
        crate::request::head_fields(request, &url.authority)
            .map_err(Error::Plan)?
            .as_bytes(),
    );
    let target = Template {
        parts: vec![Part::Value(target, Encoding::Target)],
    };
    Ok(Class {
        steps: vec![Step {
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

//! What a visitor typed into a form that was refused, and what is wrong with it.

use serde_json::{Value as Json, json};

/// Values and faults that a form is shown with again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flash {
    /// The path of the page, in its normal form.
    pub path: String,
    /// The path to which the form was sent.
    pub action: String,
    /// The fields with their values as they were typed; of a list there may be several.
    pub values: Vec<(String, Vec<String>)>,
    pub errors: Vec<FlashError>,
}

/// Fault of one field, or of the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlashError {
    /// The name of the field; `form` of what belongs to none.
    pub field: String,
    /// One word for templates, such as `unique`.
    pub kind: String,
    pub sentence: String,
}

impl Flash {
    /// The bytes of all texts.
    pub fn size(&self) -> usize {
        let values = self.values.iter();
        let values = values.flat_map(|(name, texts)| std::iter::once(name).chain(texts));
        let errors = self.errors.iter();
        let errors = errors.flat_map(|error| [&error.field, &error.kind, &error.sentence]);
        let texts = values.chain(errors).map(String::len);
        texts.sum::<usize>() + self.path.len() + self.action.len()
    }

    /// Returns the JSON text of a token: `expires` and `visitor` say until when and for whom it
    /// counts.
    pub fn payload(&self, expires: u64, visitor: &str) -> String {
        let errors = self
            .errors
            .iter()
            .map(|error| json!([error.field, error.kind, error.sentence]));
        json!({
            "e": expires,
            "p": self.path,
            "a": self.action,
            "s": visitor,
            "v": self.values,
            "f": errors.collect::<Vec<_>>(),
        })
        .to_string()
    }

    /// The flash in a payload, with its end and whose it is.
    pub fn read(payload: &[u8]) -> Option<(Self, u64, String)> {
        let payload: Json = serde_json::from_slice(payload).ok()?;
        let text = |json: &Json| json.as_str().map(str::to_owned);
        let texts = |json: &Json| {
            json.as_array()?
                .iter()
                .map(text)
                .collect::<Option<Vec<_>>>()
        };
        let value = |pair: &Json| Some((text(pair.get(0)?)?, texts(pair.get(1)?)?));
        let error = |parts: &Json| {
            Some(FlashError {
                field: text(parts.get(0)?)?,
                kind: text(parts.get(1)?)?,
                sentence: text(parts.get(2)?)?,
            })
        };
        let values = payload.get("v")?.as_array()?.iter().map(value);
        let errors = payload.get("f")?.as_array()?.iter().map(error);
        let flash = Self {
            path: text(payload.get("p")?)?,
            action: text(payload.get("a")?)?,
            values: values.collect::<Option<_>>()?,
            errors: errors.collect::<Option<_>>()?,
        };
        Some((flash, payload.get("e")?.as_u64()?, text(payload.get("s")?)?))
    }
}

//! The text of an experiment with the files that it includes.
//!
//! Included texts are appended to the experiment's own text, which TOML allows if they have only
//! tables. So several experiments can share servers. Positions are positions in the whole text;
//! they are reported for the file that has them.

use std::fs;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::fault::Fault;

/// An experiment's text and what is behind it.
#[derive(Debug)]
pub(super) struct ExperimentText {
    text: String,
    /// Bytes of the experiment's own text.
    own: usize,
    included: Vec<Included>,
}

#[derive(Debug)]
struct Included {
    name: String,
    /// Position of its name in the experiment.
    named: Range<usize>,
    /// Position of its text.
    place: Range<usize>,
}

/// The keys of an experiment that are read before its includes.
#[derive(Deserialize)]
struct Preamble {
    #[serde(default)]
    include: Vec<Spanned<String>>,
}

impl ExperimentText {
    /// Reads the files that `text` includes, from the folder `here`.
    pub(super) fn gather(text: &str, here: &Path) -> Result<Self, Fault> {
        let head: Preamble = toml::from_str(text).map_err(|error| {
            let place = error.span().unwrap_or(0..0);
            Fault::at(text, &place, error.message())
        })?;
        let mut source = Self {
            text: text.to_owned(),
            own: text.len(),
            included: Vec::new(),
        };
        for name in head.include {
            let path = here.join(name.get_ref());
            let part = fs::read_to_string(&path).map_err(|error| {
                let sentence = format!("cannot read {}: {error}", path.display());
                Fault::at(text, &name.span(), sentence)
            })?;
            source.text.push('\n');
            let start = source.text.len();
            source.text.push_str(&part);
            source.included.push(Included {
                named: name.span(),
                place: start..source.text.len(),
                name: name.into_inner(),
            });
        }
        Ok(source)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The mistake at a position of the text. In an included file it is reported at the include.
    pub(super) fn fault(&self, place: &Range<usize>, message: impl Into<String>) -> Fault {
        let own = &self.text[..self.own];
        let mut parts = self.included.iter();
        match parts.find(|part| place.start >= part.place.start && place.start <= part.place.end) {
            None => Fault::at(own, place, message),
            Some(part) => {
                let inner = place.start - part.place.start..place.start - part.place.start;
                let inside = Fault::at(&self.text[part.place.clone()], &inner, message);
                Fault::at(own, &part.named, format!("{}:{inside}", part.name))
            }
        }
    }
}

//! What is stored of a study: its text, and what became of each experiment.

use serde::{Deserialize, Serialize};

use crate::Host;

/// The text of a study: what it shows, and the figures of its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyText {
    /// The title.
    pub title: String,
    /// One sentence that says what it shows.
    pub sentence: String,
    /// The title of the write-up whose figures it repeats, and the year.
    pub source: String,
    /// Reading of the figures, as Markdown.
    pub shows: String,
    /// Tables of the source.
    #[serde(default)]
    pub originals: Vec<OriginalTable>,
    /// Parts of the source that are not repeated.
    #[serde(default)]
    pub cannot: Vec<CannotRepeat>,
}

/// A table of the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginalTable {
    /// Title of the figure.
    pub title: String,
    /// The heads of its columns.
    pub columns: Vec<String>,
    /// Its rows, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
    /// The file of the experiment that repeats it; `None` if it belongs to no single one.
    pub experiment: Option<String>,
    /// Conditions of the original measurement; may be empty.
    #[serde(default)]
    pub note: String,
}

/// A table or graph of the source that is not repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CannotRepeat {
    /// Part of the source.
    pub what: String,
    /// Why not.
    pub why: String,
}

/// A study as it is stored beside the results of its experiments. Its JSON is `study.json` in the
/// folder of a study's results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyRecord {
    /// The name of its folder.
    pub name: String,
    /// Its text.
    pub text: StudyText,
    /// Its experiments in their order, as far as they have been begun.
    pub parts: Vec<StudyPart>,
    /// The machine.
    pub host: Host,
}

/// Outcome of an experiment of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyPart {
    /// The file of the experiment.
    pub file: String,
    /// Its title.
    pub title: String,
    /// The file of its result, in the same folder; `None` if there is none.
    pub result: Option<String>,
    /// Parts that were left out, each with the reason, in sentences.
    pub left_out: Vec<String>,
    /// Why there is no result.
    pub failure: Option<String>,
    /// True if the runs were shorter or fewer than its file says.
    pub quick: bool,
}

impl StudyRecord {
    /// Puts `part` in its place: the order of `files`. A part of the same file is replaced, and
    /// parts of files that the study no longer has are dropped.
    pub fn put(&mut self, part: StudyPart, files: &[String]) {
        self.parts.retain(|old| old.file != part.file);
        self.parts.push(part);
        let place = |part: &StudyPart| files.iter().position(|file| *file == part.file);
        self.parts.retain(|part| place(part).is_some());
        self.parts.sort_by_key(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_in_the_order_of_the_study() {
        let part = |file: &str, quick| StudyPart {
            file: file.to_owned(),
            quick,
            ..StudyPart::default()
        };
        let files = ["a", "b", "c"].map(str::to_owned);
        let mut record = StudyRecord {
            parts: vec![part("gone", false), part("b", false)],
            ..StudyRecord::default()
        };
        for (file, quick) in [("c", false), ("a", false), ("b", true)] {
            record.put(part(file, quick), &files);
        }
        let found: Vec<(&str, bool)> = record
            .parts
            .iter()
            .map(|part| (part.file.as_str(), part.quick))
            .collect();
        assert_eq!(found, [("a", false), ("b", true), ("c", false)]);
    }
}

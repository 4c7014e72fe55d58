//! A study: experiments that repeat the tables of a write-up, with its figures and an explanation.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::experiment::Experiment;
use super::fault::Fault;
use super::quick::{QuickRuns, QuickSpec};
use super::study_record::{CannotRepeat, OriginalTable, StudyText};

/// The file `study.toml` as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StudySpec {
    title: Spanned<String>,
    sentence: Spanned<String>,
    source: Spanned<String>,
    experiments: Spanned<Vec<Spanned<String>>>,
    shows: Spanned<String>,
    #[serde(default)]
    original: Vec<OriginalSpec>,
    #[serde(default)]
    cannot: Vec<CannotRepeat>,
    #[serde(default)]
    quick: QuickSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OriginalSpec {
    title: String,
    columns: Vec<String>,
    rows: Vec<Spanned<Vec<TableCell>>>,
    experiment: Option<Spanned<String>>,
    #[serde(default)]
    note: String,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum TableCell {
    Text(String),
    Whole(i64),
    Number(f64),
}

impl TableCell {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Whole(number) => number.to_string(),
            Self::Number(number) => number.to_string(),
        }
    }
}

/// A study, read and checked. Its format is in `docs/reference/experiments.md`.
#[derive(Clone, Debug)]
pub struct Study {
    /// The name of its folder.
    pub name: String,
    /// Texts of the study.
    pub text: StudyText,
    /// The files of its experiments, in their order.
    pub files: Vec<String>,
    /// Changes that a quick run makes in them.
    pub quick: QuickRuns,
    folder: PathBuf,
}

impl Study {
    /// Reads a study from the text of its `study.toml`, which is in `folder`.
    ///
    /// # Errors
    /// All mistakes in it; of a text that is not TOML, or that has a wrong key, the first one.
    /// Mistakes in its experiments are found by [`Study::experiment`].
    pub fn read(text: &str, folder: &Path) -> Result<Self, Vec<Fault>> {
        let read: Result<StudySpec, toml::de::Error> = toml::from_str(text);
        let spec = read.map_err(|error| {
            let place = error.span().unwrap_or(0..0);
            vec![Fault::at(text, &place, error.message())]
        })?;
        let mut check = StudyCheck {
            text,
            folder,
            faults: Vec::new(),
        };
        check.texts(&spec);
        check.experiments(&spec);
        check.originals(&spec);
        let files: Vec<&str> = spec.files().collect();
        let quick = QuickRuns::read(&spec.quick, &files).unwrap_or_else(|mistakes| {
            let mistakes = mistakes.into_iter();
            let faults = mistakes.map(|(place, sentence)| Fault::at(text, &place, sentence));
            check.faults.extend(faults);
            QuickRuns::default()
        });
        if !check.faults.is_empty() {
            return Err(check.faults);
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self {
            name: name.into_owned(),
            files: spec.files().map(str::to_owned).collect(),
            text: spec.into_text(),
            quick,
            folder: folder.to_owned(),
        })
    }

    /// The path of an experiment's file.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// Reads one of its experiments.
    ///
    /// # Errors
    /// The mistakes in the experiment's file.
    pub fn experiment(&self, file: &str) -> Result<Experiment, Vec<Fault>> {
        let text = fs::read_to_string(self.path(file)).map_err(|error| {
            let sentence = format!("it cannot be read: {error}");
            vec![Fault::at("", &(0..0), sentence)]
        })?;
        Experiment::read(&text, &self.folder)
    }
}

impl StudySpec {
    /// The names of its experiments.
    fn files(&self) -> impl Iterator<Item = &str> {
        let files = self.experiments.get_ref().iter();
        files.map(|file| file.get_ref().as_str())
    }

    fn into_text(self) -> StudyText {
        let original = |table: OriginalSpec| OriginalTable {
            title: table.title,
            columns: table.columns,
            rows: table
                .rows
                .iter()
                .map(|row| row.get_ref().iter().map(TableCell::text).collect())
                .collect(),
            experiment: table.experiment.map(Spanned::into_inner),
            note: table.note,
        };
        StudyText {
            title: self.title.into_inner(),
            sentence: self.sentence.into_inner().trim().to_owned(),
            source: self.source.into_inner(),
            shows: self.shows.into_inner(),
            originals: self.original.into_iter().map(original).collect(),
            cannot: self.cannot,
        }
    }
}

struct StudyCheck<'a> {
    text: &'a str,
    folder: &'a Path,
    faults: Vec<Fault>,
}

impl StudyCheck<'_> {
    fn report<T>(&mut self, place: &Spanned<T>, message: impl Into<String>) {
        self.faults
            .push(Fault::at(self.text, &place.span(), message));
    }

    fn texts(&mut self, spec: &StudySpec) {
        let texts = [
            (&spec.title, "title"),
            (&spec.sentence, "sentence"),
            (&spec.source, "source"),
            (&spec.shows, "shows"),
        ];
        for (text, name) in texts {
            if text.get_ref().trim().is_empty() {
                self.report(text, format!("`{name}` is empty"));
            }
        }
        if spec.sentence.get_ref().trim().contains("\n\n") {
            self.report(&spec.sentence, "`sentence` is one paragraph");
        }
    }

    fn experiments(&mut self, spec: &StudySpec) {
        if spec.experiments.get_ref().is_empty() {
            self.report(&spec.experiments, "a study has at least one experiment");
        }
        let mut seen = BTreeSet::new();
        for file in spec.experiments.get_ref() {
            let name = file.get_ref();
            let mut parts = Path::new(name).components();
            let is_plain =
                matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none();
            if !is_plain || !name.ends_with(".toml") || name == "study.toml" {
                let message = format!(
                    "{name:?} is no experiment: a file of the study's folder that ends with .toml is"
                );
                self.report(file, message);
            } else if !self.folder.join(name).is_file() {
                self.report(file, format!("there is no file {name} beside study.toml"));
            }
            if !seen.insert(name) {
                self.report(file, format!("{name} stands here twice"));
            }
        }
    }

    fn originals(&mut self, spec: &StudySpec) {
        for table in &spec.original {
            if let Some(file) = &table.experiment {
                let files: Vec<&str> = spec.files().collect();
                if let Err(message) = must_be_one_of(file.get_ref(), &files) {
                    self.report(file, message);
                }
            }
            for row in &table.rows {
                let (cells, columns) = (row.get_ref().len(), table.columns.len());
                if cells != columns {
                    let message =
                        format!("this row has {cells} cells, and the table has {columns} columns");
                    self.report(row, message);
                }
            }
        }
    }
}

/// A name that must be one of the experiments.
pub(super) fn must_be_one_of(name: &str, files: &[&str]) -> Result<(), String> {
    if files.contains(&name) {
        return Ok(());
    }
    Err(format!(
        "{name:?} is none of the experiments: {}",
        files.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "title = 'T'\nsentence = 'S.'\nsource = 'W, 2003'\nshows = 'It shows.'\n";

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let experiment = "title = 'x'\n[ladder]\nconnections = '1..9'\n[workload]\n[[server]]\nname = 'a'\nstart = 'a'\n";
        fs::write(folder.path().join("a.toml"), experiment).unwrap();
        folder
    }

    #[test]
    fn a_study_is_read_with_its_tables() {
        let folder = folder();
        let text = format!(
            "{HEAD}experiments = ['a.toml']\n[[original]]\ntitle = 'O'\ncolumns = ['x', 'y']\nrows = [[1, 2.5], ['3', '–']]\n\
             experiment = 'a.toml'\n[quick]\nrepeats = 2\nlevels = {{ 'a.toml' = '2,4' }}\n[[cannot]]\nwhat = 'w'\nwhy = 'y'\n"
        );
        let study = Study::read(&text, folder.path()).unwrap();
        assert_eq!(study.text.originals[0].rows, [["1", "2.5"], ["3", "–"]]);
        let mut experiment = study.experiment("a.toml").unwrap();
        study.quick.shorten("a.toml", &mut experiment).unwrap();
        assert_eq!(experiment.repeats(), 2);
        assert_eq!(experiment.levels().len(), 2);
        QuickRuns::default()
            .shorten("a.toml", &mut experiment)
            .unwrap();
        assert_eq!((experiment.repeats(), experiment.levels().len()), (1, 2));
    }

    #[test]
    fn mistakes_of_a_study_have_their_places() {
        let folder = folder();
        for (more, expected) in [
            (
                "experiments = []\n",
                "5:15: a study has at least one experiment",
            ),
            (
                "experiments = ['b.toml']\n",
                "5:16: there is no file b.toml",
            ),
            (
                "experiments = ['a.toml', 'a.toml']\n",
                "5:26: a.toml stands here twice",
            ),
            (
                "experiments = ['../a.toml']\n",
                "5:16: \"../a.toml\" is no experiment",
            ),
            (
                "experiments = ['study.toml']\n",
                "5:16: \"study.toml\" is no experiment",
            ),
            (
                "experiments = ['a.toml']\n[[original]]\ntitle = 'O'\ncolumns = ['x']\nrows = [['1'], ['1', '2']]\n",
                "9:16: this row has 2 cells, and the table has 1 columns",
            ),
            (
                "experiments = ['a.toml']\n[[original]]\ntitle = 'O'\ncolumns = []\nrows = []\nexperiment = 'b'\n",
                "10:14: \"b\" is none of the experiments: a.toml",
            ),
            (
                "experiments = ['a.toml']\n[quick]\nrepeats = 0\n",
                "7:11: repeats must be",
            ),
            (
                "experiments = ['a.toml']\n[quick]\nlevels = 'x'\n",
                "7:10: ",
            ),
            (
                "experiments = ['a.toml']\nexperimens = 1\n",
                "6:1: unknown field `experimens`",
            ),
        ] {
            let faults = Study::read(&format!("{HEAD}{more}"), folder.path()).unwrap_err();
            let first = faults[0].to_string();
            assert!(first.starts_with(expected), "{more}: {first}");
        }
    }
}

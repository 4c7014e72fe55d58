//! The temporary folder of an experiment, and the files in it.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::experiment::{Experiment, numbered};
use super::outcome::{LabLevel, Text};
use super::placeholders::Placeholders;
use super::process::Launch;
use super::runner::Programs;
use super::spec::{FileSpec, ServerSpec};
use super::spec_values::CommandLine;

/// An experiment with its folder.
#[derive(Debug)]
pub(super) struct WorkFolder<'a> {
    pub(super) experiment: &'a Experiment,
    work: PathBuf,
    programs: Programs,
    /// The current level.
    level: LabLevel,
}

impl<'a> WorkFolder<'a> {
    /// All files go into the existing folder `work`.
    pub(super) fn new(experiment: &'a Experiment, work: &Path, programs: &Programs) -> Self {
        Self {
            experiment,
            work: work.to_owned(),
            programs: programs.clone(),
            level: experiment.levels().into_iter().next().unwrap_or_default(),
        }
    }

    /// Gives the experiment's variable its value at `level`.
    pub(super) fn set_level(&mut self, level: LabLevel) {
        self.level = level;
    }

    /// The path that is requested from a server, with the variable's value.
    pub(super) fn path(&self, server: &ServerSpec) -> String {
        let path = self.experiment.path(server);
        match (self.experiment.variable(), self.level.value) {
            (Some(name), Some(value)) => path.replace(&format!("{{{name}}}"), &value.to_string()),
            _ => path.to_owned(),
        }
    }

    /// The log that is replayed, if there is one.
    ///
    /// # Errors
    /// Its name has a placeholder without a value.
    pub(super) fn replayed(&self) -> Result<Option<PathBuf>, String> {
        let Some(name) = &self.experiment.workload.get_ref().replay else {
            return Ok(None);
        };
        let name = self.values().fill(name.get_ref(), false)?;
        Ok(Some(self.experiment.here.join(name)))
    }

    /// The values that every text may use.
    pub(super) fn values(&self) -> Placeholders {
        let mut values = Placeholders::default();
        values.set("work", self.work.to_string_lossy());
        values.set("here", self.experiment.here.to_string_lossy());
        values.set("millpond", self.programs.millpond.to_string_lossy());
        values.set("millrace", self.programs.millrace.to_string_lossy());
        values.set(
            "path",
            numbered(self.experiment.workload.get_ref().path.get_ref(), 0),
        );
        for (name, value) in &self.experiment.values {
            values.set(name, value.get_ref());
        }
        if let (Some(name), Some(value)) = (self.experiment.variable(), self.level.value) {
            values.set(name, value.to_string());
        }
        values
    }

    /// The folder of one server, made if it is not there.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.work.join("servers").join(name);
        make(&folder)?;
        Ok(folder)
    }

    /// Writes the files that all servers share; gives their texts.
    pub(super) fn write_shared(&self) -> Result<Vec<Text>, String> {
        write(&self.work, &self.experiment.files, &self.values())
    }

    /// Writes a file for a client into the experiment's folder; gives its path.
    pub(super) fn write_beside(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.work.join(name);
        let written = fs::write(&path, text);
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(path)
    }

    /// A command with its values, run in the folder of the experiment's file.
    pub(super) fn launch(
        &self,
        line: &CommandLine,
        values: &Placeholders,
    ) -> Result<Launch, String> {
        let line = match line {
            CommandLine::Shell(text) => CommandLine::Shell(values.fill(text, true)?),
            CommandLine::Program(words) => {
                let words = words.iter().map(|word| values.fill(word, false));
                CommandLine::Program(words.collect::<Result<_, _>>()?)
            }
        };
        Ok(Launch {
            line,
            cwd: self.experiment.here.clone(),
            env: Vec::new(),
            cores: Vec::new(),
        })
    }

    /// A text for the report: without the paths of this machine.
    pub(super) fn shown(&self, text: &str) -> String {
        let mut shown = text.to_owned();
        let names = [
            (&self.work, "{work}"),
            (&self.programs.millpond, "millpond"),
            (&self.programs.millrace, "millrace"),
            (&self.experiment.here, "{here}"),
        ];
        for (path, name) in names {
            let path = path.to_string_lossy();
            // A folder as short as / or . would match everywhere.
            if path.len() > 2 {
                shown = shown.replace(&*path, name);
            }
        }
        shown
    }
}

/// Writes `files` below `folder`.
pub(super) fn write(
    folder: &Path,
    files: &[FileSpec],
    values: &Placeholders,
) -> Result<Vec<Text>, String> {
    let mut texts = Vec::new();
    for file in files {
        let path = file.path.get_ref();
        let mut content = String::new();
        for n in 0..file.count.unwrap_or(1) {
            let path = folder.join(numbered(path, n));
            if let Some(parent) = path.parent() {
                make(parent)?;
            }
            content = match (&file.content, file.bytes) {
                (Some(content), _) => values.fill(content.get_ref(), false)?,
                (None, bytes) => letters(bytes.unwrap_or(0), n),
            };
            fs::write(&path, &content)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        let of_all = file
            .count
            .map_or(String::new(), |count| format!("{count} files of "));
        let shown = match file.bytes {
            Some(bytes) => format!("({of_all}{bytes} bytes of letters)"),
            None => content,
        };
        texts.push(Text {
            path: path.clone(),
            content: shown,
        });
    }
    Ok(texts)
}

/// Servers that drop their privileges must still be able to read the folder.
fn make(folder: &Path) -> Result<(), String> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))
}

/// Lines of letters, `bytes` in all, that compress no better than prose; each `n` has others.
fn letters(bytes: usize, n: usize) -> String {
    let mut random = millrace_stats::random::Random::new(1 + n as u64);
    let letter = |n| match n % 72 {
        71 => '\n',
        _ => char::from(b'a' + random.below(26) as u8),
    };
    (0..bytes).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_have_the_given_length_and_are_reproducible() {
        assert_eq!(letters(8192, 0).len(), 8192);
        assert_eq!(letters(100, 1), letters(100, 1));
        assert_ne!(letters(100, 1), letters(100, 2));
        assert_eq!(letters(0, 0), "");
    }
}

//! The studies and experiments of a folder, and how one is named.

use std::fs;
use std::path::{Path, PathBuf};

use millrace_runs::Study;

use super::experiment::wrong;
use crate::failure::{CommandResult, Failure};

/// The file of a study in its folder.
const STUDY: &str = "study.toml";
/// The least likeness (Jaro and Winkler) of a name that was probably meant.
const ALIKE: f64 = 0.8;

/// A folder with `studies/` and `experiments/`.
pub(super) struct Catalogue {
    folder: Option<PathBuf>,
}

/// Experiments that a name stands for.
pub(super) enum Chosen {
    /// A file of an experiment.
    File(PathBuf),
    /// A study, and the files of those of its experiments that are meant.
    Study(Box<Study>, Vec<String>),
}

impl Catalogue {
    /// The folder that the user names, else `lab` in the current folder or in the nearest above.
    pub(super) fn find(folder: Option<&Path>) -> Self {
        let has_some = |folder: &PathBuf| {
            folder.join("studies").is_dir() || folder.join("experiments").is_dir()
        };
        let found = || {
            let here = std::env::current_dir().ok()?;
            here.ancestors()
                .map(|above| above.join("lab"))
                .find(has_some)
        };
        Self {
            folder: folder.map(Path::to_owned).or_else(found),
        }
    }

    /// Every study, by name. Studies with mistakes are failures.
    pub(super) fn studies(&self) -> Vec<(String, CommandResult<Study>)> {
        let folders = self.files("studies");
        let studies = folders
            .into_iter()
            .filter(|folder| folder.join(STUDY).is_file());
        studies
            .map(|folder| (name_of(&folder), read_study(&folder)))
            .collect()
    }

    /// Every study.
    ///
    /// # Errors
    /// There is none, or one has mistakes.
    pub(super) fn all(&self) -> CommandResult<Vec<Study>> {
        let studies: Vec<Study> = self
            .studies()
            .into_iter()
            .map(|(_, study)| study)
            .collect::<CommandResult<_>>()?;
        match studies.is_empty() {
            true => Err(self.nothing()),
            false => Ok(studies),
        }
    }

    /// Files of experiments that belong to no study.
    pub(super) fn experiments(&self) -> Vec<PathBuf> {
        let mut files = self.files("experiments");
        files.retain(|path| path.is_file() && path.extension().is_some_and(|end| end == "toml"));
        files
    }

    /// Finds the experiments of `name`: a path; a study; `STUDY/EXPERIMENT`; or an experiment, of a
    /// study if only one has it.
    pub(super) fn choose(&self, name: &str) -> CommandResult<Chosen> {
        let path = Path::new(name);
        if path.is_file() && !path.ends_with(STUDY) {
            return Ok(Chosen::File(path.to_owned()));
        }
        let folder = match path.ends_with(STUDY) {
            true => path.parent().filter(|_| path.is_file()),
            false => Some(path).filter(|path| path.join(STUDY).is_file()),
        };
        if let Some(folder) = folder {
            return whole(read_study(folder)?);
        }
        if name.ends_with(".toml") {
            return Err(Failure::new(format!(
                "cannot read {name}: there is no such file"
            )));
        }
        self.by_name(name)
    }

    fn by_name(&self, name: &str) -> CommandResult<Chosen> {
        let studies = self.studies();
        let (study, part) = name.split_once('/').unwrap_or((name, ""));
        let mut names: Vec<String> = Vec::new();
        let mut found = Vec::new();
        for (known, read) in studies {
            names.push(known.clone());
            if known == study && part.is_empty() {
                return whole(read?);
            }
            let Ok(read) = read else {
                continue;
            };
            for file in &read.files {
                let own = plain(file);
                let full = format!("{known}/{own}");
                if full == name || own == name {
                    found.push((full.clone(), read.clone(), file.clone()));
                }
                names.push(full);
            }
        }
        for path in self.experiments() {
            let own = plain(&name_of(&path)).to_owned();
            if own == name {
                return Ok(Chosen::File(path));
            }
            names.push(own);
        }
        match found.len() {
            0 => Err(self.unknown(name, &names)),
            1 => {
                let (_, study, file) = found.swap_remove(0);
                Ok(Chosen::Study(Box::new(study), vec![file]))
            }
            _ => {
                let full: Vec<String> = found.into_iter().map(|(full, ..)| full).collect();
                let failure = Failure::new(format!("several experiments are called {name}"));
                Err(failure.hint(format!("name one of them: {}", full.join(", "))))
            }
        }
    }

    fn unknown(&self, name: &str, names: &[String]) -> Failure {
        if names.is_empty() {
            return self.nothing();
        }
        let alike = |known: &&String| {
            let last = known.rsplit('/').next().unwrap_or(known);
            strsim::jaro_winkler(name, known).max(strsim::jaro_winkler(name, last))
        };
        let nearest = names.iter().max_by(|a, b| alike(a).total_cmp(&alike(b)));
        let meant = nearest.filter(|nearest| alike(nearest) > ALIKE);
        let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
        Failure::new(format!(
            "there is no study and no experiment {name:?}{meant}"
        ))
        .hint("millrace lab list names them all; a file is named with its path")
    }

    fn nothing(&self) -> Failure {
        let failure = match &self.folder {
            Some(folder) => Failure::new(format!(
                "{} has neither a study nor an experiment",
                folder.display()
            )),
            None => {
                Failure::new("there is no folder lab with studies/ or experiments/ here or above")
            }
        };
        failure.hint(
            "--lab DIR names the folder; docs/reference/experiments.md describes what is in it",
        )
    }

    /// Lists the files of a folder of the catalogue, in the order of the names.
    fn files(&self, name: &str) -> Vec<PathBuf> {
        let Some(folder) = &self.folder else {
            return Vec::new();
        };
        let entries = fs::read_dir(folder.join(name)).into_iter().flatten();
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        files.sort();
        files
    }
}

fn whole(study: Study) -> CommandResult<Chosen> {
    let files = study.files.clone();
    Ok(Chosen::Study(Box::new(study), files))
}

fn read_study(folder: &Path) -> CommandResult<Study> {
    let path = folder.join(STUDY);
    let cannot =
        |error: &std::io::Error| Failure::new(format!("cannot read {}: {error}", path.display()));
    let text = fs::read_to_string(&path).map_err(|error| cannot(&error))?;
    let folder = folder.canonicalize().map_err(|error| cannot(&error))?;
    Study::read(&text, &folder).map_err(|faults| wrong(&path, &faults))
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The name of an experiment: that of its file without the ending.
pub(super) fn plain(file: &str) -> &str {
    file.strip_suffix(".toml").unwrap_or(file)
}

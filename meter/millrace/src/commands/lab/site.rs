//! `millrace lab report`: the results of studies as a small site.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use millrace_report::{Report, StoredResult, StudyPages, lab_report, study_index};
use millrace_runs::{Lab as Found, StudyRecord};

use super::studies::RECORD;
use crate::commands::results::write_to;
use crate::failure::{CommandResult, Failure};
use crate::output::say;
use crate::stored;

/// The first line of the site's settings, by which a site of this command is known.
const MARK: &str = "# Pages of millrace lab report.";

/// Make a small site of the results of `lab run`: an index, and a page for each study
///
/// Millpond serves the folder (`millpond serve DIR`); the pages in its static/ open from disk too.
#[derive(Args)]
pub(super) struct ReportSite {
    /// The folder with the results
    #[arg(value_name = "DIR", default_value = "lab-results")]
    results: PathBuf,
    /// The folder of the site: a new one, an empty one, or one that this command made
    #[arg(long, value_name = "DIR", default_value = "site")]
    out: PathBuf,
}

impl ReportSite {
    pub(super) fn run(&self) -> CommandResult {
        let (studies, single) = (self.studies()?, self.single()?);
        if studies.is_empty() && single.is_empty() {
            return Err(Failure::new(format!(
                "{} has no results of experiments",
                self.results.display()
            ))
            .hint("millrace lab run --all --quick makes some"));
        }
        let folder = self.folder()?;
        let mut pages: Vec<(String, Report)> =
            vec![("index.html".to_owned(), study_index(&studies, &single))];
        pages.extend(studies.iter().flat_map(StudyPages::reports));
        pages.extend(
            single
                .iter()
                .map(|(page, lab)| (page.clone(), lab_report(lab))),
        );
        for (name, report) in &pages {
            write_to(&folder.join(name), report.to_html().trim_end())?;
        }
        say(format!(
            "{} pages in {}; millpond serve {} shows them, and so does a browser that opens {}",
            pages.len(),
            self.out.display(),
            self.out.display(),
            folder.join("index.html").display()
        ));
        Ok(())
    }

    /// The studies with their results, by name.
    fn studies(&self) -> CommandResult<Vec<StudyPages>> {
        let mut studies = Vec::new();
        for folder in entries(&self.results)? {
            let path = folder.join(RECORD);
            if !path.is_file() {
                continue;
            }
            let record = read_record(&path)?;
            let result = |name: &Option<String>| match name {
                Some(name) => read_lab(&folder.join(name)).map(Some),
                None => Ok(None),
            };
            let results = record.parts.iter().map(|part| result(&part.result));
            studies.push(StudyPages {
                results: results.collect::<CommandResult<_>>()?,
                record,
            });
        }
        Ok(studies)
    }

    /// Results that lie in the folder itself, each with the name of its page.
    fn single(&self) -> CommandResult<Vec<(String, Found)>> {
        let mut found = Vec::new();
        for path in entries(&self.results)? {
            if path.is_file() && path.extension().is_some_and(|end| end == "json") {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                found.push((format!("experiment-{name}.html"), read_lab(&path)?));
            }
        }
        Ok(found)
    }

    /// The folder of the pages, without pages of an earlier call.
    fn folder(&self) -> CommandResult<PathBuf> {
        let settings = self.out.join("millpond.toml");
        let is_own = fs::read_to_string(&settings).is_ok_and(|text| text.starts_with(MARK));
        let is_empty = fs::read_dir(&self.out).map_or(true, |mut all| all.next().is_none());
        if !is_own && !is_empty {
            return Err(Failure::new(format!(
                "{} is not empty, and no site of this command",
                self.out.display()
            ))
            .hint("name another folder with --out"));
        }
        let folder = self.out.join("static");
        fs::create_dir_all(&folder).map_err(|error| cannot("make", &folder, &error))?;
        for page in entries(&folder)? {
            if page.extension().is_some_and(|end| end == "html") {
                fs::remove_file(&page).map_err(|error| cannot("remove", &page, &error))?;
            }
        }
        // Millpond wants this folder, even without a page in it.
        let pages = self.out.join("pages");
        fs::create_dir_all(&pages).map_err(|error| cannot("make", &pages, &error))?;
        write_to(&settings, MARK)?;
        Ok(folder)
    }
}

/// Lists the entries of a folder, in the order of the names.
fn entries(folder: &Path) -> CommandResult<Vec<PathBuf>> {
    let read = fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))?;
    let mut paths: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

fn read_record(path: &Path) -> CommandResult<StudyRecord> {
    let bytes = fs::read(path).map_err(|error| cannot("read", path, &error))?;
    let record: StudyRecord = serde_json::from_slice(&bytes).map_err(|error| {
        Failure::new(format!("{}: {error}", path.display()))
            .hint("give a folder that lab run of this version has written")
    })?;
    // The names become names of files.
    let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '\0']) && name != "..";
    let files = record
        .parts
        .iter()
        .flat_map(|part| part.result.iter().chain([&part.file]));
    match files.chain([&record.name]).find(|name| !is_name(name)) {
        None => {}
        Some(name) => {
            let sentence = format!("{}: {name:?} is no name of a file", path.display());
            return Err(Failure::new(sentence));
        }
    }
    Ok(record)
}

fn read_lab(path: &Path) -> CommandResult<Found> {
    match stored::read(path)? {
        StoredResult::Lab(lab) => Ok(*lab),
        other => Err(Failure::new(format!(
            "{} has a {}, not an experiment",
            path.display(),
            other.kind()
        ))
        .hint("millrace report makes a page of results of other commands")),
    }
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}

//! The studies of the project: they are in order, short enough, and their packages are documented.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::programs::needed;
use crate::{Experiment, Study};

fn project() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn studies() -> Vec<Study> {
    let folders = fs::read_dir(project().join("lab/studies")).unwrap();
    let mut folders: Vec<PathBuf> = folders.map(|folder| folder.unwrap().path()).collect();
    folders.retain(|folder| folder.join("study.toml").is_file());
    folders.sort();
    let read = |folder: &PathBuf| {
        let text = fs::read_to_string(folder.join("study.toml")).unwrap();
        Study::read(&text, folder).unwrap_or_else(|faults| panic!("{folder:?}: {faults:?}"))
    };
    folders.iter().map(read).collect()
}

/// An experiment of a study; `None` if only this machine's lack of cores stands in its way.
fn experiment(study: &Study, file: &str) -> Option<Experiment> {
    match study.experiment(file) {
        Ok(experiment) => Some(experiment),
        Err(mut faults) => {
            faults.retain(|fault| !fault.message.contains("may not run on core"));
            assert_eq!(faults, [], "{}/{file}", study.name);
            None
        }
    }
}

#[test]
fn a_whole_run_takes_half_an_hour_and_a_quick_one_a_third_of_it() {
    let (mut whole, mut quick) = (Duration::ZERO, Duration::ZERO);
    for study in studies() {
        for file in &study.files {
            let Some(mut experiment) = experiment(&study, file) else {
                continue;
            };
            whole += experiment.expected_time();
            let shortened = study.quick.shorten(file, &mut experiment);
            shortened.unwrap_or_else(|error| panic!("{}/{file}: {error}", study.name));
            quick += experiment.expected_time();
        }
    }
    let [whole, quick] = [whole, quick].map(|time| time.as_secs_f64() / 60.0);
    assert!(whole <= 30.0 && quick <= 10.0, "{whole} min, {quick} min");
}

#[test]
fn experiments_that_are_run_by_their_path_are_in_order() {
    let mut seen = 0;
    for study in studies() {
        for entry in fs::read_dir(study.path("")).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_listed = study.files.contains(&file);
            let text = fs::read_to_string(&path).unwrap_or_default();
            if !is_listed && text.lines().any(|line| line == "[workload]") {
                experiment(&study, &file);
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 1, "03-a-day has a whole day");
}

#[test]
fn the_manual_names_the_packages_of_all_studies() {
    let mut packages = BTreeSet::new();
    for study in studies() {
        let experiments = study.files.iter().flat_map(|file| experiment(&study, file));
        let needs = experiments.flat_map(|experiment| needed(&experiment));
        packages.extend(needs.map(|one| one.package));
    }
    let packages: Vec<String> = packages.into_iter().collect();
    let line = format!("sudo apt-get install {}\n", packages.join(" "));
    let manual = fs::read_to_string(project().join("docs/reference/experiments.md")).unwrap();
    // A machine with one core reads no experiment.
    assert!(
        packages.is_empty() || manual.contains(&line),
        "the manual lacks: {line}"
    );
}

//! `cargo xtask results`: a page for each stored run.
//!
//! It reads `lab/results/DATE-NAME.json`, which `millrace lab run --json` has written, and the
//! folders `lab/results/DATE-NAME` of `millrace lab run --all --out`, and writes
//! `docs/results/DATE-NAME.md`, and the picture of the README from the newest run of its
//! experiment. It shows what is stored and judges nothing again.

mod chart;
mod page;
mod studies;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::root;

const STORED: &str = "lab/results";
const PAGES: &str = "docs/results";

/// Writes every page anew.
pub(crate) fn write() -> Result<(), String> {
    let stored = stored(&root().join(STORED))?;
    let to = root().join(PAGES);
    fs::create_dir_all(&to).map_err(|error| format!("{PAGES}: {error}"))?;
    let drawn = |file: &&PathBuf| file.to_string_lossy().ends_with(chart::EXPERIMENT);
    if let Some(file) = stored.iter().rfind(drawn) {
        draw(file)?;
    }
    for file in stored {
        let (date, name) = date_and_name(&file)?;
        let page = match file.is_dir() {
            true => studies::page(&date, &file),
            false => fs::read_to_string(&file)
                .map_err(|error| error.to_string())
                .and_then(|json| page::page(&date, &json)),
        };
        let page = page.map_err(|reason| at(&file, &reason))?;
        let path = to.join(format!("{date}-{name}.md"));
        fs::write(&path, page).map_err(|error| at(&path, &error.to_string()))?;
        println!("{PAGES}/{date}-{name}.md");
    }
    Ok(())
}

fn draw(file: &Path) -> Result<(), String> {
    let (date, _) = date_and_name(file)?;
    let json = fs::read_to_string(file).map_err(|error| at(file, &error.to_string()))?;
    let picture = chart::picture(&date, &json).map_err(|reason| at(file, &reason))?;
    let path = root().join(chart::PICTURE);
    fs::write(&path, picture).map_err(|error| at(&path, &error.to_string()))?;
    println!("{}", chart::PICTURE);
    Ok(())
}

/// The stored experiments and runs of studies in the order of their names.
fn stored(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    match fs::read_dir(folder) {
        Ok(entries) => {
            for entry in entries {
                files.push(
                    entry
                        .map_err(|error| at(folder, &error.to_string()))?
                        .path(),
                );
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(at(folder, &error.to_string())),
    }
    files.retain(|file| file.is_dir() || file.extension().is_some_and(|end| end == "json"));
    files.sort();
    if files.is_empty() {
        return Err(format!(
            "{STORED}/ holds no stored experiment; make one: millrace lab run lab/experiments/NAME.toml --json {STORED}/YYYY-MM-DD-NAME.json"
        ));
    }
    Ok(files)
}

/// `2026-11-24` and `static-8k` of `2026-11-24-static-8k.json`: the stored format has no date.
fn date_and_name(file: &Path) -> Result<(String, String), String> {
    let stem = file
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or("");
    let is_date = |date: &str| {
        date.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    };
    let date = stem.get(..10).filter(|date| is_date(date));
    let name = stem.get(10..).and_then(|rest| rest.strip_prefix('-'));
    match (date, name.filter(|name| !name.is_empty())) {
        (Some(date), Some(name)) => Ok((date.to_owned(), name.to_owned())),
        _ => Err(at(
            file,
            "begin the name with the date of the run, as in 2026-11-24-static-8k.json",
        )),
    }
}

fn at(path: &Path, what: &str) -> String {
    let path = path.strip_prefix(root()).unwrap_or(path);
    format!("{}: {what}", path.display())
}

#[cfg(test)]
mod tests {
    use super::{date_and_name, stored};
    use std::path::Path;

    #[test]
    fn an_empty_folder_is_an_error_with_the_command() {
        let reason = stored(Path::new("no/such/folder")).expect_err("nothing is stored");
        assert!(reason.contains("millrace lab run"), "{reason}");
    }

    #[test]
    fn the_name_of_a_file_has_the_date() {
        let read = |name: &str| date_and_name(Path::new(name));
        assert_eq!(
            read("a/2026-11-24-static-8k.json"),
            Ok(("2026-11-24".to_owned(), "static-8k".to_owned()))
        );
        for name in [
            "static-8k.json",
            "2026-11-24.json",
            "2026-11-24-.json",
            "é.json",
        ] {
            assert!(read(name).is_err(), "{name}");
        }
    }
}

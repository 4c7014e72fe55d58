//! Which crate may use which: arrows point down only.

use std::path::Path;

use toml::{Table, Value};

use super::{Offence, files::File};

/// The houses whose manifests are held against the map. What is in `lab/` may use everything: it is
/// never shipped.
const HOUSES: [&str; 3] = ["server", "meter", "base"];

/// Each package with those that it may depend on. What measures shares no code with what it
/// measures: a fault in both would hide itself; only the packages of `base` are for both. A new
/// line or a new name here is a change of the architecture: it belongs in ARCHITECTURE.md too.
const EDGES: &str = "\
millpond: millpond-console millpond-site millpond-data millpond-process millpond-statistics millpond-access-log millpond-certificates millpond-db millpond-http millpond-store base-chart base-clock
millpond-console: millpond-site millpond-process millpond-db millpond-http base-chart base-clock
millpond-site: millpond-site-compile millpond-site-format millpond-pages millpond-data millpond-db millpond-http millpond-store base-clock
millpond-site-compile: millpond-site-format millpond-data millpond-db millpond-http base-chart base-clock
millpond-site-format: millpond-data millpond-db millpond-http base-clock
millpond-library: millpond-access-log millpond-db millpond-process millpond-pages millpond-http millpond-store base-clock
millpond-pages: millpond-db millpond-http millpond-store base-clock
millpond-process: millpond-http
millpond-statistics: base-logs base-chart
millpond-data:
millpond-access-log: base-clock
millpond-certificates: base-clock
millpond-db: millpond-store base-clock
millpond-http: base-clock
millpond-store: base-clock
millrace: millrace-report millrace-runs millrace-client millrace-stats base-chart base-probe base-clock
millrace-report: millrace-runs millrace-client millrace-stats base-chart
millrace-runs: millrace-client millrace-stats base-probe base-clock
millrace-client: millrace-stats base-logs base-probe base-clock
millrace-stats: base-probe base-clock
base-probe: base-clock
base-logs:
base-chart:
base-clock:
";

fn edges() -> impl Iterator<Item = (&'static str, &'static str)> {
    EDGES.lines().filter_map(|line| line.split_once(':'))
}

/// The manifests of the crates, held against the map.
pub(crate) fn check(files: &[File]) -> Vec<Offence> {
    files
        .iter()
        .filter_map(|file| Some((file, crate_folder(&file.path)?)))
        .filter(|(_, (house, _))| HOUSES.contains(house))
        .flat_map(|(file, (house, folder))| check_manifest(file, &package(house, folder)))
        .collect()
}

/// `HOUSE` and `NAME` of `HOUSE/NAME/Cargo.toml`.
fn crate_folder(path: &Path) -> Option<(&str, &str)> {
    let folder = path.to_str()?.strip_suffix("/Cargo.toml")?;
    folder
        .split_once('/')
        .filter(|(_, name)| !name.contains('/'))
}

/// The name of the package in a folder: the house's prefix and the folder's name. A program has the
/// prefix alone.
fn package(house: &str, folder: &str) -> String {
    let prefix = match house {
        "server" => "millpond",
        "meter" => "millrace",
        other => other,
    };
    if folder == prefix {
        prefix.to_owned()
    } else {
        format!("{prefix}-{folder}")
    }
}

fn check_manifest(file: &File, name: &str) -> Vec<Offence> {
    let offence = |what| Offence {
        file: file.path.clone(),
        line: 0,
        what,
    };
    let manifest: Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![offence(format!("is no TOML: {error}"))],
    };
    let Some((_, allowed)) = edges().find(|(from, _)| *from == name) else {
        return vec![offence(format!(
            "{name} is not in the map of crates in xtask/src/tidy/edges.rs"
        ))];
    };
    let mut offences = Vec::new();
    let named = manifest
        .get("package")
        .and_then(|package| package.get("name"));
    if named.and_then(Value::as_str) != Some(name) {
        offences.push(offence(format!(
            "the package in this folder is named {name}: the house's prefix and the folder's name"
        )));
    }
    for used in dependencies(&manifest) {
        if !is_ours(&used) {
            continue;
        }
        if !allowed.split(' ').any(|package| package == used) {
            offences.push(offence(format!(
                "{name} may not depend on {used}: arrows point down only (xtask/src/tidy/edges.rs)"
            )));
        }
    }
    offences
}

/// True if a package is one of the project's own.
pub(super) fn is_ours(package: &str) -> bool {
    let prefixes = ["millpond", "millrace", "base", "lab"];
    let prefix = package
        .split_once('-')
        .map_or(package, |(prefix, _)| prefix);
    prefixes.contains(&prefix)
}

/// The packages among the dependencies, under any name and for any platform. Those of tests
/// are free.
pub(super) fn dependencies(manifest: &Table) -> Vec<String> {
    let table = |within: &Table, key: &str| {
        within
            .get(key)
            .and_then(Value::as_table)
            .cloned()
            .unwrap_or_default()
    };
    let mut places = vec![manifest.clone()];
    places.extend(
        table(manifest, "target")
            .into_iter()
            .filter_map(|(_, place)| place.as_table().cloned()),
    );
    let mut names = Vec::new();
    for place in places {
        for section in ["dependencies", "build-dependencies"] {
            for (key, value) in table(&place, section) {
                let package = value
                    .get("package")
                    .and_then(Value::as_str)
                    .map_or(key, str::to_owned);
                names.push(package);
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::{check, edges};
    use crate::tidy::files::File;

    fn offences(folder: &str, manifest: &str) -> usize {
        let name = folder
            .replace("server/", "millpond-")
            .replace("meter/", "millrace-");
        check(&[File {
            path: format!("{folder}/Cargo.toml").into(),
            text: format!("[package]\nname = '{name}'\n{manifest}"),
        }])
        .len()
    }

    #[test]
    fn the_map_itself_points_down_only() {
        for (at, (from, allowed)) in edges().enumerate() {
            for to in allowed.split_whitespace() {
                let below = edges().skip(at + 1).any(|(name, _)| name == to);
                assert!(below, "{from} stands above {to}");
            }
        }
    }

    #[test]
    fn arrows_up_are_found_in_every_disguise() {
        assert_eq!(
            offences(
                "server/db",
                "[dependencies]\nmillpond-store.workspace = true\nserde = '1'\n"
            ),
            0
        );
        assert_eq!(
            offences(
                "server/db",
                "[dependencies]\nmillpond-site.workspace = true\n"
            ),
            1
        );
        assert_eq!(
            offences(
                "server/db",
                "[dependencies.millpond-http]\npath = '../http'\n"
            ),
            1
        );
        assert_eq!(
            offences(
                "server/db",
                "[dependencies]\nweb = { package = 'millpond-http', path = '../http' }\n"
            ),
            1
        );
        assert_eq!(
            offences(
                "server/db",
                "[target.'cfg(unix)'.dependencies]\nmillpond-http.workspace = true\n"
            ),
            1
        );
        assert_eq!(
            offences(
                "meter/runs",
                "[build-dependencies]\nmillpond-http.workspace = true\n"
            ),
            1
        );
        assert_eq!(
            offences(
                "meter/runs",
                "[dev-dependencies]\nmillpond-http.workspace = true\n"
            ),
            0
        );
        assert_eq!(offences("server/attic", ""), 1);
        assert_eq!(offences("server/db", "[dependencies"), 1);
    }
}

//! Which crate may use which: arrows point down only.

use std::path::Path;

use toml::{Table, Value};

use super::{Offence, files::File};

/// Each crate with those that it may depend on. A new line or a new name here is a change of the architecture: it belongs in
/// ARCHITECTURE.md too.
const EDGES: [(&str, &[&str]); 11] = [
    (
        "millpond",
        &["site", "report", "load", "telemetry", "db", "http", "store"],
    ),
    ("site", &["telemetry", "db", "http", "store"]),
    ("report", &["load"]),
    // What measures shares no code with what it measures: a bug in both would hide itself.
    // It reads machines through telemetry's probes, which know nothing of the server.
    ("load", &["telemetry"]),
    ("telemetry", &[]),
    ("db", &["store"]),
    // Only its clock: `text` sees to that.
    ("http", &["store"]),
    ("store", &[]),
    // For tests only: nobody depends on them otherwise.
    ("adversary", &["pgtest", "hostile"]),
    ("pgtest", &[]),
    ("hostile", &[]),
];

/// The manifests of the crates, held against the map.
pub(crate) fn check(files: &[File]) -> Vec<Offence> {
    files
        .iter()
        .filter_map(|file| Some((file, crate_name(&file.path)?)))
        .flat_map(|(file, name)| check_manifest(file, name))
        .collect()
}

/// `NAME` of `crates/NAME/Cargo.toml`.
fn crate_name(path: &Path) -> Option<&str> {
    path.to_str()?
        .strip_prefix("crates/")?
        .strip_suffix("/Cargo.toml")
        .filter(|name| !name.contains('/'))
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
    let Some((_, allowed)) = EDGES.iter().find(|(from, _)| *from == name) else {
        return vec![offence(format!(
            "{name} is not in the map of crates in xtask/src/tidy/edges.rs"
        ))];
    };
    let mut offences = Vec::new();
    for used in dependencies(&manifest) {
        if !is_ours(&used) {
            continue;
        }
        let used = used.strip_prefix("millpond-").unwrap_or(&used);
        if !allowed.contains(&used) {
            offences.push(offence(format!(
                "{name} may not depend on {used}: arrows point down only (xtask/src/tidy/edges.rs)"
            )));
        }
    }
    offences
}

/// Whether a package is one of the project's own.
pub(super) fn is_ours(package: &str) -> bool {
    package == "millpond" || package.starts_with("millpond-")
}

/// The packages among the dependencies, whatever name and platform they are under. Those of tests are free.
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
    use super::{EDGES, check};
    use crate::tidy::files::File;

    fn offences(name: &str, manifest: &str) -> usize {
        check(&[File {
            path: format!("crates/{name}/Cargo.toml").into(),
            text: manifest.to_owned(),
        }])
        .len()
    }

    #[test]
    fn the_map_itself_points_down_only() {
        for (at, (from, allowed)) in EDGES.iter().enumerate() {
            for to in *allowed {
                let below = EDGES[at + 1..].iter().any(|(name, _)| name == to);
                assert!(below, "{from} stands above {to}");
            }
        }
    }

    #[test]
    fn arrows_up_are_found_in_every_disguise() {
        assert_eq!(
            offences(
                "db",
                "[dependencies]\nmillpond-store.workspace = true\nserde = '1'\n"
            ),
            0
        );
        assert_eq!(
            offences("db", "[dependencies]\nmillpond-site.workspace = true\n"),
            1
        );
        assert_eq!(
            offences("db", "[dependencies.millpond-http]\npath = '../http'\n"),
            1
        );
        assert_eq!(
            offences(
                "db",
                "[dependencies]\nweb = { package = 'millpond-http', path = '../http' }\n"
            ),
            1
        );
        assert_eq!(
            offences(
                "db",
                "[target.'cfg(unix)'.dependencies]\nmillpond-http.workspace = true\n"
            ),
            1
        );
        assert_eq!(
            offences(
                "load",
                "[build-dependencies]\nmillpond-http.workspace = true\n"
            ),
            1
        );
        assert_eq!(
            offences(
                "load",
                "[dev-dependencies]\nmillpond-http.workspace = true\n"
            ),
            0
        );
        assert_eq!(offences("attic", ""), 1);
        assert_eq!(offences("db", "[dependencies"), 1);
    }
}

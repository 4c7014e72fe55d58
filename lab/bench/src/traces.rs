//! The traces `web07`, `web12` and `orm-busy` of the cache2k project, from the simulator of the
//! Caffeine project.
//!
//! A trace is a file of keys, 32 bits each, most significant byte first; here the keys are numbered
//! in order of appearance.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Result, arguments::Arguments};

const ARTIFACT: &str = "com.github.ben-manes.caffeine:simulator:3.2.2";
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";
const FOLDER: &str = "com/github/benmanes/caffeine/cache/simulator/parser/cache2k";
const NAMES: [&str; 3] = ["web07", "web12", "orm-busy"];

pub(crate) struct Trace {
    pub(crate) name: &'static str,
    /// Keys numbered from 0 in order of appearance.
    pub(crate) keys: Vec<u32>,
    pub(crate) distinct: usize,
    /// The numbered keys as a file of 32-bit words, least significant byte first.
    pub(crate) dense_path: PathBuf,
}

fn folder() -> PathBuf {
    crate::hit_ratio::target().join("traces")
}

/// `lab-bench traces`.
pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let jar: Option<PathBuf> = arguments.option("--jar")?;
    arguments.end()?;
    let folder = folder();
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let jar = match jar {
        Some(jar) => jar,
        None => download(&folder)?,
    };
    unpack(&jar, &folder)?;
    println!("{} holds {}", folder.display(), NAMES.join(", "));
    Ok(true)
}

fn download(folder: &Path) -> Result<PathBuf> {
    let jar = folder.join("simulator-3.2.2.jar");
    if !jar.exists() {
        eprintln!("fetching {ARTIFACT} (96 MB)");
        let mut copy = Command::new("mvn");
        copy.args(["-q", "-B", COPY, "-Dtransitive=false"]);
        copy.arg(format!("-Dartifact={ARTIFACT}"))
            .arg(format!("-DoutputDirectory={}", folder.display()));
        succeed(&mut copy)?;
    }
    Ok(jar)
}

/// Python's standard library reads both the jar and xz; neither is worth a dependency.
fn unpack(jar: &Path, folder: &Path) -> Result<()> {
    const SCRIPT: &str = "\
import lzma, sys, zipfile
jar, folder, inside = sys.argv[1:4]
with zipfile.ZipFile(jar) as archive:
    for name in sys.argv[4:]:
        with open(f'{folder}/{name}.trace', 'wb') as out:
            out.write(lzma.decompress(archive.read(f'{inside}/{name}.trace.xz')))
";
    succeed(
        Command::new("python3")
            .args(["-c", SCRIPT])
            .arg(jar)
            .arg(folder)
            .arg(FOLDER)
            .args(NAMES),
    )
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .map_err(|error| format!("{:?} does not start: {error}", command.get_program()))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{:?}: {status}", command.get_program()))
    }
}

/// All traces, numbered.
pub(crate) fn load_all() -> Result<Vec<Trace>> {
    NAMES.iter().map(|name| load(name)).collect()
}

fn load(name: &'static str) -> Result<Trace> {
    let path = folder().join(name).with_extension("trace");
    let bytes = fs::read(&path)
        .map_err(|error| format!("{}: {error}; `lab-bench traces` brings it", path.display()))?;
    let (keys, distinct) = number(&bytes);
    let dense_path = path.with_extension("dense");
    let dense: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
    fs::write(&dense_path, dense).map_err(|error| format!("{}: {error}", dense_path.display()))?;
    Ok(Trace {
        name,
        keys,
        distinct,
        dense_path,
    })
}

fn number(bytes: &[u8]) -> (Vec<u32>, usize) {
    let mut numbers = HashMap::new();
    let (words, _) = bytes.as_chunks::<4>();
    let keys = words
        .iter()
        .map(|word| {
            let next = numbers.len() as u32;
            *numbers.entry(*word).or_insert(next)
        })
        .collect();
    (keys, numbers.len())
}

#[cfg(test)]
mod tests {
    #[test]
    fn keys_are_numbered_as_they_appear() {
        let bytes = [7u32, 9, 7, 1, 9].map(u32::to_be_bytes).concat();
        assert_eq!(super::number(&bytes), (vec![0, 1, 0, 2, 1], 3));
    }
}

//! The file set of SPECweb96, and a plan that requests it as SPECweb96 does.
//!
//! Sizes and the mix of classes are from "The Workload for the SPECweb96 Benchmark" (Standard
//! Performance Evaluation Corporation, <https://www.spec.org/osg/web96/workload.html>): four
//! classes of nine files in each directory with 35, 50, 14 and 1 % of the requests, and a directory
//! chosen uniformly. Within a class the document names a Poisson distribution around the middle
//! file but gives no table. Here it is the Poisson distribution with mean 5, cut to the files 1 to
//! 9.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use millrace_stats::random::{Random, mix};

/// The percentage of requests for each class.
const MIX: [u32; 4] = [35, 50, 14, 1];
/// Files of each class in a directory.
const FILES: u32 = 9;
/// Bytes of the files in one directory: (1 + … + 9) × (0.1 + 1 + 10 + 100) KiB, each file rounded
/// down.
pub const DIRECTORY_BYTES: u64 = 5_119_484;
/// Directories that a set has at most: 50 GB.
pub const MOST_DIRECTORIES: u32 = 10_000;
/// The plan's name in the folder.
const PLAN: &str = "plan.toml";

/// A file set to be written.
#[derive(Clone, Debug)]
pub struct FileSet {
    /// The folder to write to: new, empty, or with this file set already in it.
    pub folder: PathBuf,
    /// Directories with 36 files each, from 1 to [`MOST_DIRECTORIES`].
    pub directories: u32,
}

/// Why a file set was not written; a sentence.
#[derive(Debug)]
pub struct FileSetError(String);

impl FileSet {
    /// Writes the missing files and the plan. `each` is called after each directory with the number
    /// of finished directories. The files have the same bytes on every machine.
    ///
    /// # Errors
    ///
    /// See [`FileSetError`]. Files written before an error stay, and the next call continues after
    /// them.
    pub fn write(&self, mut each: impl FnMut(u32)) -> Result<(), FileSetError> {
        if self.directories == 0 || self.directories > MOST_DIRECTORIES {
            return Err(FileSetError(format!(
                "a file set has from 1 to {MOST_DIRECTORIES} directories, not {}",
                self.directories
            )));
        }
        self.refuse_foreign()?;
        make_folder(&self.folder)?;
        for directory in 0..self.directories {
            let folder = self.folder.join(format!("dir{directory}"));
            make_folder(&folder)?;
            for class in 0..MIX.len() as u32 {
                for file in 1..=FILES {
                    let seed = mix(u64::from(directory), u64::from(class * FILES + file));
                    write_file(
                        &folder.join(format!("class{class}_{file}")),
                        size(class, file),
                        seed,
                    )?;
                }
            }
            each(directory + 1);
        }
        replace(&self.folder.join(PLAN), |out| {
            out.write_all(self.plan().as_bytes())
        })
    }

    /// The plan that asks for the file set; the server has the folder as its root.
    pub fn plan(&self) -> String {
        let weights: Vec<String> = (1..=FILES)
            .map(|file| format!("{:.4}", poisson(file)))
            .collect();
        let mut text = format!(
            "{FIRST_LINE}
# The server serves this folder as its root. Give its URL with the command:
#   millrace load URL --plan {PLAN}

[choice.directory]
range = [0, {}]

# Poisson with mean 5, cut to 1 to 9, in percent.
[choice.file]
range = [1, {FILES}]
weights = [{}]
",
            self.directories - 1,
            weights.join(", ")
        );
        for (class, weight) in MIX.iter().enumerate() {
            text.push_str(&format!(
                "
[[class]]
name = \"class{class}\"
weight = {weight}
target = \"/dir{{{{directory}}}}/class{class}_{{{{file}}}}\"
expect = [200]
"
            ));
        }
        text
    }

    /// Refuses a folder with foreign files, before anything is written.
    fn refuse_foreign(&self) -> Result<(), FileSetError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(unwritable(&self.folder, source)),
        };
        for entry in entries {
            let entry = entry.map_err(|source| unwritable(&self.folder, source))?;
            let name = entry.file_name();
            let number = name
                .to_str()
                .and_then(|name| name.strip_prefix("dir")?.parse::<u32>().ok());
            let is_ours = match number {
                Some(_) => {
                    entry.file_type().is_ok_and(|kind| kind.is_dir())
                        && holds_only_ours(&entry.path())
                }
                None if name == PLAN => begins_as_ours(&entry.path()),
                None => name.to_str().is_some_and(|name| name.ends_with(PART)),
            };
            if !is_ours {
                return Err(FileSetError(format!(
                    "{} is not of a file set: choose a new folder, so that nothing is written over",
                    entry.path().display()
                )));
            }
        }
        Ok(())
    }
}

/// The plan's first line, which identifies a folder as a file set.
const FIRST_LINE: &str = "# The SPECweb96 file set, written by millrace load fileset.";
/// The end of the name of a file that is being written.
const PART: &str = ".millpond-part";

fn begins_as_ours(plan: &Path) -> bool {
    fs::read_to_string(plan).is_ok_and(|text| text.starts_with(FIRST_LINE))
}

fn holds_only_ours(folder: &Path) -> bool {
    let is_ours = |name: &str| {
        let name = name.strip_suffix(PART).unwrap_or(name);
        let parts = name
            .strip_prefix("class")
            .and_then(|rest| rest.split_once('_'));
        let parts = parts.and_then(|(class, file)| {
            Some((class.parse::<usize>().ok()?, file.parse::<u32>().ok()?))
        });
        parts.is_some_and(|(class, file)| class < MIX.len() && (1..=FILES).contains(&file))
    };
    fs::read_dir(folder).is_ok_and(|mut entries| {
        entries
            .all(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_ours)))
    })
}

/// Bytes of a file: tenths of a KiB in class 0, then ten times more with each class.
fn size(class: u32, file: u32) -> u64 {
    u64::from(file) * 1024 * 10_u64.pow(class) / 10
}

/// The percentage of a class's requests that goes to a file.
fn poisson(file: u32) -> f64 {
    let weight = |k: u32| (1..=k).fold(1.0, |product, j| product * 5.0 / f64::from(j));
    100.0 * weight(file) / (1..=FILES).map(weight).sum::<f64>()
}

fn make_folder(path: &Path) -> Result<(), FileSetError> {
    fs::create_dir_all(path).map_err(|source| unwritable(path, source))
}

/// Writes a file of random bytes, which no content coding makes smaller.
fn write_file(path: &Path, size: u64, seed: u64) -> Result<(), FileSetError> {
    if fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() == size) {
        return Ok(());
    }
    replace(path, |out| {
        let mut random = Random::new(seed);
        let mut left = size;
        while left > 0 {
            let count = left.min(8);
            out.write_all(&random.next_u64().to_le_bytes()[..count as usize])?;
            left -= count;
        }
        Ok(())
    })
}

/// Writes a temporary file and renames it, so that a half-written file never has the final name.
fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), FileSetError> {
    let mut name = path.as_os_str().to_owned();
    name.push(PART);
    let part = PathBuf::from(name);
    let written = File::create(&part).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 16, file);
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?;
        fs::rename(&part, path)
    });
    written.map_err(|source| unwritable(path, source))
}

fn unwritable(path: &Path, source: impl fmt::Display) -> FileSetError {
    FileSetError(format!("cannot write {}: {source}", path.display()))
}

impl fmt::Display for FileSetError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for FileSetError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, Workload};

    fn set(folder: &Path, directories: u32) -> FileSet {
        FileSet {
            folder: folder.to_owned(),
            directories,
        }
    }

    #[test]
    fn sizes_and_shares_are_those_of_the_benchmark() {
        assert_eq!(
            [size(0, 1), size(0, 2), size(1, 1), size(3, 9)],
            [102, 204, 1024, 921_600]
        );
        let all = (0..4).flat_map(|class| (1..=9).map(move |file| size(class, file)));
        assert_eq!(all.sum::<u64>(), DIRECTORY_BYTES);
        assert!(
            (poisson(4) - poisson(5)).abs() < 1e-9 && poisson(5) > poisson(6) && poisson(1) < 4.0
        );
        assert!(((1..=9).map(poisson).sum::<f64>() - 100.0).abs() < 1e-9);
    }

    #[test]
    fn a_set_is_written_once_and_the_same_everywhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/set");
        let mut done = Vec::new();
        set(&path, 2)
            .write(|directory| done.push(directory))
            .unwrap();
        assert_eq!(done, [1, 2]);
        let file = path.join("dir1/class1_3");
        let bytes = fs::read(&file).unwrap();
        assert_eq!(bytes.len(), 3072);
        let written = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(path.join("dir0/class0_1"), "cut").unwrap();
        set(&path, 2).write(|_| ()).unwrap();
        assert_eq!(
            fs::metadata(&file).unwrap().modified().unwrap(),
            written,
            "left alone"
        );
        assert_eq!(
            fs::metadata(path.join("dir0/class0_1")).unwrap().len(),
            102,
            "mended"
        );
        assert_ne!(bytes, fs::read(path.join("dir0/class1_3")).unwrap());
    }

    #[test]
    fn foreign_files_are_not_overwritten() {
        for name in ["plan.toml", "notes.txt", "dir0"] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(name), "mine").unwrap();
            let error = set(folder.path(), 1).write(|_| ()).unwrap_err().to_string();
            let foreign = format!("{name} is not of a file set");
            assert!(error.contains(&foreign), "{error}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("dir7")).unwrap();
        fs::write(folder.path().join("dir7/mine"), "").unwrap();
        let refused = |count| set(folder.path(), count).write(|_| ()).unwrap_err();
        assert!(refused(1).to_string().contains("is not of a file set"));
        assert!(refused(0).to_string().ends_with("directories, not 0"));
    }

    #[test]
    fn the_plan_asks_for_files_that_are_there_in_their_shares() {
        let set = set(Path::new("x"), 3);
        let workload =
            Workload::parse(&set.plan(), Path::new("plan.toml"), &Plan::new("http://h/")).unwrap();
        let mut shares = [0; 4];
        for number in 0..2000 {
            let mut out = Vec::new();
            let mut session = workload.session(number);
            shares[usize::from(session.render(&workload, &mut out).class)] += 1;
            let text = String::from_utf8(out).unwrap();
            let rest = text
                .strip_prefix("GET /dir")
                .unwrap()
                .split(' ')
                .next()
                .unwrap();
            let (directory, file) = rest.split_once("/class").unwrap();
            let (class, file) = file.split_once('_').unwrap();
            assert!(directory.parse::<u32>().unwrap() < 3 && class.parse::<u32>().unwrap() < 4);
            assert!((1..=9).contains(&file.parse::<u32>().unwrap()));
        }
        for (share, expected) in shares.iter().zip(MIX) {
            let expected = 20 * expected as i32;
            assert!((share - expected).abs() < 100, "{shares:?}");
        }
    }
}

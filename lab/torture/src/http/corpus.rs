//! Seeds that are kept in the repository: one small file each, so that a difference can be read.

use std::path::Path;
use std::{fs, io};

use crate::{Choices, http::mutate};

/// The seeds of one fuzz target, and the words that its inputs are made of.
#[derive(Clone, Debug)]
pub struct Corpus {
    seeds: Vec<Vec<u8>>,
    words: &'static [&'static [u8]],
}

impl Corpus {
    /// The files of the folder `dir`, by name.
    ///
    /// # Errors
    /// If the folder or a file of it cannot be read, or if it has none.
    pub fn read(dir: &Path, words: &'static [&'static [u8]]) -> io::Result<Self> {
        let mut files = fs::read_dir(dir)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<_>>>()?;
        files.sort();
        let seeds = files.iter().map(fs::read).collect::<io::Result<Vec<_>>>()?;
        if seeds.is_empty() {
            return Err(io::Error::other(format!("{} has no seed", dir.display())));
        }
        Ok(Self { seeds, words })
    }

    /// The seeds as they are.
    #[must_use]
    pub fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    /// A seed with a few edits.
    pub fn mutated(&self, choices: &mut Choices<'_>) -> Vec<u8> {
        mutate(choices, &self.seeds, self.words)
    }

    /// Two inputs from a fuzzing engine's bytes: those bytes themselves, which reach everything
    /// that is no request, and a mutation of the seeds by them, which reaches the rest.
    #[must_use]
    pub fn inputs(&self, engine: &[u8]) -> [Vec<u8>; 2] {
        [engine.to_vec(), self.mutated(&mut Choices::of(engine))]
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Corpus;
    use crate::{Choices, http::words};

    #[test]
    fn seeds_come_by_name_and_an_empty_folder_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Corpus::read(dir.path(), &words::HTTP).is_err());
        assert!(Corpus::read(&dir.path().join("none"), &words::HTTP).is_err());
        for (name, text) in [("b", "two"), ("a", "one")] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let corpus = Corpus::read(dir.path(), &words::HTTP).unwrap();
        assert_eq!(corpus.seeds(), [b"one", b"two"]);
        let many: Vec<_> = (0..50)
            .map(|seed| corpus.mutated(&mut Choices::seeded(seed)))
            .collect();
        assert!(many.iter().any(|input| input != b"one" && input != b"two"));
        assert_eq!(corpus.inputs(b"xyz")[0], b"xyz");
    }
}

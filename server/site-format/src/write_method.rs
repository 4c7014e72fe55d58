//! The methods that an address may have, and those with files of their own.

/// The methods of RFC 9110, section 9, and PATCH: known, though a path may not have them.
pub const KNOWN: &[&str] = &[
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

/// Methods of a file, as `Allow` lists them.
pub const FILE_METHODS: &str = "GET, HEAD, OPTIONS";

/// Methods of the server, at one address or another.
pub const ALL_METHODS: &str = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT";

/// A method that changes the database, and has a file of its own: `items/[id].put.sql`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMethod {
    Delete,
    Patch,
    Post,
    Put,
}

/// The methods with their names and the words in the names of files.
const WRITES: [(WriteMethod, &str, &str); 4] = [
    (WriteMethod::Delete, "DELETE", "delete"),
    (WriteMethod::Patch, "PATCH", "patch"),
    (WriteMethod::Post, "POST", "post"),
    (WriteMethod::Put, "PUT", "put"),
];

/// Words in the names of files that a method was probably meant with.
const ALIASES: [(&str, &str); 5] = [
    ("del", "delete"),
    ("remove", "delete"),
    ("update", "patch"),
    ("insert", "post"),
    ("create", "post"),
];

impl WriteMethod {
    /// The method of a request; none if it does not write.
    pub fn of(method: &str) -> Option<Self> {
        let found = WRITES.iter().find(|(_, name, _)| *name == method);
        found.map(|(method, _, _)| *method)
    }

    /// The word in the names of its files.
    pub fn word(self) -> &'static str {
        WRITES[self as usize].2
    }

    /// The method as a request has it.
    pub fn name(self) -> &'static str {
        WRITES[self as usize].1
    }

    /// Cuts `.post` or its like off the name of a file without its `.sql`.
    pub fn split(stem: &str) -> Option<(&str, Self)> {
        let (rest, word) = stem.rsplit_once('.')?;
        let found = WRITES.iter().find(|(_, _, known)| *known == word);
        // `pages/.post.sql` is hidden, and `api/.post.sql` too.
        let found = found.filter(|_| !rest.is_empty() && !rest.ends_with('/'));
        found.map(|(method, _, _)| (rest, *method))
    }

    /// The name as it was probably meant, of a file that is like one with a method: `a.DELETE`,
    /// `a.del`, `a.pacth`.
    pub fn misspelt(stem: &str) -> Option<String> {
        let (rest, word) = stem.rsplit_once('.')?;
        let lower = word.to_ascii_lowercase();
        let alias = ALIASES.iter().find(|(alias, _)| *alias == lower);
        let meant = alias.map(|(_, meant)| *meant).or_else(|| {
            // `a.path.sql` and `a.posts.sql` are addresses.
            let most = usize::from(lower.len() >= 5);
            let is_near = |known: &&str| {
                known.len() >= lower.len() && strsim::osa_distance(known, &lower) <= most
            };
            WRITES.map(|(_, _, known)| known).into_iter().find(is_near)
        });
        meant.map(|meant| format!("{rest}.{meant}"))
    }
}

/// The methods of an address, as `Allow` lists them (RFC 9110 section 10.2.1).
pub fn allow(has_page: bool, writes: impl Iterator<Item = WriteMethod>) -> String {
    let mut names = vec!["OPTIONS"];
    names.extend(writes.map(WriteMethod::name));
    if has_page {
        names.extend(["GET", "HEAD"]);
    }
    names.sort_unstable();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_have_a_method() {
        assert_eq!(
            WriteMethod::split("a/[id].put"),
            Some(("a/[id]", WriteMethod::Put))
        );
        for stem in ["put", "a/put", ".put", "a/.put", "a.xml", "a.puts", "a.PUT"] {
            assert_eq!(WriteMethod::split(stem), None, "{stem}");
        }
        for (method, name, word) in WRITES {
            assert_eq!((WriteMethod::of(name), method.name()), (Some(method), name));
            let stem = format!("a.{word}");
            assert_eq!(WriteMethod::split(&stem), Some(("a", method)));
        }
        for (stem, expected) in [
            ("a.DELETE", Some("a.delete")),
            ("x/a.del", Some("x/a.delete")),
            ("a.pacth", Some("a.patch")),
            ("a.delet", Some("a.delete")),
            ("a.update", Some("a.patch")),
            ("a.xml", None),
            ("a.posts", None),
            ("a.get", None),
            ("delet", None),
        ] {
            assert_eq!(WriteMethod::misspelt(stem).as_deref(), expected, "{stem}");
        }
    }

    #[test]
    fn methods_are_listed_in_order() {
        let all = WRITES.map(|(method, _, _)| method);
        assert_eq!(allow(true, all.into_iter()), ALL_METHODS);
        assert_eq!(allow(true, [].into_iter()), FILE_METHODS);
        let put = [WriteMethod::Put].into_iter();
        assert_eq!(allow(false, put), "OPTIONS, PUT");
    }
}

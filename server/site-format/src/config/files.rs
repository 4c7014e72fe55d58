//! How the files of a site are served (`[static]`).

use crate::rules::Scope;

/// Rule of caching of every static file: keep the file, and ask if it has changed.
const ASK: &str = "no-cache";
/// Rule of caching of files that never change (RFC 8246); a year is the longest that is understood
/// everywhere.
pub const KEEP: &str = "public, max-age=31536000, immutable";
/// Digits of the shortest hash: with fewer, words such as `added` or `facade` and dates would look
/// like one.
const HASH_DIGITS: usize = 8;

/// The settings of `[static]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSettings {
    /// Names that answer for their folder, the best first.
    pub index: Vec<String>,
    /// Folders without an index that are listed, by their path with or without the slash at its
    /// end.
    pub listing: Scope,
    /// True if `/about` is the address of `about.html`.
    pub clean_urls: bool,
    /// Files that never change under one name.
    pub immutable: Scope,
}

impl FileSettings {
    /// The value of Cache-Control for the file at a path.
    pub fn cache_control(&self, path: &str) -> &'static str {
        let is_immutable = match &self.immutable {
            Scope::Nowhere => false,
            Scope::Everywhere => has_hash(path),
            Scope::Paths(patterns) => patterns.iter().any(|pattern| pattern.matches(path)),
        };
        if is_immutable { KEEP } else { ASK }
    }

    /// True if the folder at a path is listed where it has no index.
    pub fn lists(&self, folder: &str) -> bool {
        match &self.listing {
            Scope::Nowhere => false,
            Scope::Everywhere => true,
            Scope::Paths(patterns) => {
                // `/downloads` means a folder, not a file. Without this it would never match, and
                // no message would say so.
                let bare = folder.strip_suffix('/').filter(|bare| !bare.is_empty());
                patterns.iter().any(|pattern| {
                    pattern.matches(folder) || bare.is_some_and(|bare| pattern.matches(bare))
                })
            }
        }
    }

    /// The rank of a name among the index names.
    pub fn index_rank(&self, name: &str) -> Option<usize> {
        self.index.iter().position(|index| index == name)
    }
}

/// True if the name at the end of a path has a hash in it, as tools that build websites write it.
/// Letters and digits must both be there: a date has digits only, and a word letters only. A hash
/// that happens to have one kind only (one in forty of those with eight digits) is not recognised;
/// that costs a question for each use.
fn has_hash(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.split(['.', '-', '_']).any(|part| {
        part.len() >= HASH_DIGITS
            && part.bytes().all(|byte| byte.is_ascii_hexdigit())
            && part.bytes().any(|byte| byte.is_ascii_digit())
            && part.bytes().any(|byte| byte.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::PathPattern;

    #[test]
    fn names_with_a_hash() {
        for (path, expected) in [
            ("/app.3f2a9c1b.js", true),
            ("/assets/style-0a1B2c3D4e5f.css", true),
            ("/logo_d41d8cd98f00b204e9800998ecf8427e.svg", true),
            ("/3f2a9c1b", true),
            ("/app.js", false),
            ("/report-20261121.pdf", false),
            ("/facade.deadbeef.js", false),
            ("/app.3f2a9c1.js", false),
            ("/app.3f2a9c1g.js", false),
            ("/3f2a9c1b/app.js", false),
            ("/", false),
        ] {
            assert_eq!(has_hash(path), expected, "{path}");
        }
    }

    #[test]
    fn folders_to_list_may_be_named_without_their_slash() {
        for (pattern, folder, expected) in [
            ("/downloads", "/downloads/", true),
            ("/downloads/", "/downloads/", true),
            ("/downloads", "/downloads/old/", false),
            ("/downloads/", "/downloads/old/", false),
            ("/downloads", "/downloads2/", false),
            ("/downloads/*", "/downloads/", true),
            ("/downloads/*", "/downloads/old/", true),
            ("/:user/files", "/ann/files/", true),
            ("/:any", "/downloads/", true),
            ("/:any", "/", false),
            ("/*.d", "/conf.d/", true),
            ("/", "/", true),
            ("/", "/downloads/", false),
        ] {
            let settings = FileSettings {
                listing: Scope::Paths(vec![PathPattern::parse(pattern).unwrap()]),
                ..FileSettings::default()
            };
            assert_eq!(settings.lists(folder), expected, "{pattern} {folder}");
        }
    }

    #[test]
    fn what_is_kept() {
        let mut settings = FileSettings::default();
        assert_eq!(settings.cache_control("/app.3f2a9c1b.js"), "no-cache");
        settings.immutable = Scope::Everywhere;
        assert_eq!(settings.cache_control("/app.3f2a9c1b.js"), KEEP);
        assert_eq!(settings.cache_control("/app.js"), "no-cache");
        settings.immutable = Scope::Paths(vec![PathPattern::parse("/assets/*").unwrap()]);
        assert_eq!(settings.cache_control("/assets/app.js"), KEEP);
        assert_eq!(settings.cache_control("/app.3f2a9c1b.js"), "no-cache");
    }
}

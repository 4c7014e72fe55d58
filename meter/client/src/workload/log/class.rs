//! Classes of targets: by their first folder and what kind of file they name.

use std::collections::HashMap;

/// Classes at most, the last of them for everything else.
pub(super) const MOST_CLASSES: usize = 20;
/// The class of everything else.
pub(super) const OTHER: &str = "other";

/// The pattern of a target, without its query: `/`, `/read`, `/static/*.css`, `/*.html`, `/blog/*`.
pub(super) fn pattern(target: &[u8]) -> Vec<u8> {
    let end = target
        .iter()
        .position(|&byte| byte == b'?')
        .unwrap_or(target.len());
    let path = target[..end].strip_prefix(b"/").unwrap_or(&target[..end]);
    let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let mut pattern = b"/".to_vec();
    if let Some(folder) = path.iter().position(|&byte| byte == b'/') {
        pattern.extend_from_slice(&path[..=folder]);
    }
    match extension(last) {
        Some(extension) => {
            pattern.extend_from_slice(b"*.");
            pattern.extend(extension.to_ascii_lowercase());
        }
        None if pattern.len() > 1 => pattern.push(b'*'),
        None => pattern.extend_from_slice(last),
    }
    pattern
}

fn extension(name: &[u8]) -> Option<&[u8]> {
    let dot = name.iter().rposition(|&byte| byte == b'.')?;
    let extension = &name[dot + 1..];
    let is_plain =
        (1..=5).contains(&extension.len()) && extension.iter().all(u8::is_ascii_alphanumeric);
    (is_plain && dot > 0).then_some(extension)
}

/// The patterns that have a class of their own, and the class of everything else.
pub(super) struct Classes {
    pub(super) names: Vec<String>,
    places: HashMap<Vec<u8>, u16>,
}

impl Classes {
    /// Of patterns in the order of their frequency.
    pub(super) fn new(patterns: &[(Box<[u8]>, u64)]) -> Self {
        let own = if patterns.len() > MOST_CLASSES {
            MOST_CLASSES - 1
        } else {
            patterns.len()
        };
        let mut names: Vec<String> = patterns[..own]
            .iter()
            .map(|(pattern, _)| String::from_utf8_lossy(pattern).into_owned())
            .collect();
        let places = patterns[..own]
            .iter()
            .zip(0..)
            .map(|((pattern, _), place)| (pattern.to_vec(), place))
            .collect();
        names.push(OTHER.to_owned());
        Self { names, places }
    }

    /// The class of a pattern.
    pub(super) fn of(&self, pattern: &[u8]) -> u16 {
        self.places
            .get(pattern)
            .copied()
            .unwrap_or(self.names.len() as u16 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_a_kind_have_one_pattern() {
        for (target, expected) in [
            ("/", "/"),
            ("/?page=2", "/"),
            ("/read?id=3", "/read"),
            ("/index.HTML", "/*.html"),
            ("/static/css/a.min.css?v=1", "/static/*.css"),
            ("/blog/2024/a-day", "/blog/*"),
            ("/blog/", "/blog/*"),
            ("/a/v1.20000000", "/a/*"),
            ("/.well-known/x", "/.well-known/*"),
            ("//x", "//*"),
        ] {
            assert_eq!(
                String::from_utf8(pattern(target.as_bytes())).unwrap(),
                expected,
                "{target}"
            );
        }
    }

    #[test]
    fn the_rarest_share_a_class() {
        let patterns: Vec<(Box<[u8]>, u64)> = (0..30)
            .map(|n| (format!("/{n}").into_bytes().into_boxed_slice(), 100 - n))
            .collect();
        let classes = Classes::new(&patterns);
        assert_eq!(
            (classes.names.len(), classes.of(b"/3"), classes.of(b"/25")),
            (MOST_CLASSES, 3, 19)
        );
        assert_eq!(Classes::new(&patterns[..2]).names, ["/0", "/1", OTHER]);
    }
}

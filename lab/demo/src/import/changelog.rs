//! The newest entries of a change log.

use super::dates;

/// The notes on one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) version: String,
    /// The day of the release, where the heading says it.
    pub(super) at: Option<String>,
    /// Markdown.
    pub(super) body: String,
}

/// The names that change logs go by, in lower case.
pub(super) fn is_name(file: &str) -> bool {
    let file = file.to_ascii_lowercase();
    matches!(
        file.as_str(),
        "changelog.md" | "changes.md" | "releases.md" | "changelog" | "changelog.markdown"
    )
}

/// The first `limit` versions that have notes, newest first as change logs have them.
pub(super) fn entries(text: &str, limit: usize) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    // The level of the version headings, taken from the first one.
    let mut level = None;
    let mut fenced = false;
    let mut open = false;
    let mut previous = "";
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let heading = if fenced {
            None
        } else {
            heading(line, previous)
        };
        previous = if fenced { "" } else { line };
        match heading {
            Some((depth, title)) if level.is_none_or(|level| depth <= level) => {
                // The text of an underlined heading is in the line above, which was added to the
                // entry before.
                if !line.starts_with('#') {
                    trim_last_line(&mut found, open);
                }
                open = false;
                if let Some(version) = version(title) {
                    if found.len() == limit {
                        break;
                    }
                    level = Some(depth);
                    open = true;
                    found.push(Entry {
                        version,
                        at: dates::find(title),
                        body: String::new(),
                    });
                }
            }
            _ => {
                if let Some(entry) = found.last_mut().filter(|_| open) {
                    entry.body.push_str(line);
                    entry.body.push('\n');
                }
            }
        }
    }
    found.retain(|entry| entry.body.chars().any(char::is_alphanumeric));
    found
}

fn trim_last_line(found: &mut [Entry], open: bool) {
    if let Some(entry) = found.last_mut().filter(|_| open) {
        let body = entry.body.trim_end();
        entry.body.truncate(body.rfind('\n').unwrap_or(0));
    }
}

/// The level and text of a heading: `## text`, or a line underlined with `===` or `---`.
fn heading<'t>(line: &'t str, previous: &'t str) -> Option<(usize, &'t str)> {
    let text = line.trim_start_matches('#');
    let depth = line.len() - text.len();
    if (1..=6).contains(&depth) && text.starts_with([' ', '\t']) {
        return Some((depth, text.trim()));
    }
    let underlined = |mark: char| {
        line.len() >= 3 && line.chars().all(|c| c == mark) && !previous.trim().is_empty()
    };
    if underlined('=') {
        return Some((1, previous.trim()));
    }
    underlined('-').then_some((2, previous.trim()))
}

/// The first thing in a heading that reads as a version, such as `1.2`, `v1.2.3-rc.1` or `[1.2.3]`.
fn version(title: &str) -> Option<String> {
    title
        .split(|c: char| c.is_whitespace() || "[](),:`*".contains(c))
        .find_map(|word| {
            let word = word.trim_start_matches(['v', 'V']);
            let numbers = word.split(['-', '+']).next().unwrap_or_default();
            let parts: Vec<&str> = numbers.split('.').collect();
            let number = |part: &&str| {
                !part.is_empty() && part.len() <= 6 && part.bytes().all(|b| b.is_ascii_digit())
            };
            // Two or three numbers, the first of them no year: `2025.01.31` is a date.
            let versioned =
                (2..=3).contains(&parts.len()) && parts.iter().all(number) && parts[0].len() < 4;
            (versioned && word.len() <= 30).then(|| word.to_owned())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_the_usual_forms() {
        let log = "# Changelog\n\n## Unreleased\n\n- soon\n\n## [1.2.0] - 2025-03-24\n\n### Added\n- a\n\n\
                   ```\n## 9.9.9\n```\n## 1.1.0 (March 5th, 2025)\n* b\n\n## 1.0.0\n";
        let found = entries(log, 9);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].version, "1.2.0");
        assert_eq!(found[0].at.as_deref(), Some("2025-03-24T00:00:00Z"));
        assert!(found[0].body.contains("### Added\n- a") && found[0].body.contains("9.9.9"));
        assert_eq!(found[1].version, "1.1.0");
        assert_eq!(found[1].body.trim(), "* b");
        assert_eq!(entries(log, 1).len(), 1);
    }

    #[test]
    fn underlined_headings() {
        let found = entries("1.2.3\n=====\n- a\n\nv1.2.2\n=====\n- b\n", 9);
        let seen: Vec<_> = found
            .iter()
            .map(|entry| (entry.version.as_str(), entry.body.trim()))
            .collect();
        assert_eq!(seen, [("1.2.3", "- a"), ("1.2.2", "- b")]);
    }

    #[test]
    fn invalid_versions_are_rejected() {
        for title in [
            "Unreleased",
            "2025-01-31",
            "2025.01.31",
            "1",
            "a.b.c",
            "1.2.3.4",
            "..",
            "",
        ] {
            assert_eq!(version(title), None, "{title}");
        }
        assert_eq!(
            version("rand_core v0.6.4-rc.1 (2022)").as_deref(),
            Some("0.6.4-rc.1")
        );
    }
}

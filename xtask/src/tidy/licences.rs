//! Licence expressions of crates, held against those that the project accepts.

/// Licences whose terms a program under MIT or Apache-2.0 can meet.
const ACCEPTED: [&str; 10] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    // The licence asks for the source of changed files only.
    "MPL-2.0",
    "Unicode-3.0",
    "Zlib",
];

/// True if the terms of an SPDX expression can be met. An exception (`WITH`) only gives more
/// rights.
pub(super) fn is_accepted(expression: &str) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let is_met = either(&mut rest);
    is_met && rest.is_empty()
}

/// `a OR b`.
fn either(words: &mut &[&str]) -> bool {
    let mut is_met = both(words);
    while take(words, "OR") {
        // Both sides are read, whether or not the first is met.
        is_met |= both(words);
    }
    is_met
}

/// `a AND b`, which binds more strongly.
fn both(words: &mut &[&str]) -> bool {
    let mut is_met = one(words);
    while take(words, "AND") {
        is_met &= one(words);
    }
    is_met
}

fn one(words: &mut &[&str]) -> bool {
    if take(words, "(") {
        let is_met = either(words);
        return take(words, ")") && is_met;
    }
    let Some((name, after)) = words.split_first() else {
        return false;
    };
    *words = after;
    if take(words, "WITH") {
        *words = words.get(1..).unwrap_or_default();
    }
    ACCEPTED.contains(name)
}

fn take(words: &mut &[&str], word: &str) -> bool {
    let is_next = words.first() == Some(&word);
    if is_next {
        *words = &words[1..];
    }
    is_next
}

#[cfg(test)]
mod tests {
    use super::is_accepted;

    #[test]
    fn terms_that_cannot_be_met_are_found() {
        for expression in [
            "",
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "(MIT OR Apache-2.0) AND AGPL-3.0-only",
            "GPL-3.0-only OR",
            "(MIT",
            "MIT Apache-2.0",
        ] {
            assert!(!is_accepted(expression), "{expression}");
        }
    }

    #[test]
    fn terms_that_can_be_met_pass() {
        for expression in [
            "MIT",
            "Unlicense/MIT",
            "Apache-2.0 / MIT",
            "GPL-2.0-only OR MIT",
            "Apache-2.0 WITH LLVM-exception OR MIT",
            "Apache-2.0 WITH LLVM-exception",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
        ] {
            assert!(is_accepted(expression), "{expression}");
        }
    }
}

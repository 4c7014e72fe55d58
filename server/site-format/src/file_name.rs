//! The names of files: which are passed over in a site's folder, and those that visitors give.

/// Characters of a name that are kept.
const MOST_CHARACTERS: usize = 100;

/// True if a file or folder of this name is no part of a site: it is hidden, or a copy that an
/// editor keeps beside the file (`page.html~`, and `#page.html#` while it is edited).
pub fn is_passed_over(name: &[u8]) -> bool {
    let is_autosave = name.len() > 1 && name.starts_with(b"#") && name.ends_with(b"#");
    name.starts_with(b".") || name.ends_with(b"~") || is_autosave
}

/// The name that a visitor gave, without a path and without what could mislead or break a line: to
/// be shown, and to be the name of a download. Empty if nothing of it is left.
pub fn safe_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept = last
        .chars()
        .filter(|c| !c.is_control() && !is_invisible(*c));
    let kept: String = kept
        .map(|c| match c {
            '<' | '>' | ':' | '"' | '|' | '?' | '*' => '_',
            other => other,
        })
        .collect();
    let kept = kept.trim_matches(|c: char| c == '.' || c.is_whitespace());
    match kept.rsplit_once('.') {
        // The ending stays where the name is cut.
        Some((stem, ending)) if kept.chars().count() > MOST_CHARACTERS && ending.len() <= 8 => {
            let most = MOST_CHARACTERS - 1 - ending.chars().count();
            format!("{}.{ending}", stem.chars().take(most).collect::<String>())
        }
        _ => kept.chars().take(MOST_CHARACTERS).collect(),
    }
}

/// Returns the name of a file as it was before a browser wrote it into a form, where it escapes
/// three characters (<https://html.spec.whatwg.org/#multipart-form-data>).
pub fn of_form_data(written: &str) -> String {
    let mut name = written.to_owned();
    for (escape, meant) in [("%22", "\""), ("%0D", "\r"), ("%0A", "\n")] {
        if name.contains('%') {
            name = name.replace(escape, meant);
        }
    }
    name
}

/// Characters without width, and those that turn the direction of a text.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_browsers_escape_in_a_name_is_read() {
        for (written, name) in [
            ("a.png", "a.png"),
            ("say %22hi%22.txt", "say \"hi\".txt"),
            ("a%0D%0Ab%20c.txt", "a\r\nb%20c.txt"),
            ("100%.txt", "100%.txt"),
        ] {
            assert_eq!(of_form_data(written), name);
        }
        assert_eq!(safe_name(&of_form_data("a%0D%0A%22b%22.txt")), "a_b_.txt");
    }

    #[test]
    fn a_visitors_name_is_made_safe() {
        for (given, expected) in [
            ("a.png", "a.png"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\x\\b.png", "b.png"),
            ("a\0b\r\nSet-Cookie: x.png", "abSet-Cookie_ x.png"),
            ("..", ""),
            ("", ""),
            (".htaccess", "htaccess"),
            ("a.png. . ", "a.png"),
            ("exe.\u{202e}gnp", "exe.gnp"),
            ("\u{e9}t\u{e9}.jpg", "\u{e9}t\u{e9}.jpg"),
            ("a?b*\"c\".txt", "a_b__c_.txt"),
        ] {
            assert_eq!(safe_name(given), expected, "{given:?}");
        }
        let long = safe_name(&format!("{}.png", "\u{e9}".repeat(100_000)));
        assert!(long.ends_with("\u{e9}.png") && long.chars().count() == MOST_CHARACTERS);
        assert_eq!(
            safe_name(&"x.".repeat(50_000)).chars().count(),
            MOST_CHARACTERS
        );
    }
}

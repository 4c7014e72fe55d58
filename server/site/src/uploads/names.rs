//! The names of uploaded files: those that are stored, and those that visitors gave.

use std::fmt::Write as _;

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};

use super::{FOLDER, Kind};

/// Hexadecimal digits of a stored name: 128 bits that no one can guess.
const DIGITS: usize = 32;
/// Characters of a visitor's name that are kept.
const MOST_CHARACTERS: usize = 100;

/// A name that no file has had: the same name never means another content. None if the system gives
/// no random numbers.
pub(super) fn new_name(kind: &Kind) -> Option<String> {
    let mut random = [0_u8; DIGITS / 2];
    SystemRandom::new().fill(&mut random).ok()?;
    let mut name = String::with_capacity(DIGITS + 8);
    for byte in random {
        let _ = write!(name, "{byte:02x}");
    }
    name.push('.');
    name.push_str(kind.ending);
    Some(name)
}

/// The path of an uploaded file from the folder of uploads, and its type, if `address` is one that
/// an upload was given: `/uploads/albums/0123….png`.
pub(crate) fn stored(address: &str) -> Option<(&str, &'static Kind)> {
    let path = address
        .strip_prefix('/')?
        .strip_prefix(FOLDER)?
        .strip_prefix('/')?;
    let (folders, name) = match path.rsplit_once('/') {
        Some((folders, name)) => (Some(folders), name),
        None => (None, path),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_folder = |part: &str| !part.is_empty() && part.chars().all(is_plain);
    let (digits, ending) = name.split_once('.')?;
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_stored = digits.len() == DIGITS
        && digits.bytes().all(is_hex)
        && folders.is_none_or(|folders| folders.split('/').all(is_folder));
    let kind = Kind::of_ending(ending)?;
    is_stored.then_some((path, kind))
}

/// The name that a visitor gave, without a path and without what could mislead or break a line: to
/// be shown, and to be the name of a download.
pub(super) fn safe_name(given: &str) -> String {
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
    let name = match kept.rsplit_once('.') {
        // The ending stays where the name is cut.
        Some((stem, ending)) if kept.chars().count() > MOST_CHARACTERS && ending.len() <= 8 => {
            let most = MOST_CHARACTERS - 1 - ending.chars().count();
            format!("{}.{ending}", stem.chars().take(most).collect::<String>())
        }
        _ => kept.chars().take(MOST_CHARACTERS).collect(),
    };
    match name.is_empty() {
        true => "file".to_owned(),
        false => name,
    }
}

/// Characters without width, and those that turn the direction of a text.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visitors_name_is_made_safe() {
        for (given, expected) in [
            ("a.png", "a.png"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\x\\b.png", "b.png"),
            ("a\0b\r\nSet-Cookie: x.png", "abSet-Cookie_ x.png"),
            ("..", "file"),
            ("", "file"),
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

    #[test]
    fn only_stored_names_are_stored_names() {
        let png = Kind::of_ending("png").unwrap();
        let name = new_name(png).unwrap();
        assert_ne!(Some(&name), new_name(png).as_ref());
        for folder in ["", "albums/", "a/b-c_d/"] {
            let address = format!("/uploads/{folder}{name}");
            let path = format!("{folder}{name}");
            assert_eq!(stored(&address), Some((&*path, png)));
        }
        let digits = "0".repeat(DIGITS);
        for address in [
            "/uploads".to_owned(),
            "/uploads/".to_owned(),
            format!("uploads/{digits}.png"),
            format!("/uploadsx/{digits}.png"),
            format!("/static/{digits}.png"),
            format!("/uploads/../{digits}.png"),
            format!("/uploads/.parts/{digits}.png"),
            format!("/uploads//{digits}.png"),
            format!("/uploads/{digits}0.png"),
            format!("/uploads/{digits}.exe"),
            format!("/uploads/{digits}.png.html"),
            format!("/uploads/{}.png", "A".repeat(DIGITS)),
            format!("/uploads/{digits}"),
        ] {
            assert_eq!(stored(&address), None, "{address}");
        }
    }
}

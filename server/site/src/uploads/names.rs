//! The names of uploaded files: those that are stored, and those that visitors gave.

use std::fmt::Write as _;

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};

use millpond_site_format::{config::UPLOAD_FOLDER, file_type::FileType};

/// Hexadecimal digits of a stored name: 128 bits that no one can guess.
const DIGITS: usize = 32;

/// A name that no file has had: the same name never means another content. None if the system gives
/// no random numbers.
pub(super) fn new_name(kind: &FileType) -> Option<String> {
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
pub(crate) fn stored(address: &str) -> Option<(&str, &'static FileType)> {
    let path = address
        .strip_prefix('/')?
        .strip_prefix(UPLOAD_FOLDER)?
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
    let kind = FileType::of_ending(ending)?;
    is_stored.then_some((path, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stored_names_are_stored_names() {
        let png = FileType::of_ending("png").unwrap();
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

//! Plain text: slugs, limits, and what must not be stored.

use std::borrow::Cow;

/// FNV-1a, 64 bits. Dates and slugs derived from names must be the same on every machine and in
/// every release, which `std`'s hashers do not promise.
pub(super) fn stable_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A name for a URL: ASCII letters, digits and single hyphens, at most 120 bytes, never empty.
///
/// Accents are folded. If letters had to be left out, a hash of the whole text is added, so that
/// two titles in another script do not become one.
pub(super) fn slug(text: &str) -> String {
    let mut slug = String::new();
    let mut lost = false;
    for letter in text.chars().flat_map(char::to_lowercase) {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter);
        } else if let Some(folded) = fold(letter) {
            slug.push_str(folded);
        } else if letter.is_alphanumeric() {
            lost = true;
        } else if !matches!(letter, '\'' | '\u{2019}' | '\u{307}')
            && !slug.is_empty()
            && !slug.ends_with('-')
        {
            slug.push('-');
        }
    }
    slug.truncate(120);
    let mut slug = slug.trim_end_matches('-').to_owned();
    if slug.is_empty() || lost {
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&format!("{:08x}", stable_hash(text) & 0xffff_ffff));
    }
    slug
}

/// The ASCII spelling of a Latin letter.
fn fold(letter: char) -> Option<&'static str> {
    Some(match letter {
        'à' | 'á' | 'â' | 'ã' | 'å' | 'ā' | 'ă' | 'ą' => "a",
        'ä' | 'æ' => "ae",
        'ç' | 'ć' | 'č' | 'ĉ' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ė' | 'ę' | 'ě' => "e",
        'ğ' | 'ģ' | 'ĝ' => "g",
        'ì' | 'í' | 'î' | 'ï' | 'ī' | 'ı' | 'į' => "i",
        'ķ' => "k",
        'ł' | 'ľ' | 'ļ' | 'ĺ' => "l",
        'ñ' | 'ń' | 'ň' | 'ņ' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ō' | 'ő' => "o",
        'ö' | 'ø' | 'œ' => "oe",
        'ŕ' | 'ř' => "r",
        'ś' | 'š' | 'ş' | 'ș' | 'ŝ' => "s",
        'ß' => "ss",
        'ť' | 'ţ' | 'ț' => "t",
        'þ' => "th",
        'ù' | 'ú' | 'û' | 'ū' | 'ů' | 'ű' | 'ų' => "u",
        'ü' => "ue",
        'ý' | 'ÿ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        _ => return None,
    })
}

/// White space made single spaces, control characters left out.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|c| !c.is_control()));
    }
    line
}

/// At most `limit` characters; a longer text ends at a word with an ellipsis.
pub(super) fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(limit) else {
        return Cow::Borrowed(text);
    };
    let last = text[..end]
        .char_indices()
        .next_back()
        .map_or(0, |(at, _)| at);
    let head = &text[..last];
    // A word boundary in the last fifth, or else in the middle of a word.
    let at = head
        .rfind(char::is_whitespace)
        .filter(|&at| at * 5 >= head.len() * 4)
        .unwrap_or(last);
    Cow::Owned(format!("{}…", head[..at].trim_end()))
}

/// The text with every mail address in it replaced.
pub(super) fn without_mail(text: &str) -> Cow<'_, str> {
    if !text.contains('@') {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if is_mail(bare) {
            kept.push_str(&piece.replace(bare, "[mail address]"));
        } else {
            kept.push_str(piece);
        }
    }
    Cow::Owned(kept)
}

/// True if this reads as `local@host.tld`. A version (`name@1.2`) or a handle (`@name`) does not.
pub(super) fn is_mail(word: &str) -> bool {
    let Some((local, host)) = word.rsplit_once('@') else {
        return false;
    };
    let Some((name, tld)) = host.rsplit_once('.') else {
        return false;
    };
    let host_like = |c: char| c.is_alphanumeric() || c == '-' || c == '.';
    !local.is_empty()
        && !name.is_empty()
        && name.chars().all(host_like)
        && tld.chars().count() >= 2
        && tld.chars().all(char::is_alphabetic)
}

/// The name in `Name <mail>`, without the address; nothing where there is only an address.
pub(super) fn author_name(author: &str) -> Option<String> {
    let name = author.split('<').next().unwrap_or_default();
    let name: Vec<_> = name
        .split_whitespace()
        .filter(|word| !word.contains('@'))
        .collect();
    let name = one_line(&name.join(" "));
    let name = name.trim_matches(|c: char| matches!(c, ',' | ';' | '"'));
    name.chars()
        .any(char::is_alphanumeric)
        .then(|| cut(name, 100).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_ascii_and_never_empty() {
        for (text, expected) in [
            ("Hello, World!", "hello-world"),
            ("  --Ünïcode & Straße--  ", "uenicode-strasse"),
            ("Michal 'vorner' Vaner", "michal-vorner-vaner"),
            ("d'Antras", "dantras"),
            ("İstanbul", "istanbul"),
        ] {
            assert_eq!(slug(text), expected);
        }
        assert_eq!(slug("!!!").len(), 8);
        assert_ne!(slug("日本 Rust"), slug("中国 Rust"));
        assert!(slug(&"x".repeat(1000)).len() <= 120);
        assert!(slug("日本 Rust").starts_with("rust-"));
    }

    #[test]
    fn a_cut_counts_characters_and_prefers_words() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("one two three four", 15), "one two three…");
        assert_eq!(cut("ääääää", 4), "äää…");
        assert_eq!(cut("x", 0), "…");
    }

    #[test]
    fn mail_addresses_are_not_kept() {
        assert_eq!(
            without_mail("ask <me@example.org>, or @me"),
            "ask <[mail address]>, or @me"
        );
        assert_eq!(without_mail("mio@1.2 stays"), "mio@1.2 stays");
        assert_eq!(
            author_name("A. Name <a@example.org>").as_deref(),
            Some("A. Name")
        );
        assert_eq!(author_name("<a@example.org>"), None);
        assert_eq!(author_name("a@example.org"), None);
        assert_eq!(
            author_name("The \"X\" Developers").as_deref(),
            Some("The \"X\" Developers")
        );
    }

    #[test]
    fn one_line_has_no_controls() {
        assert_eq!(one_line(" a\n\tb\u{7} c\0"), "a b c");
    }
}

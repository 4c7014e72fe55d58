//! The difference between a page and its next state, for browsers that have its text.

use serde_json::json;

/// Bytes that an event puts into a page at most: more is asked for, and then comes compressed.
const MOST: usize = 4096;

/// Returns the change from the page `old`, which has the tag `of`, to `new` with the tag `tag`.
/// First each `of` becomes the new tag; then `text` takes the place of the UTF-16 units from `from`
/// to `to`. `length` is that of the old page: a proxy may have put something into a browser's. None
/// if there is too much to put in.
pub(super) fn change((old, of): (&[u8], &str), (new, tag): (&[u8], &str)) -> Option<String> {
    let (old, new) = (str::from_utf8(old).ok()?, str::from_utf8(new).ok()?);
    // A browser reads a text without its byte order mark.
    if old.starts_with('\u{feff}') {
        return None;
    }
    let replaced = old.replace(of, tag);
    let begin = common(replaced.chars(), new.chars());
    let (head, old) = replaced.split_at(begin);
    let new = &new[begin..];
    let end = common(old.chars().rev(), new.chars().rev());
    let (gone, put) = (&old[..old.len() - end], &new[..new.len() - end]);
    if put.len() > MOST {
        return None;
    }
    let units = |text: &str| text.encode_utf16().count();
    let from = units(head);
    let to = from + units(gone);
    Some(
        json!({"of": of, "from": from, "to": to, "text": put, "length": units(&replaced)})
            .to_string(),
    )
}

/// The bytes of the characters with which both begin.
fn common(old: impl Iterator<Item = char>, new: impl Iterator<Item = char>) -> usize {
    let same = old.zip(new).take_while(|(old, new)| old == new);
    same.map(|(old, _)| old.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the script does it.
    fn apply(old: &str, tag: &str, change: &str) -> String {
        let change: serde_json::Value = serde_json::from_str(change).unwrap();
        let at = |name: &str| change[name].as_u64().unwrap() as usize;
        let old = old.replace(change["of"].as_str().unwrap(), tag);
        let units: Vec<u16> = old.encode_utf16().collect();
        let put = change["text"].as_str().unwrap().encode_utf16();
        let head = units[..at("from")].iter().copied();
        let all = head.chain(put).chain(units[at("to")..].iter().copied());
        assert_eq!(change["length"], units.len());
        String::from_utf16(&all.collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_change_makes_the_next_page_of_the_one_before() {
        for (old, new) in [
            ("<ol></ol>A", "<ol><li>a</ol>B"),
            ("<ol><li>a</ol>A", "<ol></ol>B"),
            ("\u{1f30a}\u{1f30a} é A", "\u{1f30a}\u{1f30b} é B"),
            ("é\u{1f30a}A", "è\u{1f30a}B"),
            ("aaaaA", "aaaB"),
            ("aaaA", "aaaaB"),
            ("A", "B"),
            ("xA", "\"\n\\B"),
        ] {
            let change = change((old.as_bytes(), "A"), (new.as_bytes(), "B")).unwrap();
            assert!(!change.contains('\n'), "{change}");
            assert_eq!(apply(old, "B", &change), new, "{change}");
        }
        let long = "x".repeat(MOST);
        for (old, new) in [
            ("A".to_owned(), format!("{long}yB")),
            ("\u{feff}A".to_owned(), "\u{feff}xB".to_owned()),
        ] {
            assert_eq!(change((old.as_bytes(), "A"), (new.as_bytes(), "B")), None);
        }
        assert_eq!(change((b"\xff", "A"), (b"B", "B")), None);
    }
}

//! The pairs of a query or of a form.

use std::borrow::Cow;

/// A name and a value, decoded. What is not UTF-8 is U+FFFD in them.
pub(crate) struct FormPair<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) value: Cow<'a, str>,
    pub(crate) is_utf8: bool,
}

/// The pairs of an encoded text (`application/x-www-form-urlencoded`), in order.
pub(crate) fn pairs(encoded: &[u8]) -> impl Iterator<Item = FormPair<'_>> {
    let pieces = encoded.split(|byte| *byte == b'&');
    pieces.filter_map(|piece| {
        let (name, value) = form_urlencoded::parse(piece).next()?;
        // A client may also send U+FFFD itself.
        let is_replaced = [&name, &value].iter().any(|text| text.contains('\u{fffd}'));
        let decoded = percent_encoding::percent_decode(piece);
        let is_utf8 = !is_replaced || decoded.decode_utf8().is_ok();
        Some(FormPair {
            name,
            value,
            is_utf8,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_are_found() {
        for (encoded, expected) in [
            ("a=1&&b=%C3%A4+%2B", "a=1 b=ä + "),
            ("a=%EF%BF%BD", "a=\u{fffd} "),
            ("a=%ff", "a=\u{fffd}! "),
            ("%C3=1&%A4", "\u{fffd}=1! \u{fffd}=! "),
            ("a=%C3&b=2", "a=\u{fffd}! b=2 "),
            ("a=%EF%BF%BD%EF", "a=\u{fffd}\u{fffd}! "),
            ("a=%zz%", "a=%zz% "),
            ("", ""),
        ] {
            let found = pairs(encoded.as_bytes());
            let found: String = found
                .map(|pair| {
                    let mark = if pair.is_utf8 { "" } else { "!" };
                    format!("{}={}{mark} ", pair.name, pair.value)
                })
                .collect();
            assert_eq!(found, expected, "{encoded}");
        }
    }
}

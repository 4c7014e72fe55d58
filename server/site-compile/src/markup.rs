//! The HTML of templates, as far as it is written out: attributes, addresses, values of parameters.

use std::borrow::Cow;

use crate::filters::TagText;
use millpond_site_format::params::{Given, Param};

/// Stands in an address for a value that is not written out; no file has it in its name.
pub const VALUE: char = '\u{1}';

/// A template's text with spaces in the place of its comments, so that nothing moves.
pub fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains("{#") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("{#") {
        let end = comment.find("#}").map_or(comment.len(), |end| end + 2);
        out.push_str(before);
        let hidden = comment[..end].bytes();
        out.push_str("  ");
        out.extend(hidden.map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        rest = &comment[end..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The value of an attribute as it is written; empty if the attribute stands alone.
pub fn attribute<'t>(tag: &TagText<'t>, name: &str) -> Option<&'t str> {
    let mut all = tag.attributes.iter();
    all.find(|(known, _)| known == name)
        .map(|(_, value)| *value)
}

/// An address with [`VALUE`] for each value in braces; none if parts of it are chosen, or if a
/// quote within braces has ended the attribute.
pub fn address(text: &str) -> Option<String> {
    let mut address = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, value)) = rest.split_once("{{") {
        address.push_str(before);
        address.push(VALUE);
        rest = value.split_once("}}")?.1;
    }
    address.push_str(rest);
    (!address.contains("{%")).then(|| address.replace("&amp;", "&"))
}

/// Why a parameter cannot have a value, to stand behind "it"; none if it can.
pub fn misfit(param: &Param, value: &str) -> Option<String> {
    let form = [(Cow::from(&*param.name), Cow::from(value))];
    let given = Given {
        path: &[],
        form: &form,
        query: None,
    };
    given.value(param).err().map(|bad| bad.wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_leave_what_follows_in_its_place() {
        for (text, expected) in [
            ("a{# é\n #}b", "a     \n   b"),
            ("{#-x", "    "),
            ("no", "no"),
        ] {
            assert_eq!(without_comments(text), expected);
            assert_eq!(without_comments(text).len(), text.len());
        }
    }

    #[test]
    fn an_address_has_a_sign_for_each_value() {
        let shown = |text| address(text).map(|found| found.replace(VALUE, "*"));
        assert_eq!(
            shown("/a/{{ b.id }}?c={{ d }}&amp;e=1").unwrap(),
            "/a/*?c=*&e=1"
        );
        assert_eq!(shown("{{ url }}").unwrap(), "*");
        assert_eq!(shown("/a{% if b %}/c{% endif %}"), None);
        assert_eq!(shown("/a{{ params | query(sort="), None);
    }
}

//! `truncate`, `nl2br` and `slug`.

use minijinja::{
    AutoEscape, Error, HtmlEscape, State,
    value::{Kwargs, Value, ValueKind},
};

use super::fault::{given, unfit};
use millpond_site_format::slug::slug as slug_of;

/// The characters that a truncated text has if the template does not say.
const USUAL_LENGTH: usize = 255;

/// A text of at most `length` characters, cut between two words if there are two, with `end` for
/// what is left out.
pub(super) fn truncate(
    value: &Value,
    length: Option<usize>,
    options: &Kwargs,
) -> Result<String, Error> {
    let end: Option<String> = options.get("end")?;
    let is_in_words: Option<bool> = options.get("killwords")?;
    options.assert_all_used()?;
    let Some(value) = given("truncate", value)? else {
        return Ok(String::new());
    };
    let text = text_of(value).ok_or_else(|| unfit("truncate", value, "a text"))?;
    let end = end.unwrap_or_else(|| "…".to_owned());
    let length = length.unwrap_or(USUAL_LENGTH);
    let place = |characters: usize| text.char_indices().nth(characters).map(|(at, _)| at);
    if place(length).is_none() {
        return Ok(text);
    }
    let room = length.saturating_sub(end.chars().count());
    let cut = place(room).unwrap_or(text.len());
    let kept = &text[..cut];
    let is_between = text[cut..].starts_with(char::is_whitespace);
    let kept = match kept.rfind(char::is_whitespace) {
        Some(space) if !is_between && is_in_words != Some(true) => &kept[..space],
        _ => kept,
    };
    let end = if end.chars().count() > length {
        ""
    } else {
        &end
    };
    Ok(format!("{}{end}", kept.trim_end()))
}

/// The text with `<br>` for each end of a line. In a page of another type it stays as it is.
pub(super) fn nl2br(state: &State, value: &Value) -> Result<Value, Error> {
    let Some(value) = given("nl2br", value)? else {
        return Ok(Value::from(""));
    };
    let text = text_of(value).ok_or_else(|| unfit("nl2br", value, "a text"))?;
    if *state.auto_escape() != AutoEscape::Html {
        return Ok(Value::from(text));
    }
    let lines = text.lines().map(|line| match value.is_safe() {
        true => line.to_owned(),
        false => HtmlEscape(line).to_string(),
    });
    let html = lines.collect::<Vec<_>>().join("<br>\n");
    Ok(Value::from_safe_string(html))
}

/// A part of an address that can be read: letters and digits in lower case with `-` between.
pub(super) fn slug(value: &Value) -> Result<String, Error> {
    let Some(value) = given("slug", value)? else {
        return Ok(String::new());
    };
    let text = text_of(value).ok_or_else(|| unfit("slug", value, "a text"))?;
    Ok(slug_of(&text))
}

fn text_of(value: &Value) -> Option<String> {
    let is_text = matches!(value.kind(), ValueKind::String | ValueKind::Number);
    is_text.then(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truncated(text: &str, length: usize, options: &[(&str, Value)]) -> String {
        let options = options.iter().cloned().collect();
        truncate(&Value::from(text), Some(length), &options).unwrap()
    }

    #[test]
    fn a_truncated_text_is_never_longer_than_asked_for() {
        assert_eq!(truncated("one two three", 13, &[]), "one two three");
        assert_eq!(truncated("one two three", 12, &[]), "one two…");
        assert_eq!(truncated("one two three", 8, &[]), "one two…");
        assert_eq!(truncated("one two three", 7, &[]), "one…");
        assert_eq!(truncated("Donaudampfschiff", 6, &[]), "Donau…");
        let whole = [
            ("killwords", Value::from(true)),
            ("end", Value::from("...")),
        ];
        assert_eq!(truncated("one two three", 9, &whole), "one tw...");
        let text = "ä b\u{301} 日本語 \u{1f469}\u{200d}\u{1f680} x";
        for length in 0..20 {
            for options in [&[][..], &whole[..]] {
                let cut = truncated(text, length, options);
                assert!(cut.chars().count() <= length, "{cut} {length}");
            }
        }
    }

    #[test]
    fn a_slug_is_one_part_of_an_address() {
        for (text, expected) in [
            ("Hello, World!", "hello-world"),
            ("  --a//b__c  ", "a-b-c"),
            ("Größe & Maß", "groesse-mass"),
            ("L’été d'Ørsted", "lete-dorsted"),
            ("cafe\u{301} 日本", "cafe-日本"),
            ("../../etc", "etc"),
            ("!!!", ""),
        ] {
            assert_eq!(slug(&Value::from(text)).unwrap(), expected);
        }
    }
}

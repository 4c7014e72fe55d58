//! The `<form>`s in the HTML of a template: where they are sent, and with which fields.

use crate::{
    filters::{Piece, Tags},
    markup::{address, attribute},
};

/// One form, as far as it is written out.
pub(crate) struct FormTag<'t> {
    /// Where it begins in the text.
    pub(crate) at: usize,
    /// The method in lower case: `get` if none is written.
    pub(crate) method: String,
    /// The address, with [`VALUE`](crate::markup::VALUE) for each value in braces. None if the form
    /// is sent to the page that shows it.
    pub(crate) action: Option<String>,
    /// What stands in it.
    body: &'t str,
}

/// The forms of a template [without its comments](crate::markup::without_comments), but those
/// whose method or address is chosen by a tag or a button.
pub(crate) fn forms(text: &str) -> Vec<FormTag<'_>> {
    let lower = text.to_ascii_lowercase();
    let begins = lower.match_indices("<form").map(|(at, _)| at);
    let begins = begins.filter(|at| !in_html_comment(text, *at));
    let forms = begins.filter_map(|at| {
        let Some(Piece::Start(tag)) = Tags::new(&text[at..]).next() else {
            return None;
        };
        let end = lower[at..]
            .find("</form")
            .map_or(text.len(), |end| at + end);
        let is_chosen = ["formmethod", "formaction"]
            .iter()
            .any(|word| lower[at..end].contains(word));
        let method = attribute(&tag, "method").unwrap_or("get").trim();
        let action = match attribute(&tag, "action") {
            Some(action) => Some(address(action.trim())?),
            None => None,
        };
        let is_form = tag.name == "form" && !is_chosen && !method.contains('{');
        is_form.then(|| FormTag {
            at,
            method: method.to_ascii_lowercase(),
            action: action.filter(|action| !action.is_empty()),
            body: &text[at..end],
        })
    });
    forms.collect()
}

fn in_html_comment(text: &str, at: usize) -> bool {
    let before = &text[..at];
    before
        .rfind("<!--")
        .is_some_and(|start| !before[start..].contains("-->"))
}

impl<'t> FormTag<'t> {
    /// The names of the fields, as they are written.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'t str> {
        let body = self.body;
        body.match_indices("name").filter_map(move |(at, word)| {
            let is_attribute = body[..at].ends_with(|c: char| c.is_ascii_whitespace());
            let value = body[at + word.len()..].trim_start().strip_prefix('=')?;
            let value = value.trim_start();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
            let name = match quote {
                Some(quote) => value[1..].split(quote).next()?,
                None => value.split([' ', '\n', '\t', '>', '/']).next()?,
            };
            is_attribute.then_some(name)
        })
    }

    /// The first field that takes a password: its name, or `password` if it has none.
    pub(crate) fn password(&self, is_password: impl Fn(&str) -> bool) -> Option<&'t str> {
        Tags::new(self.body).find_map(|piece| {
            let Piece::Start(tag) = piece else {
                return None;
            };
            let name = attribute(&tag, "name");
            let kind = attribute(&tag, "type").unwrap_or("text").trim();
            let takes = match &*kind.to_ascii_lowercase() {
                "password" => true,
                "text" | "" => name.is_some_and(&is_password),
                _ => false,
            };
            (tag.name == "input" && takes).then_some(name.unwrap_or("password"))
        })
    }

    /// Whether all fields are written out here: none comes from another template or a macro.
    pub(crate) fn is_whole(&self, template: &str) -> bool {
        let tags = [
            "{% include",
            "{% block",
            "{% call",
            "{% import",
            "{%- include",
        ];
        let body = self.body;
        let mut values = body.split("{{").skip(1);
        let has_call = values.any(|value| {
            let value = value.split("}}").next().unwrap_or_default();
            value.contains('(') && !value.contains('|') || value.contains("safe")
        });
        // A field elsewhere may belong to a form.
        let has_others = template.contains(" form=");
        !tags.iter().any(|tag| body.contains(tag)) && !has_call && !has_others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_as_they_are_written() {
        let text = "<FORM Method=Post action=\"/a/{{ b.id }}?c={{ d }}&amp;e=1\">\
             <input name=title><textarea name='body'></textarea><select name = \"kind\"></select></FORM>\
             <form><input type=password name=secret></form><form action='/{% if a %}b{% endif %}'></form>\
             <form><button formmethod=post></button></form>";
        let found = forms(text);
        assert_eq!(found.len(), 2);
        let (first, second) = (&found[0], &found[1]);
        assert_eq!(first.method, "post");
        assert_eq!(first.action.as_deref(), Some("/a/\u{1}?c=\u{1}&e=1"));
        let names: Vec<&str> = first.names().collect();
        assert_eq!(names, ["title", "body", "kind"]);
        assert!(first.is_whole("") && first.password(|_| false).is_none());
        assert_eq!((&*second.method, &second.action), ("get", &None));
        assert_eq!(second.password(|_| false), Some("secret"));
        let hidden =
            forms("<!-- <form action='/old'><input type=password></form> --><form></form>");
        assert!(hidden.len() == 1 && hidden[0].action.is_none());
        let harmless = forms("<form><input id=q><input type=checkbox name=has_password></form>");
        assert_eq!(harmless[0].password(|name| name.contains("pass")), None);
        let macros = forms("<form>{{ field('title') }}</form>");
        assert!(!macros[0].is_whole(""));
    }
}

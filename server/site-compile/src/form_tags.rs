//! The `<form>`s in the HTML of a template: where they are sent, and with which fields.
//!
//! HTML is read as browsers read it: what stands in comments, scripts and `<template>` is no form.

use crate::{
    filters::{Piece, TagText, Tags},
    markup::{address, attribute},
};

/// One form, as far as it is written out.
#[derive(Clone)]
pub struct FormTag<'t> {
    /// Byte of the text at which the form begins.
    pub at: usize,
    /// The method in lower case: `get` if none is written.
    pub method: String,
    /// The address, with [`VALUE`](crate::markup::VALUE) for each value in braces. None if the form
    /// is sent to the page that shows it.
    pub action: Option<String>,
    /// The name that is the whole address: `here` in `action="{{ here }}"`.
    pub named: Option<&'t str>,
    pub fields: Vec<FieldTag<'t>>,
    /// Text inside the form.
    body: &'t str,
    /// True if fields elsewhere in the template may belong to it.
    has_others: bool,
}

/// A tag in a form that has a name.
#[derive(Clone)]
pub struct FieldTag<'t> {
    /// The element, in lower case.
    pub element: String,
    /// As it is written.
    pub name: &'t str,
    /// The `type` in lower case, or empty.
    pub kind: String,
    pub value: Option<&'t str>,
    /// The values of the choices of a `<select>`.
    pub choices: Vec<&'t str>,
}

/// The forms of a template [without its comments](crate::markup::without_comments), but those
/// whose method or address is chosen by a tag, a button or a script; and what buttons send to an
/// address of their own.
pub fn forms(text: &str) -> Vec<FormTag<'_>> {
    let mut reader = FormReader {
        text,
        forms: Vec::new(),
        open: None,
        has_others: false,
    };
    let mut tags = Tags::with_fields(text);
    while let Some(piece) = tags.next() {
        reader.read(piece, text.len() - tags.rest().len());
    }
    reader.end(text.len());
    let has_others = reader.has_others;
    let mut forms = reader.forms;
    forms
        .iter_mut()
        .for_each(|form| form.has_others |= has_others);
    forms
}

struct FormReader<'t> {
    text: &'t str,
    forms: Vec<FormTag<'t>>,
    open: Option<OpenForm<'t>>,
    has_others: bool,
}

/// A form whose end has not come.
struct OpenForm<'t> {
    /// None for a form of which it is not known where it is sent.
    form: Option<FormTag<'t>>,
    method: &'t str,
    /// Byte at which the inside of the form begins.
    start: usize,
    is_in_select: bool,
}

impl<'t> FormReader<'t> {
    /// Reads a piece that ends at a place of the text.
    fn read(&mut self, piece: Piece<'t>, end: usize) {
        match piece {
            Piece::Start(tag) if tag.name == "form" => {
                let at = tag.written.as_ptr() as usize - self.text.as_ptr() as usize;
                self.end(at.saturating_sub(1));
                self.open = Some(OpenForm {
                    form: FormTag::of(&tag, at.saturating_sub(1)),
                    method: attribute(&tag, "method").unwrap_or("get").trim(),
                    start: end,
                    is_in_select: false,
                });
            }
            Piece::End(name) if name == "form" => self.end(end),
            Piece::End(name) if name == "select" => {
                if let Some(open) = &mut self.open {
                    open.is_in_select = false;
                }
            }
            Piece::Start(tag) => self.field(&tag),
            Piece::End(_) | Piece::Text(_) => {}
        }
    }

    fn field(&mut self, tag: &TagText<'t>) {
        if attribute(tag, "form").is_some() {
            self.has_others = true;
            return;
        }
        let Some(open) = &mut self.open else {
            return;
        };
        let button = FormTag::of_button(tag, open.method, self.text);
        self.forms.extend(button);
        if ["formmethod", "formaction"]
            .iter()
            .any(|name| attribute(tag, name).is_some())
        {
            open.form = None;
        }
        let Some(form) = &mut open.form else {
            return;
        };
        if tag.name == "option" {
            let value = attribute(tag, "value").filter(|_| open.is_in_select);
            if let Some(select) = form.fields.last_mut() {
                select.choices.extend(value);
            }
            return;
        }
        let name = attribute(tag, "name");
        open.is_in_select |= tag.name == "select" && name.is_some();
        form.fields.extend(name.map(|name| {
            FieldTag {
                element: tag.name.clone(),
                name,
                kind: attribute(tag, "type")
                    .unwrap_or_default()
                    .trim()
                    .to_ascii_lowercase(),
                value: attribute(tag, "value"),
                choices: Vec::new(),
            }
        }));
    }

    fn end(&mut self, at: usize) {
        let Some(open) = self.open.take() else {
            return;
        };
        let body = self.text.get(open.start..at).unwrap_or_default();
        self.forms
            .extend(open.form.map(|form| FormTag { body, ..form }));
    }
}

impl<'t> FormTag<'t> {
    fn of(tag: &TagText<'t>, at: usize) -> Option<Self> {
        let method = attribute(tag, "method").unwrap_or("get").trim();
        let action = match attribute(tag, "action") {
            Some(action) => Some(address(action.trim())?),
            None => None,
        };
        // htmx sends such a form in its own way.
        let is_of_script = tag
            .attributes
            .iter()
            .any(|(name, _)| name.starts_with("hx-"));
        (!is_of_script && !method.contains('{')).then(|| Self {
            at,
            method: method.to_ascii_lowercase(),
            action: action.filter(|action| !action.is_empty()),
            named: attribute(tag, "action").and_then(named),
            fields: Vec::new(),
            body: "",
            has_others: false,
        })
    }

    /// Reads a button that sends to an address of its own: nothing is known of the fields.
    fn of_button(tag: &TagText<'t>, method: &str, text: &str) -> Option<Self> {
        let action = address(attribute(tag, "formaction")?.trim())?;
        let method = attribute(tag, "formmethod").unwrap_or(method).trim();
        let at = tag.written.as_ptr() as usize - text.as_ptr() as usize;
        (!action.is_empty() && !method.contains('{')).then(|| Self {
            at: at.saturating_sub(1),
            method: method.to_ascii_lowercase(),
            action: Some(action),
            named: attribute(tag, "formaction").and_then(named),
            fields: Vec::new(),
            body: "",
            has_others: true,
        })
    }

    /// Returns the form as it is sent to an address.
    pub fn sent_to(&self, address: String) -> Self {
        Self {
            action: Some(address),
            ..self.clone()
        }
    }

    /// True if a field stands in a loop of the template that begins in the form.
    pub fn is_in_loop(&self, field: &FieldTag<'_>) -> bool {
        let at = (field.name.as_ptr() as usize).wrapping_sub(self.body.as_ptr() as usize);
        let before = self.body.get(..at).unwrap_or_default();
        let count = |wanted: &str| {
            let words = parts(before, "{%", "%}");
            let words = words.map(|tag| tag.split(|c: char| !c.is_ascii_alphabetic()).next());
            words.filter(|word| *word == Some(wanted)).count()
        };
        count("for") > count("endfor")
    }

    /// The names of the fields, as they are written.
    pub fn names(&self) -> impl Iterator<Item = &'t str> {
        self.fields.iter().map(|field| field.name)
    }

    /// The name of the first field that takes a password.
    pub fn password(&self, is_password: impl Fn(&str) -> bool) -> Option<&'t str> {
        let inputs = self.fields.iter().filter(|field| field.element == "input");
        let mut passwords = inputs.filter(|field| match &*field.kind {
            "password" => true,
            "text" | "" => is_password(field.name),
            _ => false,
        });
        passwords.next().map(|field| field.name)
    }

    /// True if all fields are written out here: none comes from another template, a macro or a
    /// script.
    pub fn is_whole(&self) -> bool {
        let lower = self.body.to_ascii_lowercase();
        let is_made = ["<script", "<template", "<noscript"]
            .iter()
            .any(|element| lower.contains(element));
        let has_tag = parts(self.body, "{%", "%}").any(|tag| {
            let word = tag.split(|c: char| !c.is_ascii_alphabetic()).next();
            matches!(word, Some("include" | "block" | "call"))
        });
        let has_value = parts(self.body, "{{", "}}").any(may_be_html);
        !is_made && !has_tag && !has_value && !self.has_others
    }
}

/// The name that is all of an attribute.
fn named(value: &str) -> Option<&str> {
    let inner = value.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let name = inner.trim_matches(['-', '+']).trim();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_part)).then_some(name)
}

/// Iterates over the texts between two marks, without the signs that take blanks away.
fn parts<'t>(text: &'t str, begin: &'t str, end: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(begin).skip(1).map(move |part| {
        let part = part.split(end).next().unwrap_or_default();
        part.trim_start_matches(['-', '+']).trim_start()
    })
}

/// True if the value of an expression may be HTML: it is declared to be, or a macro is called.
fn may_be_html(expression: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let mut calls = expression.match_indices('(');
    let calls_macro = calls.any(|(at, _)| {
        let before = expression[..at].trim_end();
        let name = before.trim_end_matches(is_part);
        name.len() < before.len() && !name.trim_end().ends_with('|')
    });
    let mut words = expression.split(|c: char| !is_part(c));
    calls_macro || words.any(|word| matches!(word, "safe" | "markdown" | "sanitize"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_as_they_are_written() {
        let text = "<FORM Method=Post action=\"/a/{{ b.id }}?c={{ d }}&amp;e=1\">\
             <input name=title><textarea name='body'></textarea><select name = \"kind\"><option value=x><option>y</select></FORM>\
             <form><input type=password name=secret></form><form action='/{% if a %}b{% endif %}'></form>\
             <form><button formmethod=post></button></form><form hx-post=/x></form>";
        let found = forms(text);
        assert_eq!(found.len(), 2);
        let (first, second) = (&found[0], &found[1]);
        assert_eq!((first.at, first.method.as_str()), (0, "post"));
        assert_eq!(first.action.as_deref(), Some("/a/\u{1}?c=\u{1}&e=1"));
        let names: Vec<&str> = first.names().collect();
        assert_eq!(names, ["title", "body", "kind"]);
        assert_eq!(first.fields[2].choices, ["x"]);
        assert!(first.is_whole() && first.password(|_| false).is_none());
        assert_eq!((&*second.method, &second.action), ("get", &None));
        assert!(text[second.at..].starts_with("<form><input type"));
        assert_eq!(second.password(|_| false), Some("secret"));
        let harmless = forms("<form><input id=q><input type=checkbox name=has_password></form>");
        assert_eq!(harmless[0].password(|name| name.contains("pass")), None);
    }

    #[test]
    fn a_button_has_an_address_of_its_own() {
        let text = "<form method=post action=/a><button formaction='/b/{{ c }}'>             <button formmethod=get formaction=/d></form><button formaction=/e>";
        let found = forms(text);
        let found: Vec<_> = found
            .iter()
            .map(|form| (&*form.method, form.action.as_deref()))
            .collect();
        assert_eq!(found, [("post", Some("/b/\u{1}")), ("get", Some("/d"))]);
    }

    #[test]
    fn a_field_may_be_repeated_by_a_loop() {
        let text = "{% for b in c %}<form><input name=a>{% for d in e %}<input name=f>{% endfor %}<input name=g></form>{% endfor %}";
        let form = &forms(text)[0];
        let repeated: Vec<bool> = form.fields.iter().map(|it| form.is_in_loop(it)).collect();
        assert_eq!(repeated, [false, true, false]);
    }

    #[test]
    fn what_is_not_shown_is_no_form() {
        let hidden = forms(
            "<!-- <form action='/old'><input type=password></form> --><script>'<form action=/a>'</script>\
             <template><form action=/b></form></template><form>",
        );
        assert!(hidden.len() == 1 && hidden[0].action.is_none());
    }

    #[test]
    fn a_form_is_whole_if_nothing_else_gives_it_fields() {
        for (body, is_whole) in [
            (
                "<input name=a value=\"{{ b | default('x') }}\">{% if c %}x{% endif %}",
                true,
            ),
            ("{{ a.b | date('%Y') }}{{ (a + b) }}{{ 'include' }}", true),
            ("{{ field('title') }}", false),
            ("{{ field('title') | indent }}", false),
            ("{{- forms.field ('a') }}", false),
            ("{{ html | safe }}", false),
            ("{%include 'a.html' %}", false),
            ("{%-\n include 'a.html' %}", false),
            ("{%+ block b %}{% endblock %}", false),
            ("{% call a() %}{% endcall %}", false),
            ("<template><input name=b></template>", false),
        ] {
            let text = format!("<form>{body}</form>");
            assert_eq!(forms(&text)[0].is_whole(), is_whole, "{body}");
        }
        let elsewhere = forms("<form id=a></form><input\nform=a name=b>");
        assert!(!elsewhere[0].is_whole());
    }
}

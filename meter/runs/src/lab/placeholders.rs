//! Placeholders: `{port}` in a command or a configuration file becomes its value.
//!
//! Only a name in braces without spaces is a placeholder, so blocks in configuration files stay
//! unchanged. `{{port}}` becomes `{port}`.

use std::collections::BTreeMap;

/// The values by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Placeholders(BTreeMap<String, String>);

impl Placeholders {
    pub(super) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// `text` with the values in place of their names. `quoted`: for a shell.
    ///
    /// # Errors
    /// A name is not known; the sentence says which are.
    pub(super) fn fill(&self, text: &str, quoted: bool) -> Result<String, String> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            filled.push_str(&rest[..open]);
            rest = &rest[open..];
            let is_literal = rest.starts_with("{{");
            let inner = &rest[if is_literal { 2 } else { 1 }..];
            let Some(name) = name_before(inner, if is_literal { "}}" } else { "}" }) else {
                filled.push('{');
                rest = &rest[1..];
                continue;
            };
            if is_literal {
                filled.push_str(&format!("{{{name}}}"));
                rest = &inner[name.len() + 2..];
                continue;
            }
            let value = self.0.get(name).ok_or_else(|| self.unknown(name))?;
            filled.push_str(&if quoted { shell(value) } else { value.clone() });
            rest = &inner[name.len() + 1..];
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<String> = self.0.keys().map(|name| format!("{{{name}}}")).collect();
        format!(
            "{{{name}}} is not known here; {} are ({{{{{name}}}}} stands for the word in braces itself, and a server's port \
             is known to those that name it in `with`)",
            known.join(", ")
        )
    }
}

/// The name at the beginning of `text`, if `end` follows it.
fn name_before<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    let letter = |c: char| c.is_ascii_lowercase();
    let length = text
        .find(|c: char| !(letter(c) || c.is_ascii_digit() || "._-".contains(c)))
        .unwrap_or(text.len());
    let name = &text[..length];
    (name.starts_with(letter) && text[length..].starts_with(end)).then_some(name)
}

/// A value as one word for a shell.
fn shell(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_braces_become_their_values_and_blocks_stay() {
        let mut values = Placeholders::default();
        values.set("port", "8080");
        values.set("port.a-b", "1");
        values.set("dir", "/tmp/it's");
        let fill = |text: &str| values.fill(text, false);
        assert_eq!(fill("listen {port} {port.a-b};").unwrap(), "listen 8080 1;");
        assert_eq!(
            fill("http { server {\n} {} {Port} {{port}} %{Host}i {").unwrap(),
            "http { server {\n} {} {Port} {port} %{Host}i {"
        );
        assert_eq!(values.fill("ls {dir}", true).unwrap(), r"ls '/tmp/it'\''s'");
        let error = fill("{prot}").unwrap_err();
        assert!(
            error.starts_with("{prot} is not known here; {dir}, {port}"),
            "{error}"
        );
    }
}

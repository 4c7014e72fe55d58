//! `[session]`: the settings of sessions, and their texts.

use std::{fmt, time::Duration};

use toml::de::DeValue;

use super::{Config, value::text};

/// The shortest key, in characters: 128 bits where they are hexadecimal digits, as all that this
/// server makes are 256.
pub const SHORTEST_KEY: usize = 32;

/// The settings as they stand in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionSettings {
    /// The keys, or their location; `None` uses a key file of the server.
    pub secret: Secret,
    pub lifetime: Duration,
    /// The cookie's name, without a prefix.
    pub cookie: String,
    pub secure: bool,
    /// True if a request may have the session's value as a token.
    pub bearer: bool,
}

/// A text that is not shown with the settings.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Option<String>);

impl Secret {
    /// Returns a secret of this text.
    pub fn new(text: &str) -> Self {
        Self(Some(text.to_owned()))
    }

    pub fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "given" } else { "absent" })
    }
}

impl Config {
    /// The first key of `session.secret`, which nodes of one site share; `None` if there is no such
    /// setting, or the variable that it names is not set.
    #[must_use]
    pub fn shared_secret(&self) -> Option<String> {
        let text = self.session.secret.text()?;
        let keys = match text.strip_prefix("env:") {
            Some(name) => std::env::var(name).ok()?,
            None => text.to_owned(),
        };
        let mut words = keys.split(|c: char| c.is_whitespace() || c == ',');
        words.find(|word| !word.is_empty()).map(str::to_owned)
    }
}

/// Messages about it never contain the text.
pub(super) fn secret(value: &DeValue<'_>) -> Result<Secret, String> {
    let given = text(value)?;
    match given.strip_prefix("env:") {
        Some("") => return Err("after `env:` stands the name of a variable".to_owned()),
        Some(name) if name.contains(['=', '\0']) => {
            return Err(format!("`{name}` is no name of a variable"));
        }
        Some(_) => {}
        None => {
            let words = given.split(|c: char| c.is_whitespace() || c == ',');
            let mut words = words.filter(|word| !word.is_empty()).peekable();
            if words.peek().is_none() || words.any(|word| word.len() < SHORTEST_KEY) {
                return Err(format!("a key has at least {SHORTEST_KEY} characters"));
            }
        }
    }
    Ok(Secret::new(given))
}

/// A token (RFC 6265 section 4.1.1); the prefix is the server's to set.
pub(super) fn cookie(value: &DeValue<'_>) -> Result<String, String> {
    let name = text(value)?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_token) {
        return Err(format!("`{name}` is no name for a cookie"));
    }
    if name.to_ascii_lowercase().starts_with("__") {
        return Err(
            "the prefix is not part of the name: it is set with `session.secure`".to_owned(),
        );
    }
    Ok(name.to_owned())
}

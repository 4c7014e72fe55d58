//! Text for HTML and SVG: nothing that is handed in becomes markup.

use std::fmt::{self, Write as _};

/// Text that is escaped for HTML and SVG when it is formatted. Control characters become U+FFFD.
pub struct Escaped<'a>(
    /// The text as it was handed in.
    pub &'a str,
);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            let entity = match c {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&quot;",
                '\'' => "&#39;",
                // Neither HTML nor XML has a way to write these.
                '\u{fffe}' | '\u{ffff}' => "\u{fffd}",
                _ if c.is_control() && c != '\n' && c != '\t' => "\u{fffd}",
                _ => {
                    out.write_char(c)?;
                    continue;
                }
            };
            out.write_str(entity)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_control_characters_do_not_pass() {
        let text = Escaped("<b a='x' c=\"y\">&\u{0}\u{1b}[31m\n").to_string();
        assert_eq!(
            text,
            "&lt;b a=&#39;x&#39; c=&quot;y&quot;&gt;&amp;\u{fffd}\u{fffd}[31m\n"
        );
    }
}

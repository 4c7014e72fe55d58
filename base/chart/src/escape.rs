//! Text for HTML and SVG: nothing that is handed in becomes markup.

use std::fmt::{self, Write as _};

/// Text that is escaped for HTML and SVG when it is formatted. Control characters become U+FFFD,
/// format characters are left out.
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
                _ if is_format(c) => "",
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

/// True for a character that is not seen but changes how others are (Unicode's class Cf, such as
/// the right-to-left override).
pub(crate) fn is_format(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
        | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}' | '\u{e0020}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_control_characters_do_not_pass() {
        let text = Escaped("<b a='x' c=\"y\">\u{202e}&\u{0}\u{1b}[31m\n").to_string();
        assert_eq!(
            text,
            "&lt;b a=&#39;x&#39; c=&quot;y&quot;&gt;&amp;\u{fffd}\u{fffd}[31m\n"
        );
    }
}

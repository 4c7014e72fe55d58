//! Texts of visitors within HTML.

use std::fmt::{self, Display, Write};

/// A value that displays itself as text of HTML, or as the value of an attribute in quotes: `&`,
/// `<`, `>`, `"` and `'` are written as references. As a [piece](crate::Piece) of a stream it is
/// `Shown(Escaped(value))`.
///
/// It is not enough within `<script>` or `<style>`, in an attribute without quotes, or for an
/// address that begins with `javascript:`.
///
/// ```
/// use millpond::{Escaped, Request, Response, Routes, quick};
///
/// let mut routes = Routes::new();
/// routes.get("/hello/{name}", quick(|_: &Request, name: String| {
///     Response::html(format!("<h1>Hello {}!</h1>", Escaped(name)))
/// }));
///
/// let title = r#"Tom & "Jerry" <3"#;
/// assert_eq!(
///     format!("<a title=\"{}\">", Escaped(title)),
///     r#"<a title="Tom &amp; &quot;Jerry&quot; &lt;3">"#
/// );
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Escaped<T>(pub T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

/// Escapes what is written to it.
struct Escaping<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            self.0.write_str(&rest[..at])?;
            self.0.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_html_would_read_as_markup_is_escaped() {
        for (text, expected) in [
            ("", ""),
            ("plain ü 語", "plain ü 語"),
            ("<b>&amp;</b>", "&lt;b&gt;&amp;amp;&lt;/b&gt;"),
            ("ü'\"", "ü&#39;&quot;"),
            ("&&", "&amp;&amp;"),
        ] {
            assert_eq!(Escaped(text).to_string(), expected);
        }
        assert_eq!(Escaped(-1.5).to_string(), "-1.5");
        assert_eq!(Escaped(format_args!("{}<{}", 1, 'x')).to_string(), "1&lt;x");
    }
}

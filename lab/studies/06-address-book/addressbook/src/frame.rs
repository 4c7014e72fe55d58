//! The page around what a way makes: head, links, the form of the search.

use crate::html::{attribute, text};
use crate::{DataFile, FILES};

/// Style of the pages.
pub(crate) const STYLE: &str = include_str!("style.css");

/// Place of a page: its way and its file.
pub(crate) struct PageFrame<'a> {
    /// The address of the way, such as `/tree`.
    pub(crate) way: &'a str,
    pub(crate) file: DataFile,
    /// The text of the search that the page answers.
    pub(crate) search: &'a str,
}

impl PageFrame<'_> {
    /// The whole page with this content.
    pub(crate) fn page(&self, main: &str) -> String {
        let base = format!("{}/{}", self.way, self.file.name());
        let mut body = String::with_capacity(main.len() + 2048);
        body.push_str(&format!("<h1>{}</h1><form action=\"", self.file.name()));
        attribute(&mut body, &base);
        body.push_str("/search\"><label>Name <input type=\"search\" name=\"name\" value=\"");
        attribute(&mut body, self.search);
        body.push_str("\"></label> <button>Search</button> <a href=\"");
        attribute(&mut body, &base);
        body.push_str("\">All entries</a></form>");
        body.push_str(main);
        document(&format!("{} {}", self.way, self.file.name()), &body)
    }
}

/// The first page: all ways and all files.
pub(crate) fn index(ways: &[(&str, &str)]) -> String {
    let mut body = "<main><h1>Address book</h1>".to_owned();
    for (way, what) in ways {
        body.push_str("<section><h2>");
        text(&mut body, way);
        body.push_str("</h2><p>");
        text(&mut body, what);
        body.push_str("</p><p class=\"files\">");
        for name in FILES.map(DataFile::name) {
            body.push_str(&format!("<a href=\"{way}/{name}\">{name}</a> "));
        }
        body.push_str(&format!(
            "<a href=\"{way}/random\">random</a></p></section>"
        ));
    }
    body.push_str("<p><a href=\"/compress\">A page to compress</a></p></main>");
    document("Address book", &body)
}

/// A page of text that repeats itself, for tests of compression.
pub(crate) fn compress(lines: u32) -> String {
    let mut body = "<main><h1>A page to compress</h1><ol>".to_owned();
    for line in 0..lines {
        body.push_str(&format!(
            "<li>Line {line}: the wheel behind the pond always has all the water it can use.</li>"
        ));
    }
    body.push_str("</ol></main>");
    document("A page to compress", &body)
}

/// Makes the page of a failure.
pub(crate) fn failure(status: u16, message: &str) -> String {
    let mut body = format!("<main><h1>{status}</h1><p>");
    text(&mut body, message);
    body.push_str("</p></main>");
    document(&status.to_string(), &body)
}

fn document(title: &str, body: &str) -> String {
    let mut html = String::with_capacity(body.len() + 512);
    html.push_str(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>",
    );
    text(&mut html, title);
    html.push_str(
        "</title><link rel=\"stylesheet\" href=\"/style.css\"></head>\
         <body><header><a href=\"/\">Address book</a></header>",
    );
    html.push_str(body);
    html.push_str("</body></html>\n");
    html
}

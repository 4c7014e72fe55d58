//! Entries as HTML: byte for byte what `addressbook.xsl` makes of them.

use std::fmt::Write;

use crate::entry::{BookEntry, BookView, Contact, Job, PostalAddress, Town};

/// The content of a page while entries are added to it.
pub(crate) struct MainContent<'a> {
    base: &'a str,
    view: BookView<'a>,
    html: String,
    count: usize,
}

impl<'a> MainContent<'a> {
    /// The beginning. The address of each entry is `base`, a slash and its id.
    pub(crate) fn new(base: &'a str, view: BookView<'a>) -> Self {
        Self {
            base,
            view,
            html: "<main>".to_owned(),
            count: 0,
        }
    }

    /// Adds an entry if the page shows it. False if no further entry can matter.
    pub(crate) fn offer(&mut self, entry: &BookEntry) -> bool {
        if !self.view.shows(entry) {
            return true;
        }
        self.count += 1;
        let html = &mut self.html;
        if let BookView::Entry(_) = self.view {
            html.push_str("<article><h2>");
            text(html, &entry.name());
            html.push_str("</h2>");
            details(html, entry);
            html.push_str("</article>");
            return false;
        }
        if self.count == 1 {
            html.push_str("<ul class=\"book\">");
        }
        html.push_str("<li><h2><a href=\"");
        attribute(html, self.base);
        html.push('/');
        attribute(html, &entry.id);
        html.push_str("\">");
        text(html, &entry.name());
        html.push_str("</a></h2>");
        details(html, entry);
        html.push_str("</li>");
        true
    }

    /// The element `main`, or `None` if the one entry that was asked for is not there.
    pub(crate) fn finish(mut self) -> Option<String> {
        let (html, count) = (&mut self.html, self.count);
        if let BookView::Entry(_) = self.view {
            html.push_str("</main>");
            return (count > 0).then_some(self.html);
        }
        if count > 0 {
            html.push_str("</ul>");
        }
        // Writing into a `String` cannot fail.
        let _ = write!(html, "<p class=\"count\">{count} found</p></main>");
        Some(self.html)
    }
}

fn details(html: &mut String, entry: &BookEntry) {
    for job in &entry.jobs {
        work(html, job);
    }
    if entry.own.street.is_some() {
        address(html, &entry.own);
    }
    for each in &entry.addresses {
        address(html, each);
    }
    for phone in &entry.phones {
        contact(html, phone, "tel:");
    }
    for email in &entry.emails {
        contact(html, email, "mailto:");
    }
    if !entry.groups.is_empty() {
        paragraph(html, "groups", &entry.groups.join(", "));
    }
    if let Some(birthday) = filled(&entry.birthday) {
        html.push_str("<p class=\"birthday\"><span class=\"kind\">born</span> ");
        text(html, birthday);
        html.push_str("</p>");
    }
    if let Some(note) = filled(&entry.note) {
        paragraph(html, "note", note);
    }
}

fn filled(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

fn text_of(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}

fn work(html: &mut String, job: &Job) {
    let employer = &job.employer;
    let title = text_of(&job.title);
    paragraph(
        html,
        "work",
        &format!("{title}, {}", text_of(&employer.name)),
    );
    html.push_str("<p class=\"address\">");
    kind(html, Some("work"));
    place(html, &employer.street, &employer.town);
    html.push_str("</p>");
}

fn address(html: &mut String, address: &PostalAddress) {
    html.push_str("<p class=\"address\">");
    kind(html, filled(&address.kind));
    place(html, &address.street, &address.town);
    html.push_str("</p>");
}

fn place(html: &mut String, street: &Option<String>, town: &Town) {
    text(html, text_of(street));
    html.push_str("<br/>");
    text(html, text_of(&town.code));
    html.push(' ');
    text(html, text_of(&town.city));
    if let Some(country) = filled(&town.country) {
        html.push_str(", ");
        text(html, country);
    }
}

fn contact(html: &mut String, contact: &Contact, scheme: &str) {
    let Some(shown) = filled(&contact.text) else {
        return;
    };
    html.push_str("<p>");
    kind(html, filled(&contact.kind));
    html.push_str("<a href=\"");
    html.push_str(scheme);
    match scheme {
        "tel:" => attribute(html, &shown.replace(' ', "")),
        _ => attribute(html, shown),
    }
    html.push_str("\">");
    text(html, shown);
    html.push_str("</a></p>");
}

fn kind(html: &mut String, kind: Option<&str>) {
    if let Some(kind) = kind {
        html.push_str("<span class=\"kind\">");
        text(html, kind);
        html.push_str("</span> ");
    }
}

fn paragraph(html: &mut String, class: &str, content: &str) {
    html.push_str("<p class=\"");
    html.push_str(class);
    html.push_str("\">");
    text(html, content);
    html.push_str("</p>");
}

/// Appends a text between tags, as an XML serializer does.
pub(crate) fn text(html: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '\r' => html.push_str("&#13;"),
            c => html.push(c),
        }
    }
}

/// Appends a text within an attribute, as an XML serializer does.
pub(crate) fn attribute(html: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '"' => html.push_str("&quot;"),
            '\n' => html.push_str("&#10;"),
            '\t' => html.push_str("&#9;"),
            c => text(html, c.encode_utf8(&mut [0; 4])),
        }
    }
}

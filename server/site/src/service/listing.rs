//! A page that shows what is in a folder of files.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use bytes::Bytes;
use millpond_http::{Parts, Prepared};
use minijinja::{Environment, Value, context};

use crate::{core::own_page::STYLE, statics::StaticFile};
use millpond_site_compile::page_type::HTML;
use millpond_site_format::rules::encode_path;

/// The most names on one page. A longer list is of no use, and the page stays below 200 KB.
const MAX_ROWS: usize = 1_000;

/// The entries of one folder. They are read with the folder; the page is made at the first request.
#[derive(Debug)]
pub(crate) struct Listing {
    folder: String,
    /// True if the folder above answers.
    has_parent: bool,
    rows: Vec<ListingRow>,
    /// Names beyond [`MAX_ROWS`].
    more: usize,
    page: OnceLock<Arc<Prepared>>,
}

#[derive(Debug)]
struct ListingRow {
    /// With a slash at its end if it is a folder.
    name: String,
    /// Size in bytes, and when it last changed; none for a folder.
    file: Option<(u64, SystemTime)>,
}

impl Listing {
    /// The listing of `folder`. Its path ends with a slash, and so do the names of the folders in
    /// it, which come first.
    pub(crate) fn new(
        folder: &str,
        has_parent: bool,
        entries: BTreeMap<String, Option<StaticFile>>,
    ) -> Self {
        let rows = entries.into_iter().map(|(name, file)| ListingRow {
            name,
            file: file.map(|file| (file.size(), file.modified())),
        });
        Self::of(folder, has_parent, rows.collect())
    }

    fn of(folder: &str, has_parent: bool, mut rows: Vec<ListingRow>) -> Self {
        rows.sort_by_cached_key(|row| {
            (
                row.file.is_some(),
                row.name.to_lowercase(),
                row.name.clone(),
            )
        });
        let more = rows.len().saturating_sub(MAX_ROWS);
        rows.truncate(MAX_ROWS);
        Self {
            folder: folder.to_owned(),
            has_parent,
            rows,
            more,
            page: OnceLock::new(),
        }
    }

    /// The page.
    pub(crate) fn prepared(&self) -> &Arc<Prepared> {
        self.page.get_or_init(|| {
            Arc::new(Prepared::new(Parts {
                status: 200,
                media_type: HTML,
                fields: &[("Cache-Control", "no-cache")],
                body: Bytes::from(self.html()),
                last_modified: None,
                compressible: true,
            }))
        })
    }

    fn html(&self) -> String {
        let rows: Vec<Value> = self.rows.iter().map(ListingRow::value).collect();
        let page = Environment::new().render_named_str(
            "listing.html",
            include_str!("listing.html"),
            context! {
                folder => &self.folder,
                has_parent => self.has_parent,
                rows => rows,
                more => self.more,
                style => Value::from_safe_string(STYLE.to_owned()),
            },
        );
        // The template is part of the program, and a test renders it.
        page.unwrap_or_default()
    }
}

impl ListingRow {
    fn value(&self) -> Value {
        let (size, changed) = match self.file {
            Some((size, changed)) => (size_text(size), date_text(changed)),
            None => (String::new(), String::new()),
        };
        context! {
            name => &self.name,
            // A name with a colon would be read as a scheme.
            link => format!("./{}", encode_path(&self.name)),
            size => size,
            changed => changed,
        }
    }
}

/// A size in the unit that leaves two or three digits before the point: `9.8 kB`.
fn size_text(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

/// `21 Nov 2026 14:05`, in universal time.
fn date_text(time: SystemTime) -> String {
    let date = httpdate::fmt_http_date(time);
    // Sat, 21 Nov 2026 14:05:06 GMT
    date.get(5..22).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn file(name: &str, size: u64) -> ListingRow {
        ListingRow {
            name: name.to_owned(),
            file: Some((
                size,
                SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_269_906),
            )),
        }
    }

    fn folder(name: &str) -> ListingRow {
        ListingRow {
            name: name.to_owned(),
            file: None,
        }
    }

    #[test]
    fn folders_come_first_and_names_are_escaped() {
        let rows = vec![
            file("b.txt", 12),
            file("<a> & ä:%.txt", 9_800),
            file("A.txt", 1_500_000),
            folder("z/"),
        ];
        let html = Listing::of("/x&y/", true, rows).html();
        // Slashes are escaped as well, which changes nothing for a browser.
        let html = html.replace("&#x2f;", "/");
        let in_order = [
            "\"../\"",
            ">z/<",
            "&lt;a&gt; &amp; ä:%.txt",
            ">A.txt<",
            ">b.txt<",
        ];
        let places = in_order.map(|text| html.find(text));
        assert!(places.is_sorted() && places[0].is_some(), "{html}");
        assert!(!html.contains("<a>") && !html.contains("x&y"), "{html}");
        for text in [
            "\"./%3Ca%3E%20&amp;%20%C3%A4:%25.txt\"",
            "12 B",
            "9.8 kB",
            "1.5 MB",
            "21 Nov 2026 14:05<",
        ] {
            assert!(html.contains(text), "{text} in {html}");
        }
        assert!(!Listing::of("/", false, Vec::new()).html().contains("../"));
    }

    #[test]
    fn a_long_one_ends_and_says_so() {
        let rows = (0..MAX_ROWS + 234).map(|number| file(&format!("{number:05}"), 1));
        let listing = Listing::of("/", false, rows.collect());
        let html = listing.html();
        assert!(
            html.contains("00999") && !html.contains("01000") && html.contains("234 more"),
            "{html}"
        );
        assert_eq!(listing.prepared().status(), 200);
    }
}

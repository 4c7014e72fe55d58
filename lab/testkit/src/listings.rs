//! The files that a guide shows.

/// The listings of a guide in Markdown whose first line names a file, as `-- pages/now.sql` or
/// `<!-- templates/now.html -->`: their names and the lines that follow.
#[must_use]
pub fn listings(guide: &str) -> Vec<(&str, &str)> {
    let listings = guide.split("\n```").filter_map(|listing| {
        let (language, text) = listing.split_once('\n')?;
        let (first, rest) = text.split_once('\n')?;
        match language {
            "toml" => Some((first.strip_prefix("# ")?, rest)),
            "sql" => Some((first.strip_prefix("-- ")?, rest)),
            "html" => Some((first.strip_prefix("<!-- ")?.strip_suffix(" -->")?, rest)),
            _ => None,
        }
    });
    listings.collect()
}

//! The formats, by the ends of files' names.

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Comma-separated values with a line of names (RFC 4180).
    Csv,
    /// Tab-separated values with a line of names.
    Tsv,
    /// An array of objects, or one object.
    Json,
    /// One JSON object on each line.
    Ndjson,
    /// An array of tables, or one table.
    Toml,
    /// A list of maps, or one map.
    Yaml,
    /// The children of the root.
    Xml,
    /// Front matter between `---` or `+++`, and a body.
    Markdown,
}

/// The endings of names.
const ENDINGS: [(&str, Format); 11] = [
    ("csv", Format::Csv),
    ("tsv", Format::Tsv),
    ("json", Format::Json),
    ("ndjson", Format::Ndjson),
    ("jsonl", Format::Ndjson),
    ("toml", Format::Toml),
    ("yaml", Format::Yaml),
    ("yml", Format::Yaml),
    ("xml", Format::Xml),
    ("md", Format::Markdown),
    ("markdown", Format::Markdown),
];

/// The endings that are read only where the settings name them: files of these names may be others.
const NAMED: [(&str, Format); 4] = [
    ("mdx", Format::Markdown),
    ("html", Format::Markdown),
    ("htm", Format::Markdown),
    ("txt", Format::Csv),
];

impl Format {
    /// The stem and the format of a file whose ending is one of those that the settings name, which
    /// are more than those of [`of_name`](Self::of_name).
    #[must_use]
    pub fn of_named(name: &str) -> Option<(&str, Self)> {
        let named = || {
            let (stem, ending) = name.rsplit_once('.')?;
            let mut named = NAMED.iter();
            let found = named.find(|(known, _)| known.eq_ignore_ascii_case(ending))?;
            (!stem.is_empty()).then_some((stem, found.1))
        };
        Self::of_name(name).or_else(named)
    }

    /// The stem and the format of a file by its name; none for the name of another kind of file.
    /// The case of the ending does not matter.
    #[must_use]
    pub fn of_name(name: &str) -> Option<(&str, Self)> {
        let (stem, ending) = name.rsplit_once('.')?;
        let known = ENDINGS
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(ending))?;
        (!stem.is_empty()).then_some((stem, known.1))
    }

    /// The endings of names that are known, in a sentence.
    #[must_use]
    pub fn endings() -> String {
        let endings: Vec<String> = ENDINGS.iter().map(|(end, _)| format!(".{end}")).collect();
        endings.join(", ")
    }
}

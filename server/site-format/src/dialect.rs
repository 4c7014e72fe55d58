//! `search.postgres.sql` in the place of `search.sql`: SQL for one database only.
//!
//! A file without a dialect serves every database for which there is no better file. A file's
//! logical name has no dialect, so addresses, and the names under which migrations were applied, do
//! not depend on the dialect.

use std::{collections::BTreeMap, path::PathBuf};

pub use millpond_db::sql::Dialect;

use crate::{DatabaseUrl, Problem, write_method::WriteMethod};

/// The folder of migrations.
const MIGRATIONS: &str = "migrations";

/// The words in names of files.
const WORDS: [(&str, Dialect); 2] = [("sqlite", Dialect::Sqlite), ("postgres", Dialect::Postgres)];

/// Words that are written for one of the dialects, and are not like enough to be found by likeness.
const ALIASES: [(&str, &str); 3] = [
    ("pg", "postgres"),
    ("psql", "postgres"),
    ("pgsql", "postgres"),
];

/// A file's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Text {
    /// The name of the file itself, below its folder.
    pub file: String,
    pub text: String,
}

impl Text {
    /// The file of a page's text, from the site's folder.
    pub fn page(&self) -> PathBuf {
        PathBuf::from(format!("pages/{}", self.file))
    }

    /// The file of a template's queries, from the site's folder.
    pub fn partial(&self) -> PathBuf {
        PathBuf::from(format!("templates/{}", self.file))
    }
}

/// Returns that of a database.
pub fn dialect_of(database: &DatabaseUrl) -> Dialect {
    match database {
        DatabaseUrl::Sqlite(_) => Dialect::Sqlite,
        DatabaseUrl::Postgres(_) => Dialect::Postgres,
    }
}

fn word(dialect: Dialect) -> &'static str {
    WORDS[dialect as usize].0
}

/// The database, for sentences.
fn database(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "SQLite",
        Dialect::Postgres => "PostgreSQL",
    }
}

/// The texts for this dialect, by their logical names. `root` is the folder, for problems.
pub fn select(
    dialect: Dialect,
    root: &str,
    texts: BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, Text> {
    let mut selected = BTreeMap::new();
    let mut others: BTreeMap<String, String> = BTreeMap::new();
    let mut both: BTreeMap<String, usize> = BTreeMap::new();
    let mut own = Vec::new();
    for (file, text) in texts {
        match split(&file) {
            Ok((base, None)) => drop(selected.insert(base, Text { file, text })),
            Ok((base, Some(found))) => {
                *both.entry(base.clone()).or_default() += 1;
                if found == dialect {
                    own.push((base, Text { file, text }));
                } else {
                    others.insert(base, file);
                }
            }
            Err(hint) => problems.push(
                Problem::new(
                    format!("{root}/{file}"),
                    "the file's name has no dialect of SQL that is known",
                )
                .hint(hint),
            ),
        }
    }
    for (base, text) in own {
        if selected.insert(base.clone(), text).is_some() && both[&base] == WORDS.len() {
            problems.push(
                Problem::new(
                    format!("{root}/{base}"),
                    "is never used: each database has a file of its own in its place",
                )
                .hint("remove it, or one of the others"),
            );
        }
        others.remove(&base);
    }
    // A migration may be for one database only, such as an index of a kind that the other
    // database lacks.
    if root == MIGRATIONS {
        return selected;
    }
    for (base, file) in others
        .into_iter()
        .filter(|(base, _)| !selected.contains_key(base))
    {
        problems.push(missing(dialect, root, &base, &file));
    }
    selected
}

/// There is only what is for another database.
fn missing(dialect: Dialect, root: &str, base: &str, file: &str) -> Problem {
    let own = with_word(base, word(dialect));
    Problem::new(
        format!("{root}/{file}"),
        format!(
            "the site is on {}, and there is no {own} for it",
            database(dialect)
        ),
    )
    .hint(format!(
        "write {own}, or {base} for every database; or remove {file}"
    ))
}

/// The logical name of a file, and its dialect. An error is a hint.
fn split(file: &str) -> Result<(String, Option<Dialect>), String> {
    let Some(stem) = file.strip_suffix(".sql") else {
        return Ok((file.to_owned(), None));
    };
    let name = stem.rsplit('/').next().unwrap_or(stem);
    // `comment.postgres.post.sql` is the other order of what is meant.
    let (checked, method) = match WriteMethod::split(name) {
        Some((rest, method)) => (rest, Some(method.word())),
        None => (name, None),
    };
    let Some((_, word)) = checked.rsplit_once('.') else {
        return Ok((file.to_owned(), None));
    };
    let bare = &stem[..stem.len() - name.len() + checked.len() - word.len() - 1];
    let lower = word.to_ascii_lowercase();
    let known = WORDS.iter().find(|(known, _)| *known == word);
    if let (Some((_, dialect)), None) = (known, method) {
        return Ok((format!("{bare}.sql"), Some(*dialect)));
    }
    let alias = ALIASES.iter().find(|(alias, _)| *alias == lower);
    let meant = alias
        .map(|(_, meant)| *meant)
        .or_else(|| closest_dialect(&lower));
    match (meant, method) {
        (Some(meant), Some(method)) => Err(format!("did you mean {bare}.{method}.{meant}.sql?")),
        (Some(meant), None) => Err(format!("did you mean {bare}.{meant}.sql?")),
        // A dot in an address, as in `feed.xml.sql`.
        (None, _) => Ok((file.to_owned(), None)),
    }
}

/// The dialect word of which at most one letter in four is wrong. `posts` and `site` are ordinary
/// words.
fn closest_dialect(word: &str) -> Option<&'static str> {
    let mut known = WORDS.iter().map(|(known, _)| *known);
    known.find(|known| strsim::levenshtein(word, known) <= known.len() / 4)
}

/// `search.sql` to `search.postgres.sql`.
fn with_word(base: &str, word: &str) -> String {
    let stem = base.strip_suffix(".sql").unwrap_or(base);
    format!("{stem}.{word}.sql")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(dialect: Dialect, files: &[&str]) -> (Vec<(String, String)>, Vec<String>) {
        let texts = files.iter().map(|file| (file.to_string(), String::new()));
        let mut problems = Vec::new();
        let selected = super::select(dialect, "pages", texts.collect(), &mut problems);
        let selected = selected.into_iter().map(|(base, text)| (base, text.file));
        (
            selected.collect(),
            problems.iter().map(Problem::to_string).collect(),
        )
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = pairs
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
        owned.collect()
    }

    #[test]
    fn a_dialect_stands_before_what_serves_both() {
        let files = [
            "a/search.html",
            "a/search.postgres.sql",
            "a/search.sql",
            "comment.post.postgres.sql",
            "comment.post.sql",
            "comment.put.sqlite.sql",
            "comment.put.sql",
            "feed.xml.sql",
            "x.posts.sql",
        ];
        let (selected, problems) = select(Dialect::Postgres, &files);
        let expected = [
            ("a/search.html", "a/search.html"),
            ("a/search.sql", "a/search.postgres.sql"),
            ("comment.post.sql", "comment.post.postgres.sql"),
            ("comment.put.sql", "comment.put.sql"),
            ("feed.xml.sql", "feed.xml.sql"),
            ("x.posts.sql", "x.posts.sql"),
        ];
        assert_eq!((selected, problems), (pairs(&expected), Vec::new()));
        let (selected, problems) = select(Dialect::Sqlite, &files);
        let expected = [
            ("a/search.html", "a/search.html"),
            ("a/search.sql", "a/search.sql"),
            ("comment.post.sql", "comment.post.sql"),
            ("comment.put.sql", "comment.put.sqlite.sql"),
            ("feed.xml.sql", "feed.xml.sql"),
            ("x.posts.sql", "x.posts.sql"),
        ];
        assert_eq!((selected, problems), (pairs(&expected), Vec::new()));
    }

    #[test]
    fn one_for_each_needs_no_other() {
        let files = ["a.postgres.sql", "a.sqlite.sql"];
        for (dialect, file) in [
            (Dialect::Postgres, "a.postgres.sql"),
            (Dialect::Sqlite, "a.sqlite.sql"),
        ] {
            let (selected, problems) = select(dialect, &files);
            assert_eq!(
                (selected, problems),
                (pairs(&[("a.sql", file)]), Vec::new())
            );
        }
        let (_, problems) = select(
            Dialect::Sqlite,
            &["a.postgres.sql", "a.sql", "a.sqlite.sql"],
        );
        assert!(
            problems[0].starts_with("pages/a.sql: is never used"),
            "{problems:?}"
        );
    }

    #[test]
    fn what_is_for_another_database_only_is_named() {
        let (selected, problems) = select(Dialect::Sqlite, &["b/a.postgres.sql"]);
        assert_eq!(selected, []);
        assert_eq!(
            problems,
            [
                "pages/b/a.postgres.sql: the site is on SQLite, and there is no b/a.sqlite.sql for it\n  \
              hint: write b/a.sqlite.sql, or b/a.sql for every database; or remove b/a.postgres.sql"
            ]
        );
    }

    #[test]
    fn a_migration_may_be_for_one_database_only() {
        let texts = BTreeMap::from([("0002_a.postgres.sql".to_owned(), String::new())]);
        let mut problems = Vec::new();
        let selected = super::select(Dialect::Sqlite, MIGRATIONS, texts, &mut problems);
        assert!(selected.is_empty() && problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn a_misspelt_dialect_is_no_address() {
        for (file, meant) in [
            ("a.postgresql.sql", "a.postgres.sql"),
            ("b/a.pg.sql", "b/a.postgres.sql"),
            ("a.Postgres.sql", "a.postgres.sql"),
            ("a.sqlite3.sql", "a.sqlite.sql"),
            ("a.post.postgresql.sql", "a.post.postgres.sql"),
            ("a.postgres.post.sql", "a.post.postgres.sql"),
            ("a.put.pg.sql", "a.put.postgres.sql"),
            ("a.postgres.delete.sql", "a.delete.postgres.sql"),
        ] {
            let (_, problems) = select(Dialect::Sqlite, &[file]);
            let hint = format!("did you mean {meant}?");
            assert!(problems[0].ends_with(&hint), "{file}: {problems:?}");
        }
    }
}

//! The rows on PostgreSQL: all rows go into temporary tables first, a thousand at a time, and a few
//! statements then write the differences. A statement for each row, as on SQLite, would wait for
//! the network a million times.

use std::collections::BTreeSet;

use millpond_db::{Error as DatabaseError, PostgresSession};

use super::record::ImportBatch;
use super::text::slug;
use super::{ImportError, ImportSummary, Result};

/// Rows that are sent at once.
const ROWS: usize = 1_000;
/// Bytes that are sent at once, roughly.
const BYTES: usize = 8 << 20;

const TABLES: [&str; 9] = [
    "article",
    "author",
    "topic",
    "article_author",
    "article_topic",
    "related",
    "comment",
    "thread",
    "post",
];

/// The statements, in three parts: before the rows are sent, after, and for what is counted.
const PREPARE: &str = include_str!("postgres/prepare.sql");
const ARTICLES: &str = include_str!("postgres/articles.sql");
const LINKS: &str = include_str!("postgres/links.sql");
const TALK: &str = include_str!("postgres/talk.sql");

/// # Errors
/// Names the first table that is missing.
pub(super) fn require_tables(session: &mut PostgresSession) -> Result<()> {
    for table in TABLES {
        let found = session.rows(&format!("select to_regclass('{table}') is not null"))?;
        if single(&found) != Some("t") {
            return Err(ImportError::MissingTable(table));
        }
    }
    Ok(())
}

/// One transaction; nothing is left of it if it fails.
pub(super) fn write(
    session: &mut PostgresSession,
    batch: &ImportBatch,
    summary: &mut ImportSummary,
) -> Result<()> {
    session.run("begin")?;
    let written = send(session, batch).and_then(|()| merge(session, batch, summary));
    let end = if written.is_ok() {
        "commit"
    } else {
        "rollback"
    };
    let ended = session.run(end);
    written?;
    ended.map_err(ImportError::from)
}

/// The statements that write what was sent.
fn merge(
    session: &mut PostgresSession,
    batch: &ImportBatch,
    summary: &mut ImportSummary,
) -> Result<()> {
    let articles = counts(&session.rows(ARTICLES)?);
    session.run(LINKS)?;
    let talk = counts(&session.rows(TALK)?);
    let ([updated, added], [comments, threads]) = (articles, talk);
    summary.updated += updated;
    summary.added += added;
    summary.unchanged += batch.articles.len() - updated - added;
    summary.comments += comments;
    summary.threads += threads;
    Ok(())
}

/// The one value of each of two results.
fn counts(rows: &[Vec<Option<String>>]) -> [usize; 2] {
    let count = |row: usize| {
        let value = rows.get(row).and_then(|row| row.first()?.as_deref());
        value.and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    [count(0), count(1)]
}

fn single(rows: &[Vec<Option<String>>]) -> Option<&str> {
    rows.first()?.first()?.as_deref()
}

/// Brings everything into the temporary tables.
fn send(session: &mut PostgresSession, batch: &ImportBatch) -> Result<()> {
    session.run(PREPARE)?;
    let mut topics = RowBuffer::new("in_topic", 4);
    for (n, topic) in batch.topics.iter().enumerate() {
        topics.add(session, n, &[&topic.slug, &topic.name, &topic.summary])?;
    }
    topics.flush(session)?;
    let mut articles = RowBuffer::new("in_article", 11);
    let mut authors = RowBuffer::new("in_author", 4);
    let mut about = RowBuffer::new("in_about", 3);
    let mut related = RowBuffer::new("in_related", 4);
    let mut comments = RowBuffer::new("in_comment", 5);
    for (number, article) in batch.articles.iter().enumerate() {
        let n = number.to_string();
        let words = article.words().to_string();
        let row: [Option<&str>; 10] = [
            Some(&article.slug),
            Some(&article.title),
            Some(&article.summary),
            Some(&article.published_at),
            Some(&words),
            article.version.as_deref(),
            article.license.as_deref(),
            article.repository.as_deref(),
            Some(&article.body_html),
            Some(&article.body_text),
        ];
        articles.add_some(session, number, &row)?;
        let mut seen = BTreeSet::new();
        for (at, name) in article.authors.iter().enumerate() {
            // Two spellings of a name are one author.
            let slug = slug(name);
            if seen.insert(slug.clone()) {
                authors.add(session, at, &[&n, &slug, name])?;
            }
        }
        for (at, topic) in article.topics.iter().enumerate() {
            about.add(session, at, &[&n, topic])?;
        }
        for (at, relation) in article.related.iter().enumerate() {
            related.add(session, at, &[&n, &relation.slug, relation.kind.as_str()])?;
        }
        for (at, comment) in article.comments.iter().enumerate() {
            comments.add(session, at, &[&n, &comment.who, &comment.body, &comment.at])?;
        }
    }
    for mut lines in [articles, authors, about, related, comments] {
        lines.flush(session)?;
    }
    let mut threads = RowBuffer::new("in_thread", 6);
    for (n, thread) in batch.threads.iter().enumerate() {
        let row = [
            &thread.topic,
            &thread.title,
            &thread.who,
            &thread.body,
            &thread.at,
        ];
        threads.add(session, n, &row.map(String::as_str))?;
    }
    threads.flush(session)
}

/// Rows on their way into one table, whose first column is a number that keeps their order.
struct RowBuffer {
    sql: String,
    columns: Vec<Vec<Option<String>>>,
    bytes: usize,
}

impl RowBuffer {
    fn new(table: &str, columns: usize) -> Self {
        let lists: Vec<_> = (1..=columns).map(|n| format!("${n}::text[]")).collect();
        Self {
            sql: format!(
                "insert into {table} select n::integer, {} from unnest({}) as sent(n, {})",
                names(columns),
                lists.join(", "),
                names(columns)
            ),
            columns: vec![Vec::new(); columns],
            bytes: 0,
        }
    }

    fn add(&mut self, session: &mut PostgresSession, n: usize, row: &[&str]) -> Result<()> {
        let row: Vec<_> = row.iter().map(|value| Some(*value)).collect();
        self.add_some(session, n, &row)
    }

    fn add_some(
        &mut self,
        session: &mut PostgresSession,
        n: usize,
        row: &[Option<&str>],
    ) -> Result<()> {
        self.columns[0].push(Some(n.to_string()));
        for (column, value) in self.columns[1..].iter_mut().zip(row) {
            // PostgreSQL's texts have no NUL.
            column.push(value.map(|text| text.replace('\0', "")));
            self.bytes += value.map_or(0, str::len);
        }
        if self.columns[0].len() >= ROWS || self.bytes >= BYTES {
            self.flush(session)?;
        }
        Ok(())
    }

    fn flush(&mut self, session: &mut PostgresSession) -> Result<()> {
        if self.columns[0].is_empty() {
            return Ok(());
        }
        let columns: Vec<Vec<Option<&str>>> = self
            .columns
            .iter()
            .map(|column| column.iter().map(Option::as_deref).collect())
            .collect();
        session.fill(&self.sql, &columns)?;
        self.columns.iter_mut().for_each(Vec::clear);
        self.bytes = 0;
        Ok(())
    }
}

/// `c2, c3`: the columns after the number.
fn names(columns: usize) -> String {
    let names: Vec<_> = (2..=columns).map(|n| format!("c{n}")).collect();
    names.join(", ")
}

impl From<DatabaseError> for ImportError {
    fn from(error: DatabaseError) -> Self {
        Self::Postgres(error)
    }
}

//! The rows: one transaction, and only what differs.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::record::{Article, Comment, ImportBatch, Relation, Thread, Topic};
use super::text::slug;
use super::{ImportError, ImportSummary, Result};

/// Articles are numbered from here on.
const FIRST_ID: i64 = 50_000_001;

const TABLES: [&str; 10] = [
    "article",
    "author",
    "topic",
    "article_author",
    "article_topic",
    "related",
    "comment",
    "thread",
    "post",
    "article_fts",
];

/// # Errors
/// Names the first table that is missing.
pub(super) fn require_tables(db: &Connection) -> Result<()> {
    let mut query = db.prepare("select 1 from sqlite_schema where type = 'table' and name = ?1")?;
    for table in TABLES {
        if !query.exists([table])? {
            return Err(ImportError::MissingTable(table));
        }
    }
    Ok(())
}

pub(super) fn write(
    db: &mut Connection,
    batch: &ImportBatch,
    summary: &mut ImportSummary,
) -> Result<()> {
    // Immediate: the transaction may wait for another writer at its start, but must not fail
    // half-way because of one.
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let topics = topics(&transaction, &batch.topics)?;
    let mut ids: HashMap<&str, i64> = HashMap::new();
    for article in &batch.articles {
        ids.insert(&article.slug, row(&transaction, article, summary)?);
    }
    for article in &batch.articles {
        let id = ids[article.slug.as_str()];
        let authors = article
            .authors
            .iter()
            .map(|name| author(&transaction, name))
            .collect::<Result<Vec<_>>>()?;
        links(&transaction, JoinTable::Author, id, &authors)?;
        let about: Vec<i64> = article
            .topics
            .iter()
            .filter_map(|slug| topics.get(slug).copied())
            .collect();
        links(&transaction, JoinTable::Topic, id, &about)?;
        related(&transaction, id, &article.related, &ids)?;
        for comment in &article.comments {
            summary.comments += usize::from(write_comment(&transaction, id, comment)?);
        }
    }
    for thread in &batch.threads {
        if let Some(&topic) = topics.get(&thread.topic) {
            summary.threads += usize::from(write_thread(&transaction, topic, thread)?);
        }
    }
    transaction.commit()?;
    Ok(())
}

fn topics(db: &Transaction<'_>, topics: &[Topic]) -> Result<HashMap<String, i64>> {
    // A summary may have been written by hand meanwhile; an import that has none leaves it.
    let mut upsert = db.prepare_cached(
        "insert into topic (slug, name, summary) values (?1, ?2, ?3)
         on conflict (slug) do update set summary = excluded.summary
         where excluded.summary <> '' and summary <> excluded.summary",
    )?;
    let mut ids = HashMap::new();
    for topic in topics {
        upsert.execute(params![topic.slug, topic.name, topic.summary])?;
        let id = db
            .prepare_cached("select id from topic where slug = ?1")?
            .query_row([&topic.slug], |row| row.get(0))?;
        ids.insert(topic.slug.clone(), id);
    }
    Ok(ids)
}

fn author(db: &Transaction<'_>, name: &str) -> Result<i64> {
    let slug = slug(name);
    let mut find = db.prepare_cached("select id from author where slug = ?1")?;
    if let Some(id) = find.query_row([&slug], |row| row.get(0)).optional()? {
        return Ok(id);
    }
    let mut insert =
        db.prepare_cached("insert into author (slug, name) values (?1, ?2) returning id")?;
    Ok(insert.query_row(params![slug, name], |row| row.get(0))?)
}

/// Writes an article's own row and returns its id.
fn row(db: &Transaction<'_>, article: &Article, summary: &mut ImportSummary) -> Result<i64> {
    let known: Option<i64> = db
        .prepare_cached("select id from article where slug = ?1")?
        .query_row([&article.slug], |row| row.get(0))
        .optional()?;
    let mut upsert = db.prepare_cached(
        "insert into article
           (id, slug, title, summary, published_at, words, version, license, repository, body_html, body_text)
         values (coalesce((select max(id) + 1 from article where id >= ?1), ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
         on conflict (slug) do update set
           title = excluded.title, summary = excluded.summary, published_at = excluded.published_at,
           words = excluded.words, version = excluded.version, license = excluded.license,
           repository = excluded.repository, body_html = excluded.body_html, body_text = excluded.body_text
         where (title, summary, published_at, words, version, license, repository, body_html, body_text)
           is not (excluded.title, excluded.summary, excluded.published_at, excluded.words, excluded.version,
                   excluded.license, excluded.repository, excluded.body_html, excluded.body_text)
         returning id",
    )?;
    let written: Option<i64> = upsert
        .query_row(
            params![
                FIRST_ID,
                article.slug,
                article.title,
                article.summary,
                article.published_at,
                i64::try_from(article.words()).unwrap_or(i64::MAX),
                article.version,
                article.license,
                article.repository,
                article.body_html,
                article.body_text,
            ],
            |row| row.get(0),
        )
        .optional()?;
    let count = match (known, written) {
        (None, _) => &mut summary.added,
        (Some(_), Some(_)) => &mut summary.updated,
        (Some(_), None) => &mut summary.unchanged,
    };
    *count += 1;
    // One of the two is there: an insert returns its id, and a row that was left alone was known.
    written
        .or(known)
        .ok_or(ImportError::Database(rusqlite::Error::QueryReturnedNoRows))
}

/// A table that joins articles with something, in an order.
#[derive(Clone, Copy)]
enum JoinTable {
    Author,
    Topic,
}

fn links(db: &Transaction<'_>, link: JoinTable, article: i64, wanted: &[i64]) -> Result<()> {
    let (select, delete, insert) = match link {
        JoinTable::Author => (
            "select author_id from article_author where article_id = ?1 order by position",
            "delete from article_author where article_id = ?1",
            "insert or ignore into article_author (article_id, author_id, position) values (?1, ?2, ?3)",
        ),
        JoinTable::Topic => (
            "select topic_id from article_topic where article_id = ?1 order by position",
            "delete from article_topic where article_id = ?1",
            "insert or ignore into article_topic (article_id, topic_id, position) values (?1, ?2, ?3)",
        ),
    };
    // Two spellings of a name are one author.
    let mut unique: Vec<i64> = Vec::new();
    for id in wanted {
        if !unique.contains(id) {
            unique.push(*id);
        }
    }
    let held: Vec<i64> = db
        .prepare_cached(select)?
        .query_map([article], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    if held == unique {
        return Ok(());
    }
    db.prepare_cached(delete)?.execute([article])?;
    for (position, id) in unique.iter().enumerate() {
        db.prepare_cached(insert)?.execute(params![
            article,
            id,
            i64::try_from(position).unwrap_or(0)
        ])?;
    }
    Ok(())
}

fn related(
    db: &Transaction<'_>,
    article: i64,
    relations: &[Relation],
    ids: &HashMap<&str, i64>,
) -> Result<()> {
    let mut wanted: Vec<(i64, String)> = Vec::new();
    for relation in relations {
        if let Some(&other) = ids.get(relation.slug.as_str())
            && other != article
            && wanted.iter().all(|(known, _)| *known != other)
        {
            wanted.push((other, relation.kind.as_str().to_owned()));
        }
    }
    let held: Vec<(i64, String)> = db
        .prepare_cached(
            "select other_id, kind from related where article_id = ?1 order by position",
        )?
        .query_map([article], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    if held == wanted {
        return Ok(());
    }
    db.prepare_cached("delete from related where article_id = ?1")?
        .execute([article])?;
    let mut insert = db.prepare_cached(
        "insert into related (article_id, other_id, kind, position, title, summary)
         select ?1, id, ?3, ?4, title, summary from article where id = ?2",
    )?;
    for (position, (other, kind)) in wanted.iter().enumerate() {
        insert.execute(params![
            article,
            other,
            kind,
            i64::try_from(position).unwrap_or(0)
        ])?;
    }
    Ok(())
}

/// True if anything was written.
fn write_comment(db: &Transaction<'_>, article: i64, comment: &Comment) -> Result<bool> {
    let mut upsert = db.prepare_cached(
        "insert into comment (article_id, who, body, at, imported) values (?1, ?2, ?3, ?4, 1)
         on conflict (article_id, who) where imported = 1 do update set body = excluded.body, at = excluded.at
         where body <> excluded.body or at <> excluded.at",
    )?;
    Ok(upsert.execute(params![article, comment.who, comment.body, comment.at])? > 0)
}

/// True if anything was written.
fn write_thread(db: &Transaction<'_>, topic: i64, thread: &Thread) -> Result<bool> {
    let mut upsert = db.prepare_cached(
        "insert into thread (topic_id, title, opened_at) values (?1, ?2, ?3)
         on conflict (topic_id) do update set title = excluded.title, opened_at = excluded.opened_at
         where title <> excluded.title or opened_at <> excluded.opened_at",
    )?;
    let mut changed = upsert.execute(params![topic, thread.title, thread.at])?;
    let mut opening = db.prepare_cached(
        "insert into post (thread_id, who, body, at, imported)
         select id, ?2, ?3, ?4, 1 from thread where topic_id = ?1
         on conflict (thread_id) where imported = 1 do update set who = excluded.who, body = excluded.body, at = excluded.at
         where who <> excluded.who or body <> excluded.body or at <> excluded.at",
    )?;
    changed += opening.execute(params![topic, thread.who, thread.body, thread.at])?;
    Ok(changed > 0)
}

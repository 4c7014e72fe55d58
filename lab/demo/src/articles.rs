//! The articles of the magazine: the documentation of this project, one for each section.
//!
//! They become a migration of the site, so that the server itself fills its database, whichever it
//! is. The sections of a document are a topic.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs, io,
    path::{Component, Path, PathBuf},
};

use time::Date;

use crate::markdown::{render, slug, summary};

/// The number of the first article.
const FIRST: usize = 50_000_001;
/// Folders of documents. What stands last is the newest.
const FOLDERS: [&str; 4] = ["reference", "reference/site", "guide", "tutorial"];
/// Shorter sections are no articles.
const FEWEST_WORDS: usize = 60;
/// Articles beside the text of another.
const NEAR: usize = 6;

/// A section of a document.
pub(crate) struct Article {
    /// Its number in the database.
    pub(crate) id: usize,
    pub(crate) title: String,
    /// The place of its document among the topics.
    topic: usize,
    slug: String,
    pub(crate) html: String,
    text: String,
    summary: String,
    /// The articles that the text links to.
    links: Vec<usize>,
}

/// A document: its file's name, its title and its beginning.
struct Topic {
    slug: String,
    name: String,
    summary: String,
}

/// All articles with their topics.
pub(crate) struct Articles {
    topics: Vec<Topic>,
    all: Vec<Article>,
}

/// A section before it is rendered.
struct UnrenderedArticle {
    topic: usize,
    title: String,
    markdown: String,
    /// The file of its document.
    document: PathBuf,
}

impl Articles {
    /// Reads the documents in `docs`.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn read(docs: &Path) -> io::Result<Self> {
        let (mut topics, mut sections) = (Vec::new(), Vec::new());
        let mut numbers = BTreeMap::new();
        for folder in FOLDERS {
            let entries = fs::read_dir(docs.join(folder))?.collect::<io::Result<Vec<_>>>()?;
            let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
            paths.retain(|path| path.extension().is_some_and(|end| end == "md"));
            paths.sort_unstable();
            for path in paths {
                let text = fs::read_to_string(&path)?;
                let (mut topic, found) = document(&path, &text, topics.len());
                if topics.iter().any(|known: &Topic| known.slug == topic.slug) {
                    topic.slug = format!("{}-{}", slug(folder), topic.slug);
                }
                let first = FIRST + sections.len();
                numbers
                    .entry((path.clone(), String::new()))
                    .or_insert(first);
                for section in found {
                    let address = (path.clone(), slug(&section.title));
                    numbers.entry(address).or_insert(FIRST + sections.len());
                    sections.push(section);
                }
                topics.push(topic);
            }
        }
        let all = (FIRST..).zip(&sections);
        let all = all.map(|(id, section)| article(id, section, &topics, &numbers));
        let all = all.collect();
        Ok(Self { topics, all })
    }

    /// All of them, in the order of their numbers.
    pub(crate) fn all(&self) -> &[Article] {
        &self.all
    }

    /// The statements that write them into the tables of the site, on either database.
    pub(crate) fn migration(&self) -> String {
        let mut sql =
            "-- The documentation of Millpond, an article for each section.\n\n".to_owned();
        sql += "insert into author (id, slug, name) values (1, 'millpond', 'The authors of Millpond');\n";
        for (id, topic) in (1..).zip(&self.topics) {
            let [slug, name, summary] =
                [&topic.slug, &topic.name, &topic.summary].map(|text| quoted(text));
            let _ = writeln!(
                sql,
                "insert into topic (id, slug, name, summary) values ({id}, {slug}, {name}, {summary});"
            );
        }
        for article in &self.all {
            article.write(&mut sql);
        }
        // The title of the other article stands in the row, so all articles come first.
        for article in &self.all {
            for (position, other) in self.near(article).into_iter().enumerate() {
                let _ = writeln!(
                    sql,
                    "insert into related (article_id, other_id, kind, position, title, summary) \
                     select {}, id, 'near', {position}, title, summary from article where id = {other};",
                    article.id
                );
            }
        }
        sql += "insert into thread (topic_id, title) select id, 'What is missing: ' || name from topic;\n\
                insert into post (thread_id, who, body) select id, 'The demo', \
                'Say here what these articles leave open. The page that you are led back to has it.' from thread;\n";
        sql
    }

    /// The articles that one links to, and then its neighbours in the document.
    fn near(&self, article: &Article) -> Vec<usize> {
        let same = self.all.iter().filter(|other| other.topic == article.topic);
        let mut near = Vec::new();
        for other in article
            .links
            .iter()
            .copied()
            .chain(same.map(|other| other.id))
        {
            if other != article.id && !near.contains(&other) && near.len() < NEAR {
                near.push(other);
            }
        }
        near
    }
}

impl Article {
    /// An article of which only the length of its HTML counts.
    #[cfg(test)]
    pub(crate) fn of_length(id: usize, bytes: usize) -> Self {
        Self {
            id,
            title: String::new(),
            topic: 0,
            slug: String::new(),
            html: "x".repeat(bytes),
            text: String::new(),
            summary: String::new(),
            links: Vec::new(),
        }
    }

    /// Writes its rows, but for those of its relations.
    fn write(&self, sql: &mut String) {
        let Self { id, topic, .. } = self;
        // A day for each: the documents have no dates of their own.
        let day = u16::try_from((id - FIRST) % 365 + 1).unwrap_or(1);
        let day = Date::from_ordinal_date(2026, day).unwrap_or(Date::MIN);
        let texts = [
            &self.slug,
            &self.title,
            &self.summary,
            &self.html,
            &self.text,
        ];
        let [slug, title, summary, html, text] = texts.map(|text| quoted(text));
        let words = self.text.split_whitespace().count();
        let version = env!("CARGO_PKG_VERSION");
        let _ = write!(
            sql,
            "insert into article (id, slug, title, summary, published_at, words, version, license, body_html, body_text) values \
             ({id}, {slug}, {title}, {summary}, '{day}T08:00:00Z', {words}, '{version}', 'MIT OR Apache-2.0', {html}, {text});\n\
             insert into article_author (article_id, author_id, position) values ({id}, 1, 0);\n\
             insert into article_topic (article_id, topic_id, position) values ({id}, {}, 0);\n",
            topic + 1
        );
    }
}

/// The topic of a document and its sections that are long enough.
fn document(path: &Path, text: &str, topic: usize) -> (Topic, Vec<UnrenderedArticle>) {
    let (head, rest) = text.split_once("\n## ").unwrap_or((text, ""));
    let (title, start) = head.split_once('\n').unwrap_or((head, ""));
    let plain = |markdown: &str| render(markdown, |_| None);
    // The page of a folder has the folder's name.
    let name = match path.file_name() {
        Some(name) if name == "README.md" => path.parent().and_then(Path::file_name),
        _ => path.file_stem(),
    };
    let stem = name.unwrap_or_default().to_string_lossy();
    let topic_of_it = Topic {
        slug: slug(&stem),
        name: plain(title).text,
        summary: summary(&plain(start).lead),
    };
    let sections = sections(rest).into_iter().map(|section| {
        let (title, markdown) = section.split_once('\n').unwrap_or((section, ""));
        UnrenderedArticle {
            topic,
            title: plain(title).text,
            markdown: markdown.to_owned(),
            document: path.to_owned(),
        }
    });
    let long =
        |section: &UnrenderedArticle| section.markdown.split_whitespace().count() >= FEWEST_WORDS;
    (topic_of_it, sections.filter(long).collect())
}

/// The sections behind the first `## `, each from its title on. In code a line may begin so too.
fn sections(text: &str) -> Vec<&str> {
    let (mut found, mut start, mut at, mut is_code) = (Vec::new(), 0, 0, false);
    for line in text.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
        if !is_code && line.starts_with("## ") {
            found.push(&text[start..at]);
            start = at + 3;
        }
        at += line.len();
    }
    found.push(&text[start..]);
    found
}

fn article(
    id: usize,
    section: &UnrenderedArticle,
    topics: &[Topic],
    numbers: &BTreeMap<(PathBuf, String), usize>,
) -> Article {
    let mut links = Vec::new();
    let rendered = render(&section.markdown, |target| {
        if target.starts_with("https://") {
            return Some(target.to_owned());
        }
        // Without an anchor the first section is meant.
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = match file {
            "" => section.document.clone(),
            file => normal(&section.document.with_file_name(file)),
        };
        let number = *numbers.get(&(path, anchor.to_owned()))?;
        links.push(number);
        Some(format!("/read?id={number}"))
    });
    let topic = &topics[section.topic];
    Article {
        id,
        // What is only a name of a document's own, such as `[site]`, says nothing by itself.
        title: match section.title.starts_with('[') {
            true => format!("{}: {}", topic.name, section.title),
            false => section.title.clone(),
        },
        topic: section.topic,
        slug: format!("{}-{}", topic.slug, slug(&section.title)),
        summary: summary(&rendered.lead),
        html: rendered.html,
        text: rendered.text,
        links,
    }
}

/// A path without `..`, as documents refer to each other.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// A literal of SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_section_is_an_article_that_leads_to_others() {
        let dir = lab_testkit::fast_dir();
        let long = "What it's about. ".repeat(30);
        for folder in FOLDERS {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let first = format!(
            "# A `guide`\n\nIt begins.\n\n## One\n\n{long}[two](../reference/b.md#no-2) [gone](c.md) [here](#one) <b>\n\n\
             ```sh\n## no title\n```\n\n## Short\n\nx\n"
        );
        fs::write(dir.path().join("guide/a.md"), first).unwrap();
        let second = format!("# B\n\n## No 2\n\n{long}\n");
        fs::write(dir.path().join("reference/b.md"), second).unwrap();
        let articles = Articles::read(dir.path()).unwrap();
        let [two, one] = articles.all() else {
            panic!("{} articles", articles.all().len());
        };
        assert_eq!((two.title.as_str(), one.title.as_str()), ("No 2", "One"));
        assert_eq!(articles.topics[1].name, "A guide");
        assert_eq!(articles.topics[1].summary, "It begins.");
        let link = format!(
            "<a href=\"/read?id={FIRST}\">two</a> gone <a href=\"/read?id={}\">here</a> &lt;b&gt;",
            FIRST + 1
        );
        assert!(one.html.contains(&link), "{}", one.html);
        assert!(one.summary.starts_with("What it's about.") && one.summary.len() <= 220);
        assert!(one.html.contains("## no title"), "{}", one.html);
        assert_eq!(articles.near(one), [FIRST]);
        assert!(articles.near(two).is_empty());
        let sql = articles.migration();
        assert!(sql.contains("'What it''s about. What it"), "{sql}");
    }

    #[test]
    fn the_documents_of_the_project_are_a_magazine() {
        let articles = Articles::read(&crate::programs::workspace().join("docs")).unwrap();
        let all = articles.all();
        assert!((60..300).contains(&all.len()), "{} articles", all.len());
        assert!(all.iter().all(|article| article.title.len() < 300));
        let linked = all.iter().filter(|article| !article.links.is_empty());
        assert!(linked.count() > 20);
        let mut slugs: Vec<&str> = articles.topics.iter().map(|topic| &*topic.slug).collect();
        slugs.sort_unstable();
        assert!(slugs.windows(2).all(|two| two[0] != two[1]), "{slugs:?}");
    }
}

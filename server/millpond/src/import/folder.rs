//! A folder of Markdown files with front matter as articles, as Hugo, Jekyll, Zola and others keep them.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use super::front_matter::{self, Fault, FrontMatter};
use super::html::{Renderer, Source};
use super::record::{Article, Batch, Topic};
use super::text::{author_name, cut, one_line, slug, without_mail};
use super::{Error, MAX_SOURCE_BYTES, Result, Skipped, dates, relations, topics};

/// Folders below `dir` deeper than this are not looked into.
const MAX_DEPTH: usize = 32;

/// At most this many authors and topics of one article; what is beyond is left out.
const MAX_NAMES: usize = 20;

/// How many articles are shown as near.
const NEAR: usize = 4;

const TITLE: [&str; 1] = ["title"];
const SLUG: [&str; 1] = ["slug"];
const DATE: [&str; 4] = ["date", "published", "published_at", "pubdate"];
const SUMMARY: [&str; 4] = ["summary", "description", "excerpt", "subtitle"];
const AUTHORS: [&str; 2] = ["author", "authors"];
const TOPICS: [&str; 6] = ["categories", "category", "topics", "topic", "tags", "tag"];

/// Reads and renders the files; those that make no article are listed in `skipped`.
pub(super) fn batch(
    dir: &Path,
    skipped: &mut Vec<Skipped>,
    progress: &mut dyn FnMut(&str),
) -> Result<Batch> {
    let mut files = Vec::new();
    let mut unread = Vec::new();
    find(dir, MAX_DEPTH, &mut files, &mut unread)
        .map_err(|error| Error::Read(dir.to_owned(), error))?;
    files.sort();
    skipped.extend(unread.into_iter().map(|(folder, error)| Skipped {
        source: shown(&folder, dir),
        line: None,
        reason: error.to_string(),
    }));
    let renderer = Renderer::new(Source::Site);
    let mut slugs: HashMap<String, String> = HashMap::new();
    let mut names: BTreeMap<String, Topic> = BTreeMap::new();
    let mut articles = Vec::new();
    for file in files {
        let source = file
            .strip_prefix(dir)
            .unwrap_or(&file)
            .display()
            .to_string();
        progress(&source);
        let made = article(&file, &renderer).and_then(|made| {
            let Some((article, topics)) = made else {
                return Ok(None);
            };
            if let Some(first) = slugs.get(&article.slug) {
                let reason = format!(
                    "the slug `{}` is also that of {first}; give one of them a `slug:`",
                    article.slug
                );
                return Err((None, reason));
            }
            Ok(Some((article, topics)))
        });
        match made {
            Ok(None) => {}
            Ok(Some((article, topics))) => {
                slugs.insert(article.slug.clone(), source);
                for topic in topics {
                    names.entry(topic.slug.clone()).or_insert(topic);
                }
                articles.push(article);
            }
            Err((line, reason)) => skipped.push(Skipped {
                source,
                line,
                reason,
            }),
        }
    }
    relations::nearest(&mut articles, NEAR);
    Ok(Batch {
        articles,
        topics: names.into_values().collect(),
        threads: Vec::new(),
    })
}

/// All Markdown files, without following links to folders, which may lead round in circles.
///
/// A folder below `dir` that cannot be read goes to `unread`.
fn find(
    dir: &Path,
    depth: usize,
    files: &mut Vec<PathBuf>,
    unread: &mut Vec<(PathBuf, std::io::Error)>,
) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (path, kind, name) = (entry.path(), entry.file_type()?, entry.file_name());
        let hidden = name.as_encoded_bytes().starts_with(b".");
        if kind.is_dir() {
            if !hidden
                && name != "node_modules"
                && depth > 0
                && let Err(error) = find(&path, depth - 1, files, unread)
            {
                unread.push((path, error));
            }
            continue;
        }
        let extension = path
            .extension()
            .and_then(|extension| extension.to_str())
            .unwrap_or_default();
        let markdown =
            extension.eq_ignore_ascii_case("md") || extension.eq_ignore_ascii_case("markdown");
        // `_index.md` describes a section, it is no article.
        if markdown
            && !hidden
            && name != "_index.md"
            && fs::metadata(&path).is_ok_and(|data| data.is_file())
        {
            files.push(path);
        }
    }
    Ok(())
}

/// A path as messages name it.
fn shown(path: &Path, dir: &Path) -> String {
    path.strip_prefix(dir).unwrap_or(path).display().to_string()
}

/// Where and why a file makes no article.
type Refusal = (Option<usize>, String);

/// The article of a file and its topics by name, or nothing for a draft.
fn article(
    file: &Path,
    renderer: &Renderer,
) -> std::result::Result<Option<(Article, Vec<Topic>)>, Refusal> {
    let (text, modified) = read(file)?;
    let head = front_matter::split(&text).map_err(|Fault { line, reason }| (Some(line), reason))?;
    let Some((head, body)) = head else {
        return Err((
            Some(1),
            "no front matter: the file should begin with `---`, a `title:` and `---`".to_owned(),
        ));
    };
    if is_true(head.one(&["draft"]))
        || head
            .one(&["published"])
            .is_some_and(|value| value.eq_ignore_ascii_case("false"))
    {
        return Ok(None);
    }
    let rendered = renderer.render(body).map_err(|reason| (None, reason))?;
    let (named_slug, named_date) = from_name(file);
    let given = head
        .one(&TITLE)
        .map(one_line)
        .or_else(|| rendered.title.clone());
    let title = given
        .filter(|title| !title.is_empty())
        .unwrap_or_else(|| named_slug.replace('-', " "));
    let published_at = match date(&head)? {
        Some(date) => date,
        None => named_date.unwrap_or(modified),
    };
    let summary = head
        .one(&SUMMARY)
        .map(one_line)
        .or_else(|| rendered.lead.clone())
        .unwrap_or_default();
    let mut topics: Vec<Topic> = Vec::new();
    for topic in head
        .words(&TOPICS)
        .filter(|name| name.chars().any(char::is_alphanumeric))
        .take(MAX_NAMES)
        .map(topics::named)
    {
        if topics.iter().all(|known| known.slug != topic.slug) {
            topics.push(topic);
        }
    }
    let article = Article {
        slug: head.one(&SLUG).map_or_else(|| slug(&named_slug), slug),
        title: cut(&without_mail(&title), 300).into_owned(),
        summary: cut(&without_mail(&summary), 400).into_owned(),
        published_at,
        version: None,
        license: None,
        repository: None,
        body_html: rendered.html,
        body_text: rendered.text,
        authors: authors(&head),
        topics: topics.iter().map(|topic| topic.slug.clone()).collect(),
        related: Vec::new(),
        comments: Vec::new(),
    };
    Ok(Some((article, topics)))
}

fn read(file: &Path) -> std::result::Result<(String, String), Refusal> {
    let refuse = |error: std::io::Error| (None, error.to_string());
    let data = fs::metadata(file).map_err(refuse)?;
    if data.len() > MAX_SOURCE_BYTES {
        return Err((None, format!("is larger than {MAX_SOURCE_BYTES} bytes")));
    }
    let bytes = fs::read(file).map_err(refuse)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count()
            + 1;
        (Some(line), "is not UTF-8 from here on".to_owned())
    })?;
    Ok((
        text,
        data.modified().map_or_else(
            |_| dates::derived(&file.display().to_string()),
            dates::from_system,
        ),
    ))
}

fn is_true(value: Option<&str>) -> bool {
    value.is_some_and(|value| {
        value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("yes")
    })
}

/// The date of the front matter.
fn date(head: &FrontMatter) -> std::result::Result<Option<String>, Refusal> {
    // `published: true` is a switch, not a date.
    let Some(text) = DATE
        .iter()
        .filter_map(|key| head.one(&[*key]))
        .find(|text| !is_true(Some(text)))
    else {
        return Ok(None);
    };
    match dates::parse(text) {
        Some(date) => Ok(Some(date)),
        None => Err((
            Some(head.line(&DATE)),
            format!("`{}` is no date; write it as 2026-03-01", cut(text, 40)),
        )),
    }
}

fn authors(head: &FrontMatter) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in head.all(&AUTHORS).filter_map(author_name).take(MAX_NAMES) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What the name of a file says: `2026-03-01-tides.md` has slug and date, `tides/index.md` goes by its folder.
fn from_name(file: &Path) -> (String, Option<String>) {
    let name = |path: Option<&std::ffi::OsStr>| {
        path.map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let mut stem = name(file.file_stem());
    if stem.eq_ignore_ascii_case("index") {
        stem = name(file.parent().and_then(Path::file_name));
    }
    let date = stem.get(..10).and_then(dates::parse);
    match (
        date,
        stem.get(10..)
            .and_then(|rest| rest.strip_prefix(['-', '_'])),
    ) {
        (Some(date), Some(rest)) if !rest.is_empty() => (rest.to_owned(), Some(date)),
        (date, _) => (stem, date),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_tell_slug_and_date() {
        let check = |path: &str, slug: &str, date: Option<&str>| {
            assert_eq!(
                from_name(Path::new(path)),
                (slug.to_owned(), date.map(ToOwned::to_owned))
            );
        };
        check("a/tides.md", "tides", None);
        check(
            "a/2026-03-01-tides.md",
            "tides",
            Some("2026-03-01T00:00:00Z"),
        );
        check(
            "a/2026-03-01.md",
            "2026-03-01",
            Some("2026-03-01T00:00:00Z"),
        );
        check("a/tides/index.md", "tides", None);
        check("a/2026-13-01-x.md", "2026-13-01-x", None);
    }
}

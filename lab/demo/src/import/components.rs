//! The components of a build as articles: README or library documentation, release notes, and
//! dependencies.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use super::cargo::{Metadata, Package};
use super::html::{Rendered, Renderer};
use super::record::{Article, Comment, ImportBatch, Relation, RelationKind, Thread, Topic};
use super::text::{author_name, cut, is_mail, one_line, slug, without_mail};
use super::{MAX_SOURCE_BYTES, Skipped, changelog, dates, library, topics};

/// A README that is shorter gives way to the library's own documentation, if that is longer.
const SHORT_README_BYTES: usize = 1_500;

/// A description this long can stand for a README.
const LONG_DESCRIPTION_CHARS: usize = 200;

/// How many of the newest release notes become comments.
const RELEASE_NOTES: usize = 12;

/// Reads and renders everything; what cannot become an article is listed in `skipped`.
pub(super) fn batch(
    metadata: &Metadata,
    skipped: &mut Vec<Skipped>,
    progress: &mut dyn FnMut(&str),
) -> ImportBatch {
    let packages = newest(&metadata.packages);
    let renderer = Renderer::new();
    let mut kept: Vec<(&Package, Rendered)> = Vec::new();
    for package in packages {
        progress(&format!("{} {}", package.name, package.version));
        match body(package, &renderer) {
            Ok(rendered) => kept.push((package, rendered)),
            Err(reason) => skipped.push(Skipped {
                source: package.name.clone(),
                reason,
            }),
        }
    }
    let packages: Vec<&Package> = kept.iter().map(|(package, _)| *package).collect();
    let (mut chosen, topics) = topics::of(&packages);
    let mut related = relations(metadata, &packages);
    let articles: Vec<Article> = kept
        .into_iter()
        .map(|(package, rendered)| Article {
            topics: chosen.remove(package.id.as_str()).unwrap_or_default(),
            related: related.remove(package.name.as_str()).unwrap_or_default(),
            ..article(package, rendered, &renderer)
        })
        .collect();
    let threads = topics
        .iter()
        .filter_map(|topic| thread(topic, &articles))
        .collect();
    ImportBatch {
        articles,
        topics,
        threads,
    }
}

/// One package of each name, the newest, without the members of the workspace itself; ordered by
/// name.
fn newest(packages: &[Package]) -> Vec<&Package> {
    let mut newest: BTreeMap<&str, &Package> = BTreeMap::new();
    for package in packages.iter().filter(|package| package.source.is_some()) {
        let held = newest.entry(&package.name).or_insert(package);
        if precedence(&package.version) > precedence(&held.version) {
            *held = package;
        }
    }
    newest.into_values().collect()
}

/// Orders versions; a pre-release comes before its release.
fn precedence(version: &str) -> (u64, u64, u64, bool) {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = core.split('.').map(|number| number.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next(), !version.contains('-'))
}

/// The text of an article about a component.
fn body(package: &Package, renderer: &Renderer) -> Result<Rendered, String> {
    let readme = package
        .readme
        .as_ref()
        .map(|readme| read(&package.folder().join(readme)))
        .transpose();
    let readme = readme.ok().flatten().unwrap_or_default();
    let mut text = readme;
    if text.len() < SHORT_README_BYTES
        && let Some(source) = package.library().and_then(|path| read(path).ok())
    {
        let documentation = library::documentation(&source);
        if documentation.len() > text.len() {
            text = documentation;
        }
    }
    let description = package
        .description
        .as_deref()
        .map(str::trim)
        .unwrap_or_default();
    if text.trim().is_empty() && description.chars().count() > LONG_DESCRIPTION_CHARS {
        text = description.to_owned();
    }
    if text.trim().is_empty() {
        return Err("has neither a README nor documentation at the head of its library".to_owned());
    }
    let rendered = renderer.render(&text)?;
    if rendered.text.trim().is_empty() {
        Err("says nothing once images are left out".to_owned())
    } else {
        Ok(rendered)
    }
}

fn read(path: &Path) -> Result<String, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_SOURCE_BYTES {
        return Err(format!("is larger than {MAX_SOURCE_BYTES} bytes"));
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

fn article(package: &Package, rendered: Rendered, renderer: &Renderer) -> Article {
    let (at, comments) = release_notes(package, renderer);
    let description = package
        .description
        .as_deref()
        // A summary is shown as plain text; a few are written with Markdown's marks for code.
        .map(|text| one_line(&text.replace('`', "")))
        .filter(|text| !text.is_empty());
    let summary = description.or(rendered.lead).unwrap_or_default();
    let mut authors: Vec<String> = Vec::new();
    for name in package
        .authors
        .iter()
        .filter_map(|author| author_name(author))
    {
        if !authors.contains(&name) {
            authors.push(name);
        }
    }
    Article {
        slug: slug(&package.name),
        title: package.name.clone(),
        summary: cut(&without_mail(&summary), 400).into_owned(),
        published_at: at,
        version: Some(package.version.clone()),
        license: package.license.as_deref().map(one_line),
        repository: package.repository.clone().filter(|url| is_plain_https(url)),
        body_html: rendered.html,
        body_text: rendered.text,
        authors,
        topics: Vec::new(),
        related: Vec::new(),
        comments,
    }
}

fn is_plain_https(url: &str) -> bool {
    url.starts_with("https://")
        && !url.contains(|c: char| c.is_whitespace() || c.is_control())
        && !is_mail(url)
}

/// The date of this version, and the newest release notes as comments. If the change log has no
/// date, the date is derived from the name.
fn release_notes(package: &Package, renderer: &Renderer) -> (String, Vec<Comment>) {
    let entries = changelog(package.folder())
        .map(|text| changelog::entries(&text, RELEASE_NOTES))
        .unwrap_or_default();
    let own = entries
        .iter()
        .find(|entry| entry.version == package.version)
        .and_then(|entry| entry.at.clone());
    let published = own.unwrap_or_else(|| dates::derived(&package.name));
    let mut comments: Vec<Comment> = Vec::new();
    let mut last = published.clone();
    for entry in entries {
        let at = entry.at.unwrap_or_else(|| dates::days_before(&last, 30));
        last.clone_from(&at);
        let who = format!(
            "{} {}, release notes",
            cut(&package.name, 40),
            entry.version
        );
        let known = comments.iter().any(|comment| comment.who == who);
        let Some(body) = renderer
            .render(&entry.body)
            .ok()
            .filter(|body| !body.text.is_empty() && !known)
        else {
            continue;
        };
        comments.push(Comment {
            who: cut(&who, 80).into_owned(),
            body: cut(&body.text, 4_000).into_owned(),
            at,
        });
    }
    (published, comments)
}

fn changelog(folder: &Path) -> Option<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    read(&folder.join(names.iter().find(|name| changelog::is_name(name))?)).ok()
}

/// Both directions of every need between two kept packages, by name.
fn relations<'p>(metadata: &Metadata, packages: &[&'p Package]) -> HashMap<&'p str, Vec<Relation>> {
    let all: HashMap<&str, &str> = metadata
        .packages
        .iter()
        .map(|package| (package.id.as_str(), package.name.as_str()))
        .collect();
    let kept: HashMap<&str, &'p str> = packages
        .iter()
        .map(|package| (package.name.as_str(), package.name.as_str()))
        .collect();
    let members: Vec<&str> = metadata
        .packages
        .iter()
        .filter(|package| package.source.is_none())
        .map(|package| package.id.as_str())
        .collect();
    // Another version of a component is the same article; hence by name.
    let name = |id: &str| all.get(id).and_then(|name| kept.get(name)).copied();
    let mut pairs: Vec<(&'p str, &'p str)> = metadata
        .needs()
        .into_iter()
        .filter(|(from, _)| !members.contains(from))
        .filter_map(|(from, to)| Some((name(from)?, name(to)?)))
        .filter(|(from, to)| from != to)
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut related: HashMap<&str, Vec<Relation>> = HashMap::new();
    for &(from, to) in &pairs {
        related.entry(from).or_default().push(Relation {
            slug: slug(to),
            kind: RelationKind::Needs,
        });
    }
    for &(from, to) in &pairs {
        let relations = related.entry(to).or_default();
        // Two versions of a name may need each other's dependants: the first word counts.
        if relations.iter().all(|relation| relation.slug != slug(from)) {
            relations.push(Relation {
                slug: slug(from),
                kind: RelationKind::NeededBy,
            });
        }
    }
    related
}

/// The board's thread about a topic: what there is, in figures.
fn thread(topic: &Topic, articles: &[Article]) -> Option<Thread> {
    let mut about: Vec<&Article> = articles
        .iter()
        .filter(|article| article.topics.contains(&topic.slug))
        .collect();
    about.sort_by(|a, b| a.title.cmp(&b.title));
    let newest = about.iter().map(|article| &article.published_at).max()?;
    let longest = about.iter().max_by_key(|article| article.words())?;
    let users = |article: &Article| {
        article
            .related
            .iter()
            .filter(|relation| relation.kind == RelationKind::NeededBy)
            .count()
    };
    let needed = about.iter().max_by_key(|article| users(article))?;
    let mut licenses: BTreeMap<&str, usize> = BTreeMap::new();
    for license in about
        .iter()
        .filter_map(|article| article.license.as_deref())
    {
        *licenses.entry(license).or_default() += 1;
    }
    let mut licenses: Vec<_> = licenses.into_iter().collect();
    licenses.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let licenses: Vec<String> = licenses
        .iter()
        .take(4)
        .map(|(name, count)| format!("{name} ({count})"))
        .collect();
    let mut body = format!("Parts in this drawer: {}.\n", about.len());
    if users(needed) > 0 {
        body += &format!(
            "Most leaned upon: {}, which {} others here are built on.\n",
            needed.title,
            users(needed)
        );
    }
    body += &format!(
        "Longest read: {}, {} words.\n",
        longest.title,
        longest.words()
    );
    if !licenses.is_empty() {
        body += &format!("Licences: {}.\n", licenses.join(", "));
    }
    let titles: Vec<&str> = about.iter().map(|article| article.title.as_str()).collect();
    body += &format!("\nThe list: {}.", titles.join(", "));
    Some(Thread {
        topic: topic.slug.clone(),
        title: format!("{}: the parts list", topic.name),
        who: "The editors".to_owned(),
        body: cut(&body, 4_000).into_owned(),
        at: newest.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_numbers() {
        let mut versions = ["0.9.0", "1.0.0-rc.1", "0.10.0", "1.0.0", "0.10.0+build"];
        versions.sort_by_key(|version| precedence(version));
        assert_eq!(
            versions,
            ["0.9.0", "0.10.0", "0.10.0+build", "1.0.0-rc.1", "1.0.0"]
        );
    }
}

//! `millpond new --from DIR`: the posts of another program become those of the blog.
//!
//! The files are copied, and their texts are not changed. The settings say what their names mean,
//! and lead their old addresses to the new ones. What is not taken is listed.

mod generator;
mod old_addresses;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use millpond_data::{FieldValue, Format, RowName, read};
use serde_json::Value as Json;

use super::quoted;
use generator::Origin;
use old_addresses::Redirects;

/// Lines of each list of the report.
const MAX_LISTED: usize = 6;

/// Fields of a front matter, by the names of their columns.
type FrontFields = BTreeMap<String, Json>;

/// Posts and files that were taken from a folder.
pub struct Import {
    origin: Origin,
    posts: usize,
    statics: usize,
    redirects: Redirects,
    /// Parts that were not taken, each in one line.
    left: Vec<String>,
}

/// A file that may be a post.
struct Post {
    /// Its path below the folder of the posts, without the ending.
    path: String,
    /// The slug, as the settings of the new site have it, and that of the old site.
    slug: String,
    old_slug: String,
    fields: FrontFields,
}

/// Finds out which program a folder was made for.
///
/// # Errors
/// There is nothing that can be taken.
pub fn origin(from: &Path) -> Result<Origin, String> {
    Origin::of(from).ok_or_else(|| {
        format!(
            "{}: there are neither the settings of Jekyll, Hugo, Zola, Eleventy or MkDocs, nor Markdown files",
            from.display()
        )
    })
}

/// Copies the posts of `from` into the new site `dir`.
///
/// # Errors
/// A file cannot be copied.
pub fn import(origin: Origin, from: &Path, dir: &Path) -> Result<Import, String> {
    let files = found(&origin.posts, from, dir);
    let mut import = Import {
        left: origin.left(from),
        origin,
        posts: 0,
        statics: 0,
        redirects: Redirects::default(),
    };
    let mut others = BTreeMap::new();
    let (mut slugs, mut marked) = (HashSet::new(), Vec::new());
    for (name, path) in files {
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        match &*ending.to_ascii_lowercase() {
            "md" | "markdown" | "mdx" | "html" => {
                let taken = import.post(&name, &path, dir, &mut slugs, &mut marked);
                taken.map_err(|error| format!("{}: {error}", path.display()))?;
            }
            ending if FOR_VISITORS.contains(&ending) => {
                import.copy_static(&path, &dir.join("static/posts").join(&name))?;
            }
            ending => {
                let of_kind = others.entry(ending.to_owned());
                of_kind.or_insert_with(Vec::new).push(name);
            }
        }
    }
    for (folder, below) in import.origin.statics.clone() {
        for (name, path) in found(&folder, from, dir) {
            import.copy_static(&path, &dir.join("static").join(&below).join(name))?;
        }
    }
    for (ending, names) in others {
        let line = format!("{} files .{ending}, such as {}", names.len(), names[0]);
        import.left.push(line);
    }
    if let Some(first) = marked.first() {
        import.left.push(format!(
            "shortcodes and tags of templates in {} posts, which are shown as typed, such as in {first}",
            marked.len()
        ));
    }
    import.write_settings(dir)?;
    Ok(import)
}

impl Import {
    fn post(
        &mut self,
        name: &str,
        path: &Path,
        dir: &Path,
        slugs: &mut HashSet<String>,
        marked: &mut Vec<String>,
    ) -> io::Result<()> {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let is_section = stem
            .rsplit('/')
            .next()
            .is_some_and(|last| last.starts_with('_'));
        if is_section {
            return Ok(());
        }
        let bytes = fs::read(path)?;
        let mut to = stem.to_owned();
        let mut fields = self.fields(stem, &bytes);
        let slug =
            |fields: &FrontFields| fields.get("slug").and_then(Json::as_str).map(str::to_owned);
        let old = slug(&fields).unwrap_or_else(|| stem.to_owned());
        let old_slug = old.rsplit('/').next().unwrap_or_default().to_owned();
        let mut new = old;
        for number in 2..9 {
            if !slugs.contains(&new) {
                break;
            }
            // Files of one name are told apart by their folders, or by a number.
            let flat = stem.replace('/', "-");
            to = if flat == to {
                format!("{flat}-{number}")
            } else {
                flat
            };
            fields = self.fields(&to, &bytes);
            new = slug(&fields).unwrap_or_else(|| to.clone());
        }
        slugs.insert(new.clone());
        let target = dir.join("data/posts").join(format!("{to}.md"));
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&target, &bytes)?;
        let is_marked = |sign: &&[u8]| bytes.windows(sign.len()).any(|found| found == *sign);
        if [&b"{{"[..], b"{%"].iter().any(is_marked) {
            marked.push(format!("data/posts/{to}.md"));
        }
        self.posts += 1;
        let post = Post {
            path: stem.to_owned(),
            slug: new,
            old_slug,
            fields,
        };
        self.redirects.add(&self.origin, &post);
        Ok(())
    }

    /// The fields of a file, as the new site will read them; none of one with a fault.
    fn fields(&self, stem: &str, bytes: &[u8]) -> FrontFields {
        let name = RowName::of(stem, self.origin.names);
        fields(Format::Markdown, bytes, Some(&name)).unwrap_or_default()
    }

    /// Copies a file for visitors, unless the template has one of its name.
    fn copy_static(&mut self, from: &Path, to: &Path) -> Result<(), String> {
        if to.exists() {
            self.left.push(format!(
                "{}: the template has a file of this name",
                from.display()
            ));
            return Ok(());
        }
        let copied = to.parent().map_or(Ok(()), fs::create_dir_all);
        let copied = copied.and_then(|()| fs::copy(from, to));
        copied.map_err(|error| format!("{}: {error}", from.display()))?;
        self.statics += 1;
        Ok(())
    }

    /// Adds what the names of the files mean and where old addresses lead, and lets the HTML in the
    /// posts count.
    fn write_settings(&self, dir: &Path) -> Result<(), String> {
        let change = |name: &str, change: &dyn Fn(String) -> String| {
            let path = dir.join(name);
            let text = fs::read_to_string(&path).map(change);
            let written = text.and_then(|text| fs::write(&path, text));
            written.map_err(|error| format!("{}: {error}", path.display()))
        };
        let parts = self.origin.names;
        let names = [
            (parts.date, "\"date\""),
            (parts.folder, "\"folder\""),
            (parts.address, "\"address\""),
        ];
        let names: Vec<&str> = names
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, name)| *name)
            .collect();
        let zone = self.origin.setting(&["timezone"]);
        change("millpond.toml", &|mut text| {
            if let Some(zone) = &zone {
                let line = format!("[site]\ntimezone = {}\n", quoted(zone));
                text = text.replacen("[site]\n", &line, 1);
            }
            text.push_str(&format!(
                "\n# The names of the posts, as those of {} mean.\n[[data]]\ntable = \"posts\"\nnames = [{}]\n",
                self.origin.generator,
                names.join(", ")
            ));
            text + &self.redirects.settings()
        })?;
        for name in ["templates/post.html", "pages/feed.atom.html"] {
            change(name, &|text| {
                let own = "folders = false, html = true, ids = true)";
                text.replace("folders = false)", own)
            })?;
        }
        let title = self.origin.setting(&["title", "site_name"]);
        change("templates/site.html", &|text| match &title {
            Some(title) => text.replace("Notes from the pond", &title.replace(['"', '\\'], "'")),
            None => text,
        })
    }

    /// The report, without what `check` says.
    pub fn report(&self) -> String {
        let mut lines = vec![
            format!("From {}:", self.origin.generator),
            format!("  {} posts in data/posts/, as they are", self.posts),
            format!("  {} files in static/", self.statics),
            format!("  {} in millpond.toml", self.redirects.summary()),
        ];
        if !self.left.is_empty() {
            lines.push("Not taken:".to_owned());
            lines.extend(listed(&self.left));
        }
        lines.join("\n")
    }
}

/// Some lines, and the number of the others.
pub fn listed(lines: &[String]) -> Vec<String> {
    let shown = lines
        .iter()
        .take(MAX_LISTED)
        .map(|line| format!("  {line}"));
    let more = lines.len().saturating_sub(MAX_LISTED);
    let more = (more > 0).then(|| format!("  and {more} more"));
    shown.chain(more).collect()
}

/// The one row of a file.
fn fields(format: Format, bytes: &[u8], name: Option<&RowName>) -> Option<FrontFields> {
    let mut fields = FrontFields::new();
    let outcome = read(format, bytes, name, &mut |row| {
        for (name, value) in row.names.iter().zip(row.values) {
            let value = match value {
                FieldValue::Null => Json::Null,
                FieldValue::Boolean(truth) => (*truth).into(),
                FieldValue::Integer(integer) => (*integer).into(),
                FieldValue::Real(real) => (*real).into(),
                FieldValue::Text(text) | FieldValue::Plain(text) => Json::from(&**text),
                FieldValue::Json(json) => json.clone(),
            };
            fields.insert(name.clone(), value);
        }
        Ok(())
    });
    outcome.ok().map(|_| fields)
}

/// Endings of the files beside posts that are for visitors: what else lies there may be the
/// author's own.
const FOR_VISITORS: [&str; 24] = [
    "avif", "css", "flac", "gif", "ico", "jpeg", "jpg", "js", "m4a", "mov", "mp3", "mp4", "oga",
    "ogg", "otf", "pdf", "png", "svg", "ttf", "wav", "webm", "webp", "woff", "woff2",
];

/// The files of a folder that is a part of `from`, without those of the new site `dir`; none of a
/// folder elsewhere, which settings of others or a link may name.
fn found(folder: &Path, from: &Path, dir: &Path) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    let (whole, part) = (from.canonicalize(), folder.canonicalize());
    let (Ok(whole), Ok(part)) = (whole, part) else {
        return files;
    };
    if part.starts_with(&whole) {
        walk(&part, "", 0, &mut files);
    }
    let new = dir.canonicalize().ok();
    if let Some(new) = new.filter(|new| !part.starts_with(new)) {
        files.retain(|(_, path)| !path.starts_with(&new));
    }
    files
}

/// The files below a folder, by their paths below it, without hidden ones and those that links lead
/// to.
fn walk(dir: &Path, below: &str, depth: usize, files: &mut Vec<(String, PathBuf)>) {
    const SKIPPED: [&str; 3] = ["node_modules", "vendor", "_site"];
    let is_skipped = |name: &str| SKIPPED.contains(&name) || name.starts_with('_');
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let entries: BTreeSet<(String, PathBuf)> = entries
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .filter(|(name, path)| !name.starts_with('.') && !path.is_symlink())
        .collect();
    for (name, path) in entries {
        let below = format!("{below}{name}");
        if path.is_file() {
            files.push((below, path));
        } else if depth < 12 && path.is_dir() && !is_skipped(&name) {
            walk(&path, &format!("{below}/"), depth + 1, files);
        }
    }
}

//! Reads a site folder: nothing is understood here, only gathered.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
};

use millpond_db::Migration;

use crate::{
    Problem,
    dialect::{Dialect, Text, select},
    file_name::is_passed_over,
    locale::Formats,
};

/// A page's source may not be larger than this.
pub const MAX_SOURCE: u64 = 4 << 20;

/// Texts of a site in the program itself, by their paths below the site's folder.
pub type EmbeddedFiles = &'static [(&'static str, &'static str)];

/// The folder of a site: on disk, unless its texts are in the program.
#[derive(Clone, Copy, Debug)]
pub struct SiteFolder<'d> {
    pub dir: &'d Path,
    pub files: Option<EmbeddedFiles>,
}

impl<'d> From<&'d Path> for SiteFolder<'d> {
    fn from(dir: &'d Path) -> Self {
        Self { dir, files: None }
    }
}

impl SiteFolder<'_> {
    /// Reads all texts below one of its folders.
    fn texts(self, root: &str, problems: &mut Vec<Problem>) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        match self.files {
            Some(files) => texts.extend(files.iter().filter_map(|(path, text)| {
                let below = path.strip_prefix(root)?.strip_prefix('/')?;
                Some((below.to_owned(), (*text).to_owned()))
            })),
            None => walk(&self.dir.join(root), root, "", &mut texts, problems),
        }
        texts
    }

    /// Returns the problem of a folder without pages.
    fn lack(self) -> Option<Problem> {
        let front = "pages/index.html is the site's front page; `millpond new DIR` makes a site to start from";
        match fs::metadata(self.dir.join("pages")) {
            _ if self.files.is_some() => None,
            Ok(pages) if pages.is_dir() => None,
            Ok(_) => Some(Problem::new("pages", "is a file, not a folder").hint(front)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Some(Problem::new("pages", "there is no such folder").hint(front))
            }
            Err(error) => Some(unreadable(PathBuf::from("pages"), &error)),
        }
    }
}

/// The texts of a site folder, by their paths below it with `/` between the parts.
#[derive(Debug, Default)]
pub struct Folder {
    /// Below `pages/`, by logical name: `read.html`, `topics/[slug].sql`.
    pub pages: BTreeMap<String, Text>,
    /// Below `templates/`.
    pub templates: BTreeMap<String, String>,
    /// The queries of templates, by logical name: `menu.sql`.
    pub partials: BTreeMap<String, Text>,
}

impl Folder {
    /// Reads `pages/` and `templates/`, for the database that the site is on.
    pub fn read<'d>(
        from: impl Into<SiteFolder<'d>>,
        dialect: Dialect,
    ) -> Result<Self, Vec<Problem>> {
        let (from, mut problems) = (from.into(), Vec::new());
        let mut folder = Self::default();
        if let Some(problem) = from.lack() {
            return Err(vec![problem]);
        }
        let pages = from.texts("pages", &mut problems);
        folder.pages = select(dialect, "pages", pages, &mut problems);
        let root = "templates";
        let mut templates = from.texts(root, &mut problems);
        let queries = templates.extract_if(.., |name, _| name.ends_with(".sql"));
        folder.partials = select(dialect, root, queries.collect(), &mut problems);
        folder.templates = templates;
        if problems.is_empty() {
            Ok(folder)
        } else {
            Err(problems)
        }
    }

    /// Equal for folders with equal texts whose templates write values alike.
    pub fn fingerprint(&self, formats: Formats) -> u64 {
        let mut hasher = DefaultHasher::new();
        formats.locale.tag.hash(&mut hasher);
        formats.currency.hash(&mut hasher);
        formats.zone.hash(&mut hasher);
        self.pages.hash(&mut hasher);
        self.templates.hash(&mut hasher);
        self.partials.hash(&mut hasher);
        hasher.finish()
    }
}

/// The migrations of a site, for its database.
#[derive(Debug, Default)]
pub struct Migrations {
    /// In the order of their names, which are without the dialect.
    pub list: Vec<Migration>,
    /// By those names, the files.
    files: BTreeMap<String, String>,
}

impl Migrations {
    /// The file of the migration of a name, below the site's folder.
    pub fn file(&self, name: &str) -> String {
        let file = self.files.get(name).map_or(name, String::as_str);
        format!("migrations/{file}")
    }
}

/// Reads `migrations/`.
pub fn migrations<'d>(
    from: impl Into<SiteFolder<'d>>,
    dialect: Dialect,
) -> Result<Migrations, Vec<Problem>> {
    let mut problems = Vec::new();
    let texts = from.into().texts("migrations", &mut problems);
    let mut migrations = Migrations::default();
    for (name, Text { file, text: sql }) in select(dialect, "migrations", texts, &mut problems) {
        let numbered = name.split_once('_').is_some_and(|(number, _)| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        if name.ends_with(".sql") && numbered {
            migrations.files.insert(name.clone(), file);
            migrations.list.push(Migration { name, sql });
        } else {
            problems.push(Problem::new(format!("migrations/{file}"), "this is no migration").hint("a migration is named like 0002_add_tags.sql; they are applied in the order of their names"));
        }
    }
    if problems.is_empty() {
        Ok(migrations)
    } else {
        Err(problems)
    }
}

fn walk(
    dir: &Path,
    root: &str,
    below: &str,
    texts: &mut BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            return problems.push(unreadable(PathBuf::from(root).join(below), &error));
        }
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            problems.push(Problem::new(
                PathBuf::from(root).join(below).join(&name),
                "the file's name is not UTF-8",
            ));
            continue;
        };
        if is_passed_over(name.as_bytes()) {
            continue;
        }
        let path = if below.is_empty() {
            name.to_owned()
        } else {
            format!("{below}/{name}")
        };
        if entry.path().is_dir() {
            walk(&entry.path(), root, &path, texts, problems);
            continue;
        }
        match text(&entry.path()) {
            Ok(text) => drop(texts.insert(path, text)),
            Err(problem) => problems.push(Problem {
                file: PathBuf::from(format!("{root}/{path}")),
                ..problem
            }),
        }
    }
}

/// A folder that cannot be read.
fn unreadable(folder: PathBuf, error: &io::Error) -> Problem {
    Problem::new(folder, format!("the folder cannot be read: {error}")).hint(match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "the user that runs millpond must be able to read and to enter it (chmod u+rx)"
        }
        _ => "see whether the folder can be listed with ls",
    })
}

/// A text of the site; a problem names no file.
fn text(path: &Path) -> Result<String, Problem> {
    let fault = |message: String| Problem::new("", message);
    let unread = |error: io::Error| fault(format!("the file cannot be read: {error}"));
    let found = fs::metadata(path).map_err(unread)?;
    if !found.is_file() {
        // A pipe would hold up its reader, and a device may have no end.
        let message = "this is neither a file nor a folder; take it out of the folder";
        return Err(fault(message.to_owned()));
    }
    let size = found.len();
    if size > MAX_SOURCE {
        return Err(fault(format!(
            "the file has {size} bytes; at most {MAX_SOURCE} are read"
        )));
    }
    let file = File::open(path).map_err(unread)?;
    millpond_data::text(file).map_err(|error| Problem::unread("", error))
}

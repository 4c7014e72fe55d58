//! `millpond backup`: a copy of a site's folder and of its SQLite database, also while it is
//! served.
//!
//! Uploads are copied before the database and, those that are new, after it. So the copy has each
//! file that a row of the copy names, whether the file came or went meanwhile. The copy grows under
//! another name and gets its own only when all of it is on the disk.

mod folder;

use std::{
    collections::HashSet,
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use crate::{session::KEY_FILE, uploads::PARTS};
use folder::FolderCopy;
use millpond_site_format::{
    Config, DatabaseUrl, Problem,
    config::{DAMAGED, UPLOAD_FOLDER},
};

/// The result of a backup.
#[derive(Clone, Debug, Default)]
pub struct BackupReport {
    /// How many files were copied, databases among them.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Folders that the settings name outside of the site; they are not in the backup.
    pub outside: Vec<PathBuf>,
}

/// A site to be copied: that of the folder, or one of its `[[host]]` entries.
struct CopiedSite {
    /// Its folder, from that of the command; empty where it is the same.
    inside: PathBuf,
    config: Config,
    /// The database file, its folder without links.
    database: PathBuf,
}

/// Copies the site in `dir`, or all sites that its settings name, into the folder `to`, which must
/// not exist: all files but those that the server makes again, and the database as one file with
/// all that was committed before. `stop` ends it early.
///
/// # Errors
/// The database is on PostgreSQL or cannot be read, `to` exists or cannot be written, or `stop` was
/// set; then there is no `to`.
pub fn back_up(
    dir: &Path,
    config: &Config,
    to: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<BackupReport, Problem> {
    let root = dir.canonicalize().map_err(|error| failed(dir, &error))?;
    let sources = sources(&root, config)?;
    let partial = Partial::make(&root, to)?;
    let mut copy = FolderCopy::new(&root, left_out(&root, config, &sources), stop);
    for source in &sources {
        let uploads = source.inside.join(UPLOAD_FOLDER);
        if root.join(&uploads).exists() {
            let into = partial.path.join(&source.inside);
            fs::create_dir_all(&into).map_err(|error| failed(&into, &error))?;
            copy.folder(&root.join(&uploads), &partial.path.join(&uploads))?;
        }
    }
    for source in &sources {
        source.copy_database(&root, &partial.path, &mut copy, stop)?;
    }
    copy.folder(&root, &partial.path)?;
    let mut report = copy.report;
    report.outside = sources
        .iter()
        .flat_map(|source| outside(&root, &source.config))
        .collect();
    partial.finish(to)?;
    Ok(report)
}

/// Reads the settings of each site and finds its database.
fn sources(root: &Path, config: &Config) -> Result<Vec<CopiedSite>, Problem> {
    let mut sources = Vec::new();
    if !config.has_hosts() {
        sources.push((PathBuf::new(), config.clone()));
    }
    for host in &config.hosts {
        let site = host.site.canonicalize();
        let site = site.map_err(|error| failed(&host.shown, &error))?;
        let Ok(inside) = site.strip_prefix(root) else {
            return Err(Problem::new(
                &host.shown,
                "is a site outside of the folder that is backed up",
            )
            .hint("back up each site by a command of its own"));
        };
        sources.push((inside.to_owned(), Config::read(&site)?));
    }
    let found = sources.into_iter().map(|(inside, config)| {
        let database = match &config.database {
            DatabaseUrl::Sqlite(path) => existing(path)?,
            DatabaseUrl::Postgres(place) => return Err(on_postgres(&inside, &place.to_string())),
        };
        Ok(CopiedSite {
            inside,
            config,
            database,
        })
    });
    found.collect()
}

fn on_postgres(inside: &Path, place: &str) -> Problem {
    let message =
        format!("the database is on the PostgreSQL server {place}, which is not a file to copy");
    Problem::new(inside.join("millpond.toml"), message).hint(
        "use what comes with PostgreSQL: `pg_dump --format=custom --file=site.dump DATABASE` reads one state while the \
         site is served, and base backups can go back to any moment; copy the folder by rsync, uploads/ after the dump",
    )
}

/// The path of a database that is there.
fn existing(path: &Path) -> Result<PathBuf, Problem> {
    if !path.exists() {
        return Err(Problem::new(path, "there is no such database yet")
            .hint("`millpond serve` makes it; see database.url"));
    }
    Ok(without_links(path))
}

/// The path with its folder free of links and dots, as far as the folder is there.
fn without_links(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

impl CopiedSite {
    /// Copies the database to its own place, or into the copy of the site's folder if it is outside
    /// of the site; then also the key of sessions, which is beside it.
    fn copy_database(
        &self,
        root: &Path,
        partial: &Path,
        copy: &mut FolderCopy<'_>,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), Problem> {
        let from = &self.database;
        let (to, key) = match from.strip_prefix(root) {
            Ok(inside) => (partial.join(inside), None),
            Err(_) => {
                let folder = partial.join(&self.inside);
                let key = (from.with_file_name(KEY_FILE), folder.join(KEY_FILE));
                (folder.join(from.file_name().unwrap_or_default()), Some(key))
            }
        };
        let folder = to.parent().unwrap_or(partial);
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        millpond_db::back_up(from, &to, stop)
            .map_err(|error| Problem::new(from, error.to_string()))?;
        copy.keep_metadata(from, &to)?;
        match key {
            Some((from, to)) if from.exists() => copy.entry(&from, &to),
            _ => Ok(()),
        }
    }
}

/// Files that the server makes again, and the database, which is not copied as a file.
fn left_out(root: &Path, config: &Config, sources: &[CopiedSite]) -> HashSet<PathBuf> {
    let mut all = HashSet::new();
    let mut leave_out = |database: &Path| {
        for ending in ["", "-wal", "-shm", "-journal"] {
            let mut name = database.as_os_str().to_owned();
            name.push(ending);
            all.insert(PathBuf::from(name));
        }
    };
    let sites = sources.iter();
    let sites = sites.map(|source| (root.join(&source.inside), &source.config));
    for (dir, config) in sites.chain([(root.to_owned(), config)]) {
        if let Some(history) = config.history(&dir) {
            let history = without_links(&history);
            leave_out(&history);
            leave_out(&history.with_extension(DAMAGED));
        }
    }
    for source in sources {
        leave_out(&source.database);
    }
    for source in sources {
        let dir = root.join(&source.inside);
        // Litestream's own record of the file, which fits no copy of it.
        let name = source.database.file_name().unwrap_or_default();
        let litestream = format!(".{}-litestream", name.to_string_lossy());
        all.insert(source.database.with_file_name(litestream));
        let CopiedSite { config, .. } = source;
        let warm = config.warm_list(&dir);
        let made = warm.iter().chain(&config.access_log);
        all.extend(made.map(|path| without_links(path)));
        all.insert(dir.join(UPLOAD_FOLDER).join(PARTS));
    }
    all
}

/// Folders outside of the site that have something of it.
fn outside(root: &Path, config: &Config) -> impl Iterator<Item = PathBuf> {
    let data = config.data.iter().map(|data| data.folder.clone());
    let named = data.chain(config.tls.storage.clone());
    named.filter(move |path| !path.canonicalize().is_ok_and(|path| path.starts_with(root)))
}

/// A copy that is not whole yet; it is removed when dropped.
struct Partial {
    path: PathBuf,
}

impl Partial {
    /// Makes the folder beside `to`, for its owner alone: the copy has keys and personal data.
    fn make(root: &Path, to: &Path) -> Result<Self, Problem> {
        if to.symlink_metadata().is_ok() {
            return Err(Problem::new(to, "is there already, and is not overwritten")
                .hint("name a folder that does not exist, such as one with the date in its name"));
        }
        let whole = std::path::absolute(to).map_err(|error| failed(to, &error))?;
        let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
            return Err(Problem::new(to, "names no folder to make"));
        };
        let parent = parent.canonicalize().map_err(|error| {
            failed(parent, &error).hint("make this folder first; the backup is made in it")
        })?;
        if parent.starts_with(root) {
            return Err(Problem::new(to, "is in the folder of the site itself")
                .hint("name a folder elsewhere, best on another disk"));
        }
        let mut name = name.to_owned();
        name.push(".partial");
        let path = parent.join(name);
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Problem::new(&path, "is there already")
                .hint("another backup is running, or was killed; if none runs, remove this folder"),
            _ => failed(&path, &error),
        })?;
        Ok(Self { path })
    }

    /// Sees to it that the copy is on the disk, and gives it its name.
    fn finish(self, to: &Path) -> Result<(), Problem> {
        let sync = || -> io::Result<()> {
            rustix::fs::syncfs(fs::File::open(&self.path)?)?;
            // Nothing is overwritten: only an empty folder would be replaced.
            fs::rename(&self.path, to)?;
            match self.path.parent() {
                Some(parent) => fs::File::open(parent)?.sync_all(),
                None => Ok(()),
            }
        };
        sync().map_err(|error| failed(to, &error))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After `finish` it is not there any more.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn failed(path: &Path, error: &io::Error) -> Problem {
    Problem::new(path, error.to_string())
}

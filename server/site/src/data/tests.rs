//! A look costs the files that have changed: the files that are opened and the statements that the
//! database runs are counted.

#![allow(unsafe_code)]

use std::{
    collections::{BTreeMap, HashSet},
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    fs,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    ptr::null_mut,
    sync::{Arc, Mutex, Once},
    thread::{self, ThreadId},
};

use millpond_db::{Database, Migration, SqliteOptions};
use rusqlite::{auto_extension::register_auto_extension, ffi};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use super::{DataSources, Inbox, inbox::Wake, sync::FolderSync};
use millpond_site_format::time_zone::SiteZone;

const SCHEMA: &str = "create table posts (slug text primary key, title text, body text, \
    _file text not null);";

/// The statements of the threads that are not the test's own, by the file of the database.
static STATEMENTS: Mutex<BTreeMap<PathBuf, (ThreadId, Vec<String>)>> = Mutex::new(BTreeMap::new());

/// Writes down the statements that connections run which are opened from now on.
fn trace(database: &Path) {
    static ONCE: Once = Once::new();
    // SAFETY: the function has the signature of an extension, and only asks for the trace.
    ONCE.call_once(|| unsafe { register_auto_extension(begin_trace).unwrap() });
    let own = thread::current().id();
    let mut all = STATEMENTS.lock().unwrap();
    all.insert(database.to_owned(), (own, Vec::new()));
}

fn take_statements(database: &Path) -> Vec<String> {
    let mut all = STATEMENTS.lock().unwrap();
    std::mem::take(&mut all.get_mut(database).unwrap().1)
}

unsafe extern "C" fn begin_trace(
    database: *mut ffi::sqlite3,
    _: *mut *mut c_char,
    _: *const ffi::sqlite3_api_routines,
) -> c_int {
    let mask = ffi::SQLITE_TRACE_STMT as c_uint;
    // SAFETY: SQLite gives a connection that is open.
    unsafe { ffi::sqlite3_trace_v2(database, mask, Some(traced), null_mut()) }
}

unsafe extern "C" fn traced(
    _: c_uint,
    _: *mut c_void,
    statement: *mut c_void,
    text: *mut c_void,
) -> c_int {
    // SAFETY: SQLite gives a statement that runs, and its text; the name of a file ends with zero.
    let (name, text) = unsafe {
        let database = ffi::sqlite3_db_handle(statement.cast());
        let name = ffi::sqlite3_db_filename(database, c"main".as_ptr());
        if name.is_null() {
            return 0;
        }
        (CStr::from_ptr(name), CStr::from_ptr(text.cast::<c_char>()))
    };
    let mut all = STATEMENTS.lock().unwrap();
    if let Some((own, seen)) = all.get_mut(Path::new(&*name.to_string_lossy()))
        && *own != thread::current().id()
    {
        seen.push(text.to_string_lossy().into_owned());
    }
    0
}

/// Counts how often each file of a folder is opened, and how often the folder is listed, as `.`.
struct Opened(OwnedFd);

impl Opened {
    fn of(folder: &Path) -> Self {
        let inotify = inotify::init(CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&inotify, folder, WatchFlags::OPEN | WatchFlags::CLOSE).unwrap();
        // Equal events that follow each other would be one.
        Self(inotify)
    }

    fn take(&self) -> BTreeMap<String, usize> {
        let mut buffer = [MaybeUninit::uninit(); 64 << 10];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut opened = BTreeMap::new();
        while let Ok(event) = reader.next() {
            if !event.events().contains(ReadFlags::OPEN) {
                continue;
            }
            let name = event
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            let is_folder = event.events().contains(ReadFlags::ISDIR);
            let name = name
                .filter(|_| !is_folder)
                .unwrap_or_else(|| ".".to_owned());
            *opened.entry(name).or_default() += 1;
        }
        opened
    }
}

/// A folder with files, all of which are applied.
struct CostFolder {
    root: PathBuf,
    database: PathBuf,
    sync: FolderSync,
    _dir: tempfile::TempDir,
}

impl CostFolder {
    fn with(files: usize) -> Self {
        let dir = lab_testkit::fast_dir();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("data/posts")).unwrap();
        let path = root.join("site.db");
        trace(&path);
        let database = Database::open(SqliteOptions::new(&path)).unwrap();
        let migration = Migration {
            name: "posts".to_owned(),
            sql: SCHEMA.to_owned(),
        };
        database.migrate(&[migration]).unwrap();
        let sources = DataSources {
            dir: root.clone(),
            folders: Vec::new(),
        };
        let inbox = Arc::new(Inbox::new(sources.clone()));
        let mut folder = Self {
            sync: FolderSync::new(sources, &database, inbox, SiteZone::default()),
            root,
            database: path,
            _dir: dir,
        };
        let names = (0..files).map(|number| folder.write(number, "First"));
        let names = names.collect();
        folder.sync.look(&Wake::Broad(names));
        assert_eq!(folder.sync.known.len(), files);
        // The writer reads the schema, which is new, once more.
        let name = folder.write(2, "Second");
        folder.sync.look(&Wake::News(HashSet::from([name])));
        folder
    }

    fn write(&self, number: usize, title: &str) -> PathBuf {
        let name = PathBuf::from(format!("posts/{number:05}.md"));
        let text = format!("---\ntitle: {title}\n---\n\nText.\n");
        fs::write(self.root.join("data").join(&name), text).unwrap();
        name
    }

    /// Returns the cost of a look: the files that are opened, and the statements that the database
    /// runs.
    fn look(&mut self, wake: &Wake, line: &str) -> (BTreeMap<String, usize>, Vec<String>) {
        let opened = Opened::of(&self.root.join("data/posts"));
        take_statements(&self.database);
        let outcome = self.sync.look(wake);
        assert_eq!(outcome.lines, [line]);
        let mut statements = take_statements(&self.database);
        // The writer looks for changes of other programs at any time.
        statements.retain(|sql| !sql.starts_with("PRAGMA") && !sql.starts_with("--"));
        (opened.take(), statements)
    }
}

#[test]
fn one_saved_file_costs_one_file_among_any_number() {
    let costs = |files| {
        let mut folder = CostFolder::with(files);
        let name = folder.write(1, "Saved");
        let saved = Wake::News(HashSet::from([name]));
        folder.look(&saved, "data/posts/00001.md: table posts, rows: 1 changed")
    };
    let (few, many) = (costs(3), costs(10_000));
    assert_eq!(few, many);
    // One asks whether a program is writing it, and one reads it. No folder is listed.
    assert_eq!(few.0, BTreeMap::from([("00001.md".to_owned(), 2)]));
    assert_eq!(few.1.len(), 27, "{:#?}", few.1);
}

#[test]
fn a_large_file_is_read_once() {
    let mut folder = CostFolder::with(3);
    let rows = (0..5_000).map(|number| format!("s{number},t,b\n"));
    let text = format!("slug,title,body\n{}", rows.collect::<String>());
    fs::write(folder.root.join("data/posts/large.csv"), text).unwrap();
    let made = Wake::News(HashSet::from(["posts/large.csv".into()]));
    let line = "data/posts/large.csv: table posts, rows: 5000 new";
    let (mut opened, _) = folder.look(&made, line);
    // It is new, so the folder is listed.
    opened.remove(".");
    assert_eq!(opened, BTreeMap::from([("large.csv".to_owned(), 2)]));
}

//! The addresses, each with the way that answers it.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use millpond::{
    Failure, Page, Param, Request, Response, Routes, ServerSettings, Store, StoreSettings,
    WebServer, blocking, quick, stored,
};

use crate::books::Books;
use crate::frame::{self, PageFrame};
use crate::sql::BookDatabase;
use crate::watch::{Folder, FolderWatch};
use crate::{BookError, BookView, DataFile, FILES, make_missing, stream, tree, xslt};

/// Lines of the page for tests of compression, unless the address says how many.
const LINES: u32 = 2000;
/// The most lines that an address may ask for.
const MAX_LINES: u32 = 20_000;

/// A way to make the content of a page for a request.
type Way = Arc<dyn Fn(DataFile, &str, BookView<'_>) -> WayResult + Send + Sync>;
/// The content, or `None` if there is no such entry.
type WayResult = Result<Option<String>, Failure>;

/// A way that reads the XML file at this path.
type FileWay = fn(&Path, &str, BookView<'_>) -> Result<Option<String>, BookError>;

/// Each way's address, and what it does.
const WAYS: [(&str, &str); 6] = [
    ("/stream", "The XML file is streamed for each request."),
    ("/tree", "The XML file becomes a tree for each request."),
    (
        "/xslt",
        "A stylesheet transforms the XML file for each request.",
    ),
    (
        "/sql/connection",
        "SQLite, with a connection for each request.",
    ),
    ("/sql/pool", "SQLite, with connections that are kept."),
    (
        "/store",
        "Pages in memory, each until what it shows changes in the file.",
    ),
];

/// The running program.
pub struct AddressBook {
    /// The server.
    pub server: WebServer,
    /// Its pages of `/store`.
    pub store: Store,
    /// The entries that they are made of.
    pub books: Arc<Books>,
    _watch: FolderWatch,
}

/// Starts the server on the files in the folder `data`, which are made if they are missing; with
/// port 0 on any free port. The database is beside the folder. `max_staleness` is the longest time
/// between a change of a file and the end of its pages in `/store`.
///
/// # Errors
/// A file cannot be made, the folder cannot be watched, or the address is taken.
pub fn serve(
    data: &Path,
    max_staleness: Duration,
    settings: ServerSettings,
) -> Result<AddressBook, Box<dyn std::error::Error>> {
    make_missing(data)?;
    let store = Store::with(&StoreSettings {
        max_staleness: Some(max_staleness),
        ..StoreSettings::default()
    });
    let books = Arc::new(Books::new(data, &store));
    let database = Arc::new(BookDatabase::open(&database_of(data)?)?);
    let folder = Folder::open(data, &store, &books)?;
    let watch = FolderWatch::start(&folder, &database)?;
    let mut routes = Routes::new();
    for (address, way) in ways(data, &database) {
        add_way(&mut routes, address, &way);
    }
    add_store(&mut routes, &store, &folder);
    add_others(&mut routes, &store);
    routes.failures(|_, failure| {
        let page = frame::failure(failure.status(), failure.message());
        Response::html(page).with_status(failure.status())
    });
    Ok(AddressBook {
        server: settings.serve(routes)?,
        store,
        books,
        _watch: watch,
    })
}

/// Beside the folder, so that its own files are no events of the watch.
fn database_of(data: &Path) -> io::Result<PathBuf> {
    let mut path = data.canonicalize()?.into_os_string();
    path.push(".db");
    Ok(path.into())
}

/// The ways that make each page for its request. A further one needs a line here and in [`WAYS`].
fn ways(data: &Path, database: &Arc<BookDatabase>) -> [(&'static str, Way); 5] {
    let file_way = |render: FileWay| -> Way {
        let data: PathBuf = data.to_owned();
        Arc::new(move |file: DataFile, base: &str, view: BookView<'_>| {
            render(&file.path(&data), base, view).map_err(internal)
        })
    };
    let by_connection = Arc::clone(database);
    let by_pool = Arc::clone(database);
    [
        ("/stream", file_way(stream::render)),
        ("/tree", file_way(tree::render)),
        ("/xslt", file_way(xslt::render)),
        (
            "/sql/connection",
            Arc::new(move |file, base, view| {
                let page = by_connection.render_by_connection(file, base, view);
                page.map_err(internal)
            }),
        ),
        (
            "/sql/pool",
            Arc::new(move |file, base, view| {
                by_pool.render_by_pool(file, base, view).map_err(internal)
            }),
        ),
    ]
}

/// A fault of the files or of the database: visitors of this program may see what it is.
fn internal(error: impl Display) -> Failure {
    Failure::new(500, error.to_string())
}

fn add_way(routes: &mut Routes, address: &'static str, way: &Way) {
    let page = |way: &Way, file: DataFile, view: BookView<'_>| {
        let content = way(file, &entries_base(address, file), view)?;
        whole_page(address, file, view, content)
    };
    let list = Arc::clone(way);
    let search = Arc::clone(way);
    let entry = Arc::clone(way);
    let random = Arc::clone(way);
    routes
        .get(
            &format!("{address}/random"),
            blocking(move |_: &Request| page(&random, any_file(), BookView::List)),
        )
        .get(
            &format!("{address}/{{file}}"),
            blocking(move |_: &Request, file: DataFile| page(&list, file, BookView::List)),
        )
        .get(
            &format!("{address}/{{file}}/search?{{name}}"),
            blocking(move |_: &Request, file: DataFile, name: String| {
                page(&search, file, BookView::Search(&name))
            }),
        )
        .get(
            &format!("{address}/{{file}}/entry/{{id}}"),
            blocking(move |_: &Request, file: DataFile, id: String| {
                page(&entry, file, BookView::Entry(&id))
            }),
        );
}

/// Adds the pages from the store.
fn add_store(routes: &mut Routes, store: &Store, folder: &Arc<Folder>) {
    const ADDRESS: &str = "/store";
    let make = |folder: &Folder, page: &mut Page, file: DataFile, view: BookView<'_>| {
        let content = folder.render(page, file, &entries_base(ADDRESS, file), view);
        whole_page(ADDRESS, file, view, content)
    };
    let list = Arc::clone(folder);
    let search = Arc::clone(folder);
    let entry = Arc::clone(folder);
    routes
        // A page that is another one each time cannot be kept; the one that it leads to is.
        .get(
            "/store/random",
            quick(|_: &Request| Response::see_other(format!("/store/{}", any_file().name()))),
        )
        .get(
            "/store/{file}",
            stored(store, move |page: &mut Page, file: DataFile| {
                make(&list, page, file, BookView::List)
            }),
        )
        .get(
            "/store/{file}/search?{name}",
            stored(store, move |page: &mut Page, file: DataFile, name: String| {
                make(&search, page, file, BookView::Search(&name))
            }),
        )
        .get(
            "/store/{file}/entry/{id}",
            stored(store, move |page: &mut Page, file: DataFile, id: String| {
                make(&entry, page, file, BookView::Entry(&id))
            }),
        );
}

/// The first page, the one to compress, and what all pages look like.
fn add_others(routes: &mut Routes, store: &Store) {
    let index = |page: &mut Page| {
        page.never_changes();
        Response::html(frame::index(&WAYS))
    };
    let style = |page: &mut Page| {
        page.never_changes();
        Response::new("text/css; charset=utf-8", frame::STYLE)
    };
    let compress = |page: &mut Page, lines: Option<u32>| {
        page.never_changes();
        Response::html(frame::compress(lines.unwrap_or(LINES).min(MAX_LINES)))
    };
    routes
        .get("/", stored(store, index))
        .get("/style.css", stored(store, style))
        .get("/compress?{lines}", stored(store, compress));
}

/// Returns the beginning of the address of each entry.
fn entries_base(address: &str, file: DataFile) -> String {
    format!("{address}/{}/entry", file.name())
}

fn whole_page(
    way: &str,
    file: DataFile,
    view: BookView<'_>,
    content: Option<String>,
) -> Result<Response, Failure> {
    let content = content.ok_or_else(Failure::not_found)?;
    let search = match view {
        BookView::Search(text) => text,
        BookView::List | BookView::Entry(_) => "",
    };
    let frame = PageFrame { way, file, search };
    Ok(Response::html(frame.page(&content)))
}

/// Any of the files, in an order that is not the files'.
fn any_file() -> DataFile {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    // 5 and 6 have no common divisor, so each file comes as often as the others.
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    FILES[call.wrapping_mul(5) % FILES.len()]
}

impl Param for DataFile {
    const EXPECTED: &'static str = "a file such as simple-100";

    fn parse(text: &str) -> Option<Self> {
        Self::named(text)
    }
}

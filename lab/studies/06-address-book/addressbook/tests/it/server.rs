//! The running program: all ways over HTTP, and files that change.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use lab_addressbook::{AddressBook, DataFile, FILES, Model, replace, serve, xslt};
use lab_testkit::{Connection, PATIENCE, Response};
use millpond::ServerSettings;
use tempfile::TempDir;

/// For tests of what ends a page: nothing else does.
const NO_BOUND: Duration = Duration::from_secs(3600);

const SMALL: DataFile = FILES[0];

struct Running {
    book: AddressBook,
    folder: TempDir,
}

impl Running {
    fn start(max_staleness: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = ServerSettings::new().listen("127.0.0.1:0").workers(1);
        let book = serve(&folder.path().join("data"), max_staleness, settings).unwrap();
        Self { book, folder }
    }

    fn path(&self, file: DataFile) -> PathBuf {
        file.path(&self.folder.path().join("data"))
    }

    fn connect(&self) -> Connection {
        Connection::open(self.book.server.address())
    }

    fn get(&self, target: &str) -> Response {
        self.connect().get(target)
    }

    /// Asks until the answer has `part`.
    #[track_caller]
    fn wait_for(&self, target: &str, status: u16, part: &str) {
        let began = Instant::now();
        loop {
            let response = self.get(target);
            if response.status == status && response.text().contains(part) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{target}: {}", response.text());
        }
    }

    /// Asks for a page that may have to be made, then says whether the next answer is from memory.
    fn is_hit(&self, target: &str) -> bool {
        let before = self.book.books.made();
        assert_eq!(self.get(target).status, 200, "{target}");
        self.book.books.made() == before
    }
}

fn main_of(page: &str) -> &str {
    let from = page.find("<main>").unwrap();
    let to = page.find("</main>").unwrap();
    &page[from..to]
}

#[test]
fn all_ways_give_the_same_pages() {
    let running = Running::start(NO_BOUND);
    let mut ways = vec!["/tree", "/sql/connection", "/sql/pool", "/store"];
    match xslt::is_available() {
        Ok(()) => ways.push("/xslt"),
        Err(reason) => eprintln!("left out: {reason}"),
    }
    for name in FILES.map(DataFile::name) {
        for page in [
            "",
            "/search?name=wIL",
            "/search?name=%C5%81",
            "/search?name=",
            "/entry/17",
        ] {
            let expected = running.get(&format!("/stream/{name}{page}"));
            assert_eq!(expected.status, 200);
            let expected = expected.text();
            for way in &ways {
                // Twice, as the second answer may be from memory.
                for _ in 0..2 {
                    let response = running.get(&format!("{way}/{name}{page}"));
                    assert_eq!(response.status, 200, "{way}/{name}{page}");
                    let text = response.text().replace(&format!("\"{way}/"), "\"/stream/");
                    assert!(main_of(&text) == main_of(&expected), "{way}/{name}{page}");
                }
            }
        }
        for way in ways.iter().chain(&["/stream"]) {
            for page in ["/entry/0", "/entry", "/x"] {
                assert_eq!(running.get(&format!("{way}/{name}{page}")).status, 404);
            }
            assert_eq!(running.get(&format!("{way}/{name}/search")).status, 400);
        }
    }
    for way in ways.iter().chain(&["/stream"]) {
        assert_eq!(running.get(&format!("{way}/no-such-file")).status, 404);
        let mut random = running.get(&format!("{way}/random"));
        if *way == "/store" {
            assert_eq!(random.status, 303);
            random = running.get(random.field("location").unwrap());
        }
        assert!(random.status == 200 && random.text().contains("<li>"));
    }
    let index = running.get("/").text();
    assert!(index.contains("href=\"/store/complex-500\""), "{index}");
}

#[test]
fn a_change_ends_the_pages_that_show_it_and_no_others() {
    let running = Running::start(NO_BOUND);
    let pages = [
        "/store/simple-100/entry/17",
        "/store/simple-100/entry/18",
        "/store/simple-100",
        "/store/simple-100/search?name=a",
        "/store/medium-100/entry/17",
        "/store/medium-100",
    ];
    for page in pages {
        assert!(!running.is_hit(page) && running.is_hit(page), "{page}");
    }
    let path = running.path(SMALL);
    let before = fs::read_to_string(&path).unwrap();
    let at = before.find("<entry id=\"17\">").unwrap();
    let after = before[..at].to_owned() + &before[at..].replacen("<street>", "<street>NEW ", 1);
    replace(&path, after.as_bytes()).unwrap();
    running.wait_for(pages[0], 200, "NEW ");
    for (page, is_hit) in pages.iter().zip([true, true, false, false, true, true]) {
        assert_eq!(running.is_hit(page), is_hit, "{page}");
        assert!(running.is_hit(page), "{page}");
    }
    assert!(running.get("/store/simple-100").text().contains("NEW "));
    running.wait_for("/sql/pool/simple-100/entry/17", 200, "NEW ");
    // The same content again, and a file that is not ours, change nothing.
    fs::write(&path, &after).unwrap();
    fs::write(path.with_file_name("other.xml"), "<addressbook/>").unwrap();
    // This one comes behind them.
    let marker = running.path(FILES[1]);
    fs::write(
        &marker,
        "<addressbook><entry id='1'><last>Marker</last></entry></addressbook>",
    )
    .unwrap();
    running.wait_for("/store/simple-500", 200, "Marker");
    for page in pages {
        assert!(running.is_hit(page), "{page}");
    }
}

#[test]
fn broken_and_missing_files_and_folders() {
    let running = Running::start(NO_BOUND);
    let path = running.path(SMALL);
    let good = fs::read_to_string(&path).unwrap();
    let list = running.get("/store/simple-100").text();
    // A broken file keeps its former entries in the store; a way that reads it says what is wrong.
    fs::write(&path, &good[..good.len() / 2]).unwrap();
    running.wait_for("/stream/simple-100", 500, "simple-100.xml:");
    let one = "<addressbook><entry id=\"1\"><last>One</last></entry></addressbook>";
    replace(&running.path(FILES[1]), one.as_bytes()).unwrap();
    running.wait_for("/store/simple-500", 200, "1 found");
    assert_eq!(running.get("/store/simple-100").text(), list);
    // It is good again, gone, and there again.
    replace(&path, one.as_bytes()).unwrap();
    running.wait_for("/store/simple-100", 200, "1 found");
    running.wait_for("/store/simple-100/entry/2", 404, "not found");
    fs::remove_file(&path).unwrap();
    running.wait_for("/store/simple-100", 404, "");
    running.wait_for("/store/simple-100/entry/1", 404, "");
    fs::write(&path, &good).unwrap();
    running.wait_for("/store/simple-100/entry/2", 200, "<article>");
    // The folder goes, another one comes.
    let data = running.folder.path().join("data");
    fs::rename(&data, data.with_extension("away")).unwrap();
    fs::create_dir(&data).unwrap();
    fs::write(&path, one).unwrap();
    running.wait_for("/store/simple-100", 200, "1 found");
    running.wait_for("/sql/connection/simple-100", 200, "1 found");
    fs::write(&path, "<addressbook/>").unwrap();
    running.wait_for("/store/simple-100", 200, "0 found");
}

/// Each answer shows what was written at least 100 ms before it was asked for, also if the thread
/// that watches is late, and never something older than an answer before.
#[test]
fn a_change_is_on_the_page_within_the_bound() {
    const BOUND: Duration = lab_addressbook::MAX_STALENESS;
    let running = Running::start(BOUND);
    let path = running.path(SMALL);
    let content = |version: usize| {
        format!("<addressbook><entry id='1'><last>v{version}.</last></entry></addressbook>")
    };
    // When each version was there.
    let written = Mutex::new(Vec::new());
    let version_of = |response: &Response| {
        let text = response.text();
        let from = text.find("> v").unwrap() + 3;
        let length = text[from..].find('.').unwrap();
        text[from..from + length].parse::<usize>().unwrap()
    };
    replace(&path, content(0).as_bytes()).unwrap();
    written.lock().unwrap().push(Instant::now());
    running.wait_for("/store/simple-100/entry/1", 200, "v0.");
    thread::scope(|scope| {
        for target in ["/store/simple-100", "/store/simple-100/entry/1"] {
            let (running, written) = (&running, &written);
            scope.spawn(move || {
                let mut client = running.connect();
                let mut last = 0;
                while last < 299 {
                    let asked = Instant::now();
                    let shown = version_of(&client.get(target));
                    let written = written.lock().unwrap();
                    let due = written.iter().rposition(|at| *at + BOUND <= asked);
                    assert!(Some(shown) >= due, "{shown} is shown, {due:?} is due");
                    assert!(shown >= last, "{shown} is shown after {last}");
                    last = shown;
                }
            });
        }
        for version in 1..300 {
            replace(&path, content(version).as_bytes()).unwrap();
            written.lock().unwrap().push(Instant::now());
        }
    });
}

#[test]
fn the_page_for_compression_is_compressed_once() {
    let running = Running::start(NO_BOUND);
    let whole = running.get("/compress").body.len();
    assert!(whole > 100_000);
    assert!(running.get("/compress?lines=10").body.len() < 2000);
    assert_eq!(running.get("/compress?lines=x").status, 400);
    for coding in ["gzip", "br", "zstd"] {
        let began = Instant::now();
        let mut client = running.connect();
        let accept = format!("Accept-Encoding: {coding}");
        while client.get_with("/compress", &[&accept]).body.len() > whole / 10 {
            assert!(began.elapsed() < PATIENCE, "{coding}");
        }
    }
    let model = Model::Simple.name();
    assert_eq!(
        running.get("/style.css").field("content-type"),
        Some("text/css; charset=utf-8")
    );
    assert!(running.get("/").text().contains(model));
}

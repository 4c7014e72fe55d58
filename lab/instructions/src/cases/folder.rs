//! A site with a thousand files and a page, and a worker that serves it over loopback.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
    thread::{self, JoinHandle},
};

use millpond_http::{Limits, WorkerGroup, listen, run_worker};
use millpond_site::{Config, SiteOptions, Sites, SitesService};
use tempfile::TempDir;

use super::http2_client::StreamsClient;
use crate::counted::counted_instructions;

/// Static files of 8 KiB.
pub(super) const FILES: u32 = 1000;
/// Rows, each with a page.
pub(super) const PAGES: u32 = 100;

const READ_SQL: &str = "-- param: id integer

-- name: article :one
select title, body from article where id = :id;
";

const SCHEMA: &str =
    "create table article (id integer primary key, title text not null, body text not null) strict;
with recursive n (id) as (select 0 union all select id + 1 from n where id < 99)
insert into article select id, 'Article ' || id, printf('%.*c', 8000, 'x') from n;
";

/// A site that is open; it ends with this value.
pub(super) struct Served {
    sites: Arc<Sites>,
    _folder: TempDir,
}

/// The address of a file.
pub(super) fn file(number: u32) -> String {
    format!("/files/{:04}.txt", number % FILES)
}

/// The address of a page.
pub(super) fn page(number: u32) -> String {
    format!("/read?id={}", number % PAGES)
}

impl Served {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write(folder.path());
        let config = Config::read(folder.path()).expect("settings");
        let sites = Sites::open(folder.path(), &config, SiteOptions::default());
        let sites = sites.unwrap_or_else(|problems| panic!("{problems:?}"));
        Self {
            sites: Arc::new(sites),
            _folder: folder,
        }
    }

    /// Returns a service for one worker.
    pub(super) fn service(&self) -> SitesService {
        self.sites.service()
    }

    /// A worker whose whole thread is counted.
    pub(super) fn counted_worker(&self) -> Worker {
        self.start(|serve| counted_instructions(1, serve))
    }

    /// Asks for each page once, of a worker that is not counted, so that all of them are stored.
    pub(super) fn fill(&self) {
        let worker = self.start(|serve| serve());
        let mut client = worker.connect();
        for number in 0..PAGES {
            client.ask(&client.request(&page(number)), 1);
        }
    }

    fn start(&self, within: fn(&mut dyn FnMut())) -> Worker {
        let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let shared = WorkerGroup::new();
        let (sites, asked) = (Arc::clone(&self.sites), Arc::clone(&shared));
        let thread = thread::spawn(move || {
            let mut listener = Some(listener);
            within(&mut || {
                let listener = listener.take().expect("one call");
                let service = sites.service();
                // The number of polls for a request depends on time, and valgrind makes everything
                // slow.
                let limits = Limits {
                    spins: false,
                    ..Limits::default()
                };
                run_worker(listener, service, limits, Arc::clone(&asked)).expect("serves");
            });
        });
        Worker {
            address,
            shared,
            thread: Some(thread),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.sites.stop();
    }
}

fn write(folder: &Path) {
    // Under valgrind the feed may be held up for longer than a second.
    let settings = "[database]\nurl = \"sqlite:site.db\"\n\n[cache]\nmax_staleness = \"1h\"\n";
    let mut files = vec![
        ("millpond.toml".to_owned(), settings.to_owned()),
        ("migrations/0001_start.sql".to_owned(), SCHEMA.to_owned()),
        ("pages/index.html".to_owned(), "front".to_owned()),
        ("pages/read.sql".to_owned(), READ_SQL.to_owned()),
        (
            "pages/read.html".to_owned(),
            "<h1>{{ article.title }}</h1><p>{{ article.body }}</p>".to_owned(),
        ),
    ];
    files.extend((0..FILES).map(|number| {
        let mut text = format!("file {number}\n");
        text.extend(std::iter::repeat_n('x', (8 << 10) - text.len()));
        (format!("static{}", file(number)), text)
    }));
    for (name, text) in files {
        let path = folder.join(name);
        let parent = path.parent().expect("a folder");
        fs::create_dir_all(parent).expect("a folder");
        fs::write(path, text).expect("a file");
    }
}

/// A worker; its thread ends with this value.
pub(super) struct Worker {
    address: SocketAddr,
    shared: Arc<WorkerGroup>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// A connection that stays open.
    pub(super) fn connect(&self) -> PipelineClient {
        PipelineClient {
            stream: BufReader::with_capacity(256 << 10, self.stream()),
            address: self.address,
        }
    }

    /// Opens a connection of HTTP/2 that stays open.
    pub(super) fn connect_http2(&self) -> StreamsClient {
        StreamsClient::open(self.stream())
    }

    fn stream(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("connects");
        stream.set_nodelay(true).expect("an option of TCP");
        stream
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.shutdown();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            // A panic in a drop that runs because of another would hide the first.
            assert!(ended.is_ok() || thread::panicking(), "the worker panicked");
        }
    }
}

/// A client that waits for each answer.
pub(super) struct PipelineClient {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

impl PipelineClient {
    /// A request for `target`, as wrk sends it.
    pub(super) fn request(&self, target: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address)
    }

    /// Sends these requests at once and reads `answers` responses of status 200; returns the head
    /// of the last.
    pub(super) fn ask(&mut self, requests: &str, answers: u32) -> String {
        let stream = self.stream.get_mut();
        stream.write_all(requests.as_bytes()).expect("sent");
        let mut head = String::new();
        for _ in 0..answers {
            head = self.head();
            assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
            let length = head
                .split("\r\n")
                .find_map(|line| line.strip_prefix("Content-Length: "))
                .and_then(|length| length.parse().ok())
                .expect("a length");
            let mut body = vec![0; length];
            self.stream.read_exact(&mut body).expect("a body");
        }
        head
    }

    fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = self.stream.read_line(&mut head).expect("a head");
            assert!(read > 0, "closed after {head:?}");
        }
        head
    }
}

//! A site in a temporary folder, and requests to it.

use std::{
    cell::RefCell, collections::HashMap, fs, net::SocketAddr, os::unix::fs::FileExt, path::Path,
    sync::Arc, time::Duration,
};

use base_clock::Boottime;
use millpond_http::{Body, OwnedRequest, Reply, Response, Service, Validity};
use millpond_site::{Config, Problem, Site, SiteOptions, SiteService};

/// Tables that most tests use.
pub(crate) const SCHEMA: &str = "create table article (id integer primary key, title text not null unique check (length(title) < 40), body text) strict;
create table comment (id integer primary key, article_id integer not null references article, who text not null) strict;
insert into article values (1, 'One', 'a < b'), (2, 'Two', 'second');";

pub(crate) struct TestSite {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) site: Arc<Site>,
    service: SiteService,
    runtime: tokio::runtime::LocalRuntime,
    /// The last answer to each request, with its validity.
    kept: RefCell<HashMap<String, ValidResponse>>,
}

type ValidResponse = (Response, Validity);

/// An answer, read whole.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
    response: Response,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.response.field(name).unwrap_or_default()
    }

    pub(crate) fn cache(&self) -> &str {
        self.field("cache-status")
            .strip_prefix("millpond; ")
            .unwrap_or_default()
    }
}

fn bytes_of(response: &Response) -> (u16, Vec<u8>) {
    let body = match response.body() {
        Body::Bytes(bytes) => bytes,
        _ => &[][..],
    };
    let parts = [&response.head()[..], response.extra(), body];
    (response.status(), parts.concat())
}

pub(crate) fn write(dir: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

pub(crate) fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = lab_testkit::fast_dir();
    write(
        dir.path(),
        &[
            // A page that is made ahead is a hit where most tests expect a miss.
            (
                "millpond.toml",
                "[database]\nurl = \"sqlite:site.db\"\n[cache]\nrefresh_ahead = 0\n",
            ),
            ("migrations/0001_start.sql", SCHEMA),
            ("pages/index.html", "front"),
        ],
    );
    write(dir.path(), files);
    dir
}

/// The problems that opening a site with these files gives.
pub(crate) fn problems(files: &[(&str, &str)]) -> String {
    let dir = folder(files);
    let problems = match Config::read(dir.path()) {
        Ok(config) => match Site::open(dir.path(), &config, SiteOptions::default()) {
            Ok(site) => {
                site.stop();
                Vec::new()
            }
            Err(problems) => problems,
        },
        Err(problem) => vec![problem],
    };
    problems
        .iter()
        .map(Problem::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

impl TestSite {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self::with(files, SiteOptions::default())
    }

    pub(crate) fn with(files: &[(&str, &str)], options: SiteOptions) -> Self {
        Self::open(folder(files), options)
    }

    /// The site in a folder.
    pub(crate) fn open(dir: tempfile::TempDir, options: SiteOptions) -> Self {
        let config = Config::read(dir.path()).unwrap();
        let site = Site::open(dir.path(), &config, options).unwrap_or_else(|problems| {
            panic!(
                "{}",
                problems.iter().map(Problem::to_string).collect::<String>()
            )
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(Default::default())
            .unwrap();
        let test = Self {
            service: site.service(),
            site,
            dir,
            runtime,
            kept: RefCell::default(),
        };
        test.until("the feed is heard of", || test.site.healthy());
        test
    }

    /// Opens the folder again, as if it were served by another process.
    pub(crate) fn restart(self, files: &[(&str, &str)]) -> Self {
        self.restart_after(|dir| write(dir, files))
    }

    /// Opens the folder again after `change`, while which no process serves it.
    pub(crate) fn restart_after(mut self, change: impl FnOnce(&Path)) -> Self {
        let dir = std::mem::replace(&mut self.dir, lab_testkit::fast_dir());
        drop(self);
        change(dir.path());
        Self::open(dir, SiteOptions::default())
    }

    /// Asks, and checks that an earlier response that is still valid is given again.
    pub(crate) fn ask(&self, request: &OwnedRequest) -> Answer {
        let name = format!("{request:?}");
        let mut kept = self.kept.borrow_mut();
        let before = kept.remove(&name);
        let still = |(response, validity): ValidResponse| {
            let is_valid = validity.is_valid(Boottime::now());
            is_valid.then_some((response, validity))
        };
        let before = before.and_then(still);
        let now = Boottime::now();
        let request = request
            .clone()
            .from_peer(SocketAddr::from(([127, 0, 0, 1], 1)), now)
            .wanting_validity();
        let (reply, validity) = match self.service.call(&request.as_request()) {
            Reply::Ready(response) => (response, None),
            Reply::Reusable(reply) => {
                let (response, validity) = *reply;
                (response, Some(validity))
            }
            Reply::Later(future) => (self.runtime.block_on(future), None),
        };
        // A change during the requests may be seen or not.
        if let Some((before, _)) = before.and_then(still) {
            assert_eq!(bytes_of(&before), bytes_of(&reply), "{name}");
        }
        if let Some(validity) = validity {
            kept.insert(name, (reply.clone(), validity));
        }
        let body = match reply.body() {
            Body::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Body::File { file, offset, len } => {
                let mut bytes = vec![0; usize::try_from(*len).unwrap()];
                file.read_exact_at(&mut bytes, *offset).unwrap();
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Body::Empty | Body::Streamed(_) => String::new(),
        };
        Answer {
            status: reply.status(),
            body,
            response: reply,
        }
    }

    pub(crate) fn get(&self, target: &str) -> Answer {
        self.ask(&OwnedRequest::new("GET", target).field("Host", "site.test"))
    }

    pub(crate) fn post(&self, target: &str, body: &str) -> Answer {
        self.ask(
            &OwnedRequest::new("POST", target)
                .field("Host", "site.test")
                .field("Content-Type", "application/x-www-form-urlencoded")
                .body(body.to_owned()),
        )
    }

    /// True if a request that arrives at a moment is answered from memory. It is not answered.
    pub(crate) fn is_hit_at(&self, target: &str, at: Boottime) -> bool {
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let request = OwnedRequest::new("GET", target).field("Host", "site.test");
        let reply = self.service.call(&request.from_peer(peer, at).as_request());
        !matches!(reply, Reply::Later(_))
    }

    /// Another program's connection to the same file.
    pub(crate) fn foreign(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.dir.path().join("site.db")).unwrap();
        connection.busy_timeout(lab_testkit::PATIENCE).unwrap();
        connection
    }

    /// Waits for something that happens by itself.
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        for _ in 0..30_000 {
            if holds() {
                return;
            }
            self.runtime
                .block_on(async { tokio::time::sleep(Duration::from_millis(2)).await });
        }
        panic!("never: {what}");
    }
}

impl Drop for TestSite {
    fn drop(&mut self) {
        self.site.stop();
    }
}

//! Who may see a page, over sockets: hostile spellings of paths on both versions of HTTP, and
//! answers that are repeated byte for byte while a session ends.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use lab_testkit::http2::{Http2Connection, field, head_of};

use crate::support::{Connection, PATIENCE, Server, run, serve, site_with, text, write};

const RULES: &str = "
[static]
clean_urls = true
listing = true

[[rewrite]]
from = \"/s/*\"
to = \"/editor/*\"

[[require]]
path = \"/editor/*\"
claims = \"role in ('editor', 'admin')\"
else = \"/\"
";

const SECRET: &str = "the secret of editors";

fn start(settings: &str) -> (tempfile::TempDir, Server) {
    let site = site_with(&format!("{settings}{RULES}"));
    for (name, text) in [
        (
            "pages/enter.post.sql",
            "-- param: role text\n-- claims: role = :role\n",
        ),
        ("pages/editor/index.html", SECRET),
        (
            "pages/editor/list.sql",
            "-- name: note :one\nselect count(*) as notes from note;\n",
        ),
        (
            "pages/editor/list.html",
            "the secret of editors: {{ note.notes }}",
        ),
        (
            "pages/editor/api.sql",
            "-- name: note :one\nselect 'the secret of editors' as text;\n",
        ),
        (
            "pages/editor/[name].html",
            "the secret of editors called {{ params.name }}",
        ),
        (
            "pages/open.sql",
            "-- name: note :one\nselect count(*) as notes from note;\n",
        ),
        ("pages/open.html", "open: {{ note.notes }}"),
        (
            "pages/editor/send.post.sql",
            "-- file: picture into uploads/editor\n-- name: at :one\nselect :picture as address;\n-- json: at\n",
        ),
        ("static/editor/plan.html", SECRET),
        ("static/editor/files/a.txt", SECRET),
        ("static/open.txt", "open"),
    ] {
        write(site.path(), name, text);
    }
    let server = serve(site.path());
    (site, server)
}

const UPLOADS: &str = "[[require]]\npath = \"/uploads/editor/*\"\nclaims = \"role = 'editor'\"\n";

#[test]
fn uploads_are_sent_and_seen_by_those_who_may_enter() {
    let (site, server) = start(&format!("[session]\nbearer = true\n{UPLOADS}"));
    let part =
        "--x\r\nContent-Disposition: form-data; name=\"picture\"; filename=\"a.txt\"\r\n\r\n";
    let body = format!("{part}{SECRET}\r\n--x--\r\n");
    let send = |path: &str, field: &str| {
        let mut connection = Connection::open(server.address());
        connection.send(format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n{field}\
             Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        connection.receive()
    };
    let (editor, reader) = (enter(&server, "editor"), enter(&server, "reader"));
    let token = |value: &str| format!("Authorization: Bearer {value}\r\n");
    let cookie = |value: &str| format!("Cookie: __Host-session={value}\r\n");
    for path in ["/editor/send", "/s/send", "/x/../editor/%73end"] {
        for (field, status) in [
            (String::new(), 401),
            (token("x"), 401),
            (token(&reader), 403),
            (cookie(&reader), 403),
            (cookie("x"), 401),
            (token(&editor) + &cookie(&reader), 400),
        ] {
            assert_eq!(send(path, &field).status, status, "{path} {field}");
        }
    }
    let folder = site.path().join("uploads/editor");
    let stored = std::fs::read_dir(folder).map_or(0, Iterator::count);
    assert_eq!(stored, 0, "nothing was stored");
    let made = send("/editor/send", &token(&editor));
    assert_eq!(made.status, 200, "{}", made.text());
    let address = made.text();
    let address = address.split('"').nth(3).unwrap();
    assert!(address.starts_with("/uploads/editor/"), "{address}");
    let see = |address: &str, field: &str| {
        let fields = if field.is_empty() {
            vec![]
        } else {
            vec![field.trim_end()]
        };
        Connection::open(server.address()).get_with(address, &fields)
    };
    let shown = see(address, &cookie(&editor));
    assert_eq!((shown.status, &*shown.text()), (200, SECRET));
    assert_eq!(shown.field("cache-control"), Some("private, no-cache"));
    for field in [String::new(), cookie(&reader), token(&reader)] {
        for address in [
            address.to_owned(),
            address.replace("/editor/", "/x/../editor/"),
        ] {
            let refused = see(&address, &field);
            assert_eq!(refused.status, 403, "{address} {field}");
            assert!(!refused.text().contains("secret"));
        }
    }
    assert!(server.stop().0.success());
}

/// Signs in, and gives the value of the session.
fn enter(server: &Server, role: &str) -> String {
    let mut connection = Connection::open(server.address());
    let answer = connection.post("/enter", &format!("role={role}"));
    let cookie = answer.field("set-cookie").unwrap_or_default();
    let value = cookie.strip_prefix("__Host-session=").expect(cookie);
    value.split(';').next().unwrap().to_owned()
}

const SPELLINGS: [&str; 34] = [
    "/editor",
    "/editor/",
    "/editor?",
    "/editor/list",
    "/editor/list/",
    "/editor/list//",
    "/editor//list",
    "//editor/list",
    "/./editor/list",
    "/editor/./list",
    "/x/../editor/list",
    "/x/%2e%2e/editor/list",
    "/editor/x/..%2flist",
    "/editor%2flist",
    "/editor%2Flist",
    "/%65ditor/list",
    "/%2565ditor/list",
    "/EDITOR/list",
    "/editor/list;a=b",
    "/editor/list%00",
    "/editor/list%20",
    "/editor\\list",
    "/editor/plan",
    "/editor/plan.html",
    "/editor/plan/",
    "/editor/files",
    "/editor/files/",
    "/editor/files/a.txt",
    "/editor/files/../list",
    "/editor/api",
    "/s/list",
    "/s//list",
    "/s/../s/plan",
    "/s/files/a.txt",
];

#[test]
fn no_spelling_of_a_path_goes_around_a_rule() {
    let (_site, server) = start("");
    let reader = enter(&server, "reader");
    let cookies = ["", &*reader, "1.e30.AAAA"];
    for method in ["GET", "HEAD", "OPTIONS", "POST", "PUT", "TRACE"] {
        for path in SPELLINGS {
            for cookie in cookies {
                for host in ["a", "editor.:80"] {
                    let mut connection = Connection::open(server.address());
                    connection.send(format!(
                        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nCookie: __Host-session={cookie}\r\n\
                         Content-Length: 0\r\nConnection: close\r\n\r\n"
                    ));
                    let answer = match method {
                        "HEAD" => connection.receive_head(),
                        _ => connection.receive(),
                    };
                    assert_closed(method, path, answer.status, &answer.text());
                }
            }
        }
    }
    let absolute = "GET http://a/editor/list HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n";
    let mut connection = Connection::open(server.address());
    connection.send(absolute);
    let answer = connection.receive();
    assert_closed("GET", "absolute", answer.status, &answer.text());
    // Those who may enter see all of it.
    let editor = enter(&server, "editor");
    let cookie = format!("Cookie: __Host-session={editor}");
    for path in [
        "/editor",
        "/editor/list",
        "/editor/plan",
        "/editor/files/a.txt",
        "/s/list",
    ] {
        let answer = Connection::open(server.address()).get_with(path, &[&cookie]);
        assert!(
            answer.status == 200 && answer.text().contains(SECRET),
            "{path}"
        );
        assert_eq!(
            answer.field("cache-control"),
            Some("private, no-cache"),
            "{path}"
        );
    }
    assert!(server.stop().0.success());
}

fn assert_closed(method: &str, path: &str, status: u16, body: &str) {
    assert!(!body.contains("secret"), "{method} {path}: {body}");
    let is_refused = matches!(status, 303 | 308 | 400 | 401 | 403 | 404 | 405 | 421 | 501);
    assert!(is_refused, "{method} {path}: {status}");
    if method == "GET" && (path.starts_with("/editor/") || path.starts_with("/s/")) {
        assert!(matches!(status, 303 | 400 | 401 | 403), "{path}: {status}");
    }
}

#[test]
fn over_http2_no_spelling_goes_around_a_rule_either() {
    let (_site, server) = start("");
    let reader = enter(&server, "reader");
    let mut paths = SPELLINGS.to_vec();
    paths.extend([
        "editor/list",
        "*",
        "http://localhost/editor/list",
        "/editor/list#x",
        "/#/../editor/list",
    ]);
    for path in paths {
        for cookie in ["", &*reader] {
            let socket = TcpStream::connect(server.address()).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut client = Http2Connection::open(socket).unwrap();
            let mut block = head_of("http", "GET", path);
            if !cookie.is_empty() {
                field(
                    &mut block,
                    b"cookie",
                    format!("__Host-session={cookie}").as_bytes(),
                );
            }
            // Three times, so that a repeated answer would be one.
            let Ok(answers) = client.send(&[block.clone(), block.clone(), block]) else {
                // The stream or the connection has ended: the path is none.
                continue;
            };
            for answer in answers {
                assert_closed("HTTP/2 GET", path, answer.status, &text(&answer.body));
            }
        }
    }
    assert!(server.stop().0.success());
}

/// A request that is sent again and again, with its session's field, and its status before and
/// after the end of the session.
struct Repeated {
    target: &'static str,
    field: String,
    statuses: (u16, u16),
    /// The session has ended by then.
    end: Instant,
    connection: Connection,
}

impl Repeated {
    /// Asks once more; true if the session has ended.
    fn is_over(&mut self) -> bool {
        let sent = Instant::now();
        let (target, (good, refused)) = (self.target, self.statuses);
        let status = self.connection.get_with(target, &[&self.field]).status;
        assert!([good, refused].contains(&status), "{target}: {status}");
        assert!(
            status == refused || sent < self.end,
            "{target} is given after the end"
        );
        status == refused
    }
}

#[test]
fn what_is_repeated_ends_with_the_session_it_was_given_to() {
    let (_site, server) = start("[session]\nbearer = true\nlifetime = \"2s\"\n");
    let repeated = |target, field: &str, statuses| Repeated {
        target,
        field: format!("{field}{}", enter(&server, "editor")),
        statuses,
        // The lifetime, and a second because the end is a whole second.
        end: Instant::now() + Duration::from_secs(3),
        connection: Connection::open(server.address()),
    };
    let cookie = "Cookie: __Host-session=";
    let token = "Authorization: Bearer ";
    let mut all = [
        repeated("/editor/list", cookie, (200, 303)),
        repeated("/editor/plan", cookie, (200, 303)),
        repeated("/editor/files/", cookie, (200, 303)),
        repeated("/editor/api", cookie, (200, 401)),
        repeated("/editor/list", token, (200, 401)),
        repeated("/editor/plan", token, (200, 401)),
        repeated("/open", token, (200, 401)),
        repeated("/open.txt", token, (200, 401)),
        repeated("/nothing", token, (404, 401)),
    ];
    let started = Instant::now();
    loop {
        let over = all.iter_mut().map(Repeated::is_over).filter(|over| *over);
        if over.count() == all.len() {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "one of them is never refused");
    }
    for _ in 0..3 {
        assert!(all.iter_mut().all(Repeated::is_over), "for ever");
    }
    drop(all);
    assert!(server.stop().0.success());
}

#[test]
fn over_http2_a_repeated_answer_is_one_token_s() {
    let (_site, server) = start("[session]\nbearer = true\n");
    let socket = TcpStream::connect(server.address()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut client = Http2Connection::open(socket).unwrap();
    let block = |target: &str, token: &str| {
        let mut block = head_of("http", "GET", target);
        if !token.is_empty() {
            field(
                &mut block,
                b"authorization",
                format!("Bearer {token}").as_bytes(),
            );
        }
        block
    };
    let (editor, reader) = (enter(&server, "editor"), enter(&server, "reader"));
    for _ in 0..4 {
        for target in ["/editor/api", "/editor/list", "/editor/files/a.txt"] {
            let tokens = [&*editor, &reader, "", "x", &editor];
            let sent = tokens.map(|token| block(target, token));
            let answers = client.send(&sent).unwrap();
            let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
            let stranger = if target == "/editor/api" { 401 } else { 303 };
            assert_eq!(statuses, [200, 403, stranger, 401, 200], "{target}");
            for answer in &answers[1..4] {
                assert!(!text(&answer.body).contains("secret"), "{target}");
            }
        }
    }
    assert!(server.stop().0.success());
}

#[test]
fn check_says_what_a_rule_reaches() {
    let (site, server) = start("");
    assert!(server.stop().0.success());
    let output = run(site.path(), &["check"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(
        said.contains(": /editor/* wants claims.role in ('editor', 'admin') at /editor")
            && said.contains(", 2 files\n"),
        "{said}"
    );
}

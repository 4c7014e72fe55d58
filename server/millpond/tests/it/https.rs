//! https: a local authority, certificates in files, HTTP/2, and redirects from http.

use std::path::Path;
use std::process::Command;

use lab_testkit::tls::self_signed;
use rustix::process::Signal;

use crate::acme::page;
use crate::support::{Connection, Server, fail, millpond, run, text, write};

/// A site whose page is always the same.
fn site() -> tempfile::TempDir {
    let dir = lab_testkit::fast_dir();
    write(dir.path(), "millpond.toml", "");
    write(dir.path(), "pages/index.html", "<h1>hello</h1>");
    dir
}

/// The server, and the address that it redirects from.
pub(crate) fn serve(dir: &Path, more: &[&str]) -> (Server, u16) {
    // A port that is free now, for http: the first line of the server names that of https.
    let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = plain.local_addr().unwrap().port();
    drop(plain);
    let listen = format!("127.0.0.1:{port}");
    let mut command = millpond(&["serve", "--listen", &listen, "--tls-listen", "127.0.0.1:0"]);
    command.args(more).arg(dir);
    (Server::spawn(command), port)
}

/// Returns the output of `curl` for a URL, with this authority.
pub(crate) fn curl(authority: &Path, args: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "60", "--cacert"])
        .arg(authority)
        .args(args)
        .output()
        .unwrap();
    text(&output.stdout) + &text(&output.stderr)
}

pub(crate) fn has_curl() -> bool {
    let found = Command::new("curl").arg("--version").output();
    let is_there = found.is_ok_and(|output| text(&output.stdout).contains("HTTP2"));
    if !is_there {
        eprintln!("curl with HTTP/2 is missing: not tested");
    }
    is_there
}

#[test]
fn a_local_authority_serves_https_and_http_redirects() {
    if !has_curl() {
        return;
    }
    let dir = site();
    let (server, plain) = serve(dir.path(), &["--domain", "localhost"]);
    let authority = dir.path().join("tls/localhost/authority.pem");
    let url = format!("https://localhost:{}/", server.address().port());
    assert_eq!(format!("{}/", server.url()), url);
    for (version, shown) in [("--http1.1", "1.1"), ("--http2", "2")] {
        for _ in 0..4 {
            let said = curl(
                &authority,
                &[version, "-w", " %{http_version} %{http_code}", &url],
            );
            assert_eq!(said, format!("<h1>hello</h1> {shown} 200"));
        }
    }
    let redirect = format!("http://127.0.0.1:{plain}/a?b");
    let said = curl(
        &authority,
        &["-o", "-", "-w", "%{http_code} %{redirect_url}", &redirect],
    );
    let to = format!("301 https://127.0.0.1:{}/a?b", server.address().port());
    assert!(said.ends_with(&to), "{said}");
    // Without the authority nothing is trusted.
    let other = dir.path().join("tls/localhost/localhost.key");
    assert!(!curl(&other, &[&url]).contains("hello"));
    let (status, notes) = server.stop();
    assert!(status.success(), "{notes}");
}

/// *Counterexample*: while one request for a redirect was under way, the site took new connections,
/// and only then its own time to drain began.
#[test]
fn the_redirect_and_the_site_drain_together() {
    let dir = site();
    let (server, plain) = serve(dir.path(), &["--domain", "localhost"]);
    let mut slow = Connection::open(([127, 0, 0, 1], plain).into());
    slow.send("GET /a HTTP/1.1\r\nHost: localhost\r\n");
    server.signal(Signal::TERM);
    server.wait_until_closed();
    slow.send("\r\n");
    assert_eq!(slow.receive().status, 301);
    let (status, notes) = server.wait();
    assert!(status.success(), "{notes}");
}

/// *Counterexample*: a page that came over http, which any network may change, could send a form
/// to the site's address of https.
#[test]
fn over_tls_a_form_comes_from_a_page_of_https() {
    if !has_curl() {
        return;
    }
    let dir = site();
    write(
        dir.path(),
        "migrations/0001_say.sql",
        "create table word (id integer primary key, text text);",
    );
    write(
        dir.path(),
        "pages/say.post.sql",
        "-- param: text text\n-- name: say :exec\ninsert into word (text) values (:text);\n-- redirect: /\n",
    );
    let (server, _) = serve(dir.path(), &["--domain", "localhost"]);
    let authority = dir.path().join("tls/localhost/authority.pem");
    let host = format!("localhost:{}", server.address().port());
    for version in ["--http1.1", "--http2"] {
        for (scheme, expected) in [("https", "303"), ("http", "403")] {
            let origin = format!("Origin: {scheme}://{host}");
            let url = format!("https://{host}/say");
            let form = ["-H", &origin, "-d", "text=a", "-o", "/dev/null"];
            let shown = [version, "-w", "%{http_code}", &url];
            let said = curl(&authority, &[&form[..], &shown].concat());
            assert_eq!(said, expected, "{version} {scheme}");
        }
    }
}

#[test]
fn how_to_trust_is_printed_at_the_first_start_and_shown_by_a_command() {
    let dir = site();
    let (status, said) = fail(dir.path(), &["check", "--trust"]);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("serve --domain localhost"), "{said}");
    let notes_of_a_start = || {
        let (status, notes) = serve(dir.path(), &["--domain", "localhost"]).0.stop();
        assert!(status.success(), "{notes}");
        notes
    };
    let first = notes_of_a_start();
    let remedy = first.lines().find(|line| line.contains("mkdir")).unwrap();
    let later = notes_of_a_start();
    assert!(!later.contains("mkdir"), "{later}");
    // The command as it is printed, by a shell.
    let line = later.lines().find(|line| line.contains("--trust")).unwrap();
    let command = line.split('`').nth(1).unwrap();
    let command = command.replace("millpond check", "\"$MILLPOND\" check");
    let mut shell = Command::new("sh");
    shell.args(["-c", &command]);
    let output = shell
        .env("MILLPOND", env!("CARGO_BIN_EXE_millpond"))
        .output();
    let output = output.unwrap();
    let shown = text(&output.stdout);
    assert!(
        shown.contains(remedy.trim()),
        "{shown}{}",
        text(&output.stderr)
    );
}

#[test]
fn how_to_trust_is_printed_until_a_start_succeeds() {
    let dir = site();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let args = ["serve", "--domain", "localhost", "--listen", "127.0.0.1:0"];
    let (status, said) = fail(dir.path(), &[&args[..], &["--tls-listen", &taken]].concat());
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("choose another with --tls-listen"), "{said}");
    let (server, _) = serve(dir.path(), &["--domain", "localhost"]);
    let port = server.address().port();
    let (_, notes) = server.stop();
    assert!(notes.contains("mkdir"), "{notes}");
    let shown = text(&run(dir.path(), &["check", "--trust"]).stdout);
    let url = format!("https://localhost:{port}/");
    assert!(shown.contains(&url), "{shown}");

    std::fs::remove_file(dir.path().join("tls/localhost/authority.key")).unwrap();
    let (_, notes) = serve(dir.path(), &["--domain", "localhost"]).0.stop();
    assert!(notes.contains("a new authority was made"), "{notes}");
    assert!(notes.contains("mkdir"), "{notes}");
}

#[test]
fn browsers_trust_two_sites_and_then_no_longer() {
    if Command::new("certutil").arg("--version").output().is_err() {
        eprintln!("certutil is missing: not tested");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let shell = |command: &str| {
        let mut shell = Command::new("sh");
        let output = shell.args(["-c", command]).env("HOME", home.path());
        let output = output.output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
        text(&output.stdout)
    };
    let list = "certutil -d sql:$HOME/.pki/nssdb -L";
    let trusted = || shell(list).matches("Millpond local authority").count();
    let sites = [site(), site()];
    let commands = sites.each_ref().map(|dir| {
        let (_, notes) = serve(dir.path(), &["--domain", "localhost"]).0.stop();
        let command = |part| {
            let line = notes.lines().find(|line| line.contains(part));
            line.unwrap().to_owned()
        };
        [command("mkdir"), command(" -D ")]
    });
    for [trust, _] in &commands {
        shell(trust);
    }
    assert_eq!(trusted(), 2);
    for [_, distrust] in &commands {
        shell(distrust);
    }
    assert_eq!(trusted(), 0);
}

#[test]
fn certificates_in_files_are_read_again() {
    if !has_curl() {
        return;
    }
    let dir = site();
    // The files of a local authority are certificates like any other.
    let (first, _) = serve(dir.path(), &["--domain", "localhost"]);
    drop(first);
    write(
        dir.path(),
        "millpond.toml",
        "[tls]\ncertificate = 'tls/localhost/localhost.pem'\nkey = 'tls/localhost/localhost.key'\nhsts = '1d'\n",
    );
    let (server, _) = serve(dir.path(), &[]);
    let authority = dir.path().join("tls/localhost/authority.pem");
    let url = format!("https://localhost:{}/", server.address().port());
    for version in ["--http1.1", "--http2"] {
        let said = curl(&authority, &[version, "-i", &url]).to_ascii_lowercase();
        assert!(
            said.contains("strict-transport-security: max-age=86400\r\n"),
            "{said}"
        );
    }
    std::fs::write(dir.path().join("tls/localhost/localhost.pem"), "broken").unwrap();
    server.signal(Signal::HUP);
    assert!(curl(&authority, &[&url]).contains("hello"));
    let (_, notes) = server.stop();
    assert!(
        notes.contains("the old certificates stay in use"),
        "{notes}"
    );
}

/// The settings for a certificate in files, and its files.
fn certificate(dir: &Path, name: &str, [certificate, key]: [String; 2]) -> String {
    write(dir, &format!("{name}.pem"), &certificate);
    write(dir, &format!("{name}.key"), &key);
    format!("certificate = '{name}.pem'\nkey = '{name}.key'\n")
}

#[test]
fn an_expired_certificate_is_served_with_an_error() {
    let dir = site();
    for host in ["old.test", "good.test"] {
        write(
            dir.path(),
            &format!("{host}/pages/index.html"),
            "<h1>hello</h1>",
        );
        write(dir.path(), &format!("{host}/millpond.toml"), "");
    }
    std::fs::remove_dir_all(dir.path().join("pages")).unwrap();
    let [old, good] = [("old", [2001, 2002]), ("good", [2020, 3000])].map(|(name, years)| {
        let made = self_signed(&format!("{name}.test"), years);
        let settings = certificate(dir.path(), name, made);
        format!("[[host]]\nsite = '{name}.test'\nnames = ['{name}.test']\n{settings}")
    });
    write(dir.path(), "millpond.toml", &(old + &good));
    let (server, _) = serve(dir.path(), &[]);
    let notes = server.wait_for("expired on 2002-01-01");
    assert!(notes.contains("error: "), "{notes}");
    let root = dir.path().join("good.pem");
    let (_, response) = page(server.address(), "good.test", &root, "/").unwrap();
    assert!(response.ends_with("<h1>hello</h1>"), "{response}");
    assert!(server.stop().0.success());
    let (status, said) = fail(dir.path(), &["check"]);
    assert_eq!(status, 1, "{said}");
    assert!(
        said.contains("old.pem: the certificate expired on"),
        "{said}"
    );
}

#[test]
fn check_reads_certificates_as_serve_does() {
    let dir = site();
    let good = self_signed("one.test", [2020, 3000]);
    let other = self_signed("one.test", [2020, 3000]);
    let [pem, key] = good.clone();
    let cases = [
        (good, None),
        (
            [pem.clone(), other[1].clone()],
            Some("does not belong to the certificate"),
        ),
        ([key, pem.clone()], Some("are certificate and key swapped?")),
        ([pem, String::new()], Some("a.key: the file is empty")),
        (
            self_signed("one.test", [2001, 2002]),
            Some("a.pem: the certificate expired"),
        ),
        (
            self_signed("one.test", [2999, 3000]),
            Some("a.pem: the certificate is not valid before"),
        ),
    ];
    for (files, fault) in cases {
        let settings = certificate(dir.path(), "a", files);
        write(dir.path(), "millpond.toml", &format!("[tls]\n{settings}"));
        let output = run(dir.path(), &["check"]);
        let said = text(&output.stderr);
        match fault {
            None => assert!(
                output.status.success() && said.contains("all is well"),
                "{said}"
            ),
            Some(part) => {
                assert_eq!(output.status.code(), Some(1), "{said}");
                assert!(said.contains(part), "{part}: {said}");
            }
        }
    }
    certificate(dir.path(), "a", self_signed("one.test", [2001, 3000]));
    let settings = "[tls]\ncertificate = 'a.pem'\nkey = 'a.key'\nclient_authorities = 'none.pem'\n";
    write(dir.path(), "millpond.toml", settings);
    let (status, said) = fail(dir.path(), &["check"]);
    assert!(status == 1 && said.contains("none.pem"), "{said}");
    // Two thirds of its lifetime are over.
    let settings = certificate(dir.path(), "a", self_signed("one.test", [1000, 2100]));
    write(dir.path(), "millpond.toml", &format!("[tls]\n{settings}"));
    let output = run(dir.path(), &["check"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("a.pem: the certificate ends on 2100-01-01"),
        "{said}"
    );
    assert!(said.contains("nothing is wrong, 1 note"), "{said}");
}

#[test]
fn settings_of_https_alone_are_refused() {
    let dir = site();
    write(
        dir.path(),
        "millpond.toml",
        "[tls]\nclient_authorities = 'ca.pem'\n",
    );
    for args in [&["check"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let (status, said) = fail(dir.path(), args);
        assert_eq!(status, 1, "{said}");
        assert!(
            said.contains("tls.client_authorities without tls.domains"),
            "{said}"
        );
    }
    write(dir.path(), "millpond.toml", "");
    let args = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--tls-listen",
        "127.0.0.1:0",
    ];
    let (status, said) = fail(dir.path(), &args);
    assert!(
        status == 1 && said.contains("tls.listen without tls.domains"),
        "{said}"
    );
}

#[test]
fn a_usual_port_of_http_that_is_taken_does_not_stop_https() {
    // The default of server.listen.
    let Ok(_taken) = std::net::TcpListener::bind("127.0.0.1:8080") else {
        eprintln!("another program has port 8080: not tested");
        return;
    };
    let dir = site();
    let tls = ["--tls-listen", "127.0.0.1:0", "--domain", "localhost"];
    let mut command = millpond(&["serve"]);
    command.args(tls).arg(dir.path());
    let server = Server::spawn(command);
    let root = dir.path().join("tls/localhost/authority.pem");
    let (_, response) = page(server.address(), "localhost", &root, "/").unwrap();
    assert!(response.ends_with("<h1>hello</h1>"), "{response}");
    let (status, notes) = server.stop();
    assert!(status.success(), "{notes}");
    assert!(notes.contains("http is not redirected"), "{notes}");
    // An address that was asked for stops the start.
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = other.local_addr().unwrap().to_string();
    let (status, said) = fail(
        dir.path(),
        &[&["serve", "--listen", &listen][..], &tls].concat(),
    );
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("choose another with --listen"), "{said}");
}

#[test]
fn mistakes_are_named() {
    let dir = site();
    let (status, said) = fail(dir.path(), &["serve", "--domain", "https://example.org"]);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("is no host name"), "{said}");
    let (status, said) = fail(dir.path(), &["serve", "--domain", "127.0.0.1"]);
    assert!(status == 1 && said.contains("use `localhost`"), "{said}");
    write(
        dir.path(),
        "millpond.toml",
        "[tls]\ncertificate = 'none.pem'\nkey = 'none.key'\nlisten = '127.0.0.1:0'\n",
    );
    let (status, said) = fail(dir.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("none.pem"), "{said}");
}

#[test]
fn h2spec_finds_nothing_wrong_through_tls() {
    let Some(h2spec) = lab_testkit::installed_program("h2spec") else {
        eprintln!("h2spec is not installed (cargo xtask programs): not tested");
        return;
    };
    let dir = site();
    let (server, _) = serve(dir.path(), &["--domain", "localhost"]);
    let port = server.address().port().to_string();
    let output = Command::new(h2spec)
        .args(["--host", "127.0.0.1", "--port", &port, "--path", "/"])
        .args(["--tls", "--insecure", "--timeout", "5"])
        .output()
        .unwrap();
    let said = text(&output.stdout);
    assert!(
        said.contains("145 tests, 145 passed, 0 skipped, 0 failed"),
        "{said}"
    );
}

/// A page that says by which protocol the browser got it (W3C Resource Timing, `nextHopProtocol`).
const PROTOCOL: &str = "<h1>hello</h1><p id=p></p><script>document.getElementById('p').textContent \
    = performance.getEntriesByType('navigation')[0].nextHopProtocol</script>";

/// Returns the page that Chromium makes of a URL in this home folder; empty if it shows a warning
/// instead.
fn browse(home: &Path, url: &str) -> String {
    let output = Command::new("chromium")
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--dump-dom",
        ])
        .arg(format!(
            "--user-data-dir={}",
            home.join("profile").display()
        ))
        .arg(url)
        .env("HOME", home)
        .output()
        .unwrap();
    text(&output.stdout)
}

#[test]
fn a_browser_shows_the_site_after_the_command_that_the_server_prints() {
    let is_there = |program| Command::new(program).arg("--version").output().is_ok();
    if !is_there("chromium") || !is_there("certutil") {
        eprintln!("chromium or certutil is missing: not tested");
        return;
    }
    let dir = site();
    write(dir.path(), "pages/index.html", PROTOCOL);
    let home = tempfile::tempdir().unwrap();
    let (server, _) = serve(dir.path(), &["--domain", "localhost"]);
    let url = format!("https://localhost:{}/", server.address().port());
    let before = browse(home.path(), &url);
    assert!(!before.contains("hello"), "{before}");
    let notes = server.wait_for("mkdir");
    let command = notes.lines().find(|line| line.contains("mkdir")).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("HOME", home.path());
    assert!(shell.status().unwrap().success(), "{command}");
    let page = browse(home.path(), &url);
    assert!(page.contains("<p id=\"p\">h2</p>"), "{page}");
    assert!(server.stop().0.success());
}

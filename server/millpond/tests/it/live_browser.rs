//! Live pages in a browser: what a visitor sees, and what stays as the visitor left it.

use lab_testkit::{Browser, has_no_browser};
use serde_json::json;

use crate::dev::entry;
use crate::live::{count, site};
use crate::support::{Server, millpond, serve, serve_with, write};
use crate::visitors::Visitor;

fn shows(text: &str) -> String {
    format!("document.querySelector('ol')?.textContent.includes('{text}') ?? false")
}

/// The script is there and runs.
const IS_OPEN: &str = "document.readyState === 'complete' && performance.getEntriesByType('resource')\
    .some((it) => it.name.includes('/.millpond/live.'))";

#[test]
fn a_page_follows_its_data_and_leaves_what_the_visitor_does_alone() {
    if has_no_browser() {
        return;
    }
    let site = site("");
    let home = tempfile::tempdir().unwrap();
    let server = serve(site.path());
    let address = server.address();
    let url = format!("http://{address}/comments");
    let mut browser = Browser::start(home.path());
    let (one, two) = (browser.window(&url), browser.window(&url));
    browser.until(&one, IS_OPEN);
    browser.until(&two, IS_OPEN);
    // A form half filled, a list chosen from, a box checked, details open, a place in a text.
    let typing = "(() => { const $ = (id) => document.getElementById(id); \
         $('text').focus(); document.execCommand('insertText', false, 'half a sen'); \
         $('text').setSelectionRange(2, 4); $('kind').value = 'b'; $('box').checked = true; $('right').checked = true; $('more').open = true; \
         window.node = $('text'); return true; })()";
    browser.until(&one, typing);
    let sends = "(() => { document.getElementById('text').value = 'first'; \
         document.querySelector('form').requestSubmit(); return true; })()";
    browser.until(&two, sends);
    browser.until(&one, &shows("first"));
    browser.until(&two, &shows("first"));
    let kept = "(() => { const $ = (id) => document.getElementById(id); \
         return [$('text').value, $('text').selectionStart, $('kind').value, $('box').checked, $('right').checked, \
         $('more').open, document.activeElement.id, $('text') === window.node, $('version').value].join(); })()";
    // With the version of the row that the visitor has before the eyes, not a newer one.
    let expected = "half a sen,2,b,true,true,true,text,true,0";
    assert_eq!(browser.value(&one, kept), expected);
    let fresh = "[document.getElementById('version').value, document.getElementById('none').checked].join()";
    assert_eq!(browser.value(&two, fresh), "1,true");
    // Back from the memory of the browser, to a page that has changed meanwhile.
    let leaves = "(() => { location.href = '/plain'; return true; })()";
    browser.until(&two, leaves);
    browser.until(
        &two,
        "location.pathname === '/plain' && document.readyState === 'complete'",
    );
    Visitor::new(&server).post("/comment", "text=second");
    browser.until(&one, &shows("second"));
    browser.until(&two, "(() => { history.back(); return true; })()");
    browser.until(&two, &shows("second"));
    // A box without a value that is as it was holds no field back.
    browser.until(&two, "document.getElementById('version').value === '2'");
    // It knows what it has asked for, so nothing is asked for a change of a few bytes.
    let asked = "performance.getEntriesByType('resource').filter((it) => it.initiatorType === 'fetch').length";
    let before = browser.value(&one, asked);
    Visitor::new(&server).post("/comment", "text=without a request");
    browser.until(&one, &shows("without a request"));
    assert_eq!(browser.value(&one, asked), before);
    // After a restart of the server on the same address.
    drop(server);
    let mut command = millpond(&["serve", "--workers", "2", "--listen"]);
    command.arg(address.to_string()).arg(site.path());
    let server = Server::spawn(command);
    Visitor::new(&server).post("/comment", "text=third");
    browser.until(&one, &shows("third"));
    assert_eq!(browser.value(&one, kept), expected);
    // A server that is away, and a picture that the site has not.
    let is_known = |it: &&String| it.contains("ERR_") || it.contains("favicon");
    let faults = browser.said().iter().filter(|it| !is_known(it));
    assert_eq!(faults.count(), 0, "{:?}", browser.said());
}

/// Sends a form from a page, without leaving it.
fn posts(target: &str, form: &str) -> String {
    let body = format!("new URLSearchParams('{form}')");
    format!("fetch('{target}', {{method: 'POST', body: {body}}}).then((it) => it.ok)")
}

fn goes(target: &str) -> String {
    format!("(() => {{ location.href = '{target}'; return true; }})()")
}

#[test]
fn a_private_page_goes_with_the_session_of_its_visitor() {
    if has_no_browser() {
        return;
    }
    let site = site("[session]\nsecure = false\n");
    let home = tempfile::tempdir().unwrap();
    let server = serve(site.path());
    let url = format!("http://{}/comments", server.address());
    let mut browser = Browser::start(home.path());
    let (one, two) = (browser.window(&url), browser.window(&url));
    browser.until(&one, IS_OPEN);
    browser.until(&two, IS_OPEN);
    browser.until(&one, &posts("/enter", "name=ann"));
    browser.until(&one, &goes("/mine"));
    let is_shown = |seen: u32| {
        format!(
            "location.pathname === '/mine' && {IS_OPEN} && document.querySelector('p')?.textContent === '{seen}'"
        )
    };
    browser.until(&one, &is_shown(0));
    Visitor::new(&server).post("/see", "name=ann");
    browser.until(&one, &is_shown(1));
    browser.until(&two, &posts("/leave", ""));
    browser.until(&one, "location.pathname === '/comments'");
}

/// A browser has six connections to a server of HTTP/1.1, and a stream needs one: only the tab that
/// is seen has a stream.
#[test]
fn seven_tabs_of_one_window_follow_a_page_over_http1() {
    if has_no_browser() {
        return;
    }
    let site = site("[admin]\nlisten = \"127.0.0.1:0\"\n");
    let home = tempfile::tempdir().unwrap();
    let server = serve(site.path());
    let url = format!("http://{}/comments", server.address());
    let mut browser = Browser::start(home.path());
    let tabs: Vec<_> = (0..7).map(|_| browser.open(&url, false)).collect();
    for tab in &tabs {
        browser.until(tab, IS_OPEN);
    }
    Visitor::new(&server).post("/comment", "text=first");
    for tab in &tabs {
        browser.call(Some(tab), "Page.bringToFront", &json!({}));
        browser.until(tab, &shows("first"));
    }
    while count(&server, "live_streams") > 1 {}
}

#[test]
fn a_page_in_development_follows_the_files_of_its_site() {
    if has_no_browser() {
        return;
    }
    let site = site("");
    let home = tempfile::tempdir().unwrap();
    let server = serve_with(site.path(), &["--dev"]);
    let entry = entry(&server.wait_for("--no-dev: not"));
    let address = server.address();
    let mut browser = Browser::start(home.path());
    let plain = browser.window(&format!("http://{address}{entry}"));
    browser.until(&plain, IS_OPEN);
    let live = browser.window(&format!("http://{address}/comments"));
    browser.until(&live, IS_OPEN);
    // Data, in place; once the reading of the folder that follows the start is over.
    let read = "document.querySelector('script[data-state]')?.dataset.state.endsWith('-1')";
    browser.until(
        &live,
        &format!("{IS_OPEN} && {read} && (window.stays = true)"),
    );
    Visitor::new(&server).post("/comment", "text=first");
    browser.until(&live, &format!("window.stays && ({})", shows("first")));
    // A fault, on each page; and its end.
    let (file, text) = (
        "pages/comments.html",
        "<!doctype html><ol>new</ol>{{ nothing.here }}",
    );
    write(site.path(), file, text);
    for window in [&plain, &live] {
        browser.until(
            window,
            "document.body?.textContent.includes('1 fault') ?? false",
        );
    }
    write(site.path(), file, "<!doctype html><ol>mended</ol>");
    browser.until(&live, &shows("mended"));
    browser.until(&plain, "!document.body?.textContent.includes('1 fault')");
}

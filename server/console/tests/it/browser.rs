//! The pages in a browser: live, by keys alone, on a telephone, in the dark, and with a program
//! that finds what keeps people out.

use std::sync::atomic::Ordering;

use lab_testkit::{Browser, Window, has_no_browser};

use tempfile::TempDir;

use crate::support::{DAY, TestConsole};

/// A console that shows all that its pages can: routes of each kind, times, crawlers, errors,
/// certificates, and an explanation.
fn full() -> TestConsole {
    let mut test = TestConsole::new();
    test.certify(
        "a.example, a-name-that-is-long-enough.to-need.two-lines.example",
        "the authority did not answer within 60 seconds",
    );
    test.sample(DAY);
    for n in 1..=90 {
        test.ask(90 + n % 7, 10 + n % 3);
        test.ask_route("/articles/{slug}", 90, 2);
        test.ask_route("/search", 1, 40);
        test.ask_route("/a/{long}/route/{with}/many/{parts}/{of-a-long}/name", 5, 1);
        {
            let totals = &mut test.figures.0.lock().unwrap().totals;
            totals.counts.crawlers = Some(20 * n);
            totals.counts.server_errors = Some(n / 10);
            totals.counts.shed = n / 8;
            totals.counts.busy_ms = Some(4_000 * n);
            totals.counts.bytes_out = 900_000 * n;
            totals.gauges.connections = Some(20 + n % 9);
            totals.gauges.feed_age_ms = Some(7 + n % 5);
            totals.gauges.resident = Some(60_000_000 + n * 10_000);
            totals.gauges.stored = Some(9_000_000 + n * 10_000);
            totals.durations = vec![(100, 90 * n), (1_000, 8 * n), (2_000_000, 2 * n)];
        }
        test.sample_all(DAY + n * 10);
    }
    test.connection().post("/ask", "target=/read%3Fid%3D1");
    test
}

/// A full console, and a browser with its home; none where there is no browser.
fn opened() -> Option<(TestConsole, TempDir, Browser)> {
    if has_no_browser() {
        return None;
    }
    let home = tempfile::tempdir().unwrap();
    let browser = Browser::start(home.path());
    Some((full(), home, browser))
}

/// All pages, with all that is on them.
const PAGES: [&str; 11] = [
    "/",
    "/?range=day&beside=week",
    "/?since=2026-11-29&till=2026-11-30",
    "/routes?sort=useless",
    "/routes/1",
    "/why?wrong=target",
    "/why/1",
    "/requests",
    "/purge?target=%2Fread",
    "/now",
    "/purge",
];

/// The page is there, and its script runs.
const IS_LIVE: &str = "document.readyState === 'complete' && performance.getEntriesByType('resource')\
    .some((it) => it.name.includes('/.millpond/live'))";

/// Names of what can be reached by keys, in the order of the page.
const REACHABLE: &str = "[...document.querySelectorAll('a[href], button, input, summary, select')]\
    .filter((it) => it.checkVisibility() && it.type !== 'hidden')";

fn url(test: &TestConsole, target: &str) -> String {
    format!("http://{}{target}", test.address)
}

#[track_caller]
fn check_silence(browser: &Browser) {
    assert!(browser.said().is_empty(), "{:?}", browser.said());
}

#[test]
fn each_page_is_for_everybody_on_each_screen() {
    let Some((test, _home, mut browser)) = opened() else {
        return;
    };
    let window = browser.window("about:blank");
    for (width, scheme) in [
        (1280, "light"),
        (1280, "dark"),
        (390, "light"),
        (390, "dark"),
    ] {
        browser.show_as(&window, width, scheme);
        for target in PAGES {
            browser.go(&window, &url(&test, target));
            let sideways = "document.documentElement.scrollWidth - innerWidth";
            let sideways = browser.value(&window, sideways).as_i64().unwrap();
            assert!(sideways <= 0, "{target} at {width}: {sideways} too wide");
            let faults = browser.faults_for_assistance(&window).unwrap_or_default();
            assert!(
                faults.is_empty(),
                "{target}, {width}, {scheme}: {faults:#?}"
            );
            if let Some(folder) = std::env::var_os("MILLPOND_PICTURES") {
                let name = target.replace(['/', '?', '&', '='], "_");
                let file = format!("{name}-{width}-{scheme}.png.base64");
                let picture = browser.picture(&window);
                std::fs::write(std::path::Path::new(&folder).join(file), picture).unwrap();
            }
        }
    }
    // What else is sent than pages: a wrong address.
    browser.go(&window, &url(&test, "/nothing"));
    let faults = browser.faults_for_assistance(&window).unwrap_or_default();
    assert!(faults.is_empty(), "{faults:#?}");
    let is_known = |it: &&String| it.contains("404");
    let said = browser.said().iter().filter(|it| !is_known(it));
    assert_eq!(said.count(), 0, "{:?}", browser.said());
    drop(test.close());
}

#[test]
fn figures_move_by_themselves_and_clicks_lead_on() {
    let Some((mut test, _home, mut browser)) = opened() else {
        return;
    };
    let window = browser.window(&url(&test, "/"));
    browser.until(&window, IS_LIVE);
    browser.until(&window, "window.stays = true");
    let figures =
        "document.querySelector('.figures').textContent + document.querySelector('svg').innerHTML";
    let mut before = browser.value(&window, figures);
    for n in 1..=3 {
        test.ask(5_000 * n, 3);
        test.sample_all(DAY + 900 + n * 10);
        let before_text = serde_json::to_string(&before).unwrap();
        browser.until(
            &window,
            &format!("window.stays && ({figures}) !== {before_text}"),
        );
        before = browser.value(&window, figures);
    }
    let click = |browser: &mut Browser, text: &str, leads: &str| {
        let found = format!(
            "[...document.querySelectorAll('a, button, summary')].find((it) => it.textContent.trim() === '{text}')"
        );
        browser.until(&window, &format!("(({found})?.click(), true)"));
        let is_there = format!(
            "(location.pathname + location.search).startsWith('{leads}') && document.readyState === 'complete'"
        );
        browser.until(&window, &is_there);
    };
    click(&mut browser, "Week", "/?range=week");
    browser.until(
        &window,
        "document.querySelector('.choices [aria-current]').textContent === 'Week'",
    );
    click(&mut browser, "nothing", "/?range=week&beside=none");
    click(&mut browser, "Routes", "/routes");
    click(&mut browser, "time to make", "/routes?sort=slow");
    click(&mut browser, "/search", "/routes/");
    click(&mut browser, "Why", "/why");
    let asks = "(document.querySelector('[name=target]').value = '/read?id=1', document.querySelector('form').requestSubmit(), true)";
    browser.until(&window, asks);
    browser.until(&window, "location.pathname === '/why/2' && document.body.textContent.includes('article with id = :id')");
    click(&mut browser, "Now", "/now");
    click(
        &mut browser,
        "End a page in memory, or empty it …",
        "/purge",
    );
    click(&mut browser, "Empty the memory", "/purge?done=1");
    assert_eq!(test.asked.0.load(Ordering::Relaxed), 1);
    check_silence(&browser);
    drop(test.close());
}

#[test]
fn keys_reach_everything_and_the_focus_is_seen() {
    let Some((test, _home, mut browser)) = opened() else {
        return;
    };
    let window = browser.window("about:blank");
    for target in ["/", "/routes", "/routes/1", "/why", "/now", "/purge"] {
        browser.go(&window, &url(&test, target));
        walk(&mut browser, &window, target);
    }
    // To the figures, past the links of the head.
    browser.go(&window, &url(&test, "/now"));
    browser.press(&window, "Tab");
    browser.press(&window, "Enter");
    browser.until(&window, "document.activeElement.id === 'main'");
    browser.press(&window, "Tab");
    browser.until(
        &window,
        "document.activeElement.closest('main') !== null && document.activeElement.id !== 'main'",
    );
    // A range, and an address that is asked for.
    browser.go(&window, &url(&test, "/why"));
    browser.until(&window, "document.activeElement.name === 'target'");
    browser.call(
        Some(&window),
        "Input.insertText",
        &serde_json::json!({"text": "/read"}),
    );
    browser.press(&window, "Enter");
    browser.until(&window, "location.pathname === '/why/2'");
    check_silence(&browser);
    drop(test.close());
}

/// Presses Tab through a page: everything in its order, each where it is seen that the focus is
/// there.
#[track_caller]
fn walk(browser: &mut Browser, window: &Window, target: &str) {
    // The first key begins at the top, also where a field has the focus at once.
    let begin = "(document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute('tabindex'))";
    browser.value(window, begin);
    browser.value(window, &format!("window.reachable = {REACHABLE}"));
    let count = browser.value(window, "reachable.length").as_u64().unwrap();
    assert!(count > 5, "{target}: {count}");
    let seen = "(() => { const it = document.activeElement, style = getComputedStyle(it), box = it.getBoundingClientRect(); \
         return [reachable.indexOf(it), style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 && box.width > 0 && \
         box.right > 0 && box.bottom > 0 && box.top < innerHeight, it.outerHTML]; })()";
    for at in 0..count {
        browser.press(window, "Tab");
        let mut focus = browser.value(window, seen);
        // The parts of a date have the keys one after the other.
        while at > 0 && focus[0] == at - 1 {
            browser.press(window, "Tab");
            focus = browser.value(window, seen);
        }
        assert_eq!(
            (&focus[0], &focus[1]),
            (&at.into(), &true.into()),
            "{target}: {focus}"
        );
    }
}

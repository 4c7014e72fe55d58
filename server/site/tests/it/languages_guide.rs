//! The site of the guide "A site in two languages", from the guide alone.

use millpond_http::OwnedRequest;
use millpond_site::{Config, Problem, check};

use crate::{
    sessions::{cookie, get},
    support::{Answer, TestSite, folder},
};

const GUIDE: &str = include_str!("../../../../docs/guide/languages.md");

/// Words of Millpond's own sentences, and of the English texts.
const ENGLISH: &[&str] = &[
    "must",
    "filled",
    "Please",
    "This",
    "does not",
    "Something",
    "There",
    "News",
    "exists",
    "password is",
    "Sign in",
    "attempts",
];

fn is_german(answer: &Answer) {
    let body = answer.body.replace("lang=\"en\" href", "");
    for word in ENGLISH {
        assert!(!body.contains(word), "{word}: {}", answer.body);
    }
    assert!(body.contains("<html lang=\"de\">"), "{}", answer.body);
}

fn browser(method: &str, target: &str) -> OwnedRequest {
    OwnedRequest::new(method, target)
        .field("Host", "site.test")
        .field("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
}

#[test]
fn the_site_of_the_guide_speaks_two_languages() {
    let files = lab_testkit::listings(GUIDE);
    assert_eq!(files.len(), 25, "{files:?}");
    let dir = folder(&files);
    let report = check(dir.path(), &Config::read(dir.path()).unwrap()).unwrap();
    let notes: Vec<String> = report.notes.iter().map(Problem::to_string).collect();
    assert_eq!(notes, [] as [&str; 0]);
    let site = TestSite::new(&files);
    texts_and_addresses(&site);
    forms(&site);
    guards(&site);
    errors(&site);
}

fn texts_and_addresses(site: &TestSite) {
    for (language, location) in [("de-AT,en;q=0.5", "/de"), ("fr", "/en")] {
        let request = browser("GET", "/").field("Accept-Language", language);
        assert_eq!(site.ask(&request).field("location"), location);
    }
    is_german(&site.get("/de"));
    assert!(site.get("/de").body.contains("Es gibt noch nichts Neues."));
    let sql = "insert into news (id, at) values (1, '2026-03-03 10:00:00'), (2, '2026-03-04 10:00:00');\
               insert into news_text values (1, 'en', 'Boats', '*Ten* boats'), (1, 'de', 'Boote', '*Zehn* Boote'), (2, 'de', 'Mole', 'Neu');";
    site.foreign().execute_batch(sql).unwrap();
    site.until("the rows are seen", || {
        site.get("/de").body.contains("Mole")
    });
    for (target, texts) in [
        (
            "/en",
            &[
                "Boats</a>, 3 March 2026",
                "hreflang=\"de\" href=\"https://harbour.example/de\"",
            ][..],
        ),
        ("/de", &["Boote</a>, 3. März 2026", "href=\"/en\">English"]),
        (
            "/de/news/1",
            &[
                "<em>Zehn</em>",
                "<title>Boote – Der Hafen</title>",
                "hreflang=\"en\" href=\"https://harbour.example/en/news/1\"",
                "<a rel=\"alternate\" hreflang=\"en\" lang=\"en\" href=\"/en/news/1\">English</a>",
            ],
        ),
        (
            "/de/news.atom",
            &[
                "<title>Mole</title>",
                "xml:lang=\"de\"",
                "<updated>2026-03-04T10:00:00",
            ],
        ),
        (
            "/en/news.atom",
            &["<title>Boats</title>", "<title>The Harbour</title>"],
        ),
    ] {
        let answer = site.get(target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.body);
        let body = answer.body.replace("&#x2f;", "/");
        for text in texts {
            assert!(body.contains(text), "{target}: {text} in {}", answer.body);
        }
    }
    assert_eq!(site.get("/en/news/2").status, 404);
}

/// All that is wrong is said at once, in the visitor's language.
fn forms(site: &TestSite) {
    let refused = site.post("/de/contact", "name=&email=x&body=%20");
    assert_eq!(refused.field("location"), "/de/contact");
    let shown = get(site, "/de/contact", &cookie(&refused));
    is_german(&shown);
    for text in [
        "Bitte ausfüllen.",
        "Das ist hier nicht möglich.",
        "Das ist zu kurz, zu lang",
    ] {
        assert!(shown.body.contains(text), "{text}: {}", shown.body);
    }
    let refused = site.post("/en/contact", "name=&email=x&body=a");
    let shown = get(site, "/en/contact", &cookie(&refused));
    assert!(
        shown.body.contains("Name must be filled in."),
        "{}",
        shown.body
    );
    let send = || site.post("/de/contact", "name=Ann&email=ann@example.org&body=Hallo");
    assert_eq!(send().field("location"), "/de/thanks");
    is_german(&site.get("/de/thanks"));
    let shown = get(site, "/de/contact", &cookie(&send()));
    assert!(
        shown.body.contains("haben Sie schon geschickt"),
        "{}",
        shown.body
    );
    let wrong = site.post("/de/login", "name=ann&password=wrong");
    let shown = get(site, "/de/login", &cookie(&wrong));
    is_german(&shown);
    assert!(
        shown
            .body
            .contains("Der Name oder das Passwort stimmt nicht."),
        "{}",
        shown.body
    );
}

fn guards(site: &TestSite) {
    for lang in ["en", "de"] {
        for target in ["/admin", "/admin/"] {
            let led = site.ask(&browser("GET", &format!("/{lang}{target}")));
            let to = format!("/{lang}/login?next=");
            assert!(
                led.field("location").starts_with(&to),
                "{target}: {}",
                led.field("location")
            );
        }
    }
}

fn errors(site: &TestSite) {
    let foreign = browser("POST", "/de/contact")
        .field("Content-Type", "application/x-www-form-urlencoded")
        .field("Sec-Fetch-Site", "cross-site")
        .body("name=x".to_owned());
    for (request, status, text) in [
        (
            browser("GET", "/de/nothing"),
            404,
            "Diese Seite gibt es nicht",
        ),
        (
            browser("GET", "/de/news/9"),
            404,
            "Diese Seite gibt es nicht",
        ),
        (browser("DELETE", "/de/contact"), 405, "Das geht so nicht"),
        (foreign, 403, "Das geht so nicht"),
    ] {
        let answer = site.ask(&request);
        assert_eq!(answer.status, status);
        is_german(&answer);
        assert!(answer.body.contains(text), "{}", answer.body);
    }
    let many = (0..30).map(|_| site.post("/de/login", "name=ann&password=wrong"));
    let refused = many
        .into_iter()
        .find(|answer| answer.status == 429)
        .unwrap();
    is_german(&refused);
    assert!(
        site.get("/fr/contact")
            .body
            .contains("lang=\"de\">Diese Seite")
    );
}

//! Pages in the language that the visitor's browser asks for.

use millpond_http::OwnedRequest;

use crate::{
    both::{Housed, Kind, on_both},
    support::{Answer, problems},
};

const FILES: &[(&str, &str)] = &[
    (
        "pages/index.sql",
        "-- language: lang in (en, de, pt-BR)\n-- redirect: /:lang/start\n",
    ),
    ("pages/[lang]/start.html", "start {{ params.lang }}"),
    (
        "pages/hello.sql",
        "-- language: lang in (en, de)\n-- param: id integer = 1\n\
         -- name: article :one\nselect title || ' ' || :lang as title from article where id = :id;\n",
    ),
    (
        "pages/hello.html",
        "{{ params.lang }} {{ article.title }} {{ params | query(id = 2) }}",
    ),
];

fn wanting(site: &Housed, target: &str, language: &str) -> Answer {
    let request = OwnedRequest::new("GET", target).field("Host", "site.test");
    site.ask(&request.field("Accept-Language", language))
}

fn the_choice_is_in_the_key_and_the_field_is_not(kind: Kind) {
    let site = Housed::new(kind, FILES);
    for (language, location, cache) in [
        ("de-DE,de;q=0.9", "/de/start", "fwd=miss; stored"),
        ("de-AT, en;q=0.3", "/de/start", "hit"),
        ("pt-br", "/pt-BR/start", "fwd=miss; stored"),
        ("fr", "/en/start", "fwd=miss; stored"),
        ("en-GB", "/en/start", "hit"),
        ("\u{fc}, ;;q=", "/en/start", "hit"),
    ] {
        let answer = wanting(&site, "/", language);
        assert_eq!((answer.status, answer.field("location")), (302, location));
        assert_eq!(answer.cache(), cache, "{language}");
        assert_eq!(answer.field("vary"), "accept-language");
        assert_eq!(answer.field("cache-control"), "no-cache");
    }
    assert_eq!(site.get("/").cache(), "hit");
    let german = wanting(&site, "/hello?id=1", "de");
    assert_eq!(german.body, "de One de ?lang=de&amp;id=2");
    let chosen = wanting(&site, "/hello?lang=de&id=1", "en");
    assert_eq!((chosen.cache(), &*chosen.body), ("hit", &*german.body));
    assert_eq!(chosen.field("vary"), "accept-language");
    let english = wanting(&site, "/hello", "en");
    assert_eq!(english.body, "en One en ?lang=en&amp;id=2");
    let empty = wanting(&site, "/hello?lang=&id=1&lang=", "de");
    assert_eq!((empty.cache(), &*empty.body), ("hit", &*german.body));
    for wrong in ["fr", "de&lang=en", "de&lang="] {
        let target = format!("/hello?lang={wrong}");
        assert_eq!(wanting(&site, &target, "de").status, 400, "{wrong}");
    }
    site.run("update article set title = 'Uno' where id = 1");
    site.until("both end with the row", || {
        wanting(&site, "/hello", "de").body.starts_with("de Uno")
            && site.get("/hello").body.starts_with("en Uno")
    });
}

on_both!(the_choice_is_in_the_key_and_the_field_is_not);

#[test]
fn faults_of_languages_are_named() {
    let form = "-- language: lang in (en, de)\n-- name: a :exec\ndelete from comment where who = :lang;\n-- redirect: /\n";
    for (file, text, expected) in [
        (
            "pages/a.sql",
            "-- language: lang\n",
            "pages/a.sql:1:1: a language needs a name and its values\n  hint: for example: -- language: lang in (en, de)",
        ),
        (
            "pages/a.sql",
            "-- language: lang in (en, en)\n",
            "pages/a.sql:1:1: `en` is given twice",
        ),
        (
            "pages/a.sql",
            "-- language: lang in (en, de) = en\n",
            "pages/a.sql:1:1: a language has no default",
        ),
        (
            "pages/a.sql",
            "-- lanugage: lang in (en, de)\n",
            "pages/a.sql:1:1: `-- lanugage: lang in (en, de)` would be a comment\n  hint: did you mean `-- language: lang in (en, de)`?",
        ),
        (
            "pages/a.sql",
            "-- language: lang in (en, de)\n",
            "pages/a.sql:1:1: nothing uses the parameter `lang`",
        ),
        (
            "pages/[lang]/a.sql",
            "-- language: lang in (en, de)\n",
            "pages/[lang]/a.sql:1:1: `lang` is a part of the path, so the address chooses it\n  hint: write -- param: lang text in (en, de)",
        ),
        (
            "pages/a.post.sql",
            form,
            "pages/a.post.sql:1:1: only a page is chosen by a language",
        ),
    ] {
        let found = problems(&[(file, text)]);
        assert!(found.starts_with(expected), "{file}: {found}");
    }
}

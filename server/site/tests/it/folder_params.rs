//! Parameters of a folder's path that are declared once, and forms that lead back below them.

use millpond_http::OwnedRequest;
use millpond_site::{Config, ExplainedVisitor, check};

use crate::{
    sessions::{cookie, get},
    support::{Answer, TestSite, folder, problems},
};

const LANGUAGES: &str = "-- param: lang text in (en, de)\n";
const FORM: &str = "-- param: title text\n-- name: made :one\ninsert into article (title) values (:title) returning id;\n-- invalid: /:lang/form\n-- redirect: /:lang/list\n";
const PAGE: &str = "{{ params.lang }}: {{ form.title }} {{ errors.title }}{{ errors.form }}";

const PAGE_IN_ENGLISH: &str = "en: {{ form.title }} {{ errors.title }}{{ errors.form }}";

fn led(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.field("location"))
}

/// A form that is refused leads back to the page in its language, and shows what was typed.
fn leads_back(site: &TestSite) {
    for lang in ["en", "de"] {
        let refused = site.post(&format!("/{lang}/form"), "title=One");
        assert_eq!(led(&refused), (303, &*format!("/{lang}/form")));
        let shown = get(site, &format!("/{lang}/form"), &cookie(&refused));
        assert_eq!(shown.body, format!("{lang}: One Title exists already."));
    }
    for target in ["/fr/form", "/EN/form", "/%20en/form", "/en%00/form"] {
        let status = site.get(target).status;
        assert!(matches!(status, 400 | 404), "{target}: {status}");
        let status = site.post(target, "title=x").status;
        assert!(matches!(status, 400 | 404), "{target}: {status}");
    }
}

#[test]
fn a_form_leads_back_where_both_files_take_some_values_of_the_path() {
    let form = LANGUAGES.to_owned() + FORM;
    leads_back(&TestSite::new(&[
        ("pages/[lang]/form.sql", LANGUAGES),
        ("pages/[lang]/form.html", PAGE),
        ("pages/[lang]/form.post.sql", &form),
        ("pages/[lang]/list.html", "list"),
    ]));
    // The page of one language may be a file of its own.
    let site = TestSite::new(&[
        ("pages/[lang]/form.sql", LANGUAGES),
        ("pages/[lang]/form.html", PAGE),
        (
            "pages/de/form.html",
            "eigene: {{ form.title }} {{ errors.title }}{{ errors.form }}",
        ),
        ("pages/[lang]/send.post.sql", &form),
    ]);
    for (lang, expected) in [("en", "en: One"), ("de", "eigene: One")] {
        let refused = site.post(&format!("/{lang}/send"), "title=One");
        assert_eq!(led(&refused), (303, &*format!("/{lang}/form")));
        let shown = get(&site, &format!("/{lang}/form"), &cookie(&refused));
        assert!(shown.body.starts_with(expected), "{}", shown.body);
    }
}

#[test]
fn a_form_leads_to_no_page_for_some_of_its_values() {
    let with = |line: &str| {
        let form = line.to_owned() + FORM;
        problems(&[
            ("pages/[lang]/form.sql", LANGUAGES),
            ("pages/[lang]/form.html", PAGE),
            ("pages/[lang]/send.post.sql", &form),
        ])
    };
    let more = with("-- param: lang text in (en, de, fr)\n");
    assert!(more.contains("no page answers at /fr/form"), "{more}");
    let twice = LANGUAGES.to_owned() + &FORM.replace("/:lang/form", "/:lang/of-:lang");
    let twice = problems(&[
        ("pages/en/of-en.html", PAGE_IN_ENGLISH),
        ("pages/de/of-de.html", PAGE_IN_ENGLISH),
        ("pages/[lang]/send.post.sql", &twice),
    ]);
    assert_eq!(twice, "");
    let any = with("");
    let hint = "hint: the page takes some values alone; the form needs the same -- param: line";
    assert!(any.contains(hint), "{any}");
    assert_eq!(with(LANGUAGES), "");
}

#[test]
fn a_parameter_of_a_folder_is_declared_once() {
    let site = TestSite::new(&[
        ("pages/[lang]/_folder.sql", LANGUAGES),
        ("pages/[lang]/form.html", PAGE),
        ("pages/[lang]/form.post.sql", FORM),
        ("pages/[lang]/index.html", "{{ params.lang }}"),
        (
            "pages/[lang]/list.json.sql",
            "-- name: a :many\nselect :lang as lang, title from article where id = 1;\n",
        ),
        (
            "pages/[lang]/deep/[id].html",
            "{{ params.lang }} {{ params.id }}",
        ),
        ("pages/[lang]/own.sql", "-- param: lang text in (fr)\n"),
        ("pages/[lang]/own.html", "{{ params.lang }}"),
        ("pages/[lang]/404.html", "nichts: {{ params.lang }}"),
        ("static/robots.txt", "robots"),
    ]);
    leads_back(&site);
    for (target, status, body) in [
        ("/en", 200, "en"),
        ("/de/deep/7", 200, "de 7"),
        (
            "/de/list.json",
            200,
            "{\"a\":[{\"lang\":\"de\",\"title\":\"One\"}]}",
        ),
        ("/fr", 404, ""),
        ("/fr/list.json", 404, ""),
        ("/fr/deep/7", 404, ""),
        // A file's own line takes the place of the folder's.
        ("/fr/own", 200, "fr"),
        ("/robots.txt", 200, "robots"),
    ] {
        let answer = site.get(target);
        assert_eq!(answer.status, status, "{target}");
        assert!(answer.body.starts_with(body), "{target}: {}", answer.body);
    }
    assert_eq!(site.get("/en/own").status, 404);
    // Two values are two entries; none of a refused value is kept.
    for lang in ["en", "de"] {
        let target = format!("/{lang}/list.json");
        site.get(&target);
        assert_eq!(site.get(&target).cache(), "hit", "{target}");
    }
    let explained = site
        .site
        .explain("/de/list.json", ExplainedVisitor::Claims("user=1"));
    assert_eq!(explained.unwrap()["key"]["parameters"]["lang"], "de");
    let refused = OwnedRequest::new("POST", "/fr/form").field("Host", "site.test");
    assert_eq!(site.ask(&refused).status, 404);
}

#[test]
fn a_folder_counts_in_guards_and_in_else() {
    let rules = "[[require]]\npath = \"/en/*\"\nclaims = \"user\"\n[[require]]\npath = \"/de/*\"\nclaims = \"user\"\n";
    let files = |folder: &'static str| {
        vec![
            ("millpond.toml", rules),
            ("pages/[lang]/_folder.sql", folder),
            ("pages/[lang]/a.html", "a"),
            (
                "pages/[lang]/b.sql",
                "-- require: claims.user else /:lang/c\n",
            ),
            ("pages/[lang]/b.html", "b"),
        ]
    };
    assert_eq!(problems(&files(LANGUAGES)), "");
    let open = problems(&files("-- param: lang text in (en, de, fr)\n"));
    assert!(open.contains("/fr/a is open"), "{open}");
    let dir = folder(&files(LANGUAGES));
    let report = check(dir.path(), &Config::read(dir.path()).unwrap()).unwrap();
    assert_eq!(
        report.reached[0].addresses,
        ["/{lang}/a (some)", "/{lang}/b (some)"]
    );
    let site = TestSite::new(&[
        ("pages/[lang]/_folder.sql", LANGUAGES),
        (
            "pages/[lang]/b.sql",
            "-- require: claims.user else /:lang/c\n",
        ),
        ("pages/[lang]/b.html", "b"),
    ]);
    assert_eq!(led(&site.get("/de/b")), (303, "/de/c?next=%2Fde%2Fb"));
    assert_eq!(site.get("/fr/b").status, 404);
}

#[test]
fn the_nearest_folder_counts_and_a_form_of_one_query_needs_no_lines() {
    let site = TestSite::new(&[
        ("pages/[lang]/_folder.sql", LANGUAGES),
        (
            "pages/[lang]/[team]/_folder.sql",
            "-- param: team text in (red)\n-- param: lang text in (en)\n",
        ),
        (
            "pages/[lang]/[team]/index.html",
            "{{ params.lang }} {{ params.team }}",
        ),
        (
            "pages/[lang]/add.post.sql",
            "-- name: made :exec\ninsert into article (title) values (:title);\n-- redirect: /:lang/red\n",
        ),
        // The layout's own line agrees with the folder's.
        (
            "templates/layout.html",
            "{{ menu.lang }}: {% block main %}{% endblock %}",
        ),
        (
            "templates/layout.sql",
            "-- param: lang text in (en, de)\n-- name: menu :one\nselect :lang as lang;\n",
        ),
        (
            "pages/[lang]/with.html",
            "{% extends \"layout.html\" %}{% block main %}with{% endblock %}",
        ),
    ]);
    for (target, status) in [
        ("/en/red", 200),
        ("/de/red", 404),
        ("/en/blue", 404),
        ("/de/with", 200),
        ("/fr/with", 404),
    ] {
        assert_eq!(site.get(target).status, status, "{target}");
    }
    assert_eq!(site.get("/de/with").body, "de: with");
    assert_eq!(led(&site.post("/de/add", "title=Three")), (303, "/de/red"));
}

#[test]
fn faults_in_the_file_of_a_folder_are_named() {
    for (files, expected) in [
        (
            &[("pages/[lang]/_folder.sql", "-- param: lnag text\n")][..],
            "pages/[lang]/_folder.sql:1:1: `lnag` is no part of this folder's path",
        ),
        (
            &[("pages/_folder.sql", "-- param: page integer = 1\n")],
            "pages/_folder.sql:1:1: `page` is no part of this folder's path",
        ),
        (
            &[("pages/[lang]/_folder.sql", "-- param: lang text = 'en'\n")],
            "pages/[lang]/_folder.sql:1:1: `lang`: a part of the path is always there",
        ),
        (
            &[("pages/[lang]/_folder.sql", "-- param: lang text in (en\n")],
            "pages/[lang]/_folder.sql:1:1: the values in `in (…)` have no end",
        ),
        (
            &[("pages/[lang]/_folder.sql", "-- require: claims.user\n")],
            "pages/[lang]/_folder.sql: the file of a folder has `-- param:` and `-- message:` lines alone",
        ),
        (
            &[("pages/[lang]/_folder.sql", "-- name: a :one\nselect 1;\n")],
            "pages/[lang]/_folder.sql: the file of a folder has `-- param:` and `-- message:` lines alone",
        ),
        (
            &[
                ("templates/layout.html", "{{ menu.lang }}"),
                (
                    "templates/layout.sql",
                    "-- param: lang text in (en, de)\n-- name: menu :one\nselect :lang as lang;\n",
                ),
                ("pages/[lang]/a.html", "{% extends \"layout.html\" %}"),
            ],
            "or once for its folder into _folder.sql: -- param: lang text in (en, de)",
        ),
    ] {
        let said = problems(files);
        assert!(said.contains(expected), "{files:?}: {said}");
    }
}

#[test]
fn a_folder_has_no_page_of_its_own() {
    for name in ["pages/[lang]/_folder.html", "pages/[lang]/_folder.post.sql"] {
        let said = problems(&[("pages/index.html", "front"), (name, "x")]);
        let expected = format!("{name}: a folder has no page of its own");
        assert!(said.contains(&expected), "{said}");
    }
}

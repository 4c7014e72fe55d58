//! Sentences of forms in the language of the address, for one field or for any.

use millpond_site::SiteOptions;

use crate::{
    sessions::{cookie, get},
    support::{TestSite, folder, problems},
};

const PAGE: &str = "{{ errors.title }}{{ errors.n }}|{{ errors.form }}";
const OF_FOLDER: &str = "-- message: * missing [de] = \"Leer.\"\n-- message: * [de] = \"Nein.\"\n-- message: * range = \"Any.\"\n";
const OWN: &str = "-- message: title = \"Own.\"\n-- message: title unique [de] = \"Doppelt.\"\n";

/// A form with these lines, in a folder with these.
fn files(of_folder: &str, lines: &str) -> [(&'static str, String); 3] {
    let form = format!(
        "-- param: title text\n-- param: n integer from 1 to 5 = 1\n\
         -- name: made :exec\ninsert into article (id, title) values (:n + 10, :title);\n\
         {lines}-- invalid: /:lang/new\n-- redirect: /\n"
    );
    let of_folder = format!("-- param: lang text in (en, de)\n{of_folder}");
    [
        ("pages/[lang]/_folder.sql", of_folder),
        ("pages/[lang]/new.post.sql", form),
        ("pages/[lang]/new.html", PAGE.to_owned()),
    ]
}

#[test]
fn a_sentence_of_the_language_comes_first() {
    for (of_folder, lines, path, form, expected) in [
        (OF_FOLDER, "", "/de/new", "title=", "|"),
        (OF_FOLDER, "", "/de/new", "n=2", "Leer.|"),
        (OF_FOLDER, "", "/de/new", "title=x&n=9", "Nein.|"),
        (OF_FOLDER, "", "/en/new", "title=x&n=9", "Any.|"),
        (OF_FOLDER, "", "/en/new", "n=2", "Title must be filled in.|"),
        (OF_FOLDER, OWN, "/de/new", "title=One", "Doppelt.|"),
        (OF_FOLDER, OWN, "/de/new", "n=2", "Leer.|"),
        (OF_FOLDER, OWN, "/en/new", "title=One", "Own.|"),
        ("", OWN, "/de/new", "n=2", "Own.|"),
    ] {
        let files = files(of_folder, lines);
        let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
        let site = TestSite::open(folder(&files), SiteOptions::default());
        let sent = site.post(path, form);
        assert_eq!(sent.status, 303, "{}", sent.body);
        let shown = match sent.field("location") {
            "/" => "|".to_owned(),
            _ => get(&site, path, &cookie(&sent)).body,
        };
        assert_eq!(shown, expected, "{of_folder}{lines}{path} {form}");
    }
}

#[test]
fn sentences_that_no_visitor_sees_are_faults() {
    let no_language =
        "pages/[lang]/new.post.sql:5:1: `[fr]` is the value of no one part of this form's path";
    for (of_folder, lines, expected) in [
        ("", "-- message: title [fr] = \"Non.\"\n", no_language),
        (
            "",
            "-- message: * short = \"x\"\n",
            "there is no fault `short`",
        ),
        (
            "",
            "-- message: * made = \"x\"\n",
            "there is no fault `made`",
        ),
        (
            "-- message: title = \"x\"\n",
            "",
            "pages/[lang]/_folder.sql:2:1: `title` is a field of one form",
        ),
        (
            "-- message: * mising = \"x\"\n",
            "",
            "there is no fault `mising`\n  hint: did you mean `missing`?",
        ),
        (
            "-- message: * [fr] = \"x\"\n",
            "",
            "pages/[lang]/_folder.sql:2:1: `[fr]` is no value of a part of this folder's path",
        ),
    ] {
        let files = files(of_folder, lines);
        let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
        let problems = problems(&files);
        assert!(
            problems.contains(expected),
            "{of_folder}{lines}: {problems}"
        );
    }
}

//! Forms in templates against what takes them.

use millpond_site::{Config, check};

use crate::support::{folder, problems};

const COMMENT: (&str, &str) = (
    "pages/comment.post.sql",
    "-- param: who text\n-- param: body text\n-- param: track integer[]\n-- param: note text = ''\n\
     -- name: c :exec\ninsert into comment (article_id, who) select 1, :who || :body || :note where 1 not in (:track);\n-- redirect: /\n",
);

/// Returns the notes of `check` on a page with this HTML.
fn noted(html: &str) -> String {
    let dir = folder(&[
        COMMENT,
        ("pages/about.html", "about"),
        (
            "pages/articles/[id]/reply.post.sql",
            "-- param: id integer\n-- name: c :exec\ninsert into comment (article_id, who) values (:id, :who);\n-- redirect: /\n-- param: who text\n",
        ),
        ("pages/form.html", html),
    ]);
    let report = check(dir.path(), &Config::read(dir.path()).unwrap());
    let notes = report
        .unwrap_or_else(|problems| panic!("{html}: {problems:?}"))
        .notes;
    let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
    notes.join("\n")
}

#[test]
fn a_form_that_nothing_takes_is_noted() {
    for (html, note) in [
        (
            "<form action=\"/comment\"><input name=\"who\"></form>",
            "pages/form.html:1:1: this form is sent with GET, and /comment answers POST only\n  hint: write <form method=\"post\" …>",
        ),
        (
            "x <form method=\"post\" action=\"/about\"></form>",
            "1:3: /about does not answer POST, with which this form is sent\n  hint: it needs pages/about.post.sql",
        ),
        (
            "<form method=post action=/coment></form>",
            "this form is sent to /coment, where nothing answers\n  hint: did you mean /comment?",
        ),
        (
            "<form method=post action=/comment><input name=who><select name=note></select></form>",
            "no field of this form is called `body`, which POST /comment needs\n  hint: add a field, or a default: -- param: body text = ''",
        ),
        (
            "<form method=post action=\"/articles/{{ request.path }}/reply\"></form>",
            "no field of this form is called `who`, which POST /articles/{id}/reply needs",
        ),
    ] {
        let found = noted(html);
        assert!(found.contains(note), "{html}: {found}");
    }
}

#[test]
fn a_form_that_may_be_right_is_not_noted() {
    for html in [
        "<form method=post action=/comment><input name=who><textarea name='body'></textarea></form>",
        "<form method=post action=\"/comment?who=x&amp;body=y\"></form>",
        "<form method=\"{{ request.method }}\" action=/comment></form>",
        "<form method=post action=/comment>{% include 'fields.html' ignore missing %}</form>",
        "<form method=post action=\"/articles/{{ request.path }}/reply\"><input name=who></form>",
        "<form action=/about><input name=q></form><form><input name=q></form>",
        "<form action=\"https://example.org/search\"></form><form method=dialog></form>",
        "{# <form method=post action=/gone></form> #}",
        "<form action=/about><button formmethod=post formaction=/comment></button></form>",
    ] {
        assert_eq!(noted(html), "", "{html}");
    }
}

/// A partial has the form, and the page that shows it says where the form is sent.
#[test]
fn the_address_of_a_form_may_be_set_by_the_page() {
    let noted = |set: &str| {
        let page = format!("{{% set here = {set} %}}{{% include 'box.html' %}}");
        let dir = folder(&[
            COMMENT,
            (
                "templates/box.html",
                "<form method=post action=\"{{ here }}\"><input name=who><input name=bdy></form>",
            ),
            ("pages/form.html", &page),
            ("pages/about.html", "about"),
        ]);
        let report = check(dir.path(), &Config::read(dir.path()).unwrap()).unwrap();
        let notes = report.notes.iter().map(ToString::to_string);
        notes.collect::<Vec<_>>().join("\n")
    };
    for (set, expected) in [
        (
            "'/comment'",
            "templates/box.html:1:67: POST /comment has no parameter `bdy`\n  hint: did you mean `body`?",
        ),
        (
            "'/com' ~ request.path",
            "templates/box.html:1:67: POST /comment has no parameter `bdy`\n  hint: did you mean `body`?",
        ),
        (
            "'/coment/7'",
            "templates/box.html:1:1: this form is sent to /coment/7, where nothing answers",
        ),
        (
            "'/about' if request.path else request.path",
            "templates/box.html:1:1: /about does not answer POST, with which this form is sent",
        ),
    ] {
        let found = noted(set);
        assert!(found.starts_with(expected), "{set}: {found}");
    }
    assert_eq!(noted("request.path"), "");
}

#[test]
fn a_password_does_not_go_into_an_address() {
    for form in [
        "<form action=/register><input name=password></form>",
        "<form><input type=\"password\" name=code></form>",
        "<form method=get><input name=\"new_password\"></form>",
    ] {
        let found = problems(&[("templates/form.html", form)]);
        assert!(
            found.starts_with("templates/form.html:1:1: this form sends `"),
            "{form}: {found}"
        );
    }
    let sound =
        "<form method=post><input type=password name=password></form><form><input name=q></form>";
    assert_eq!(problems(&[("templates/form.html", sound)]), "");
}

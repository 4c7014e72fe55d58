//! Parameters that are lists.

use std::collections::{BTreeMap, BTreeSet};

use crate::both::{Housed, Kind, on_both};

on_both!(
    a_list_is_one_set,
    a_page_of_a_list_is_never_stale,
    a_list_of_texts_finds_exactly_these,
    a_form_takes_a_list,
    an_empty_list_is_null_on_both,
);

const LISTS: &[(&str, &str)] = &[
    (
        "pages/list.sql",
        "-- param: ids integer[]\n-- name: a :many\nselect id, title from article where id in (:ids) order by id;\n",
    ),
    (
        "pages/list.html",
        "{% for x in a %}{{ x.id }} {{ x.title }};{% endfor %} of {{ params.ids | join('+') }}{% if 2 in params.ids %} with two{% endif %}",
    ),
    (
        "pages/others.sql",
        "-- param: ids integer[]\n-- name: a :many\nselect title from article where id not in (:ids) order by id;\n",
    ),
    (
        "pages/comments.sql",
        "-- param: ids integer[]\n-- name: a :many\nselect c.who, a.title from article a join comment c on c.article_id = a.id where a.id in (:ids) order by c.id;\n",
    ),
    (
        "pages/titles.sql",
        "-- param: titles text[]\n-- name: a :many\nselect id from article where title in (:titles) order by id;\n",
    ),
    (
        "pages/add.post.sql",
        "-- param: id integer\n-- param: title text\n-- name: add :exec\ninsert into article (id, title) values (:id, :title);\n-- redirect: /\n",
    ),
    (
        "pages/title.post.sql",
        "-- param: id integer\n-- param: title text\n-- name: change :exec\nupdate article set title = :title where id = :id;\n-- redirect: /\n",
    ),
    (
        "pages/move.post.sql",
        "-- param: id integer\n-- param: to integer\n-- name: change :exec\nupdate article set id = :to where id = :id;\n-- redirect: /\n",
    ),
    (
        "pages/remove.post.sql",
        "-- param: ids integer[]\n-- name: change :exec\ndelete from article where id in (:ids);\n-- redirect: /\n",
    ),
];

fn a_list_is_one_set(kind: Kind) {
    let site = Housed::new(kind, LISTS);
    let both = "1 One;2 Two; of 1+2 with two";
    assert_eq!(site.get("/list?ids=2&ids=1").body, both);
    for same in ["/list?ids=1&ids=2", "/list?ids=&ids=02&x=1&ids=1&ids=2"] {
        let answer = site.get(same);
        assert_eq!((answer.cache(), &*answer.body), ("hit", both), "{same}");
    }
    assert_eq!(site.get("/list").body, " of ");
    assert_eq!(
        site.get("/others").body,
        r#"{"a":[{"title":"One"},{"title":"Two"}]}"#
    );
    assert_eq!(site.get("/others?ids=1").body, r#"{"a":[{"title":"Two"}]}"#);
    for (target, sentence) in [
        ("/list?ids=1&ids=x", "must be a whole number"),
        ("/list?ids=99999999999999999999", "is too large"),
        (
            "/titles?titles=a%00",
            "must not have a character of code zero in it",
        ),
    ] {
        let answer = site.get(target);
        assert_eq!(answer.status, 400, "{target}");
        assert!(answer.body.contains(sentence), "{}", answer.body);
    }
    // An own write of one row ends the pages of lists with it, and no others.
    for target in ["/list?ids=1", "/list?ids=2", "/comments?ids=1", "/list"] {
        site.get(target);
    }
    assert_eq!(site.post("/title", "id=2&title=Zwei").status, 303);
    for target in ["/list?ids=1", "/comments?ids=1", "/list"] {
        assert_eq!(site.get(target).cache(), "hit", "{target}");
    }
    assert_eq!(site.get("/list?ids=2").body, "2 Zwei; of 2 with two");
    assert_eq!(
        site.get("/list?ids=1&ids=2").body,
        "1 One;2 Zwei; of 1+2 with two"
    );
}

/// Holds every page of a list against a model, through writes of all kinds, and lists that are
/// longer than those whose items count one by one.
fn a_page_of_a_list_is_never_stale(kind: Kind) {
    let site = Housed::new(kind, LISTS);
    let mut model: BTreeMap<i64, String> = [(1, "One".to_owned()), (2, "Two".to_owned())].into();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below) as i64
    };
    let lists: Vec<BTreeSet<i64>> = (0..12)
        .map(|number| {
            let length = if number == 0 {
                0
            } else if number < 9 {
                next(4) + 1
            } else {
                70
            };
            (0..length)
                .map(|at| if length > 9 { at } else { next(12) })
                .collect()
        })
        .collect();
    for step in 0..60 {
        let id = next(12);
        let title = format!("t{step}");
        let target = next(12);
        let (form, body) = match step % 4 {
            0 if !model.contains_key(&id) => {
                model.insert(id, title.clone());
                ("/add", format!("id={id}&title={title}"))
            }
            1 if model.contains_key(&id) && !model.contains_key(&target) => {
                let moved = model.remove(&id).unwrap();
                model.insert(target, moved);
                ("/move", format!("id={id}&to={target}"))
            }
            2 => {
                model.remove(&id);
                ("/remove", format!("ids={id}&ids=1000"))
            }
            _ => {
                if let Some(known) = model.get_mut(&id) {
                    title.clone_into(known);
                }
                ("/title", format!("id={id}&title={title}"))
            }
        };
        assert_eq!(site.post(form, &body).status, 303, "{form} {body}");
        for list in &lists {
            let query: String = list.iter().map(|id| format!("&ids={id}")).collect();
            let rows = model.iter().filter(|(id, _)| list.contains(id));
            let rows: String = rows.map(|(id, title)| format!("{id} {title};")).collect();
            let shown = site.get(&format!("/list?{query}")).body;
            let shown = shown.split(" of ").next().unwrap();
            assert_eq!(shown, rows, "after {form} {body}, of {list:?}");
            let others = model.iter().filter(|(id, _)| !list.contains(id));
            let others: Vec<_> = others
                .map(|(_, title)| serde_json::json!({ "title": title }))
                .collect();
            let shown = site.get(&format!("/others?{query}")).body;
            assert_eq!(shown, serde_json::json!({ "a": others }).to_string());
        }
    }
}

/// Texts that a list's form must not confuse, each looked for before and after another row has it.
fn a_list_of_texts_finds_exactly_these(kind: Kind) {
    let site = Housed::new(kind, LISTS);
    let texts = [
        "a\"b",
        "a\\b",
        "\\u0041",
        "A",
        "a",
        "é",
        "e\u{301}",
        "7",
        "07",
        "7.0",
        "NULL",
        "null",
        "{a,b}",
        "a,b",
        "[\"a\"]",
        "\u{1}",
        "\n",
        " a",
        "a ",
        "'a'",
        "true",
        "\u{10ffff}",
        "a\u{fffd}",
    ];
    let encoded = |text: &str| {
        let bytes = text.bytes();
        bytes.map(|byte| format!("%{byte:02x}")).collect::<String>()
    };
    let found = |query: &str| site.get(&format!("/titles?titles=none&{query}")).body;
    let none = r#"{"a":[]}"#;
    let first = r#"{"a":[{"id":1}]}"#;
    for text in texts {
        assert_eq!(
            found(&format!("titles={}", encoded(text))),
            none,
            "{text:?}"
        );
    }
    for text in texts {
        let body = format!("id=1&title={}", encoded(text));
        assert_eq!(site.post("/title", &body).status, 303);
        for other in texts {
            let expected = if other == text { first } else { none };
            let shown = found(&format!("titles={}", encoded(other)));
            assert_eq!(shown, expected, "{other:?} while it is {text:?}");
        }
    }
}

fn a_form_takes_a_list(kind: Kind) {
    let site = Housed::new(kind, LISTS);
    assert_eq!(
        site.get("/others").body,
        r#"{"a":[{"title":"One"},{"title":"Two"}]}"#
    );
    assert_eq!(site.post("/remove", "ids=2&ids=7&ids=").status, 303);
    assert_eq!(site.get("/others").body, r#"{"a":[{"title":"One"}]}"#);
    assert_eq!(site.post("/remove", "").status, 303);
    assert_eq!(site.get("/others").body, r#"{"a":[{"title":"One"}]}"#);
    let many = "ids=1&".repeat(1000);
    assert_eq!(site.post("/remove", &many).status, 303);
    assert_eq!(site.get("/others").body, r#"{"a":[]}"#);
    assert_eq!(site.post("/remove", &(many + "ids=1")).status, 400);
}

/// A filter without a tick lets all rows through.
fn an_empty_list_is_null_on_both(kind: Kind) {
    let files = [
        (
            "pages/all.sql",
            "-- param: ids integer[]\n-- name: a :many\nselect title from article where :ids is null or id in (:ids) order by id;\n",
        ),
        (
            "pages/none.sql",
            "-- param: titles text[]\n-- name: a :many\nselect title from article where :titles is not null and title not in (:titles) order by id;\n",
        ),
        (
            "pages/title.post.sql",
            "-- param: id integer\n-- param: title text\n-- name: change :exec\nupdate article set title = :title where id = :id;\n-- redirect: /\n",
        ),
    ];
    let site = Housed::new(kind, &files);
    for (target, expected) in [
        ("/all", r#"{"a":[{"title":"One"},{"title":"Two"}]}"#),
        ("/all?ids=", r#"{"a":[{"title":"One"},{"title":"Two"}]}"#),
        ("/all?ids=2", r#"{"a":[{"title":"Two"}]}"#),
        ("/all?ids=9", r#"{"a":[]}"#),
        ("/none", r#"{"a":[]}"#),
        ("/none?titles=One", r#"{"a":[{"title":"Two"}]}"#),
    ] {
        assert_eq!(site.get(target).body, expected, "{target}");
    }
    assert_eq!(site.get("/all").cache(), "hit");
    assert_eq!(site.post("/title", "id=2&title=Zwei").status, 303);
    assert_eq!(
        site.get("/all").body,
        r#"{"a":[{"title":"One"},{"title":"Zwei"}]}"#
    );
    assert_eq!(site.get("/all?ids=2").body, r#"{"a":[{"title":"Zwei"}]}"#);
}

//! What the fields of a form may say: lengths, decimals, rows; and all that is wrong in one round.

use crate::{
    both::{Housed, Kind, on_both},
    sessions::{cookie, get},
    support::TestSite,
};

const FILES: &[(&str, &str)] = &[
    (
        "migrations/0002_goods.sqlite.sql",
        "create table goods (id integer primary key, name text not null, price numeric not null, quantity integer);",
    ),
    (
        "migrations/0002_goods.postgres.sql",
        "create table goods (id int generated always as identity primary key, name text not null, price numeric not null, quantity int);\n\
         alter publication millpond add table goods;",
    ),
    (
        "pages/goods.sql",
        "-- param: most decimal from 0 = 1000\n-- param: name text length to 5 = ''\n\
         -- name: goods :many\nselect name, quantity from goods where price <= :most and (:name = '' or name = :name) order by id;\n",
    ),
    (
        "pages/goods.html",
        "{% for one in goods %}{{ one.name }}={{ one.quantity }};{% endfor %}{{ params.most }}",
    ),
    (
        "pages/one.post.sql",
        "-- param: name text length from 2 to 5\n-- param: price decimal from 0.05 to 99.5\n-- param: quantity integer from 1\n\
         -- name: made :exec\ninsert into goods (name, price, quantity) values (:name, :price, :quantity);\n-- invalid: /one\n-- redirect: /goods\n",
    ),
    (
        "pages/one.html",
        "{{ errors.name }}|{{ errors.price }}|{{ errors.quantity }}|{{ errors.name.kind }}|{{ form.price }}",
    ),
];

const ROWS: &[(&str, &str)] = &[
    (
        "pages/rows.post.sqlite.sql",
        "-- param: name text[] as sent length to 5\n-- param: quantity integer[] as sent from 1\n\
         -- name: made :exec\ninsert into goods (name, price, quantity) select n.value, 1, q.value from json_each(:name) n join json_each(:quantity) q on q.key = n.key where n.value <> '' order by n.key;\n-- redirect: /goods\n",
    ),
    (
        "pages/rows.post.postgres.sql",
        "-- param: name text[] as sent length to 5\n-- param: quantity integer[] as sent from 1\n\
         -- name: made :exec\ninsert into goods (name, price, quantity) select name, 1, quantity from unnest(:name::text[], :quantity::bigint[]) with ordinality r (name, quantity, place) where name <> '' order by place;\n-- redirect: /goods\n",
    ),
];

fn a_decimal_is_a_number_with_its_digits(kind: Kind) {
    let site = Housed::new(kind, FILES);
    for (price, is_taken) in [
        ("19.90", true),
        ("0.05", true),
        ("99.5", true),
        ("99.51", false),
        ("0.049", false),
        ("100", false),
        ("1e1", false),
        ("1,5", false),
    ] {
        let form = format!("name={price}&price={price}&quantity=1").replace("name=1e1", "name=1e");
        let to = site.post("/one", &form);
        let expected = if is_taken { "/goods" } else { "/one" };
        assert_eq!(to.field("location"), expected, "{price}");
    }
    assert_eq!(site.get("/goods?most=19.9").body, "19.90=1;0.05=1;19.9");
    let spelt = site.get("/goods?most=019.900");
    assert_eq!(
        (spelt.cache(), &*spelt.body),
        ("hit", "19.90=1;0.05=1;19.9")
    );
    assert_eq!(site.get("/goods?most=3").body, "0.05=1;3");
    assert_eq!(site.get("/goods?most=-1").status, 400);
}

fn a_length_counts_characters(kind: Kind) {
    let site = Housed::new(kind, FILES);
    for (name, said) in [
        ("%C3%BC%C3%B6%C3%A4%C3%A4%C3%A4", None),
        ("++ab++", None),
        (
            "a",
            Some("Name must be from 2 to 5 characters long.|||range|5"),
        ),
        (
            "+a+",
            Some("Name must be from 2 to 5 characters long.|||range|5"),
        ),
        (
            "abcdef",
            Some("Name must be from 2 to 5 characters long.|||range|5"),
        ),
        ("", Some("Name must be filled in.|||missing|5")),
    ] {
        let answer = site.post("/one", &format!("name={name}&price=5&quantity=1"));
        match said {
            None => assert_eq!(answer.field("location"), "/goods", "{name}"),
            Some(said) => {
                let shown = get(&site, "/one", &cookie(&answer));
                assert_eq!(shown.body, said, "{name}");
            }
        }
    }
    assert_eq!(site.get("/goods?name=abcdef").status, 400);
    assert_eq!(site.get("/goods?name=ab").status, 200);
}

fn all_that_is_wrong_is_said_at_once(kind: Kind) {
    let site = Housed::new(kind, FILES);
    let refused = site.post("/one", "name=abcdefg&price=100&quantity=x");
    let shown = get(&site, "/one", &cookie(&refused));
    assert_eq!(
        shown.body,
        "Name must be from 2 to 5 characters long.|Price must be from 0.05 to 99.5.|Quantity must be a whole number.|range|100"
    );
}

/// *Counterexample*: sorted lists without repeats made wrong pairs without a word.
fn lists_as_they_were_sent_are_rows(kind: Kind) {
    let site = Housed::new(kind, &[FILES, ROWS].concat());
    let send = |form: &str| site.post("/rows", form);
    let sent =
        send("name=zebra&quantity=5&name=ape&quantity=1&name=ape&quantity=1&name=&quantity=");
    assert_eq!(sent.field("location"), "/goods", "{}", sent.body);
    assert_eq!(site.get("/goods").body, "zebra=5;ape=1;ape=1;1000");
    // A field that is left empty has no value, in its place.
    let sent = send("name=a&quantity=&name=b&quantity=2");
    assert_eq!(sent.field("location"), "/goods", "{}", sent.body);
    assert_eq!(site.get("/goods?name=a").body, "a=;1000");
    assert_eq!(site.get("/goods?name=b").body, "b=2;1000");
    for (form, said) in [
        (
            "name=a&name=b&quantity=1",
            "must be given as often as \"name\"",
        ),
        ("name=a&quantity=0", "must be at least 1"),
        (
            "name=abcdef&quantity=1",
            "must be at most 5 characters long",
        ),
    ] {
        let refused = send(form);
        assert_eq!(refused.status, 400, "{form}");
        assert!(refused.body.contains(said), "{form}: {}", refused.body);
    }
}

on_both!(
    a_decimal_is_a_number_with_its_digits,
    a_length_counts_characters,
    all_that_is_wrong_is_said_at_once,
    lists_as_they_were_sent_are_rows,
);

#[test]
fn a_short_password_is_said_with_the_rest() {
    let site = TestSite::new(&[
        (
            "migrations/0002_account.sql",
            "create table account (id integer primary key, name text not null unique, hash text not null) strict;",
        ),
        (
            "pages/join.post.sql",
            "-- param: name text length from 1 to 5\n-- hash: hash = :password\n\
             -- name: made :exec\ninsert into account (name, hash) values (:name, :hash);\n-- invalid: /join\n-- redirect: /\n",
        ),
        (
            "pages/join.html",
            "{{ errors.name }}|{{ errors.password }}|{{ errors.form }}",
        ),
    ]);
    for (form, said) in [
        (
            "name=abcdef&password=short",
            "Name must be from 1 to 5 characters long.|A password has at least 8 characters.|",
        ),
        (
            "name=ann&password=short",
            "|A password has at least 8 characters.|",
        ),
        (
            "name=abcdef&password=",
            "Name must be from 1 to 5 characters long.|A password has at least 8 characters.|",
        ),
    ] {
        let refused = site.post("/join", form);
        let shown = get(&site, "/join", &cookie(&refused));
        assert_eq!(shown.body, said, "{form}");
    }
    assert_eq!(
        site.post("/join", "name=ann&password=longer-one")
            .field("location"),
        "/"
    );
}

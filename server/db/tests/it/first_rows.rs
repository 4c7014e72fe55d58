//! The first rows of an order (coherence.md, rule 23).

use expect_test::{Expect, expect};

use crate::support::{SqliteFixture, descriptions, int};

const SCHEMA: &str = "
create table author (id integer primary key, name text);
create table article (id integer primary key, title text, at integer, day datetime, author_id integer, published integer, word text collate nocase, n integer, date integer);
create index article_at on article (at);
create index article_day on article (day);
create index article_author on article (author_id);
create index article_word on article (word);
create table comment (id integer primary key, article_id integer, by text);
create index comment_article on comment (article_id);
create view shown as select * from article where published = 1;
";

fn check(queries: &[&str], expected: &Expect) {
    expected.assert_eq(&descriptions(SCHEMA, queries));
}

#[test]
fn the_first_rows_of_an_order_are_a_dependency() {
    check(
        &[
            "select title from article order by at desc limit 8",
            "select title from article order by day limit 8 offset :skip",
            "select title, at from article where published = 1 order by at desc, id limit :n",
            // It is shown, so it needs no index.
            "select id, published as p from article order by published limit 8",
            "select title from article order by title limit 8",
            "select * from article order by published limit 8",
            "select title from article order by id limit 2, 3",
            "select title, at as day from article order by day desc limit 8",
            "select a.title, u.name from article a join author u on u.id = a.author_id order by a.at desc limit 8",
            "select a.title, (select count(*) from comment c where c.article_id = a.id) from article a order by a.at desc limit 8",
            "select a.title, (select string_agg(c.id, ', ') from comment c where c.article_id = a.id) as said from article a order by a.at desc limit 8",
            // By author, then no other rows count.
            "select title from article where author_id = :author order by at desc limit 8",
        ],
        &expect![[r#"
            select title from article order by at desc limit 8
                article: rows among the first 8 by at desc
            select title from article order by day limit 8 offset :skip
                article: rows among the first 8 + :skip by day
            select title, at from article where published = 1 order by at desc, id limit :n
                article: rows among the first :n by at desc
            select id, published as p from article order by published limit 8
                article: rows among the first 8 by published
            select title from article order by title limit 8
                article: rows among the first 8 by title
            select * from article order by published limit 8
                article: rows among the first 8 by published
            select title from article order by id limit 2, 3
                article: rows among the first 3 + 2 by id
            select title, at as day from article order by day desc limit 8
                article: rows among the first 8 by at desc
            select a.title, u.name from article a join author u on u.id = a.author_id order by a.at desc limit 8
                article: rows among the first 8 by at desc
                author: rows with id = author_id of article among the first 8 by at desc
            select a.title, (select count(*) from comment c where c.article_id = a.id) from article a order by a.at desc limit 8
                article: rows among the first 8 by at desc
                comment: rows with article_id = id of article among the first 8 by at desc
            select a.title, (select string_agg(c.id, ', ') from comment c where c.article_id = a.id) as said from article a order by a.at desc limit 8
                article: rows among the first 8 by at desc
                comment: rows with article_id = id of article among the first 8 by at desc
            select title from article where author_id = :author order by at desc limit 8
                article: rows with author_id = :author
        "#]],
    );
}

#[test]
fn an_aggregate_in_a_subquery_may_be_the_outer_querys() {
    check(
        &[
            "select a.id, (select max(a.id) from comment c where c.article_id = a.id) from article a order by a.at desc limit 8",
            "select a.id, (select max(article_id) from comment c where c.article_id = a.id) from article a order by a.at desc limit 8",
            "select c.id, (select max(c.at) from comment c where c.article_id = 1) from article c order by c.at desc limit 8",
            "select a.id, (select max((select c.at from article c where c.id = a.id)) from comment c) from article a order by a.at desc limit 8",
            "select a.id, (select max(c.id || a.title) from comment c where c.article_id = a.id) from article a order by a.at desc limit 8",
            "select a.id, (select sum((select count(*) from comment d where d.id = c.id)) from comment c) from article a order by a.at desc limit 8",
        ],
        &expect![[r#"
            select a.id, (select max(a.id) from comment c where c.article_id = a.id) from article a order by a.at desc limit 8
                article: every change
                comment: every change
            select a.id, (select max(article_id) from comment c where c.article_id = a.id) from article a order by a.at desc limit 8
                article: every change
                comment: every change
            select c.id, (select max(c.at) from comment c where c.article_id = 1) from article c order by c.at desc limit 8
                article: every change
                comment: rows with article_id = 1
            select a.id, (select max((select c.at from article c where c.id = a.id)) from comment c) from article a order by a.at desc limit 8
                article: every change
                comment: every change
            select a.id, (select max(c.id || a.title) from comment c where c.article_id = a.id) from article a order by a.at desc limit 8
                article: rows among the first 8 by at desc
                comment: rows with article_id = id of article among the first 8 by at desc
            select a.id, (select sum((select count(*) from comment d where d.id = c.id)) from comment c) from article a order by a.at desc limit 8
                article: every change
                comment: every change
        "#]],
    );
}

#[test]
fn what_is_no_plain_order_is_the_whole_table() {
    check(
        &[
            // The name means what is computed.
            "select -at as at from article order by at desc limit 8",
            "select -at as at from article order by (at) desc limit 8",
            "select *, day as at from article order by at limit 8",
            "select a.*, a.day as AT from article a order by (AT) limit 8",
            "select title, date 'at' from article order by at limit 8",
            "select at, date 'at' from article order by at limit 8",
            "select title, n'at' from article order by at limit 8",
            "select title from article where published < 0x01 order by at limit 8",
            "select title from article order by at + 0 desc limit 8",
            "select title from article order by 1 limit 8",
            "select title from article order by word limit 8",
            "select title from article order by at collate nocase limit 8",
            // No index: the last row would be found by sorting.
            "select title from article order by published limit 8",
            "select title from article order by at desc nulls first limit 8",
            // All rows have a part in what is shown.
            "select count(*) from article order by at desc limit 8",
            "select title, count(*) over () from article order by at desc limit 8",
            "select distinct title from article order by at desc limit 8",
            "select at, count(*) from article group by at order by at desc limit 8",
            "select title, (select max(a.at) from comment) from article a order by at desc limit 8",
            "select title from article order by at desc",
            "select title from article order by at desc limit 8 + 0",
            // An outer join fills with nulls.
            "select u.name from author u left join article a on a.author_id = u.id order by a.at limit 8",
            "select u.name from author u full join article a on a.author_id = u.id order by a.at limit 8",
            "select u.name from author u, comment c left join article a on a.author_id = u.id order by a.at limit 8",
            "select a.title from article a right join author u on a.author_id = u.id order by a.at limit 8",
            "select title from article join comment using (id) order by at limit 8",
            "select title from shown order by at desc limit 8",
            "select * from (select title from article order by at desc limit 8)",
            "with x as (select 1) select title from article order by at desc limit 8",
            "select title from article union all select name from author order by title limit 8",
            // The other reference reads all rows.
            "select title from article where id > (select min(author_id) from article) order by at desc limit 8",
        ],
        &expect![[r#"
            select -at as at from article order by at desc limit 8
                article: every change
            select -at as at from article order by (at) desc limit 8
                article: every change
            select *, day as at from article order by at limit 8
                article: every change
            select a.*, a.day as AT from article a order by (AT) limit 8
                article: every change
            select title, date 'at' from article order by at limit 8
                article: every change
            select at, date 'at' from article order by at limit 8
                article: every change
            select title, n'at' from article order by at limit 8
                article: every change
            select title from article where published < 0x01 order by at limit 8
                article: every change
            select title from article order by at + 0 desc limit 8
                article: every change
            select title from article order by 1 limit 8
                article: every change
            select title from article order by word limit 8
                article: every change
            select title from article order by at collate nocase limit 8
                article: every change
            select title from article order by published limit 8
                article: every change
            select title from article order by at desc nulls first limit 8
                article: every change
            select count(*) from article order by at desc limit 8
                article: every change
            select title, count(*) over () from article order by at desc limit 8
                article: every change
            select distinct title from article order by at desc limit 8
                article: every change
            select at, count(*) from article group by at order by at desc limit 8
                article: every change
            select title, (select max(a.at) from comment) from article a order by at desc limit 8
                article: every change
                comment: every change
            select title from article order by at desc
                article: every change
            select title from article order by at desc limit 8 + 0
                article: rows among the first 8 + 0 by at desc
            select u.name from author u left join article a on a.author_id = u.id order by a.at limit 8
                article: every change
                author: every change
            select u.name from author u full join article a on a.author_id = u.id order by a.at limit 8
                article: every change
                author: every change
            select u.name from author u, comment c left join article a on a.author_id = u.id order by a.at limit 8
                article: every change
                author: every change
                comment: every change
            select a.title from article a right join author u on a.author_id = u.id order by a.at limit 8
                article: every change
                author: every change
            select title from article join comment using (id) order by at limit 8
                article: every change
                comment: every change
            select title from shown order by at desc limit 8
                article: rows with published = 1
            select * from (select title from article order by at desc limit 8)
                article: every change
            with x as (select 1) select title from article order by at desc limit 8
                article: every change
            select title from article union all select name from author order by title limit 8
                article: every change
                author: every change
            select title from article where id > (select min(author_id) from article) order by at desc limit 8
                article: every change
        "#]],
    );
}

/// A table with the articles 1 to 10, each at ten times its number.
fn articles() -> SqliteFixture {
    let fixture = SqliteFixture::new(SCHEMA);
    let write = |sql: &str| drop(fixture.write(sql, Vec::new()));
    write(
        "with n (i) as (select 1 union all select i + 1 from n where i < 10) insert into article (id, title, at, day, author_id, published, word) select i, 't', i * 10, '2024-01-' || (i + 10), i, i % 2, 'w' from n",
    );
    write("insert into author select id, 'a' from article");
    fixture
}

#[test]
fn a_change_behind_the_last_row_ends_nothing() {
    let fixture = articles();
    let cases: &[(&str, &[(&str, bool)])] = &[
        (
            "select title from article order by at desc limit 3",
            &[
                (
                    "update article set title = title || 'x' where at = 80",
                    true,
                ),
                (
                    "update article set title = title || 'x' where at = 70",
                    false,
                ),
                ("update article set at = 79 where id = 1", false),
                ("update article set at = 85 where id = 1", true),
                ("update article set at = 10 where id = 1", true),
                ("insert into article (id, at) values (11, 80)", true),
                ("insert into article (id, at) values (12, 79.5)", false),
                ("insert into article (id, at) values (13, null)", false),
                ("delete from article where id > 11", false),
                ("insert into article (id, at) values (13, 'x')", true),
                ("delete from article where id = 13", true),
                ("delete from article where id = 11", true),
                ("update article set at = at", false),
                (
                    "update article set title = title || 'x' where id < 8",
                    false,
                ),
                ("update article set title = title || 'x' where id < 9", true),
            ],
        ),
        (
            "select a.id, (select group_concat(c.id) from comment c where c.article_id = a.id) from article a order by a.at desc limit 3",
            &[
                ("insert into comment (id, article_id) values (1, 9)", true),
                ("insert into comment (id, article_id) values (2, 1)", false),
                ("update comment set article_id = 10 where id = 2", true),
                ("update comment set article_id = 2 where id = 1", true),
                ("update comment set id = 3 where id = 1", false),
                ("delete from comment where article_id < 10", false),
                ("delete from comment", true),
            ],
        ),
        (
            "select id from article where published = 1 order by at limit 2 offset 1",
            &[
                (
                    "update article set title = title || 'x' where id > 5",
                    false,
                ),
                ("update article set published = 0 where id = 7", false),
                ("insert into article (id, at) values (11, null)", true),
                ("delete from article where id = 11", true),
                ("update article set published = 0 where id = 5", true),
                (
                    "update article set title = title || 'x' where id > 9",
                    false,
                ),
                ("update article set title = title || 'x' where id = 9", true),
                ("update article set published = 1 where id in (5, 7)", true),
            ],
        ),
        // No two rows are equal in this order, so what is not read has no part in the choice.
        (
            "select title from article order by at desc, id desc limit 2",
            &[
                ("update article set word = word || 'x' where id = 10", false),
                (
                    "update article set title = title || 'x' where id = 10",
                    true,
                ),
                ("update article set id = 100 where id = 10", true),
                ("update article set id = 10 where id = 100", true),
            ],
        ),
        (
            "select title from article order by at desc limit 2",
            &[("update article set word = word || 'x' where id = 10", true)],
        ),
        // The foremost of several counts.
        (
            "select id from article order by at limit 2",
            &[
                (
                    "update article set title = title || 'x' where id in (2, 9)",
                    true,
                ),
                (
                    "update article set title = title || 'x' where id in (3, 9)",
                    false,
                ),
                ("update article set at = null where id = 2", true),
                ("update article set title = title || 'x' where id = 2", true),
                ("update article set at = 20 where id = 2", true),
            ],
        ),
        // Fewer rows than are taken: every row counts.
        (
            "select id from article order by at limit 11",
            &[(
                "update article set title = title || 'x' where id = 10",
                true,
            )],
        ),
        // Texts, by the minute or so.
        (
            "select id from article order by day desc limit 2",
            &[
                (
                    "update article set title = title || 'x' where id = 8",
                    false,
                ),
                ("update article set title = title || 'x' where id = 9", true),
                ("update article set day = 7 where id = 8", false),
                ("update article set day = x'00' where id = 8", true),
                ("update article set day = '2024-01-18' where id = 8", true),
            ],
        ),
        // A name of a result column is one in a condition, too.
        (
            "select at > 50 as late from article where \"late\" order by at limit 2",
            &[
                ("update article set title = title || 'x' where id = 7", true),
                (
                    "update article set title = title || 'x' where id = 8",
                    false,
                ),
            ],
        ),
        (
            "select u.name from article a join author u on u.id = a.author_id order by a.at desc limit 2",
            &[
                ("update author set name = name || 'x' where id = 9", true),
                ("update author set name = name || 'x' where id = 8", false),
                ("update article set author_id = 99 where id = 10", true),
                ("update author set name = name || 'x' where id = 10", false),
                ("insert into author values (99, 'new')", true),
                ("update article set author_id = 10 where id = 10", true),
            ],
        ),
    ];
    for (sql, changes) in cases {
        let query = fixture.prepare(sql);
        for (change, ends) in *changes {
            assert_eq!(
                fixture.evicts(&query, &[], change),
                *ends,
                "{sql}: {change}"
            );
        }
    }
}

#[test]
fn without_a_last_row_every_row_counts() {
    let fixture = articles();
    let query = fixture.prepare("select id from article order by at limit :n offset :o");
    let change = "update article set title = title || 'x' where id = 10";
    let cases = [
        ((int(2), int(1)), false),
        // A negative offset is none, a negative limit takes all.
        ((int(2), int(-5)), false),
        ((int(-1), int(0)), true),
        ((int(0), int(0)), true),
        ((int(i64::MAX), int(i64::MAX)), true),
        ((int(2), int(i64::MAX)), true),
        (("2".into(), int(0)), true),
    ];
    for ((limit, offset), ends) in cases {
        let params = [limit, offset];
        assert_eq!(fixture.evicts(&query, &params, change), ends, "{params:?}");
    }
}

/// A table in which each column has a value that SQLite would convert, or whose bytes are no text.
#[test]
fn a_value_that_would_be_converted_is_no_last_one() {
    let fixture = SqliteFixture::new(SCHEMA);
    let write = |sql: &str| drop(fixture.write(sql, Vec::new()));
    write("insert into author values (1, 'a'), (2, 'b'), (3, 'c')");
    write("insert into article (id, day, author_id) values (1, 1, 1), (2, 2, 2), (3, 3, 3)");
    let joined =
        "select u.name from article a join author u on u.id = a.author_id order by a.day limit 2";
    let query = fixture.prepare(joined);
    let changed = "update author set name = name || 'x' where id = ";
    assert!(!fixture.evicts(&query, &[], &format!("{changed}3")));
    assert!(fixture.evicts(&query, &[], &format!("{changed}2")));
    // Nulls come first, also for what the first rows lead to.
    write("update article set day = null where id = 3");
    assert!(fixture.evicts(&query, &[], &format!("{changed}3")));
    assert!(!fixture.evicts(&query, &[], &format!("{changed}2")));
    write("update article set day = cast(x'ff' as text) where id = 1");
    write("update article set day = cast(x'fe' as text) where id = 2");
    assert!(fixture.evicts(&query, &[], &format!("{changed}1")));
}

/// Places changes by another program in the order by the values that triggers record.
#[test]
fn a_recorded_change_behind_the_last_row_ends_nothing() {
    let fixture = SqliteFixture::recorded(
        "create table t (id integer primary key, title text, at integer, day text, n);
         create index t_at on t (at); create index t_day on t (day); create index t_n on t (n);",
    );
    let foreign = fixture.foreign();
    foreign
        .execute_batch(
            "with n (i) as (select 1 union all select i + 1 from n where i < 10)
             insert into t select i, 't', i * 10, '2024-01-' || (i + 10), i from n",
        )
        .unwrap();
    fixture.sink.settle();
    let ends = |sql: &str, change: &str| {
        fixture.fill("probe", &fixture.prepare(sql), &[]);
        let before = fixture.sink.epoch();
        foreign.execute_batch(change).unwrap();
        fixture.sink.settle();
        assert_eq!(fixture.sink.epoch(), before, "{change}");
        fixture.sink.cached("probe").is_none()
    };
    let newest = "select title from t order by at desc limit 2";
    assert!(!ends(newest, "update t set title = 'x' where id = 8"));
    assert!(ends(newest, "update t set title = 'x' where id = 9"));
    assert!(!ends(newest, "insert into t (id, at) values (11, 5)"));
    assert!(!ends(newest, "delete from t where id = 11"));
    assert!(!ends(newest, "insert into t (id) values (11)"));
    let oldest = "select title from t where at > 0 order by at limit 2";
    assert!(!ends(oldest, "update t set title = 'y' where id = 8"));
    assert!(!ends(oldest, "insert into t (id, at) values (12, 500)"));
    assert!(ends(oldest, "insert into t (id) values (13)"));
    let latest = "select title from t order by day desc limit 2";
    assert!(!ends(latest, "update t set title = 'z' where id = 8"));
    assert!(!ends(latest, "update t set day = null where id = 8"));
    assert!(ends(latest, "update t set day = x'ff' where id = 8"));
    assert!(ends(latest, "update t set title = 'a' where id = 8"));
    assert!(ends(latest, "delete from t where id = 8"));
    // Of a column without a type no value is recorded.
    let last = "select title from t order by n desc limit 2";
    assert!(ends(last, "update t set title = 'b' where id = 1"));
}

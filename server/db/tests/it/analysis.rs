//! The dependencies of queries.

use expect_test::{Expect, expect};

use crate::support::{SqliteFixture, descriptions};

mod refusals;

const SCHEMA: &str = "
create table user (id integer primary key, name text not null, email text collate nocase);
create table article (id integer primary key, author_id integer references user, slug text unique, title text, topic text, score real, day date);
create table comment (id integer primary key, article_id int, who text, body);
create table pair (a text, b integer, c text, primary key (a, b)) without rowid;
create table made (id integer primary key, a text, b text generated always as (upper(a)));
create view recent as select a.id, a.title, u.name from article a join user u on u.id = a.author_id;
create view loud as select c.article_id, c.who, r.title from recent r left join comment c on c.article_id = r.id;
create view busy (topic, many) as select topic, count(*) from article group by topic;
create view last as select * from comment order by id desc limit 3;
create view both as select id, title from article union all select id, who from comment;
create virtual table article_fts using fts5(title, topic, content='article', content_rowid='id');
create virtual table note using fts5(body);
";

fn check(queries: &[&str], expected: &Expect) {
    expected.assert_eq(&descriptions(SCHEMA, queries));
}

#[test]
fn equalities_narrow() {
    check(
        &[
            "select * from article where id = :id",
            "select * from article where :id = id and title > 'a'",
            "select * from article where (id = :id)",
            "select * from article where id in (1, :b, -3)",
            "select * from article where slug = :slug",
            "select * from article where topic = 'it''s' and id = :id",
            "select count(*) from comment where article_id = :id",
            "select * from pair where rowid = 1",
            "select * from pair where a = :a",
            "select * from comment where _rowid_ = :r",
            "select * from ARTICLE as X where x.ID = :id order by title limit :n",
            "select * from main.article where id = null",
        ],
        &expect![[r#"
            select * from article where id = :id
                article: rows with id = :id
            select * from article where :id = id and title > 'a'
                article: rows with id = :id
            select * from article where (id = :id)
                article: rows with id = :id
            select * from article where id in (1, :b, -3)
                article: rows with id in (1, :b, -3)
            select * from article where slug = :slug
                article: rows with slug = :slug
            select * from article where topic = 'it''s' and id = :id
                article: rows with id = :id
            select count(*) from comment where article_id = :id
                comment: rows with article_id = :id
            select * from pair where rowid = 1
                error: no such column: rowid (no table here has a column rowid) at Some(25)
            select * from pair where a = :a
                pair: rows with a = :a
            select * from comment where _rowid_ = :r
                comment: rows with id = :r
            select * from ARTICLE as X where x.ID = :id order by title limit :n
                article: rows with id = :id
            select * from main.article where id = null
                article: rows with id = NULL
        "#]],
    );
}

#[test]
fn what_is_not_certain_is_the_whole_table() {
    check(
        &[
            "select * from article",
            "select * from article where id = :a or id = :b",
            "select * from article where not id = :a",
            "select * from article where id + 0 = :a",
            "select * from article where id = :a + 1",
            "select * from article where id = cast(:a as integer)",
            "select * from article where title = :a collate nocase",
            "select * from user where email = :a",
            "select * from article where score = :a",
            "select * from article where day = :a",
            "select * from comment where body = :a",
            "select * from made where id = :a",
            "select * from article where id is :a",
            "select * from article where id not in (:a)",
            "select * from article where (id, title) = (:a, :b)",
            "select * from article where id = -> :a",
            "select * from article where id in comment",
            "select * from article where id = \"title\"",
        ],
        &expect![[r#"
            select * from article
                article: every change
            select * from article where id = :a or id = :b
                article: rows with id in (:a, :b)
            select * from article where not id = :a
                article: every change
            select * from article where id + 0 = :a
                article: every change
            select * from article where id = :a + 1
                article: every change
            select * from article where id = cast(:a as integer)
                article: every change
            select * from article where title = :a collate nocase
                article: every change
            select * from user where email = :a
                user: rows with email = :a
            select * from article where score = :a
                article: every change
            select * from article where day = :a
                article: every change
            select * from comment where body = :a
                comment: every change
            select * from made where id = :a
                made: every change
            select * from article where id is :a
                article: every change
            select * from article where id not in (:a)
                article: every change
            select * from article where (id, title) = (:a, :b)
                article: every change
            select * from article where id = -> :a
                error: near "->": syntax error (the statement can be read up to `->`; look just before it) at Some(33)
            select * from article where id in comment
                error: sub-select returns 4 columns - expected 1 at None
            select * from article where id = "title"
                article: every change
        "#]],
    );
}

#[test]
fn each_reference_counts_by_itself() {
    check(
        &[
            "select a.title, u.name from article a join user u on u.id = a.author_id where a.id = :id",
            "select * from article a join article b on a.id = b.author_id where a.id = :id",
            "select * from comment c join article a on a.id = c.article_id join user u on u.id = a.id where u.id = :id",
            "select * from article a left join comment c on c.article_id = a.id where a.id in (1, :id)",
            "select * from article a left join comment c on c.article_id = a.id and c.article_id = :id",
            "select * from article a, user u where a.title = u.id and u.id = :id",
            "select * from article a join article b on a.id = :x and b.id = :y",
            "select * from article a left join comment c on c.article_id = a.id and a.id = :id",
            "select * from article a left join comment c on c.article_id = :id",
            "select * from article a left join comment c on c.article_id = a.id where c.article_id = :id",
            "select * from article a right join comment c on c.article_id = a.id and a.id = :id",
            "select * from article a, comment c where a.id = :id and article_id = :id",
            "select * from article where id = :id and author_id in (select id from user where name = :n)",
            "select * from article where exists (select 1 from comment where article_id = :id)",
            "select (select count(*) from comment where article_id = :id) from article where id = :id",
            "select id from article where id = :a union select id from article where id = :b",
            "with c as (select * from article where id = :id) select * from c",
            "with article as (select * from comment where article_id = :id) select * from article where id = :id",
            "with recursive c(x) as (select id from article where id = :id union select a.id from article a join c on a.author_id = c.x) select * from c",
            "with recursive n (i) as (select 1 union all select i + 1 from n where i < 9) select count(*) from n join article a on a.id = n.i",
            "with recursive dbstat (name) as (select 1 union all select name + 1 from dbstat where name < 9) select count(*) from dbstat",
            "select * from (select * from article where id = :id) where title = 'a'",
            "select * from (article a join comment c on c.id = a.id) where a.id = :id",
            "select * from article a join user using (id) where id = :id",
            "select 1 from article, json_each(:list) j where article.id = 3",
        ],
        &expect![[r#"
            select a.title, u.name from article a join user u on u.id = a.author_id where a.id = :id
                article: rows with id = :id
                user: rows with id = author_id of article with id = :id
            select * from article a join article b on a.id = b.author_id where a.id = :id
                article: rows with id = :id
                article: rows with author_id = :id
            select * from comment c join article a on a.id = c.article_id join user u on u.id = a.id where u.id = :id
                article: rows with id = :id
                comment: rows with article_id = :id
                user: rows with id = :id
            select * from article a left join comment c on c.article_id = a.id where a.id in (1, :id)
                article: rows with id in (1, :id)
                comment: rows with article_id in (1, :id)
            select * from article a left join comment c on c.article_id = a.id and c.article_id = :id
                article: every change
                comment: rows with article_id = :id
            select * from article a, user u where a.title = u.id and u.id = :id
                article: every change
                user: rows with id = :id
            select * from article a join article b on a.id = :x and b.id = :y
                article: rows with id = :x
                article: rows with id = :y
            select * from article a left join comment c on c.article_id = a.id and a.id = :id
                article: every change
                comment: every change
            select * from article a left join comment c on c.article_id = :id
                article: every change
                comment: rows with article_id = :id
            select * from article a left join comment c on c.article_id = a.id where c.article_id = :id
                article: every change
                comment: rows with article_id = :id
            select * from article a right join comment c on c.article_id = a.id and a.id = :id
                article: every change
                comment: every change
            select * from article a, comment c where a.id = :id and article_id = :id
                article: rows with id = :id
                comment: rows with article_id = :id
            select * from article where id = :id and author_id in (select id from user where name = :n)
                article: rows with id = :id
                user: rows with name = :n
            select * from article where exists (select 1 from comment where article_id = :id)
                article: every change
                comment: rows with article_id = :id
            select (select count(*) from comment where article_id = :id) from article where id = :id
                article: rows with id = :id
                comment: rows with article_id = :id
            select id from article where id = :a union select id from article where id = :b
                article: rows with id = :a
                article: rows with id = :b
            with c as (select * from article where id = :id) select * from c
                article: rows with id = :id
            with article as (select * from comment where article_id = :id) select * from article where id = :id
                article: every change
                comment: rows with article_id = :id
            with recursive c(x) as (select id from article where id = :id union select a.id from article a join c on a.author_id = c.x) select * from c
                article: every change
            with recursive n (i) as (select 1 union all select i + 1 from n where i < 9) select count(*) from n join article a on a.id = n.i
                article: every change
            with recursive dbstat (name) as (select 1 union all select name + 1 from dbstat where name < 9) select count(*) from dbstat
                not cacheable: dbstat is not a table whose changes can be seen
            select * from (select * from article where id = :id) where title = 'a'
                article: rows with id = :id
            select * from (article a join comment c on c.id = a.id) where a.id = :id
                article: every change
                comment: every change
            select * from article a join user using (id) where id = :id
                article: rows with id = :id
                user: rows with id = :id
            select 1 from article, json_each(:list) j where article.id = 3
                article: rows with id = 3
        "#]],
    );
}

#[test]
fn views_and_virtual_tables_are_seen_through() {
    check(
        &[
            "select * from recent where id = :id",
            "select * from recent r join article a on a.id = r.id where a.id = :id",
            "select rowid from note where note match :q",
            "select rowid, bm25(article_fts) from article_fts where article_fts match :q order by rank",
        ],
        &expect![[r#"
            select * from recent where id = :id
                article: rows with id = :id
                user: rows with id = author_id of article with id = :id
            select * from recent r join article a on a.id = r.id where a.id = :id
                article: rows with id = :id
                user: rows with id = author_id of article with id = :id
            select rowid from note where note match :q
                note_config: every change
                note_content: every change
                note_data: every change
                note_docsize: every change
                note_idx: every change
            select rowid, bm25(article_fts) from article_fts where article_fts match :q order by rank
                article: every change
                article_fts_config: every change
                article_fts_data: every change
                article_fts_docsize: every change
                article_fts_idx: every change
        "#]],
    );
}

#[test]
fn the_items_of_a_list_narrow() {
    check(
        &[
            "select * from article where id in (select value from json_each(:ids))",
            "select * from article where slug in (SELECT value FROM json_each(:slugs)) and topic = 'a'",
            "select * from article where id in (select value from json_each(:ids)) or id = 7",
            "select * from article a join user u on u.id = a.author_id where a.id in (select value from json_each(:ids))",
            "select * from recent where id in (select value from json_each(:ids))",
            "select * from article where id not in (select value from json_each(:ids))",
            "select * from article where score in (select value from json_each(:scores))",
            "select * from article where id in (select key from json_each(:ids))",
            "select * from article where id in (select value from json_each(:ids) limit 1)",
            "select * from article where id in (select value from json_each(:ids), comment)",
            "select * from article where id in (select value from json_each(:ids, '$.a'))",
            "select * from article where id in (select value from json_each(slug))",
            "select * from article where +id in (select value from json_each(:ids))",
            "with json_each(value) as (select id from comment) select * from article where id in (select value from json_each)",
        ],
        &expect![[r#"
            select * from article where id in (select value from json_each(:ids))
                article: rows with id in (:ids)
            select * from article where slug in (SELECT value FROM json_each(:slugs)) and topic = 'a'
                article: rows with slug in (:slugs)
            select * from article where id in (select value from json_each(:ids)) or id = 7
                article: rows with id in (:ids, 7)
            select * from article a join user u on u.id = a.author_id where a.id in (select value from json_each(:ids))
                article: rows with id in (:ids)
                user: rows with id = author_id of article with id in (:ids)
            select * from recent where id in (select value from json_each(:ids))
                article: rows with id in (:ids)
                user: rows with id = author_id of article with id in (:ids)
            select * from article where id not in (select value from json_each(:ids))
                article: every change
            select * from article where score in (select value from json_each(:scores))
                article: every change
            select * from article where id in (select key from json_each(:ids))
                article: every change
            select * from article where id in (select value from json_each(:ids) limit 1)
                article: every change
            select * from article where id in (select value from json_each(:ids), comment)
                article: every change
                comment: every change
            select * from article where id in (select value from json_each(:ids, '$.a'))
                article: every change
            select * from article where id in (select value from json_each(slug))
                article: every change
            select * from article where +id in (select value from json_each(:ids))
                article: every change
            with json_each(value) as (select id from comment) select * from article where id in (select value from json_each)
                article: every change
                comment: every change
        "#]],
    );
}

#[test]
fn a_table_of_the_name_of_lists_is_no_list() {
    let schema = "create table json_each (value); create table t (id integer primary key);";
    let found = descriptions(
        schema,
        &["select * from t where id in (select value from json_each)"],
    );
    expect![[r#"
        select * from t where id in (select value from json_each)
            json_each: every change
            t: every change
    "#]]
    .assert_eq(&found);
}

#[test]
fn an_equality_passes_into_a_view_or_a_subquery() {
    check(
        &[
            "select * from loud where article_id = :id and title = :t",
            "select * from loud l join article a on a.id = l.article_id where a.id = :id",
            "select many from busy where topic = :t",
            "select * from busy where many = :n",
            "select * from last where article_id = :id",
            "select * from both where id = :id",
            "select * from recent r, recent s where r.id = :a and s.id = :b",
            "select * from recent where id = :id union all select * from recent",
            "select * from (select * from article) where id = :id",
            "select * from (select a.*, u.name from article a, user u) x where x.id = :id",
            "select * from (select id as n from article where topic = 'a') where n in (1, 2)",
            "select * from (select distinct topic from article) where topic = :t",
            "select * from (select id, row_number() over (partition by topic) from article) where id = :id",
            "select * from (select id, max(score) from article) where id = :id",
            "select * from (select id, (select count(*) from comment) from article) where id = :id",
            "select * from (select id, lower(title) as t from article) where id = :id and t = 'a'",
            "select * from (select id + 0 as id from article) where id = :id",
            "select * from (select topic as id from article group by topic) where id = :id",
            "select * from (select id from article limit 3) where id = :id",
            "select * from user left join (select id, author_id from article) a on a.author_id = user.id where user.id = :id",
            "select * from (select * from comment join article using (id)) where who = :w",
            "with recent as (select * from comment) select * from recent where id = :id",
        ],
        &expect![[r#"
            select * from loud where article_id = :id and title = :t
                article: rows with title = :t
                comment: rows with article_id = :id
                user: rows with id = author_id of article with title = :t
            select * from loud l join article a on a.id = l.article_id where a.id = :id
                article: every change
                comment: rows with article_id = :id
                user: every change
            select many from busy where topic = :t
                article: rows with topic = :t
            select * from busy where many = :n
                article: every change
            select * from last where article_id = :id
                comment: every change
            select * from both where id = :id
                article: rows with id = :id
                comment: rows with id = :id
            select * from recent r, recent s where r.id = :a and s.id = :b
                article: rows with id = :a
                article: rows with id = :b
                user: rows with id = author_id of article with id = :a
                user: rows with id = author_id of article with id = :b
            select * from recent where id = :id union all select * from recent
                article: every change
                user: every change
            select * from (select * from article) where id = :id
                article: rows with id = :id
            select * from (select a.*, u.name from article a, user u) x where x.id = :id
                article: rows with id = :id
                user: every change
            select * from (select id as n from article where topic = 'a') where n in (1, 2)
                article: rows with id in (1, 2)
            select * from (select distinct topic from article) where topic = :t
                article: rows with topic = :t
            select * from (select id, row_number() over (partition by topic) from article) where id = :id
                article: every change
            select * from (select id, max(score) from article) where id = :id
                article: every change
            select * from (select id, (select count(*) from comment) from article) where id = :id
                article: rows with id = :id
                comment: every change
            select * from (select id, lower(title) as t from article) where id = :id and t = 'a'
                article: rows with id = :id
            select * from (select id + 0 as id from article) where id = :id
                article: every change
            select * from (select topic as id from article group by topic) where id = :id
                article: rows with topic = :id
            select * from (select id from article limit 3) where id = :id
                article: every change
            select * from user left join (select id, author_id from article) a on a.author_id = user.id where user.id = :id
                article: rows with author_id = :id
                user: rows with id = :id
            select * from (select * from comment join article using (id)) where who = :w
                article: every change
                comment: every change
            with recent as (select * from comment) select * from recent where id = :id
                article: every change
                comment: every change
                user: every change
        "#]],
    );
}

#[test]
fn a_view_that_reads_the_clock_is_named() {
    let schema = "create table plain (id integer primary key, title text);
        create view clock as select datetime('now') as now;
        create view due as select id, title, (select now from clock) as now from plain;";
    let queries = [
        "select now from clock",
        "select title from due where id = :id",
        "select title from plain where id = :id",
    ];
    let expected = expect![[r#"
        select now from clock
            not kept where it reads the clock (datetime() in the view clock)
        select title from due where id = :id
            not kept where it reads the clock (datetime() in the view clock)
            plain: rows with id = :id
        select title from plain where id = :id
            plain: rows with id = :id
    "#]];
    expected.assert_eq(&descriptions(schema, &queries));
}

/// SQLite takes an expression of 1000 levels and 500 SELECTs. Parentheses end earlier: the parser
/// that reads the text here takes 50.
#[test]
fn the_deepest_texts_that_sqlite_takes_fit_into_the_stack_of_a_thread() {
    let chain = |part: &str, joint: &str, times: usize| vec![part; times].join(joint);
    let any = chain("id = :id", " or ", 990);
    let all = chain("id = :id", " and ", 990);
    let sum = chain("id", " + ", 990);
    let (open, close) = ("(".repeat(45), ")".repeat(45));
    for sql in [
        format!("select * from article where {any}"),
        format!("select * from article where {all}"),
        format!("select {sum} from article where id = {open}:id{close}"),
        format!("select * from {open}article{close}"),
        chain("select id from article", " union all ", 490),
        format!(
            "select id from article where id in {}",
            chain("(select id from article where id in ", "", 20) + "(1)" + &close[..20]
        ),
    ] {
        let described = descriptions(SCHEMA, &[&sql]);
        assert!(!described.contains("error"), "{described}");
    }
}

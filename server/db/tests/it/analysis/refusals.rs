//! What is not kept, what is refused, and the kinds of parameters.

use super::*;

#[test]
fn what_no_feed_reports_is_not_cacheable() {
    check(
        &[
            "select random()",
            "select date('now')",
            "select datetime()",
            "select strftime('%Y', 'now')",
            "select current_timestamp",
            "select date(:d), strftime('%Y', day) from article where id = :id",
            "select * from sqlite_schema",
            "select * from pragma_table_info('article')",
            "select last_insert_rowid()",
            "select changes()",
            "explain select 1",
            "select 1",
        ],
        &expect![[r#"
            select random()
                not cacheable: the result of random() may differ from one call to the next
            select date('now')
                not cacheable: date() reads the clock
            select datetime()
                not cacheable: datetime() reads the clock
            select strftime('%Y', 'now')
                not cacheable: strftime() reads the clock
            select current_timestamp
                not cacheable: CURRENT_TIMESTAMP reads the clock
            select date(:d), strftime('%Y', day) from article where id = :id
                article: rows with id = :id
            select * from sqlite_schema
                not cacheable: changes to SQLite's own table sqlite_master cannot be seen
            select * from pragma_table_info('article')
                not cacheable: pragma_table_info is not a table whose changes can be seen
            select last_insert_rowid()
                not cacheable: the result of last_insert_rowid() may differ from one call to the next
            select changes()
                not cacheable: the result of changes() may differ from one call to the next
            explain select 1
                not cacheable: EXPLAIN tells about the plan, not about rows
            select 1
        "#]],
    );
}

#[test]
fn a_default_is_no_call_of_the_query() {
    const DEFAULTS: &str = "
create table loan (id integer primary key, at text not null default current_timestamp, token text default (lower(hex(randomblob(16)))), day date default current_date);
create table odd (id integer primary key, at text not null default current_timestamp, low as (lower(at)), check (at <= current_timestamp or random()));
create index by_time on odd (lower(at));
create view now as select id, current_timestamp as at from loan;
create view through as select * from now;
create view plain as select id, at from loan;
";
    let queries = [
        "select id, at from loan order by id limit 12",
        "select * from loan where id = :id",
        "select low from odd where lower(at) = :at",
        "select at from plain",
        "select at, current_timestamp from loan",
        "select token from loan where random() > 0",
        "select token from loan order by \"RANDOM\"()",
        "select hex(randomblob(1)), token from loan",
        "select l.at, n.at from loan l, now n",
        "select at from through",
        "select at from loan where day < date('now')",
        "insert into loan (id) values (1) returning at",
    ];
    expect![[r#"
        select id, at from loan order by id limit 12
            loan: rows among the first 12 by id
        select * from loan where id = :id
            loan: rows with id = :id
        select low from odd where lower(at) = :at
            odd: every change
        select at from plain
            loan: every change
        select at, current_timestamp from loan
            not cacheable: CURRENT_TIMESTAMP reads the clock
            loan: every change
        select token from loan where random() > 0
            not cacheable: the result of random() may differ from one call to the next
            loan: every change
        select token from loan order by "RANDOM"()
            not cacheable: the result of random() may differ from one call to the next
            loan: every change
        select hex(randomblob(1)), token from loan
            not cacheable: the result of randomblob() may differ from one call to the next
            loan: every change
        select l.at, n.at from loan l, now n
            not cacheable: CURRENT_TIMESTAMP reads the clock
            loan: every change
        select at from through
            not cacheable: CURRENT_TIMESTAMP reads the clock
            loan: every change
        select at from loan where day < date('now')
            not cacheable: date() reads the clock
            loan: every change
        insert into loan (id) values (1) returning at
            not cacheable: CURRENT_DATE reads the clock
            loan: every change
    "#]]
    .assert_eq(&descriptions(DEFAULTS, &queries));
}

#[test]
fn refusals_say_where_and_what_to_do() {
    check(
        &[
            "select * from artcle",
            "select titel from article",
            "select from",
            "select 1; select 2",
            "",
            "-- nothing",
            "pragma user_version",
            "begin",
            "attach 'x' as y",
            "create temp table t (a)",
            "select * from article where id = ?",
            "select * from article where id = ?1",
        ],
        &expect![[r#"
            select * from artcle
                error: no such table: artcle (did you mean article?) at Some(14)
            select titel from article
                error: no such column: titel (did you mean title?) at Some(7)
            select from
                error: near "from": syntax error (the statement can be read up to `from`; look just before it) at Some(7)
            select 1; select 2
                error: more than one statement (each query is one statement; give each a name of its own) at Some(9)

                error: there is no statement here (write one SELECT, INSERT, UPDATE or DELETE) at None
            -- nothing
                error: there is no statement here (write one SELECT, INSERT, UPDATE or DELETE) at None
            pragma user_version
                error: this is a PRAGMA (leave it out) at None
            begin
                error: this is a transaction statement; each set of steps is one transaction by itself (leave it out) at None
            attach 'x' as y
                error: this is ATTACH or DETACH (leave it out) at None
            create temp table t (a)
                error: this is a temporary object, which only one connection would have (leave it out) at None
            select * from article where id = ?
                error: a parameter without a name (name it, as in :id) at Some(33)
            select * from article where id = ?1
                article: rows with id = :1
        "#]],
    );
}

#[test]
fn parameters_know_their_kinds() {
    let fixture = SqliteFixture::new(SCHEMA);
    let kinds = |sql: &str| {
        let query = fixture.prepare(sql);
        query
            .params()
            .iter()
            .map(|param| {
                format!(
                    "{}:{}",
                    param.name,
                    param
                        .kind
                        .map_or("?".to_owned(), |kind| format!("{kind:?}"))
                )
            })
            .collect::<Vec<_>>()
            .join(" ")
    };
    let check = |sql: &str, expected: &str| assert_eq!(kinds(sql), expected, "{sql}");
    check(
        "select * from article where id = :id and title like :like limit :n offset :o",
        "id:Integer like:Text n:Integer o:Integer",
    );
    check(
        "select * from article limit :n offset (:page - 1) * :n",
        "n:Integer page:Integer",
    );
    check(
        "select * from article where score between :a and :b and day = :d",
        "a:Real b:Real d:?",
    );
    check("select * from article where id = :x or title = :x", "x:?");
    check("select * from note where note match :q", "q:Text");
    check(
        "insert into comment (article_id, who, body) values (:a, :w, :b)",
        "a:Integer w:Text b:?",
    );
    check(
        "insert into user values (:id, :name, :email) on conflict do update set name = :other",
        "id:Integer name:Text email:Text other:Text",
    );
    check(
        "update article set title = :t where id = :id",
        "t:Text id:Integer",
    );
    check(
        "delete from pair where a = :a and b = :b",
        "a:Text b:Integer",
    );
    check(
        "select * from article a where exists (select 1 from comment c where c.article_id = :x and a.slug = :s)",
        "x:Integer s:Text",
    );
    check("select :a + 1, upper(:b)", "a:? b:Text");
    // Through views, subqueries and common table expressions.
    check("select * from recent where id = :id", "id:Integer");
    check(
        "select * from (select score as s from article union select score from article) where s > :s",
        "s:Real",
    );
    check(
        "with w as (select article_id, who from comment) select * from w where article_id = :a and who = :w",
        "a:Integer w:Text",
    );
    // In an expression, from the column of the same name and from functions of texts.
    check(
        "select * from article where score + 1 > :score * 2",
        "score:Real",
    );
    check(
        "select * from article where abs(id) = abs(:id)",
        "id:Integer",
    );
    check(
        "select * from article where title like '%' || :q || '%'",
        "q:Text",
    );
    check(
        "select * from article where abs(id) = abs(:other)",
        "other:?",
    );
    check(
        "insert into comment (article_id, who) values (:article_id + 0, nullif(:who, ''))",
        "article_id:Integer who:Text",
    );
    check("update article set score = score + :score", "score:Real");
    // What is compared with a column counts first.
    check(
        "select * from article where id = :x or title = '' || :x",
        "x:Integer",
    );
    check(
        "select * from article limit min(:n, 100) offset :n * coalesce(:page, 0)",
        "n:Integer page:Integer",
    );
    assert_eq!(
        &*fixture
            .prepare("select id, title as t from article")
            .columns(),
        ["id".into(), "t".into()]
    );
    assert!(fixture.prepare("select 1").is_readonly());
    assert!(!fixture.prepare("delete from user").is_readonly());
    assert_eq!(
        fixture.prepare("select * from recent").tables(),
        ["article", "recent", "user"]
    );
}

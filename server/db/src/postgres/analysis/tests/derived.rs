//! Equalities on views and subqueries in FROM, and which of them pass inside.

use expect_test::{Expect, expect};

use super::support::AnalysisFixture;

const SCHEMA: &str = "
create collation nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create domain slug as text collate nocase;
create domain small as int check (value > 0);
create table article (id int primary key, author int, topic text, title varchar(20), code char(4), score numeric, live boolean,
  loose text collate nocase, slug slug, small small, loud text generated always as (upper(topic)) stored);
create table author (id int primary key, name text);
create table note (id int primary key, article int, body text);
create table event (id int, day int, primary key (id, day)) partition by list (day);
create table event_1 partition of event for values in (1);
alter table article replica identity full;
alter table author replica identity full; alter table note replica identity full;
create view plain as select title, id, topic from article;
create view plainer as select topic as t, id as i from plain where title > 'a';
create view live as select * from article where live;
create view written as select a.id, a.topic, u.id as author, u.name from article a join author u on u.id = a.author;
create view noted as select a.id, n.id as note, n.body from article a left join note n on n.article = a.id;
create view topics as select topic, count(*) as many from article group by topic;
create view newest as select distinct on (topic) topic, id from article order by topic, id desc;
create view ten as select * from article order by id limit 10;
create view events as select * from event;
create view both_tables as select id from article union all select id from note;
create view answered as select a.id, (select count(*) from note n where n.article = a.id) as many from article a;
create view pairs as select x.id, y.id as next from plain x join plain y on y.topic = x.topic;
create table alias (id int primary key, name text);
create function author_name(int) returns text language sql stable begin atomic select name from alias where id = $1; end;
create view readers as select id, author_name(id) as name from article;
create function title_of(int) returns text language sql stable begin atomic select title from plain where id = $1; end;
create view fenced with (security_barrier) as select id, topic from article where topic like 'a%';
create view fenceless with (check_option = local) as select * from fenced;
";

fn check(queries: &[&str], expected: &Expect) {
    AnalysisFixture::new(SCHEMA).check(queries, expected);
}

#[test]
fn an_equality_passes_into_a_view_or_a_subquery() {
    check(
        &[
            "select * from plain where id = $1",
            "select title from plain where topic = $1 and title = $2",
            "select * from plainer where i in (1, $1)",
            "select * from plainer where i = any ($1)",
            "select * from live where id = $1",
            "select * from live",
            "select * from live where not live",
            "select * from written where id = $1",
            "select * from written where author = $1",
            "select * from written w join note n on n.article = w.id where n.article = $1",
            "select * from written w join note n on n.article = w.id where w.id = $1",
            "select * from noted where note = $1",
            "select * from noted where id = $1",
            "select many from topics where topic = $1",
            "select * from newest where topic = $1",
            "select * from events where id = $1",
            "select * from answered where id = $1",
            "select * from pairs where id = $1",
            "select * from pairs where id = $1 and next = $2",
            "select * from plain x join plain y on y.id = x.id where x.id = $1",
            "select * from plain x, plain y where x.id = $1 and y.id = $2",
            "select * from author u left join plain p on p.id = u.id where u.id = $1",
            "select * from author u left join plain p on p.id = $1",
            "select count(*), max(topic) from plain where id = $1 having count(*) > 0",
            "select * from plain where id = $1 order by topic limit 3",
            "select * from author where exists (select 1 from plain p where p.id = $1 and p.title = author.name) and id = $2",
            "select * from (select * from article) a where a.id = $1",
            "select * from (select id as n, topic from (select topic, id from article) a) b where n = $1",
            "select * from (select distinct topic, title from article) a where title = $1",
            "select * from (select topic, title, count(*) from article group by title, topic) a where title = $1",
            "select * from (select topic::varchar as t from article) a where t = $1",
            "select * from (select max(score) as score, small from article group by small) a where small = $1",
            "select * from (select id, lower(topic) as t from article) a where t = $1 and id = $2",
            "select * from (select count(*)::int as n from article) c join author u on u.id = c.n where c.n = $1",
            "select * from (select a.id, n.body from article a join note n using (id)) x where id = $1",
            "select * from (with n as (select * from note) select a.id, n.body from article a join n on n.id = a.id) x where id = $1",
            "select * from (select a.id, l.body from article a, lateral (select body from note n where n.article = a.id) l) x where id = $1",
            "select * from (select (article).id from article) a where id = $1",
            "select * from readers where id = $1",
            "select * from fenced where topic = $1",
            "select * from fenceless where id = $1",
            "select title_of($1) from plain where id = $1",
        ],
        &expect![[r#"
            select * from plain where id = $1
                article: rows with id = :a
            select title from plain where topic = $1 and title = $2
                article: rows with topic = :a
            select * from plainer where i in (1, $1)
                article: rows with id in (1, :a)
            select * from plainer where i = any ($1)
                article: rows with id in (:a)
            select * from live where id = $1
                article: rows with id = :a
            select * from live
                article: rows with live = true
            select * from live where not live
                article: rows with live = false
            select * from written where id = $1
                article: rows with id = :a
                author: rows with id = author of article with id = :a
            select * from written where author = $1
                article: rows with author = :a
                author: rows with id = :a
            select * from written w join note n on n.article = w.id where n.article = $1
                article: rows with id = :a
                author: rows with id = author of article with id = :a
                note: rows with article = :a
            select * from written w join note n on n.article = w.id where w.id = $1
                article: rows with id = :a
                author: rows with id = author of article with id = :a
                note: rows with article = :a
            select * from noted where note = $1
                article: every change
                note: rows with id = :a
            select * from noted where id = $1
                article: rows with id = :a
                note: rows with article = :a
            select many from topics where topic = $1
                article: rows with topic = :a
            select * from newest where topic = $1
                article: rows with topic = :a
            select * from events where id = $1
                event: rows with id = :a
            select * from answered where id = $1
                article: rows with id = :a
                note: rows with article = :a
            select * from pairs where id = $1
                article: every change
            select * from pairs where id = $1 and next = $2
                article: rows with id = :a
                article: rows with id = :b
            select * from plain x join plain y on y.id = x.id where x.id = $1
                article: rows with id = :a
            select * from plain x, plain y where x.id = $1 and y.id = $2
                article: rows with id = :a
                article: rows with id = :b
            select * from author u left join plain p on p.id = u.id where u.id = $1
                article: rows with id = :a
                author: rows with id = :a
            select * from author u left join plain p on p.id = $1
                article: rows with id = :a
                author: every change
            select count(*), max(topic) from plain where id = $1 having count(*) > 0
                article: rows with id = :a
            select * from plain where id = $1 order by topic limit 3
                article: rows with id = :a
            select * from author where exists (select 1 from plain p where p.id = $1 and p.title = author.name) and id = $2
                article: rows with id = :a
                author: rows with id = :b
            select * from (select * from article) a where a.id = $1
                article: rows with id = :a
            select * from (select id as n, topic from (select topic, id from article) a) b where n = $1
                article: rows with id = :a
            select * from (select distinct topic, title from article) a where title = $1
                article: rows with title = :a
            select * from (select topic, title, count(*) from article group by title, topic) a where title = $1
                article: rows with title = :a
            select * from (select topic::varchar as t from article) a where t = $1
                article: rows with topic = :a
            select * from (select max(score) as score, small from article group by small) a where small = $1
                article: rows with small = :a
            select * from (select id, lower(topic) as t from article) a where t = $1 and id = $2
                article: rows with id = :b
            select * from (select count(*)::int as n from article) c join author u on u.id = c.n where c.n = $1
                article: every change
                author: rows with id = :a
            select * from (select a.id, n.body from article a join note n using (id)) x where id = $1
                article: rows with id = :a
                note: rows with id = :a
            select * from (with n as (select * from note) select a.id, n.body from article a join n on n.id = a.id) x where id = $1
                article: rows with id = :a
                note: rows with id = :a
            select * from (select a.id, l.body from article a, lateral (select body from note n where n.article = a.id) l) x where id = $1
                article: rows with id = :a
                note: rows with article = :a
            select * from (select (article).id from article) a where id = $1
                article: rows with id = :a
            select * from readers where id = $1
                alias: every change
                article: rows with id = :a
            select * from fenced where topic = $1
                article: rows with topic = :a
            select * from fenceless where id = $1
                article: rows with id = :a
            select title_of($1) from plain where id = $1
                article: every change
        "#]],
    );
}

#[test]
fn where_rows_outside_the_equality_count_it_does_not_pass() {
    check(
        &[
            "select * from plain",
            "select * from plain where id > $1",
            "select * from plain where id = $1 or topic = $2",
            "select * from plain p full join author u on p.id = u.id and p.id = $1",
            "select * from plain p left join author u on p.id = $1",
            "select * from plain x, plain y where x.id = $1",
            "select * from plain where id = $1 union all select * from plain",
            "select * from plain where id = $1 and exists (select from plainer where t = 'a')",
            "select * from plain p join article a on a.topic = p.topic where p.id = $1",
            "select * from ten where id = $1",
            "select * from (select id from article offset 1) a where id = $1",
            "select * from (select id from article order by id fetch first 2 rows with ties) a where id = $1",
            "select * from both_tables where id = $1",
            "select * from (select id from article except select id from note) a where id = $1",
            "select * from topics where many = $1",
            "select * from newest where id = $1",
            "select * from (select distinct on (topic) topic, title from article) a where title = $1",
            "select * from (select distinct on (topic) topic, title from article group by topic, title) a where title = $1",
            "select * from (select max(id) as id from article) a where id = $1",
            "select * from (select topic, max(id) as id from article group by topic) a where id = $1",
            "select * from (select id, topic from article group by id) a where topic = $1",
            "select * from (select id, count(*) from article group by rollup (id)) a where id = $1",
            "select * from (select id, topic, count(*) from article group by grouping sets ((id, topic), (topic))) a where id = $1",
            "select * from (select id, row_number() over (order by id) from article) a where id = $1",
            "select * from (select id, topic, count(*) over (partition by topic) from article) a where topic = $1",
            "select * from (select title, count(*) over (partition by title::bpchar) as n from article) a where title = $1",
            "select * from (select distinct on (title::bpchar) title, id from article order by title::bpchar, id) a where title = $1",
            "select title_of($1) from author where id = $1",
            "select 1 where title_of($1) = 'a'",
            "select * from (select id, generate_series(1, 2) from article) a where id = $1",
            "select * from (select id + 0 as id from article) a where id = $1",
            "select * from (select id::bigint as id from article) a where id = $1",
            "select * from (select coalesce(a.id, n.id) as id from article a full join note n on n.id = a.id) x where id = $1",
            "select * from (select id from article a full join note n using (id)) x where id = $1",
            "select * from (select 1 as id from article) a where id = $1",
            "select * from (select (select max(id) from note) as id from article) a where id = $1",
            "select * from author u, lateral (select id from article a where a.author = u.id) l where l.id = $1",
            "with a as (select * from article) select * from a where id = $1",
            "with recursive a as (select id, author from article union select b.id, b.author from article b join a on a.author = b.id) select * from a where id = $1",
            "with live as (select * from note) select * from live where id = $1",
            "select * from (values (1)) v (id) join plain p on p.id = v.id",
            "select * from readers where name = $1",
            "select * from answered where many = $1",
        ],
        &expect![[r#"
            select * from plain
                article: every change
            select * from plain where id > $1
                article: every change
            select * from plain where id = $1 or topic = $2
                article: every change
            select * from plain p full join author u on p.id = u.id and p.id = $1
                article: every change
                author: every change
            select * from plain p left join author u on p.id = $1
                article: every change
                author: every change
            select * from plain x, plain y where x.id = $1
                article: every change
            select * from plain where id = $1 union all select * from plain
                article: every change
            select * from plain where id = $1 and exists (select from plainer where t = 'a')
                article: rows with id = :a
                article: rows with topic = 'a'
            select * from plain p join article a on a.topic = p.topic where p.id = $1
                article: every change
            select * from ten where id = $1
                article: every change
            select * from (select id from article offset 1) a where id = $1
                article: every change
            select * from (select id from article order by id fetch first 2 rows with ties) a where id = $1
                article: every change
            select * from both_tables where id = $1
                article: rows with id = :a
                note: rows with id = :a
            select * from (select id from article except select id from note) a where id = $1
                article: rows with id = :a
                note: rows with id = :a
            select * from topics where many = $1
                article: every change
            select * from newest where id = $1
                article: every change
            select * from (select distinct on (topic) topic, title from article) a where title = $1
                article: every change
            select * from (select distinct on (topic) topic, title from article group by topic, title) a where title = $1
                article: every change
            select * from (select max(id) as id from article) a where id = $1
                article: every change
            select * from (select topic, max(id) as id from article group by topic) a where id = $1
                article: every change
            select * from (select id, topic from article group by id) a where topic = $1
                article: every change
            select * from (select id, count(*) from article group by rollup (id)) a where id = $1
                article: every change
            select * from (select id, topic, count(*) from article group by grouping sets ((id, topic), (topic))) a where id = $1
                article: every change
            select * from (select id, row_number() over (order by id) from article) a where id = $1
                article: every change
            select * from (select id, topic, count(*) over (partition by topic) from article) a where topic = $1
                article: rows with topic = :a
            select * from (select title, count(*) over (partition by title::bpchar) as n from article) a where title = $1
                article: every change
            select * from (select distinct on (title::bpchar) title, id from article order by title::bpchar, id) a where title = $1
                article: every change
            select title_of($1) from author where id = $1
                article: every change
                author: rows with id = :a
            select 1 where title_of($1) = 'a'
                article: every change
            select * from (select id, generate_series(1, 2) from article) a where id = $1
                article: every change
            select * from (select id + 0 as id from article) a where id = $1
                article: every change
            select * from (select id::bigint as id from article) a where id = $1
                article: every change
            select * from (select coalesce(a.id, n.id) as id from article a full join note n on n.id = a.id) x where id = $1
                article: every change
                note: every change
            select * from (select id from article a full join note n using (id)) x where id = $1
                article: every change
                note: every change
            select * from (select 1 as id from article) a where id = $1
                article: every change
            select * from (select (select max(id) from note) as id from article) a where id = $1
                article: every change
                note: every change
            select * from author u, lateral (select id from article a where a.author = u.id) l where l.id = $1
                article: every change
                author: every change
            with a as (select * from article) select * from a where id = $1
                article: rows with id = :a
            with recursive a as (select id, author from article union select b.id, b.author from article b join a on a.author = b.id) select * from a where id = $1
                article: every change
            with live as (select * from note) select * from live where id = $1
                note: rows with id = :a
            select * from (values (1)) v (id) join plain p on p.id = v.id
                article: every change
            select * from readers where name = $1
                alias: every change
                article: every change
            select * from answered where many = $1
                article: every change
                note: every change
        "#]],
    );
}

#[test]
fn an_equality_without_a_canonical_form_does_not_pass() {
    check(
        &[
            "select * from (select code from article) a where code = $1",
            "select * from (select code::text as c from article) a where c = $1",
            "select * from (select topic::bpchar as c from article) a where c = $1",
            "select * from (select score from article) a where score = $1",
            "select * from (select score::int as n from article) a where n = $1",
            "select * from (select loose from article) a where loose = $1",
            "select * from (select loose collate \"C\" as l from article) a where l = $1",
            "select * from (select loose from article) a where loose collate \"C\" = $1",
            "select * from (select topic collate nocase as t from article) a where t = $1",
            "select * from (select topic from article) a where topic = $1 collate nocase",
            "select * from (select topic collate nocase as t from article) a where t = $1 collate \"C\"",
            "select * from (select slug from article) a where slug = $1",
            "select * from (select topic::slug as t from article) a where t = $1",
            "select * from (select id::small as n from article) a where n = $1",
            "select * from (select max(id), topic collate nocase as t from article group by 2) a where t = $1 collate \"C\"",
            "select * from (select loud from article) a where loud = $1",
            "select * from plain where id = $1::numeric",
            "select * from plain where id = $1::text::int",
            "select * from plain where id is not distinct from $1",
            "select * from plain p join article a on a.loose = p.topic where p.topic = $1",
            "select * from plain p join article a on a.code = p.topic where p.topic = $1",
        ],
        &expect![[r#"
            select * from (select code from article) a where code = $1
                article: every change
            select * from (select code::text as c from article) a where c = $1
                article: every change
            select * from (select topic::bpchar as c from article) a where c = $1
                article: every change
            select * from (select score from article) a where score = $1
                article: every change
            select * from (select score::int as n from article) a where n = $1
                article: every change
            select * from (select loose from article) a where loose = $1
                article: every change
            select * from (select loose collate "C" as l from article) a where l = $1
                article: every change
            select * from (select loose from article) a where loose collate "C" = $1
                article: every change
            select * from (select topic collate nocase as t from article) a where t = $1
                article: every change
            select * from (select topic from article) a where topic = $1 collate nocase
                article: every change
            select * from (select topic collate nocase as t from article) a where t = $1 collate "C"
                article: every change
            select * from (select slug from article) a where slug = $1
                article: every change
            select * from (select topic::slug as t from article) a where t = $1
                article: every change
            select * from (select id::small as n from article) a where n = $1
                article: every change
            select * from (select max(id), topic collate nocase as t from article group by 2) a where t = $1 collate "C"
                article: every change
            select * from (select loud from article) a where loud = $1
                article: every change
            select * from plain where id = $1::numeric
                article: every change
            select * from plain where id = $1::text::int
                article: every change
            select * from plain where id is not distinct from $1
                article: every change
            select * from plain p join article a on a.loose = p.topic where p.topic = $1
                article: every change
            select * from plain p join article a on a.code = p.topic where p.topic = $1
                article: every change
        "#]],
    );
}

#[test]
fn of_many_references_to_a_view_all_rows_count() {
    // Each view reads the one before it twice, one of them with an equality more.
    let mut schema = "create table item (id int primary key, up int); create view v0 as select id, up from item;".to_owned();
    for level in 1..9 {
        let before = level - 1;
        schema += &format!(
            "create view v{level} as select x.id, x.up from v{before} x \
               left join v{before} y on y.id = x.id and y.up = x.up and y.up in ({level}, 99);"
        );
    }
    AnalysisFixture::new(&schema).check(
        &[
            "select * from v3 where id = $1",
            "select * from v8 where id = $1",
            "select * from v8",
        ],
        &expect![[r#"
            select * from v3 where id = $1
                item: rows with id = :a
            select * from v8 where id = $1
                item: every change
            select * from v8
                item: every change
        "#]],
    );
}

#[test]
fn an_equality_passes_into_each_arm_of_a_set_operation() {
    check(
        &[
            "select * from both_tables where id = $1",
            "select * from (select id, author as by from article union all select id, article from note union all select id, id from author) e where by = $1",
            "select * from (select id from article union select article from note) e where id in (1, $1)",
            "select * from (select id from article except select article from note) e where id = $1",
            "select * from (select id from article except all (select article from note intersect select id from author)) e where id = $1",
            "select * from (select id, topic as t from article union select id, title from article) e where t = $1",
            "select * from (select id from article union all select id::bigint from note) e where id = $1",
            "select * from (select id::bigint as id from article union all select id from note) e where id = $1",
            "select * from (select id from article union all select id from note order by id) e where id = $1",
            "select * from (select count(*)::int as id from article union all select id from note) e where id = $1",
            "select * from (select author as id, count(*) from article group by author union all select id, 1 from note) e where id = $1",
            "select * from (select id from article union all (select id from note order by id limit 3)) e where id = $1",
            "select * from (select id from article union all (select id from note union select article from note)) e where id = $1",
            "select * from (select id from article union all values (1), (2)) e where id = $1",
            "select * from (select id, loose from article union select id, body from note) e where id = $1",
            "select * from author u join both_tables e on e.id = u.id where u.id = $1",
            "select * from author u where u.id = $1 and u.id in (select author from article union select article from note)",
            "select * from article where id = $1 union all select * from article where id = $2",
            "select * from article where id = $1 union select * from article",
        ],
        &expect![[r#"
            select * from both_tables where id = $1
                article: rows with id = :a
                note: rows with id = :a
            select * from (select id, author as by from article union all select id, article from note union all select id, id from author) e where by = $1
                article: rows with author = :a
                author: rows with id = :a
                note: rows with article = :a
            select * from (select id from article union select article from note) e where id in (1, $1)
                article: rows with id in (1, :a)
                note: rows with article in (1, :a)
            select * from (select id from article except select article from note) e where id = $1
                article: rows with id = :a
                note: rows with article = :a
            select * from (select id from article except all (select article from note intersect select id from author)) e where id = $1
                article: rows with id = :a
                author: rows with id = :a
                note: rows with article = :a
            select * from (select id, topic as t from article union select id, title from article) e where t = $1
                article: rows with topic = :a
                article: rows with title = :a
            select * from (select id from article union all select id::bigint from note) e where id = $1
                article: rows with id = :a
                note: every change
            select * from (select id::bigint as id from article union all select id from note) e where id = $1
                article: every change
                note: rows with id = :a
            select * from (select id from article union all select id from note order by id) e where id = $1
                article: rows with id = :a
                note: rows with id = :a
            select * from (select count(*)::int as id from article union all select id from note) e where id = $1
                article: every change
                note: rows with id = :a
            select * from (select author as id, count(*) from article group by author union all select id, 1 from note) e where id = $1
                article: rows with author = :a
                note: rows with id = :a
            select * from (select id from article union all (select id from note order by id limit 3)) e where id = $1
                article: rows with id = :a
                note: every change
            select * from (select id from article union all (select id from note union select article from note)) e where id = $1
                article: rows with id = :a
                note: rows with id = :a
                note: rows with article = :a
            select * from (select id from article union all values (1), (2)) e where id = $1
                article: rows with id = :a
            select * from (select id, loose from article union select id, body from note) e where id = $1
                article: rows with id = :a
                note: rows with id = :a
            select * from author u join both_tables e on e.id = u.id where u.id = $1
                article: rows with id = :a
                author: rows with id = :a
                note: rows with id = :a
            select * from author u where u.id = $1 and u.id in (select author from article union select article from note)
                article: rows with author = :a
                author: rows with id = :a
                note: rows with article = :a
            select * from article where id = $1 union all select * from article where id = $2
                article: rows with id = :a
                article: rows with id = :b
            select * from article where id = $1 union select * from article
                article: every change
        "#]],
    );
}

#[test]
fn what_a_set_operation_does_not_let_pass() {
    check(
        &[
            // The first rows of all.
            "select * from (select id from article union all select id from note limit 3) e where id = $1",
            "select * from (select id from article union select id from note offset 1) e where id = $1",
            // 'a' and 'A' are one row.
            "select * from (select topic from article union select loose from article) e where topic = $1",
            "select * from ((select topic from article union select title collate nocase from article) union all select body collate \"C\" from note) e where topic = $1",
            // No form of the value.
            "select * from (select id from article union all select score from article) e where id = $1",
            "select * from (select code::text as t from article union all select body from note) e where t = $1",
            // Each reference counts by itself.
            "select * from both_tables x, both_tables y where x.id = $1",
            // No witness is asked of what is inside.
            "select * from (select id, author from article where topic = $1 union all select id, article from note where body = $1) e join author u on u.id = e.author",
            "with e as (select id from article union all select id from note) select * from e where id = $1",
        ],
        &expect![[r#"
            select * from (select id from article union all select id from note limit 3) e where id = $1
                article: every change
                note: every change
            select * from (select id from article union select id from note offset 1) e where id = $1
                article: every change
                note: every change
            select * from (select topic from article union select loose from article) e where topic = $1
                article: every change
            select * from ((select topic from article union select title collate nocase from article) union all select body collate "C" from note) e where topic = $1
                article: every change
                note: every change
            select * from (select id from article union all select score from article) e where id = $1
                article: every change
            select * from (select code::text as t from article union all select body from note) e where t = $1
                article: every change
                note: rows with body = :a
            select * from both_tables x, both_tables y where x.id = $1
                article: every change
                note: every change
            select * from (select id, author from article where topic = $1 union all select id, article from note where body = $1) e join author u on u.id = e.author
                article: rows with topic = :a
                author: every change
                note: rows with body = :a
            with e as (select id from article union all select id from note) select * from e where id = $1
                article: rows with id = :a
                note: rows with id = :a
        "#]],
    );
}

#[test]
fn windows_let_the_keys_of_all_pass() {
    check(
        &[
            "select * from (select id, topic, count(*) over (partition by topic) from article) a where topic = $1",
            "select * from (select topic, row_number() over (partition by topic, author order by id), max(id) over (partition by topic) from article) a where topic = $1",
            "select * from (select topic, count(*) over w, first_value(id) over (w order by id) from article window w as (partition by topic)) a where topic = $1",
            "select * from (select topic, sum(count(*)) over (partition by topic) from article group by topic, author) a where topic = $1",
            "select * from (select distinct topic, count(*) over (partition by topic) from article) a where topic = $1",
        ],
        &expect![[r#"
            select * from (select id, topic, count(*) over (partition by topic) from article) a where topic = $1
                article: rows with topic = :a
            select * from (select topic, row_number() over (partition by topic, author order by id), max(id) over (partition by topic) from article) a where topic = $1
                article: rows with topic = :a
            select * from (select topic, count(*) over w, first_value(id) over (w order by id) from article window w as (partition by topic)) a where topic = $1
                article: rows with topic = :a
            select * from (select topic, sum(count(*)) over (partition by topic) from article group by topic, author) a where topic = $1
                article: rows with topic = :a
            select * from (select distinct topic, count(*) over (partition by topic) from article) a where topic = $1
                article: rows with topic = :a
        "#]],
    );
    check(
        &[
            "select * from (select id, topic, count(*) over (partition by topic) from article) a where id = $1",
            "select * from (select topic, count(*) over (partition by topic), count(*) over () from article) a where topic = $1",
            "select * from (select topic, count(*) over (partition by topic), count(*) over (partition by author) from article) a where topic = $1",
            "select * from (select topic, count(*) over (partition by author), count(*) over (partition by topic) from article) a where topic = $1",
            "select * from (select topic, count(*) over w from article window w as (order by topic)) a where topic = $1",
            "select * from (select topic, author, sum(count(*)) over (partition by author) from article group by topic, author) a where topic = $1",
            "select * from (select topic, count(*) over (partition by topic collate nocase) from article) a where topic = $1",
            "select * from (select topic, count(*) over (partition by upper(topic)) from article) a where topic = $1",
            "select * from (select topic, row_number() over (partition by topic) from article limit 3) a where topic = $1",
            "select * from (select distinct on (author) author, topic, count(*) over (partition by topic) from article) a where topic = $1",
        ],
        &expect![[r#"
            select * from (select id, topic, count(*) over (partition by topic) from article) a where id = $1
                article: every change
            select * from (select topic, count(*) over (partition by topic), count(*) over () from article) a where topic = $1
                article: every change
            select * from (select topic, count(*) over (partition by topic), count(*) over (partition by author) from article) a where topic = $1
                article: every change
            select * from (select topic, count(*) over (partition by author), count(*) over (partition by topic) from article) a where topic = $1
                article: every change
            select * from (select topic, count(*) over w from article window w as (order by topic)) a where topic = $1
                article: every change
            select * from (select topic, author, sum(count(*)) over (partition by author) from article group by topic, author) a where topic = $1
                article: every change
            select * from (select topic, count(*) over (partition by topic collate nocase) from article) a where topic = $1
                article: every change
            select * from (select topic, count(*) over (partition by upper(topic)) from article) a where topic = $1
                article: every change
            select * from (select topic, row_number() over (partition by topic) from article limit 3) a where topic = $1
                article: every change
            select * from (select distinct on (author) author, topic, count(*) over (partition by topic) from article) a where topic = $1
                article: every change
        "#]],
    );
}

//! Which rows a query depends on.

use expect_test::expect;

use super::schema::check;

#[test]
fn equalities_narrow() {
    check(
        &[
            "select * from author where id = $1",
            "select * from author where $1 = id and name > 'a'",
            "select * from author where (id = $1)",
            "select * from author where id in (1, $1, -3)",
            "select * from author where id in (1)",
            "select * from author where id = any ($1)",
            "select * from author where id = null",
            "select * from article where id = 7",
            "select * from article where id = $1::int",
            "select * from article where size = $1",
            "select * from article where title = $1 and topic = 'it''s'",
            "select * from article where slug = $1",
            "select * from article where token = $1 or false",
            "select * from article where token = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
            "select * from article where $1::uuid = '00000000-0000-0000-0000-000000000000' or token = $1",
            "select * from article where $1 = '' or topic = $1",
            "select * from article where published",
            "select * from article where not published",
            "select * from article where published = true and topic = $1",
            "select * from comment where article_id = $1 order by id limit $2",
            "select * from AUTHOR as X where x.ID = $1",
            "select * from public.author where author.id = $1",
            "select * from \"Odd Name\" where \"Id\" = $1",
            "select * from \"Odd Name\" as \":x\" where \":x\".\"a:b\" = '(a {b} \\ '",
            "select * from event where id = $1",
            "select * from event_1 where id = $1",
            "select * from place where id = $1",
            "select * from only city where id = $1",
            "select * from other.comment where id = $1",
            "select id, count(*) from comment where article_id = $1 group by id having count(*) = $2",
            "table author",
            "values (1), ($1::int)",
            "select 1",
        ],
        &expect![[r#"
            select * from author where id = $1
                author: rows with id = :a
            select * from author where $1 = id and name > 'a'
                author: rows with id = :a
            select * from author where (id = $1)
                author: rows with id = :a
            select * from author where id in (1, $1, -3)
                author: rows with id in (1, :a, -3)
            select * from author where id in (1)
                author: rows with id = 1
            select * from author where id = any ($1)
                author: rows with id in (:a)
            select * from author where id = null
                author: rows with id = NULL
            select * from article where id = 7
                article: rows with id = 7
            select * from article where id = $1::int
                article: rows with id = :a
            select * from article where size = $1
                article: rows with size = :a
            select * from article where title = $1 and topic = 'it''s'
                article: rows with title = :a
            select * from article where slug = $1
                article: rows with slug = :a
            select * from article where token = $1 or false
                article: every change
            select * from article where token = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'
                article: rows with token = 'a0eebc999c0b4ef8bb6d6bb9bd380a11'
            select * from article where $1::uuid = '00000000-0000-0000-0000-000000000000' or token = $1
                article: every change
            select * from article where $1 = '' or topic = $1
                article: rows with topic = :a unless :a = ''
            select * from article where published
                article: rows with published = true
            select * from article where not published
                article: rows with published = false
            select * from article where published = true and topic = $1
                article: rows with topic = :a
            select * from comment where article_id = $1 order by id limit $2
                comment: rows with article_id = :a (and updates and deletions elsewhere in the table)
            select * from AUTHOR as X where x.ID = $1
                author: rows with id = :a
            select * from public.author where author.id = $1
                author: rows with id = :a
            select * from "Odd Name" where "Id" = $1
                Odd Name: rows with Id = :a
            select * from "Odd Name" as ":x" where ":x"."a:b" = '(a {b} \ '
                Odd Name: rows with a:b = '(a {b} \ ' (and updates and deletions elsewhere in the table)
            select * from event where id = $1
                event: rows with id = :a
            select * from event_1 where id = $1
                event_1: rows with id = :a
            select * from place where id = $1
                place: rows with id = :a (and updates and deletions elsewhere in the table)
            select * from only city where id = $1
                city: rows with id = :a (and updates and deletions elsewhere in the table)
            select * from other.comment where id = $1
                other.comment: rows with id = :a
            select id, count(*) from comment where article_id = $1 group by id having count(*) = $2
                comment: rows with article_id = :a (and updates and deletions elsewhere in the table)
            table author
                author: every change
            values (1), ($1::int)
            select 1
        "#]],
    );
}

#[test]
fn what_is_not_certain_is_the_whole_table() {
    check(
        &[
            "select * from author",
            "select * from author where id = $1 or id = $2",
            "select * from author where not id = $1",
            "select * from author where id + 0 = $1",
            "select * from author where id = $1::int + 1",
            "select * from author where id = $1::numeric",
            "select * from author where id = $1::float8",
            "select * from author where id = $1::text::int",
            "select * from author where id is not distinct from $1",
            "select * from author where id not in ($1)",
            "select * from author where id <> all ($1)",
            "select * from author where id = all ($1)",
            "select * from author where id in (select id from article where id = $1)",
            "select * from author where id = author.id",
            "select * from author where email = $1",
            "select * from author where name = $1 collate nocase",
            "select * from author where name collate nocase = $1",
            "select * from author where code = $1",
            "select * from author where tag = $1",
            "select * from author where name = $1::bpchar",
            "select * from author where name = $1::name",
            "select * from author where lower(name) = $1",
            "select * from author where name = 'ä'",
            "select * from author where name = $1::varchar(3)",
            "select * from author where name like $1",
            "select * from article where score = $1",
            "select * from article where day = $1",
            "select * from article where at = $1",
            "select * from article where mood = $1",
            "select * from article where loud = $1",
            "select * from article group by id having id = $1",
            "select * from author order by id = $1",
            "select * from author where (select id = $1)",
            "select * from author where case when id = $1 then true end",
        ],
        &expect![[r#"
            select * from author
                author: every change
            select * from author where id = $1 or id = $2
                author: rows with id in (:a, :b)
            select * from author where not id = $1
                author: every change
            select * from author where id + 0 = $1
                author: every change
            select * from author where id = $1::int + 1
                author: every change
            select * from author where id = $1::numeric
                author: every change
            select * from author where id = $1::float8
                author: every change
            select * from author where id = $1::text::int
                author: every change
            select * from author where id is not distinct from $1
                author: every change
            select * from author where id not in ($1)
                author: every change
            select * from author where id <> all ($1)
                author: every change
            select * from author where id = all ($1)
                author: every change
            select * from author where id in (select id from article where id = $1)
                article: rows with id = :a
                author: rows with id = :a
            select * from author where id = author.id
                author: every change
            select * from author where email = $1
                author: every change
            select * from author where name = $1 collate nocase
                author: every change
            select * from author where name collate nocase = $1
                author: every change
            select * from author where code = $1
                author: every change
            select * from author where tag = $1
                author: every change
            select * from author where name = $1::bpchar
                author: every change
            select * from author where name = $1::name
                author: every change
            select * from author where lower(name) = $1
                author: rows with lower(name) = :a (and updates and deletions elsewhere in the table)
            select * from author where name = 'ä'
                author: every change
            select * from author where name = $1::varchar(3)
                author: every change
            select * from author where name like $1
                author: every change
            select * from article where score = $1
                article: every change
            select * from article where day = $1
                article: every change
            select * from article where at = $1
                article: every change
            select * from article where mood = $1
                article: every change
            select * from article where loud = $1
                article: every change
            select * from article group by id having id = $1
                article: every change
            select * from author order by id = $1
                author: every change
            select * from author where (select id = $1)
                author: every change
            select * from author where case when id = $1 then true end
                author: every change
        "#]],
    );
}

#[test]
fn each_reference_counts_by_itself() {
    check(
        &[
            "select a.title, u.name from article a join author u on u.id = a.author_id where a.id = $1",
            "select * from comment a join comment b on a.id = b.article_id where a.id = $1",
            "select * from comment c join article a on a.id = c.article_id join author u on u.id = a.id where u.id = $1",
            "select * from article a left join comment c on c.article_id = a.id where a.id = $1",
            "select * from article a left join comment c on c.article_id = a.id and c.article_id = $1",
            "select * from comment a join comment b on a.id = $1 and b.id = $2",
            "select * from article a left join comment c on c.article_id = a.id and a.id = $1",
            "select * from article a left join comment c on c.article_id = $1",
            "select * from article a left join comment c on c.article_id = a.id where c.article_id = $1",
            "select * from article a right join comment c on c.article_id = a.id and a.id = $1",
            "select * from article a full join comment c on c.article_id = a.id and a.id = $1",
            "select * from article a full join comment c on c.article_id = a.id where a.id = $1",
            "select * from author u left join (article a join comment c on c.article_id = a.id and c.article_id = $1) on a.author_id = u.id",
            "select * from author u left join (article a left join comment c on c.article_id = $2) on a.id = $1",
            "select * from article a, comment c where a.id = $1 and article_id = $1",
            "select * from comment join author using (id) where id = $1",
            "select * from comment join author using (id) where author.id = $1",
            "select * from comment full join author using (id) where id = $1",
            "select * from comment natural join author where author.name = $1",
            "select * from author where id = $1 and exists (select 1 from comment where who = author.name)",
            "select * from author where exists (select 1 from comment where article_id = $1 and author.id = $2)",
            "select (select count(*) from comment where article_id = $1) from article where id = $1",
            "select id from comment where id = $1 union select id from comment where id = $2",
            "with c as (select * from comment where id = $1) select * from c",
            "with author as (select * from comment where id = $1) select * from author where id = $1",
            "with recursive c (x) as (select id from comment where id = $1 union select a.id from comment a join c on a.article_id = c.x) select * from c",
            "select * from (select * from comment where id = $1) c where c.who = 'a'",
            "select * from (comment c join author u on u.id = c.id) j where j.name = $1",
            "select * from article a, lateral (select * from comment c where c.article_id = a.id and c.id = $1) l where a.id = 3",
            "select * from author, generate_series(1, 3) where author.id = $1",
            "select * from event e join event_1 f on f.id = $1 where e.id = $2",
            "select * from event e, event_2 where e.id = $1",
        ],
        &expect![[r#"
            select a.title, u.name from article a join author u on u.id = a.author_id where a.id = $1
                article: rows with id = :a
                author: rows with id = author_id of article with id = :a
            select * from comment a join comment b on a.id = b.article_id where a.id = $1
                comment: rows with id = :a
                comment: rows with article_id = :a (and updates and deletions elsewhere in the table)
            select * from comment c join article a on a.id = c.article_id join author u on u.id = a.id where u.id = $1
                article: rows with id = :a
                author: rows with id = :a
                comment: rows with article_id = :a (and updates and deletions elsewhere in the table)
            select * from article a left join comment c on c.article_id = a.id where a.id = $1
                article: rows with id = :a
                comment: rows with article_id = :a (and updates and deletions elsewhere in the table)
            select * from article a left join comment c on c.article_id = a.id and c.article_id = $1
                article: every change
                comment: rows with article_id = :a (and updates and deletions elsewhere in the table)
            select * from comment a join comment b on a.id = $1 and b.id = $2
                comment: rows with id = :a
                comment: rows with id = :b
            select * from article a left join comment c on c.article_id = a.id and a.id = $1
                article: every change
                comment: every change
            select * from article a left join comment c on c.article_id = $1
                article: every change
                comment: rows with article_id = :a (and updates and deletions elsewhere in the table)
            select * from article a left join comment c on c.article_id = a.id where c.article_id = $1
                article: every change
                comment: rows with article_id = :a (and updates and deletions elsewhere in the table)
            select * from article a right join comment c on c.article_id = a.id and a.id = $1
                article: rows with id = :a
                comment: every change
            select * from article a full join comment c on c.article_id = a.id and a.id = $1
                article: every change
                comment: every change
            select * from article a full join comment c on c.article_id = a.id where a.id = $1
                article: rows with id = :a
                comment: every change
            select * from author u left join (article a join comment c on c.article_id = a.id and c.article_id = $1) on a.author_id = u.id
                article: rows with id = :a
                author: every change
                comment: rows with article_id = :a (and updates and deletions elsewhere in the table)
            select * from author u left join (article a left join comment c on c.article_id = $2) on a.id = $1
                article: rows with id = :a
                author: every change
                comment: rows with article_id = :b (and updates and deletions elsewhere in the table)
            select * from article a, comment c where a.id = $1 and article_id = $1
                article: rows with id = :a
                comment: rows with article_id = :a (and updates and deletions elsewhere in the table)
            select * from comment join author using (id) where id = $1
                author: rows with id = :a
                comment: rows with id = :a
            select * from comment join author using (id) where author.id = $1
                author: rows with id = :a
                comment: rows with id = :a
            select * from comment full join author using (id) where id = $1
                author: every change
                comment: every change
            select * from comment natural join author where author.name = $1
                author: rows with name = :a (and updates and deletions elsewhere in the table)
                comment: rows with id = id of author with name = :a
            select * from author where id = $1 and exists (select 1 from comment where who = author.name)
                author: rows with id = :a
                comment: rows with who = name of author with id = :a (and updates and deletions elsewhere in the table)
            select * from author where exists (select 1 from comment where article_id = $1 and author.id = $2)
                author: every change
                comment: rows with article_id = :a (and updates and deletions elsewhere in the table)
            select (select count(*) from comment where article_id = $1) from article where id = $1
                article: rows with id = :a
                comment: rows with article_id = :a (and updates and deletions elsewhere in the table)
            select id from comment where id = $1 union select id from comment where id = $2
                comment: rows with id = :a
                comment: rows with id = :b
            with c as (select * from comment where id = $1) select * from c
                comment: rows with id = :a
            with author as (select * from comment where id = $1) select * from author where id = $1
                comment: rows with id = :a
            with recursive c (x) as (select id from comment where id = $1 union select a.id from comment a join c on a.article_id = c.x) select * from c
                comment: every change
            select * from (select * from comment where id = $1) c where c.who = 'a'
                comment: rows with id = :a
            select * from (comment c join author u on u.id = c.id) j where j.name = $1
                author: rows with name = :a (and updates and deletions elsewhere in the table)
                comment: rows with id = id of author with name = :a
            select * from article a, lateral (select * from comment c where c.article_id = a.id and c.id = $1) l where a.id = 3
                article: rows with id = 3
                comment: rows with id = :a
            select * from author, generate_series(1, 3) where author.id = $1
                author: rows with id = :a
            select * from event e join event_1 f on f.id = $1 where e.id = $2
                event, event_1: rows with id = :b
                event, event_1: rows with id = :a
            select * from event e, event_2 where e.id = $1
                event, event_2: every change
        "#]],
    );
}

#[test]
fn a_disjunction_narrows_what_every_branch_narrows() {
    check(
        &[
            "select * from article where id = $1 or id = $2",
            "select * from article where id = $1 or $2 = id or id in ($3, $1)",
            "select * from article where (author_id = $1 and size > 3) or (author_id = 5 and (size = 3 or topic = 'a'))",
            "select * from article where (id = $1 and (author_id = 1 or author_id = 2)) or (author_id = 3 and size = 4)",
            "select * from article where published or not published",
            "select * from article where id = null or id = $1",
            "select * from author u join article a on a.author_id = u.id where u.id = $1 or u.id = 4",
            "select * from author u left join article a on a.author_id = u.id and (a.id = $1 or a.id = $2)",
            "select * from recent where id = $1 or id = $2",
            "select * from article where topic = $1 and (id = $2 or size = 4)",
        ],
        &expect![[r#"
            select * from article where id = $1 or id = $2
                article: rows with id in (:a, :b)
            select * from article where id = $1 or $2 = id or id in ($3, $1)
                article: rows with id in (:a, :b, :c)
            select * from article where (author_id = $1 and size > 3) or (author_id = 5 and (size = 3 or topic = 'a'))
                article: rows with author_id in (:a, 5)
            select * from article where (id = $1 and (author_id = 1 or author_id = 2)) or (author_id = 3 and size = 4)
                article: rows with author_id in (1, 2, 3)
            select * from article where published or not published
                article: rows with published in (true, false)
            select * from article where id = null or id = $1
                article: rows with id in (NULL, :a)
            select * from author u join article a on a.author_id = u.id where u.id = $1 or u.id = 4
                article: rows with author_id in (:a, 4)
                author: rows with id in (:a, 4)
            select * from author u left join article a on a.author_id = u.id and (a.id = $1 or a.id = $2)
                article: rows with id in (:a, :b)
                author: every change
            select * from recent where id = $1 or id = $2
                article: rows with id in (:a, :b)
                author: rows with id = author_id of article with id in (:a, :b)
            select * from article where topic = $1 and (id = $2 or size = 4)
                article: rows with topic = :a
        "#]],
    );
    check(
        &[
            "select * from article where id = $1 or size > 3",
            "select * from article where id = $1 or author_id = $2",
            "select * from article where id = $1 or id = 3 or title is null",
            "select * from article where id = $1 or id = any ($2)",
            "select * from article a, author u where a.id = $1 or u.id = $2",
            "select * from article a, author u where (a.id = $1 and u.id = $2) or a.id = 4",
            "select * from article a, author u where a.id = $1 or (a.author_id = u.id and u.id = $2)",
            "select * from author u left join article a on a.author_id = u.id or u.id = $1 or u.id = 4",
            "select * from article where not (id = $1 or id = $2)",
            "select * from article where (id = $1 or id = $2) is not true",
            "select * from article where id = $1 or id in (select article_id from comment where id = $2)",
        ],
        &expect![[r#"
            select * from article where id = $1 or size > 3
                article: every change
            select * from article where id = $1 or author_id = $2
                article: every change
            select * from article where id = $1 or id = 3 or title is null
                article: every change
            select * from article where id = $1 or id = any ($2)
                article: rows with id in (:a, :b)
            select * from article a, author u where a.id = $1 or u.id = $2
                article: every change
                author: every change
            select * from article a, author u where (a.id = $1 and u.id = $2) or a.id = 4
                article: rows with id in (:a, 4)
                author: every change
            select * from article a, author u where a.id = $1 or (a.author_id = u.id and u.id = $2)
                article: every change
                author: every change
            select * from author u left join article a on a.author_id = u.id or u.id = $1 or u.id = 4
                article: every change
                author: every change
            select * from article where not (id = $1 or id = $2)
                article: every change
            select * from article where (id = $1 or id = $2) is not true
                article: every change
            select * from article where id = $1 or id in (select article_id from comment where id = $2)
                article: every change
                comment: rows with id = :b
        "#]],
    );
}

#[test]
fn the_first_rows_of_an_order_are_a_dependency() {
    check(
        &[
            "select id, title from article order by id desc limit 8",
            "select id, title from article where published order by id limit $1 offset $2",
            "select id, size from article order by size, id limit 8",
            "select id from article where author_id = $1 order by id desc limit 8",
            "select size as id, id as size from article order by size limit 8",
            "with q as (select 1) select id from article order by id limit 8",
            // Rows may be equal in the order.
            "select size from article order by size limit 8",
            "select a.id, u.name from article a join author u on u.id = a.author_id order by a.id desc limit 8",
            // The key is no column of the result.
            "select title from article order by id desc limit 8",
            "select id from article order by title limit 8",
            "select -id as id from article order by id limit 8",
            "select id from article order by id",
            "select id from article order by id fetch first 8 rows with ties",
            "select id, count(*) over () from article order by id limit 8",
            "select distinct id from article order by id limit 8",
            "select id, count(*) from article group by id order by id limit 8",
            "select id, generate_series(1, 2) from article order by id limit 8",
            "select * from (select id from article order by id limit 8) x",
            "select id from recent order by id limit 8",
            "select id from article union select id from author order by id limit 8",
            "select id from article where id > (select min(author_id) from article) order by id limit 8",
        ],
        &expect![[r#"
            select id, title from article order by id desc limit 8
                article: rows among the first 8 by id desc
            select id, title from article where published order by id limit $1 offset $2
                article: rows among the first :a + :b by id
            select id, size from article order by size, id limit 8
                article: rows among the first 8 by size
            select id from article where author_id = $1 order by id desc limit 8
                article: rows with author_id = :a
            select size as id, id as size from article order by size limit 8
                article: rows among the first 8 by id
            with q as (select 1) select id from article order by id limit 8
                article: rows among the first 8 by id
            select size from article order by size limit 8
                article: every change
            select a.id, u.name from article a join author u on u.id = a.author_id order by a.id desc limit 8
                article: rows among the first 8 by id desc
                author: rows with id = author_id of article among the first 8 by id desc
            select title from article order by id desc limit 8
                article: every change
            select id from article order by title limit 8
                article: every change
            select -id as id from article order by id limit 8
                article: every change
            select id from article order by id
                article: every change
            select id from article order by id fetch first 8 rows with ties
                article: every change
            select id, count(*) over () from article order by id limit 8
                article: every change
            select distinct id from article order by id limit 8
                article: every change
            select id, count(*) from article group by id order by id limit 8
                article: every change
            select id, generate_series(1, 2) from article order by id limit 8
                article: every change
            select * from (select id from article order by id limit 8) x
                article: every change
            select id from recent order by id limit 8
                article: every change
                author: every change
            select id from article union select id from author order by id limit 8
                article: every change
                author: every change
            select id from article where id > (select min(author_id) from article) order by id limit 8
                article: every change
        "#]],
    );
}

//! Advice on queries that depend on more than they need to.

use expect_test::expect;

use crate::support::SqliteFixture;

const SCHEMA: &str = "
create table user (id integer primary key, name text not null, email text collate nocase);
create table article (id integer primary key, author_id integer references user, title text, score real);
create view recent as select a.id, u.name from article a join user u on u.id = a.author_id;
create virtual table note using fts5(body);
";

#[test]
fn each_cause_has_its_remedy_and_its_cost() {
    let fixture = SqliteFixture::new(SCHEMA);
    let mut said = String::new();
    for sql in [
        "select * from user",
        "select id from user order by name desc limit 10",
        "select count(*) from user",
        "select * from user where name like :a",
        "select * from user where lower(name) = :a",
        "select * from user where id in (select author_id from article where id = :a)",
        "select * from user where id = (select author_id from article where id = :a)",
        "select * from user where id = :a or name = :b",
        "select u.name from article a join user u on u.id = a.author_id where a.id = :a",
        "select * from user where email = :a",
        "select * from user where id = :a + 1",
        "select a.id from article a left join user u on a.id = :a where u.id = :b",
        "with user as (select * from article where id = :a) select * from user",
        "select * from recent where id = :a",
        "select * from note where note match :a",
        "select random()",
        "select * from user where id = :a",
        "select 1",
    ] {
        said += &format!("{sql}\n");
        for advice in fixture.prepare(sql).advice() {
            said += &format!("    {}: {}\n", advice.effect, advice.cause);
            if let Some(remedy) = advice.remedy {
                said += &format!("        {} ({})\n", remedy.change, remedy.cost);
            }
        }
    }
    expect![[r#"
        select * from user
            every change to user ends its results: no condition selects its rows
                add "where column = :parameter" on an integer or text column (the query gives these rows alone, so the address has to say which)
        select id from user order by name desc limit 10
            every change to user ends its results: any row may come to be among the first in that order
                order by a number or a time (on SQLite also a text) that is shown and has an index, and last by a unique one; or take the first of a group, by "where column = :parameter" on an integer or text column; or keep the first in a small table of their own (each write keeps that up, by a trigger or in the form)
        select count(*) from user
            every change to user ends its results: any row counts for what is counted or summed, so no condition can help
                keep the figure in a table with one row for each value, and select that row (each write keeps that up, by a trigger or in the form)
        select * from user where name like :a
            every change to user ends its results: no condition on it is an equality with a value
                add "where column = :parameter" on an integer or text column that holds as well, such as the group of what is looked for (a column for it, if there is none)
        select * from user where lower(name) = :a
        select * from user where id in (select author_id from article where id = :a)
        select * from user where id = (select author_id from article where id = :a)
        select * from user where id = :a or name = :b
            every change to user ends its results: its conditions are joined by OR
                compare the same column in each part, else write a query for each part (a query more, in the same round trip)
        select u.name from article a join user u on u.id = a.author_id where a.id = :a
        select * from user where email = :a
        select * from user where id = :a + 1
            every change to user ends its results: id is not compared with a plain value of its own type
                compare it with the parameter alone, "id = :parameter" (nothing)
        select a.id from article a left join user u on a.id = :a where u.id = :b
            every change to article ends its results: the outer join keeps rows even if its ON is false for id
                put the equality into WHERE, if rows without it are not wanted (nothing)
        with user as (select * from article where id = :a) select * from user
            every change to user ends its results: a WITH of the query has its name
                give the WITH another name (nothing)
        select * from recent where id = :a
        select * from note where note match :a
            every change to note_config, note_content, note_data, note_docsize, note_idx ends its results: it is read behind the index note, where nothing is narrowed
        select random()
            its results are not kept, so the database is asked each time: the result of random() may differ from one call to the next
                "-- max-age: 60s" below its name keeps them for so long (what is shown may be that old)
        select * from user where id = :a
        select 1
    "#]].assert_eq(&said);
    let values: Vec<String> = (0..65).map(|value| value.to_string()).collect();
    let long = format!("select * from user where id in ({})", values.join(", "));
    let advice = fixture.prepare(&long).advice();
    assert!(advice[0].cause.contains("more than 64"), "{advice:?}");
}

//! The advice to the owner about queries that depend on more than they need to.

use expect_test::expect;

use super::schema::SCHEMA;
use super::support::AnalysisFixture;
use crate::postgres::analysis::operators::OTHERS;
use crate::query::QueryAnalysis as _;

#[test]
fn each_cause_has_its_remedy_and_its_cost() {
    let fixture = AnalysisFixture::new(SCHEMA);
    let mut said = String::new();
    for sql in [
        "select * from author",
        "select * from author order by id desc limit 10",
        "select count(*) from comment",
        "select * from author where name like $1",
        "select * from author where id > $1 limit 3",
        "select * from author where lower(name) = $1",
        "select * from author where id in (select author_id from article where id = $1)",
        "select * from author where id = (select author_id from article where id = $1)",
        "select * from author a where exists (select 1 from article b where b.author_id = a.id and b.id = $1)",
        "select * from author where id = $1 or name = $2",
        "select u.name from article a join author u on u.id = a.author_id where a.id = $1",
        "select * from article where score = $1",
        "select * from author where email = $1",
        "select * from article where loud = $1",
        "select * from author where id = $1::int + 1",
        "select * from author where name = any ($1::text[] || '{a}')",
        "select a.id from article a left join comment c on a.id = $1 where c.id = $2",
        "select * from recent where id = $1",
        "select comments(id) from article where id = $1",
        "select * from comment where article_id = $1",
        "select random()",
        "select * from noise",
        "select * from author where id = $1",
        "select 1",
    ] {
        said += &format!("{sql}\n");
        for advice in fixture.analyse(sql).unwrap().advice() {
            said += &format!("    {}: {}\n", advice.effect, advice.cause);
            if let Some(remedy) = advice.remedy {
                said += &format!("        {} ({})\n", remedy.change, remedy.cost);
            }
        }
    }
    expect![[r#"
        select * from author
            every change to author ends its results: no condition selects its rows
                add "where column = :parameter" on an integer or text column (the query gives these rows alone, so the address has to say which)
        select * from author order by id desc limit 10
        select count(*) from comment
            every change to comment ends its results: any row counts for what is counted or summed, so no condition can help
                keep the figure in a table with one row for each value, and select that row (each write keeps that up, by a trigger or in the form)
        select * from author where name like $1
            every change to author ends its results: no condition on it is an equality with a value
                add "where column = :parameter" on an integer or text column that holds as well, such as the group of what is looked for (a column for it, if there is none)
        select * from author where id > $1 limit 3
            every change to author ends its results: no condition on it is an equality with a value
                add "where column = :parameter" on an integer or text column that holds as well, such as the group of what is looked for (a column for it, if there is none)
        select * from author where lower(name) = $1
            every update and deletion in author ends its results, of other rows too: REPLICA IDENTITY DEFAULT reports the old values of keys only
                "alter table author replica identity full" (each update and deletion writes the whole old row to the log)
        select * from author where id in (select author_id from article where id = $1)
        select * from author where id = (select author_id from article where id = $1)
        select * from author a where exists (select 1 from article b where b.author_id = a.id and b.id = $1)
        select * from author where id = $1 or name = $2
            every change to author ends its results: its conditions are joined by OR
                compare the same column in each part, else write a query for each part (a query more, in the same round trip)
        select u.name from article a join author u on u.id = a.author_id where a.id = $1
        select * from article where score = $1
            every change to article ends its results: score is generated, or of a type or collation whose equal values have several forms
                compare another column, or keep its values in one form in a plain text column, and compare that (each write keeps that up, by a trigger or in the form)
        select * from author where email = $1
            every change to author ends its results: email is generated, or of a type or collation whose equal values have several forms
                compare another column, or keep its values in one form in a plain text column, and compare that (each write keeps that up, by a trigger or in the form)
        select * from article where loud = $1
            every change to article ends its results: loud is generated, or of a type or collation whose equal values have several forms
                compare another column, or keep its values in one form in a plain text column, and compare that (each write keeps that up, by a trigger or in the form)
        select * from author where id = $1::int + 1
            every change to author ends its results: id is not compared with a plain value of its own type
                compare it with the parameter alone, "id = :parameter" (nothing)
        select * from author where name = any ($1::text[] || '{a}')
            every change to author ends its results: name is not compared with a plain value of its own type
                compare it with the parameter alone, "name = :parameter" (nothing)
        select a.id from article a left join comment c on a.id = $1 where c.id = $2
            every change to article ends its results: the outer join keeps rows even if its ON is false for id
                put the equality into WHERE, if rows without it are not wanted (nothing)
        select * from recent where id = $1
        select comments(id) from article where id = $1
            every change to comment ends its results: it is read behind the function comments(), where nothing is narrowed
        select * from comment where article_id = $1
            every update and deletion in comment ends its results, of other rows too: REPLICA IDENTITY DEFAULT reports the old values of keys only
                "alter table comment replica identity full" (each update and deletion writes the whole old row to the log)
        select random()
            its results are not kept, so the database is asked each time: the result of random() may differ from one call to the next
                "-- max-age: 60s" below its name keeps them for so long (what is shown may be that old)
        select * from noise
            its results are not kept, so the database is asked each time: noise is UNLOGGED, so no feed reports its changes; "alter table noise set logged" has them in the log, at the cost of each write
        select * from author where id = $1
        select 1
    "#]].assert_eq(&said);
    let values: Vec<String> = (0..65).map(|value| value.to_string()).collect();
    let long = format!("select * from author where id in ({})", values.join(", "));
    let advice = fixture.analyse(&long).unwrap().advice();
    assert!(advice[0].cause.contains("more than 64"), "{advice:?}");
}

#[test]
fn an_index_that_is_missing_is_named_and_what_counts_all_rows_has_no_condition() {
    let advice = |more: &str, sql: &str| {
        let fixture = AnalysisFixture::bare(&format!(
            "create table category (id int primary key, name text);
             create table film (id int primary key, category_id int, price int);
             insert into category select i, 'c' from generate_series(1, 1100) i; analyze category; alter table category replica identity full; alter table film replica identity full;
             create publication millpond for all tables; {more}"
        ));
        let all = fixture.analyse(sql).unwrap().advice().into_iter();
        let said = all.map(|advice| {
            let change = advice.remedy.map(|remedy| remedy.change);
            let change = change.unwrap_or_default();
            format!("{}: {} / {change}", advice.effect, advice.cause)
        });
        said.collect::<Vec<_>>().join("\n")
    };
    let films = "select f.* from film f join category c on c.id = f.category_id where c.name = $1";
    let said = advice("", films);
    assert!(said.contains("create index on category (name)"), "{said}");
    let index = "create index on category (name)";
    assert_eq!(advice(index, films), "");
    // What is found by the films lacks the same index.
    let prices = "select p.* from film f join category c on c.id = f.category_id join film p on p.id = f.price where c.name = $1 order by p.id limit 3";
    let said = advice("", prices);
    assert!(said.contains("create index on category (name)"), "{said}");
    assert!(!said.contains(":parameter"), "{said}");
    // An index on a constant would not help.
    let named =
        "select f.* from film f join category c on c.id = f.category_id where c.name = 'a' limit 3";
    assert!(!advice("", named).contains("create index"));
    let sums = "select count(*), sum(f.price) from film f join category c on c.id = f.category_id";
    let said = advice("", sums);
    assert!(said.contains("no condition can help"), "{said}");
    assert!(!said.contains(":parameter"), "{said}");
}

#[test]
fn the_functions_that_a_line_names_have_no_remedy() {
    let fixture = AnalysisFixture::new(SCHEMA);
    let read = ["author".to_owned()];
    let analysis = fixture.analyse_with("select opaque($1)", Some(&read));
    let advice = analysis.unwrap().advice();
    assert!(advice[0].cause.contains("-- depends:"), "{advice:?}");
    assert_eq!(advice[0].remedy, None);
}

#[test]
fn a_policy_is_named() {
    let fixture = AnalysisFixture::bare(
        "create table doc (id int primary key, tenant int); create table tenant (id int primary key);
         create policy own on doc using (tenant in (select id from tenant)); alter table doc enable row level security;
         alter table doc force row level security; create publication millpond for all tables;
         do 'begin if not exists (select from pg_roles where rolname = ''auditor'') then create role auditor; end if; end';
         grant select on doc, tenant to auditor; set role auditor",
    );
    let advice = fixture
        .analyse("select * from doc where id = $1")
        .unwrap()
        .advice();
    fixture.run("reset role; drop owned by auditor");
    assert_eq!(advice.len(), 1, "{advice:?}");
    assert!(advice[0].effect.contains("tenant"), "{advice:?}");
    assert!(advice[0].cause.contains("behind a policy"), "{advice:?}");
}

#[test]
fn the_other_equalities_are_classified_correctly() {
    let fixture = AnalysisFixture::bare("");
    let oids: Vec<String> = OTHERS.iter().map(u32::to_string).collect();
    let names = fixture.texts(&format!(
        "select distinct oprname::text from pg_operator where oid in ({})",
        oids.join(", ")
    ));
    assert_eq!(names, ["="]);
    let count = format!(
        "select count(*)::text from pg_operator where oid in ({})",
        oids.join(", ")
    );
    assert_eq!(fixture.texts(&count), [oids.len().to_string()]);
}

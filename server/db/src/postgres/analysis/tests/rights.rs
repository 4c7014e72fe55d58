//! Roles, policies and publications.

use expect_test::expect;

use super::schema::SCHEMA;
use super::support::AnalysisFixture;
use crate::Value;
use crate::postgres::analysis::Found;

#[test]
fn policies_count_where_the_role_is_subject_to_them() {
    let schema = "create table tenant (id int primary key); create table doc (id int primary key, tenant int, body text);
        alter table doc enable row level security;
        create policy mine on doc for select using (tenant in (select id from tenant));
        create policy who on doc for update using (body = current_user);
        create view docs as select * from doc";
    let fixture = AnalysisFixture::new(schema);
    let sql = "select * from doc where id = $1";
    // The owner of the table, and superusers, are not subject to its policies.
    fixture.check(
        &[
            sql,
            "select * from docs",
            "select * from docs where id = $1",
        ],
        &expect![[r#"
            select * from doc where id = $1
                doc: rows with id = :a
            select * from docs
                doc: every change
                tenant: every change
            select * from docs where id = $1
                doc: rows with id = :a
                tenant: every change
        "#]],
    );
    fixture.run("do 'begin if not exists (select from pg_roles where rolname = ''reader'') then create role reader; end if; end';
        grant select on all tables in schema public to reader; set role reader");
    fixture.check(
        &[sql],
        &expect![[r#"
        select * from doc where id = $1
            doc: rows with id = :a
            tenant: every change
    "#]],
    );
    fixture.run("reset role; drop policy mine on doc; create policy mine on doc using (body = current_user); set role reader");
    fixture.check(
        &[sql],
        &expect![[r#"
        select * from doc where id = $1
            not cacheable: the result depends on who asks
            doc: rows with id = :a
    "#]],
    );
    fixture.run("reset role; drop owned by reader");
}

#[test]
fn witnesses_are_asked_with_the_rights_of_the_role() {
    let schema = "create table author (id int primary key, name text);
        create table article (id int primary key, author int, tenant int);
        create index on article (tenant);
        create view written as select a.id, a.tenant, u.name from article a join author u on u.id = a.author";
    let mut fixture = AnalysisFixture::new(schema);
    let direct = "select * from article a join author u on u.id = a.author where a.id = $1";
    let behind = "select * from written where id = $1";
    fixture.check(
        &[
            direct,
            behind,
            "select * from article a join author u on u.id = a.author where a.author = $1",
        ],
        &expect![[r#"
            select * from article a join author u on u.id = a.author where a.id = $1
                article: rows with id = :a
                author: rows with id = author of article with id = :a
            select * from written where id = $1
                article: rows with id = :a
                author: rows with id = author of article with id = :a
            select * from article a join author u on u.id = a.author where a.author = $1
                article: rows with author = :a (and updates and deletions elsewhere in the table)
                author: rows with id = :a
        "#]],
    );
    fixture.run("do 'begin if not exists (select from pg_roles where rolname = ''guest'') then create role guest; end if; end';
        grant select on written, author to guest; set role guest");
    fixture.reload();
    fixture.check(
        &[behind],
        &expect![[r#"
        select * from written where id = $1
            article: rows with id = :a
            author: every change
    "#]],
    );
    fixture.run("reset role; grant select on article to guest; set role guest");
    fixture.reload();
    fixture.check(
        &[behind, direct],
        &expect![[r#"
        select * from written where id = $1
            article: rows with id = :a
            author: rows with id = author of article with id = :a
        select * from article a join author u on u.id = a.author where a.id = $1
            article: rows with id = :a
            author: rows with id = author of article with id = :a
    "#]],
    );
    fixture.run(
        "reset role; alter table article enable row level security;
        create policy mine on article using (tenant = 1); set role guest",
    );
    fixture.reload();
    fixture.check(
        &[behind, direct],
        &expect![[r#"
        select * from written where id = $1
            article: rows with id = :a
            author: every change
        select * from article a join author u on u.id = a.author where a.id = $1
            article: rows with id = :a
            author: rows with id = author of article with id = :a
    "#]],
    );
    fixture.run("reset role; drop owned by guest");
}

#[test]
fn a_publication_that_leaves_something_out_is_none() {
    let tables = "create table a (id int primary key, b int); create table c (id int primary key);
        create table p (id int primary key) partition by range (id); create table p1 partition of p for values from (1) to (9);
        create table parent (id int primary key); create table child () inherits (parent)";
    let queries = [
        "select * from a",
        "select * from c",
        "select * from p",
        "select * from parent",
    ];
    for publication in [
        "",
        "create publication millpond for table a where (id > 1), only parent",
        "create publication millpond for table a (id), c, p",
        "create publication millpond for table a, c, p, parent with (publish_via_partition_root = true)",
        "create publication millpond for all tables with (publish = 'insert, update')",
    ] {
        let mut fixture = AnalysisFixture::bare(tables);
        let is_partial = publication.contains("where") || publication.contains("(id)");
        if is_partial && !fixture.has_partial_publications() {
            continue;
        }
        fixture.run(publication);
        fixture.reload();
        let reasons: Vec<String> = queries
            .iter()
            .map(|sql| {
                let deps = fixture.analyse(sql).unwrap().deps(&[], &Found::default());
                deps.uncacheable
                    .map_or("cacheable".into(), |reason| reason.to_string())
            })
            .collect();
        let expected: [&str; 4] = match publication {
            "" => ["there is no publication millpond; \"millpond check --fix\" makes it"; 4],
            _ if publication.contains("where") => [
                "the publication millpond leaves out rows, columns or TRUNCATEs of a",
                "c is not in the publication millpond; \"millpond check --fix\" adds it",
                "p1 is not in the publication millpond; \"millpond check --fix\" adds it",
                "child is not in the publication millpond; \"millpond check --fix\" adds it",
            ],
            _ if publication.contains("(id)") => [
                "the publication millpond leaves out rows, columns or TRUNCATEs of a",
                "cacheable",
                "cacheable",
                "parent is not in the publication millpond; \"millpond check --fix\" adds it",
            ],
            // PostgreSQL does not tell that a partition was emptied.
            _ if publication.contains("via") => [
                "cacheable",
                "cacheable",
                "the publication millpond leaves out rows, columns or TRUNCATEs of p1",
                "cacheable",
            ],
            _ => ["the publication millpond leaves out some kinds of changes"; 4],
        };
        assert_eq!(reasons, expected, "{publication}");
    }
}

#[test]
fn a_role_without_temporary_objects_gets_no_stale_answer() {
    let fixture = AnalysisFixture::new(SCHEMA);
    fixture.run("do 'begin if not exists (select from pg_roles where rolname = ''strict'') then create role strict; end if; end';
        do 'begin execute format(''revoke temporary on database %I from public'', current_database()); end';
        grant select on author to strict; set role strict");
    let analysis = fixture
        .analyse("select * from author where id = $1")
        .unwrap();
    let reason = analysis
        .deps(&[Value::Integer(1)], &Found::default())
        .uncacheable
        .unwrap();
    assert!(reason.contains("grant temporary"), "{reason}");
    assert!(analysis.facts.readonly);
    fixture.run("reset role; set default_transaction_read_only = on");
    let analysis = fixture
        .analyse("select * from author where id = $1")
        .unwrap();
    assert_eq!(
        analysis
            .deps(&[Value::Integer(1)], &Found::default())
            .uncacheable,
        None
    );
    fixture.run("reset default_transaction_read_only");
    fixture.run("drop owned by strict");
}

//! Every way to change a row touches the results that depend on it, and few others.

use millpond_db::Value;

use crate::support::{SqliteFixture, int, text};

const SCHEMA: &str = "
create table t (id integer primary key, a integer, b text, c text unique, n text collate nocase);
create table w (k text primary key, v text) without rowid;
create table parent (id integer primary key, name text);
create table child (id integer primary key, parent integer references parent on delete cascade on update cascade, x text);
create table orphan (id integer primary key, parent integer references parent on delete set null on update cascade);
create table log (id integer primary key, what text);
create trigger t_log after delete on t begin insert into log (what) values (old.b); end;
create virtual table f using fts5(body);
create table bare (a, b text);
create view merged as select t.id from t join u using (c);
create table u (id integer primary key, c text);
create view first as select t.id from t join u using (c) limit 10;
create table article (id integer primary key, title text, topic text);
create virtual table found using fts5(title, content='article', content_rowid='id');
insert into t values (1, 10, 'one', 'c1', 'N'), (2, 20, 'two', 'c2', 'M'), (3, 10, 'three', 'c3', 'O');
insert into w values ('k1', 'v1'), ('k2', 'v2');
insert into parent values (1, 'p1'), (2, 'p2');
insert into child values (1, 1, 'x1'), (2, 2, 'x2');
insert into orphan values (1, 1), (2, 2);
insert into f values ('hello world'), ('good bye');
insert into bare values (1, 'one'), (2, 'two');
";

fn check(query: &str, params: &[Value], writes: &[(&str, bool)]) {
    for (write, expected) in writes {
        let fixture = SqliteFixture::new(SCHEMA);
        let query = fixture.prepare(query);
        assert_eq!(
            fixture.evicts(&query, params, write),
            *expected,
            "{} after {write}",
            query.sql()
        );
    }
}

#[test]
fn a_change_to_what_is_not_read_ends_nothing() {
    let of_c = ("update t set c = 'x' where id = 1", false);
    check(
        "select a, b from t where id = :id",
        &[int(1)],
        &[
            of_c,
            ("update t set n = 'x' where id = 1", false),
            ("update t set b = 'x' where id = 1", true),
            ("update t set id = 9 where id = 1", true),
            ("delete from t where id = 1", true),
            (
                "insert or replace into t values (1, 10, 'one', 'c1', 'N')",
                true,
            ),
        ],
    );
    check(
        "select a from t",
        &[],
        &[
            of_c,
            ("update t set a = 11 where id = 1", true),
            ("delete from t where id = 3", true),
            ("insert into t (id) values (9)", true),
        ],
    );
    check("select b from t order by c", &[], &[(of_c.0, true)]);
    check("select b from t where c like 'c%'", &[], &[(of_c.0, true)]);
    check(
        "select p.id from parent p where exists (select 1 from child c where c.parent = p.id)",
        &[],
        &[
            ("update child set x = 'y' where id = 1", false),
            ("update parent set name = 'y' where id = 1", false),
            ("update child set parent = 1 where id = 2", true),
        ],
    );
    check(
        "select count(*) from t where a = :a",
        &[int(10)],
        &[
            of_c,
            ("update t set a = 20 where id = 1", true),
            ("delete from t where id = 3", true),
        ],
    );
    check(
        "select rowid, a from bare",
        &[],
        &[
            ("update bare set b = 'x' where a = 1", false),
            ("update bare set rowid = 9 where a = 1", true),
        ],
    );
}

#[test]
fn where_a_choice_is_made_among_rows_every_column_counts() {
    let of_c = [("update t set c = 'x' where id = 1", true)];
    for query in [
        "select b from t limit 1",
        "select b from t order by a limit 1",
        "select b, a as id from t order by id limit 1",
        "select c, n'id' from t order by id limit 1",
        "with t as (select a as id, b from main.t) select b from t order by id limit 1",
        "select t.b from t join parent p order by t.id limit 1",
        "select distinct n from t",
        "select a, b, count(*) from t",
        "select a, max(b) from t group by a",
        "select sum(a) from t",
        "select b, row_number() over (order by a) from t",
        "select b from t union select name from parent",
        "select p.name, (select b from t where a = 10) from parent p",
        "select t.b from t join parent using (id)",
        "select t.b from t natural join child",
        "select count(t.id) from (t join parent using (id))",
        "select b from (t natural join child)",
        "select count(*) from merged",
        "select p.id from parent p where exists (select 1 from merged)",
        "select count(*) + 0, b from t",
        "select case when count(*) > 1 then b end from t",
        "select (select count(t.id)), b from t",
        "select * from t",
    ] {
        check(query, &[], &of_c);
    }
}

#[test]
fn where_no_two_rows_are_equal_in_an_order_there_is_no_choice() {
    check(
        "select b from t order by a, id limit 1",
        &[],
        &[
            ("update t set c = 'x' where id = 1", false),
            ("update t set b = 'x' where id = 1", true),
        ],
    );
}

#[test]
fn a_table_of_which_only_a_merged_column_is_read_counts() {
    for query in ["select id from first", "select count(*) from first"] {
        check(
            query,
            &[],
            &[
                ("insert into u values (9, 'c1')", true),
                ("insert into t (id, c) values (9, 'c9')", true),
            ],
        );
    }
}

#[test]
fn what_a_search_reads_of_its_content_counts() {
    let setup = "insert into article values (1, 'cat', 'x'); insert into found (rowid, title) values (1, 'cat')";
    let fixture = SqliteFixture::new(&format!("{SCHEMA}{setup};"));
    let query = "select a.id, f.title from found f join article a on a.id = f.rowid where found match 'cat'";
    let query = fixture.prepare(query);
    assert!(fixture.evicts(
        &query,
        &[],
        "update article set title = 'cats' where id = 1"
    ));
}

#[test]
fn an_update_that_changes_nothing_ends_nothing() {
    check(
        "select * from t where id = :id",
        &[int(1)],
        &[
            ("update t set b = b, a = 10 where id = 1", false),
            ("update t set b = 'x' where id = 99", false),
            ("delete from t where id = 99", false),
            ("update t set n = 'n' where id = 1", true),
        ],
    );
    check(
        "select * from bare",
        &[],
        &[
            ("update bare set a = 1 where b = 'one'", false),
            ("update bare set a = 1.0 where b = 'one'", true),
            ("update bare set a = '1' where b = 'one'", true),
            ("update bare set b = x'6f6e65' where b = 'one'", true),
        ],
    );
    check(
        "select * from w",
        &[],
        &[
            ("update w set v = 'v1' where k = 'k1'", false),
            ("update w set v = 'v2' where k = 'k1'", true),
        ],
    );
}

#[test]
fn rows_by_key() {
    check(
        "select * from t where id = :id",
        &[int(1)],
        &[
            ("update t set b = 'x' where id = 1", true),
            ("update t set b = 'x' where id = 2", false),
            ("update t set id = 9 where id = 1", true),
            ("update t set id = 9 where id = 2", false),
            ("delete from t where id = 1", true),
            ("delete from t where id = 2", false),
            ("insert into t values (4, 1, 'x', 'c4', 'n')", false),
            (
                "insert or replace into t values (1, 1, 'x', 'c9', 'n')",
                true,
            ),
            (
                "insert or replace into t values (9, 1, 'x', 'c1', 'n')",
                true,
            ),
            (
                "insert or replace into t values (9, 1, 'x', 'c2', 'n')",
                false,
            ),
            ("update or replace t set c = 'c1' where id = 2", true),
            ("update or replace t set id = 1 where id = 2", true),
            (
                "insert into t values (1, 1, 'x', 'c9', 'n') on conflict do update set a = 5",
                true,
            ),
            (
                "insert into t values (9, 1, 'x', 'c2', 'n') on conflict (c) do update set a = 5",
                false,
            ),
            (
                "insert or ignore into t values (1, 1, 'x', 'c9', 'n')",
                false,
            ),
            ("delete from t", true),
            ("update log set what = 'x'", false),
        ],
    );
}

#[test]
fn rows_by_value() {
    check(
        "select count(*) from t where a = :a",
        &[int(10)],
        &[
            ("insert into t values (4, 10, 'x', 'c4', 'n')", true),
            ("insert into t values (4, '10', 'x', 'c4', 'n')", true),
            ("insert into t values (4, 10.0, 'x', 'c4', 'n')", true),
            ("insert into t values (4, 11, 'x', 'c4', 'n')", false),
            ("update t set a = 10 where id = 2", true),
            ("update t set a = ' 10 ' where id = 2", true),
            ("update t set a = 30 where id = 1", true),
            ("update t set a = 30 where id = 2", false),
            // It is unknown which integers a text in an integer column equals.
            ("update t set a = 'ten' where id = 2", true),
            ("update t set a = x'3130' where id = 2", false),
            ("delete from t where id = 3", true),
        ],
    );
    check(
        "select * from t where b = :b",
        &[text("two")],
        &[
            ("update t set b = 'two' where id = 1", true),
            ("update t set b = 'TWO' where id = 1", false),
            ("update t set a = 1 where b = 'two'", true),
            ("update t set a = 1 where b = 'one'", false),
            ("update t set b = 2 where id = 1", false),
        ],
    );
    check(
        "select * from t where b = :b",
        &[int(2)],
        &[
            ("update t set b = 2 where id = 1", true),
            ("update t set b = '02' where id = 1", false),
        ],
    );
}

#[test]
fn what_has_no_canonical_form_depends_on_the_whole_table() {
    check(
        "select * from t where n = :n",
        &[text("n")],
        &[
            ("update t set n = 'x' where id = 2", false),
            ("update t set n = 'n' where id = 2", true),
            ("update t set n = 'n' where id = 1", true),
        ],
    );
    check(
        "select * from t where n = :n collate rtrim",
        &[text("n")],
        &[("update t set n = 'x' where id = 2", true)],
    );
    check(
        "select * from t where a = :a",
        &[text("07")],
        &[("update t set a = 7 where id = 2", true)],
    );
    check(
        "select * from t where a = :a",
        &[Value::Real(7.0)],
        &[("update t set a = 7 where id = 2", true)],
    );
}

#[test]
fn tables_without_rowid() {
    check(
        "select * from w where k = :k",
        &[text("k1")],
        &[
            ("update w set v = 'x' where k = 'k1'", true),
            ("update w set v = 'x' where k = 'k2'", false),
            ("update w set k = 'k3' where k = 'k1'", true),
            ("update w set k = 'k3' where k = 'k2'", false),
            ("insert or replace into w values ('k1', 'x')", true),
            ("insert or replace into w values ('k2', 'x')", false),
            (
                "insert into w values ('k1', 'x') on conflict do update set v = 'y'",
                true,
            ),
            ("update or replace w set k = 'k1' where k = 'k2'", true),
            ("delete from w", true),
        ],
    );
    check(
        "select * from w where v = :v",
        &[text("v1")],
        &[
            ("update w set v = 'v1' where k = 'k2'", true),
            ("update w set v = 'x' where k = 'k1'", true),
            ("delete from w where k = 'k2'", false),
        ],
    );
}

#[test]
fn rows_by_rowid() {
    check(
        "select b from bare where rowid = :r",
        &[int(1)],
        &[
            ("update bare set b = 'x' where rowid = 1", true),
            ("update bare set b = 'x' where rowid = 2", false),
            ("update bare set rowid = 7 where rowid = 1", true),
            ("update bare set rowid = 1 where rowid = 3", false),
            ("delete from bare", true),
            ("insert into bare values (1, 'x')", false),
        ],
    );
}

#[test]
fn cascades() {
    check(
        "select * from child where parent = :p",
        &[int(1)],
        &[
            ("delete from parent where id = 1", true),
            ("delete from parent where id = 2", false),
            ("update parent set id = 9 where id = 1", true),
        ],
    );
    check(
        "select count(*) from orphan where parent = :p",
        &[int(1)],
        &[
            ("delete from parent where id = 1", true),
            ("delete from parent where id = 2", false),
        ],
    );
}

#[test]
fn triggers() {
    check(
        "select count(*) from log",
        &[],
        &[
            ("delete from t where id = 1", true),
            ("update t set a = 1", false),
        ],
    );
    check(
        "select * from log where what = :w",
        &[text("one")],
        &[
            ("delete from t where id = 1", true),
            ("delete from t where id = 2", false),
        ],
    );
}

#[test]
fn full_text_search() {
    let search = "select body from f where f match :q";
    check(
        search,
        &[text("hello")],
        &[
            ("insert into f values ('hello again')", true),
            ("update f set body = 'bye' where rowid = 1", true),
            ("delete from f where rowid = 1", true),
            ("insert into f (f) values ('optimize')", true),
            ("update t set a = 1", false),
        ],
    );
}

#[test]
fn a_default_that_was_added_later_counts_as_the_old_value() {
    let fixture = SqliteFixture::new(SCHEMA);
    fixture.write("alter table t add column later integer default 5", vec![]);
    let query = fixture.prepare("select count(*) from t where later = :l");
    assert_eq!(fixture.rows(&query, vec![int(5)]), [[int(3)]]);
    assert!(fixture.evicts(&query, &[int(5)], "update t set later = 6 where id = 1"));
    assert_eq!(fixture.rows(&query, vec![int(5)]), [[int(2)]]);
}

#[test]
fn a_statement_that_touched_nothing_does_not_blind_the_next() {
    let fixture = SqliteFixture::new(SCHEMA);
    let query = fixture.prepare("select * from t where id = :id");
    fixture.fill("probe", &query, &[int(1)]);
    let step = |sql| millpond_db::WriteStep {
        query: fixture.prepare(sql),
        bind: vec![],
        expect: millpond_db::Expect::Exec,
    };
    let steps = vec![
        step("update t set a = 0 where id = 77"),
        step("update t set a = 0 where id = 1"),
    ];
    crate::support::wait(fixture.database.write(steps)).unwrap();
    assert!(fixture.sink.cached("probe").is_none());
}

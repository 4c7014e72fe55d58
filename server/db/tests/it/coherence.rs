//! The counterexamples for SQLite from the rules of coherence (`docs/reference/coherence/`), each
//! as one test.

use millpond_db::Value;

use crate::support::{SqliteFixture, int, text};

#[test]
fn a_search_finds_what_an_edit_wrote() {
    let fixture = SqliteFixture::new(
        "create table article (id integer primary key, body text);
         create virtual table article_fts using fts5(body, content='article', content_rowid='id');
         create trigger i after insert on article begin insert into article_fts (rowid, body) values (new.id, new.body); end;
         create trigger u after update on article begin
             insert into article_fts (article_fts, rowid, body) values ('delete', old.id, old.body);
             insert into article_fts (rowid, body) values (new.id, new.body);
         end;
         insert into article values (1, 'about mills'), (2, 'about ponds');",
    );
    let query = fixture.prepare("select rowid, snippet(article_fts, 0, '', '', '', 9) from article_fts where article_fts match :q");
    fixture.fill("ducks", &query, &[text("ducks")]);
    assert!(fixture.rows(&query, vec![text("ducks")]).is_empty());
    let epoch = fixture.sink.epoch();
    fixture.write(
        "update article set body = 'about ducks' where id = 2",
        vec![],
    );
    assert_eq!(fixture.sink.epoch(), epoch);
    assert!(fixture.sink.cached("ducks").is_none());
    assert_eq!(
        fixture.rows(&query, vec![text("ducks")]),
        [[int(2), text("about ducks")]]
    );
}

#[test]
fn nocase_finds_what_is_written_otherwise() {
    let fixture = SqliteFixture::new(
        "create table u (name text collate nocase unique, n integer); insert into u values ('Foo', 1);",
    );
    let query = fixture.prepare("select n from u where name = :name");
    assert_eq!(fixture.rows(&query, vec![text("FOO")]), [[int(1)]]);
    assert!(fixture.evicts(
        &query,
        &[text("FOO")],
        "update u set n = 2 where name = 'foo'"
    ));
    assert_eq!(fixture.rows(&query, vec![text("FOO")]), [[int(2)]]);
}

#[test]
fn texts_that_are_numbers_find_the_number() {
    let fixture = SqliteFixture::new(
        "create table t (id integer primary key, n integer, v text); insert into t values (7, 7, 'a');",
    );
    for column in ["id", "n"] {
        let query = fixture.prepare(&format!("select v from t where {column} = :x"));
        for value in [text("07"), text("7.0"), text(" 7"), Value::Real(7.0)] {
            assert_eq!(fixture.rows(&query, vec![value.clone()]).len(), 1);
            assert!(fixture.evicts(&query, &[value], "update t set v = v || 'b' where id = 7"));
        }
    }
}

#[test]
fn a_generated_column_changes_with_what_it_is_made_of() {
    for kind in ["virtual", "stored"] {
        let fixture = SqliteFixture::new(&format!(
            "create table t (a text, g text as (upper(a)) {kind}); insert into t (a) values ('x');"
        ));
        let query = fixture.prepare("select count(*) from t where g = :g");
        assert!(fixture.evicts(&query, &[text("Y")], "update t set a = 'y'"));
        assert_eq!(fixture.rows(&query, vec![text("Y")]), [[int(1)]]);
    }
}

#[test]
fn a_stored_now_reads_the_clock() {
    let fixture = SqliteFixture::new(
        "create table t (id integer primary key, at text); insert into t values (1, '2026-01-01'), (2, 'now');",
    );
    let query = fixture.prepare("select date(at) from t where id = :id");
    assert_eq!(fixture.read(&query, vec![int(1)]).deps[0].uncacheable, None);
    assert!(
        fixture.read(&query, vec![int(2)]).deps[0]
            .uncacheable
            .is_some()
    );
    let query = fixture.prepare("select strftime('%Y', :at)");
    assert_eq!(
        fixture.read(&query, vec![text("2026-01-01")]).deps[0].uncacheable,
        None
    );
    assert!(
        fixture.read(&query, vec![text("now")]).deps[0]
            .uncacheable
            .is_some()
    );
    assert!(
        fixture.read(&query, vec![text("subsec")]).deps[0]
            .uncacheable
            .is_some()
            || fixture.rows(&query, vec![text("subsec")]) == [[Value::Null]]
    );
}

#[test]
fn a_result_of_a_list_ends_with_its_items_and_no_others() {
    let fixture = SqliteFixture::new(
        "create table t (id integer primary key, name text, by integer);
         create index t_name on t (name);
         create table who (id integer primary key, name text);
         insert into t values (1, 'a', 7), (2, 'b', 8), (3, 'c', 9), (-1, '07', 9);
         insert into who values (7, 'A'), (8, 'B'), (9, 'C');",
    );
    let list = |json: serde_json::Value| [Value::from(json)];
    let ids = fixture.prepare("select * from t where id in (select value from json_each(:ids))");
    let some = list(serde_json::json!([1, 2]));
    for (write, expected) in [
        ("update t set name = 'x' where id = 2", true),
        ("update t set name = 'x' where id = 3", false),
        ("update t set id = 4 where id = 2", true),
        ("update t set id = 2 where id = 4", true),
        ("insert into t values (5, 'x', 7)", false),
        ("delete from t where id = 5", false),
        ("delete from t where id = 2", true),
        ("insert into t values (2, 'b', 8)", true),
    ] {
        assert_eq!(fixture.evicts(&ids, &some, write), expected, "{write}");
    }
    let touch_3 = "update t set by = by + 1 where id = 3";
    assert!(!fixture.evicts(&ids, &list(serde_json::json!([])), touch_3));
    assert!(!fixture.evicts(&ids, &[Value::Null], touch_3));
    // Nothing equals NULL.
    assert!(!fixture.evicts(&ids, &list(serde_json::json!([1, null])), touch_3));
    // What has no canonical form, and more than count one by one, is the whole table.
    for whole in [
        serde_json::json!([1, "2"]),
        serde_json::json!([1.5]),
        serde_json::json!((10..80).collect::<Vec<_>>()),
        serde_json::json!({ "a": 1 }),
    ] {
        assert!(
            fixture.evicts(&ids, &list(whole.clone()), touch_3),
            "{whole}"
        );
    }
    assert!(fixture.evicts(&ids, &[text("[1]")], touch_3));

    // Some versions of SQLite end a text of JSON at a character of code zero.
    let names =
        fixture.prepare("select * from t where name in (select value from json_each(:names))");
    let cut = list(serde_json::json!(["a\0b"]));
    assert!(fixture.evicts(&names, &cut, "update t set by = 1 where name = 'a'"));
    let seven = list(serde_json::json!([7]));
    assert!(fixture.evicts(&names, &seven, "update t set by = 1 where name = '07'"));

    // A restriction by a list is carried on along a key.
    let joined = fixture.prepare(
        "select * from t join who on who.id = t.by where t.id in (select value from json_each(:ids))",
    );
    fixture.write("update t set by = 7 where id = 1", vec![]);
    let one = list(serde_json::json!([1]));
    assert!(fixture.evicts(&joined, &one, "update who set name = 'Z' where id = 7"));
    assert!(!fixture.evicts(&joined, &one, "update who set name = 'Z' where id = 8"));
    assert!(fixture.evicts(&joined, &one, "update t set by = 8 where id = 1"));
    assert!(fixture.evicts(&joined, &one, "update who set name = 'Y' where id = 8"));
}

#[test]
fn a_name_that_shadows_a_table_is_not_taken_for_it() {
    let fixture = SqliteFixture::new(
        "create table t (id integer primary key, v text); create table u (id integer primary key, v text); insert into u values (1, 'a'), (2, 'b');",
    );
    let query = fixture.prepare("with t as (select * from u) select v from t where id = 1 union all select v from u where id = 1");
    assert!(fixture.evicts(&query, &[], "update u set v = 'c' where id = 2"));
}

#[test]
fn what_violates_its_columns_affinity_is_found_all_the_same() {
    let fixture = SqliteFixture::new(
        "create table t (id integer primary key, n integer, v text); insert into t values (1, 5, 'a');",
    );
    // Such a value can only be stored by editing the schema, so that stored text is in an integer
    // column.
    let foreign = fixture.foreign();
    foreign
        .execute_batch(
            "create table s (id integer primary key, n text, v text); insert into s values (1, '07', 'a');
             pragma writable_schema = on;
             update sqlite_schema set sql = 'create table s (id integer primary key, n integer, v text)' where name = 's';
             pragma writable_schema = reset;",
        )
        .unwrap();
    drop(foreign);
    fixture.sink.settle();
    let query = fixture.prepare("select v from s where n = :n");
    assert_eq!(fixture.rows(&query, vec![int(7)]), [[text("a")]]);
    assert!(fixture.evicts(&query, &[int(7)], "update s set v = 'b' where id = 1"));
    assert_eq!(fixture.rows(&query, vec![int(7)]), [[text("b")]]);
    // The same with the types exchanged.
    let foreign = fixture.foreign();
    foreign
        .execute_batch(
            "create table r (id integer primary key, n integer, v text); insert into r values (1, 7, 'a');
             pragma writable_schema = on;
             update sqlite_schema set sql = 'create table r (id integer primary key, n text, v text)' where name = 'r';
             pragma writable_schema = reset;",
        )
        .unwrap();
    drop(foreign);
    fixture.sink.settle();
    let query = fixture.prepare("select v from r where n = :n");
    assert_eq!(fixture.rows(&query, vec![text("7")]), [[text("a")]]);
    assert!(fixture.evicts(&query, &[text("7")], "update r set v = 'b' where id = 1"));
}

#[test]
fn what_violates_its_columns_affinity_is_found_when_it_is_deleted() {
    for (stored, becomes, value, asked) in [
        ("text", "integer", "'07'", int(7)),
        ("integer", "text", "7", text("7")),
    ] {
        let fixture = SqliteFixture::new(&format!(
            "create table t (n {stored}, v text); insert into t values ({value}, 'a');"
        ));
        let edit = format!(
            "pragma writable_schema = on;
             update sqlite_schema set sql = 'create table t (n {becomes}, v text)' where name = 't';
             pragma writable_schema = reset;"
        );
        fixture.foreign().execute_batch(&edit).unwrap();
        fixture.sink.settle();
        let query = fixture.prepare("select count(*) from t where n = :n");
        assert_eq!(fixture.rows(&query, vec![asked.clone()]), [[int(1)]]);
        assert!(fixture.evicts(&query, std::slice::from_ref(&asked), "delete from t"));
        assert_eq!(fixture.rows(&query, vec![asked]), [[int(0)]]);
    }
}

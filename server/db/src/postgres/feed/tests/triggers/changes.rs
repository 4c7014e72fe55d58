//! What changes touch, for every kind of statement.

use super::super::changes::{ARTICLE, Article};
use super::*;

fn article() -> Article<'static> {
    Article::of(recorded(plain(), ARTICLE, &["article"]))
}

#[test]
fn old_and_new_values_are_known_with_every_replica_identity() {
    let mut article = article();
    let (id, author) = (article.id, article.author);
    article.check(
        "insert into article values (1, 7, 'a'), (2, null, 'b')",
        &[int(id, 1), int(id, 2), int(author, 7)],
    );
    article.check(
        "update article set author = 8 where id = 1",
        &[int(id, 1), int(author, 7), int(author, 8)],
    );
    article.check(
        "update article set id = 3 where id = 1",
        &[int(id, 1), int(id, 3), int(author, 8)],
    );
    article.check("update article set author = 9 where id = 77", &[]);
    article.check(
        "insert into article values (3, 9, 'c'), (4, 9, 'd') on conflict (id) do update set author = excluded.author",
        &[int(id, 3), int(id, 4), int(author, 8), int(author, 9)],
    );
    article.check(
        "delete from article where id = 4",
        &[int(id, 4), int(author, 9)],
    );
    article.check("truncate article", &[id.unknown(), author.unknown()]);
}

#[test]
fn rolled_back_changes_are_not_delivered() {
    let mut article = article();
    let id = article.id;
    article.check(
        "begin; insert into article values (1, 7, 'a'); rollback",
        &[],
    );
    article.check(
        "begin; insert into article values (2, null, 'a'); savepoint s; insert into article values (3, null, 'a'); \
         rollback to s; insert into article values (4, null, 'a'); commit",
        &[int(id, 2), int(id, 4)],
    );
    article.check(
        "do $$ begin insert into article values (5, null, 'a'); begin insert into article values (6, null, 'a'); \
         insert into article values (5, null, 'a'); exception when unique_violation then null; end; end $$",
        &[int(id, 5)],
    );
}

#[test]
fn a_copy_and_a_session_in_replica_role_are_recorded() {
    let mut article = article();
    let (id, author) = (article.id, article.author);
    article.check(
        "set session_replication_role = replica; insert into article values (1, 7, 'a'); reset session_replication_role",
        &[int(id, 1), int(author, 7)],
    );
    let seen = article.fixture.feed.sink.len();
    let mut copy = article
        .fixture
        .client
        .copy_in("copy article from stdin")
        .unwrap();
    std::io::Write::write_all(&mut copy, b"2\t8\tb\n").unwrap();
    copy.finish().unwrap();
    article.fixture.feed.sink.wait_for(
        "the copy",
        seen,
        |event| matches!(event, SinkEvent::Apply(_, tags) if tags.contains(&int(id, 2)) && tags.contains(&int(author, 8))),
    );
}

#[test]
fn a_long_value_is_any_value_and_hides_no_short_one() {
    let schema = "create table page (id int primary key, slug text, body text)";
    let mut fixture = recorded(plain(), schema, &["page"]);
    let table = broad(fixture.oid("page"));
    let id = fixture.watch("page", "id", ValueClass::Integer);
    let slug = fixture.watch("page", "slug", ValueClass::Text);
    let named = |name: &str| slug.equal_to(&name.into()).unwrap();
    let touched = fixture.touches("insert into page values (1, 'a', repeat('x', 100000))");
    assert_eq!(touched, HashSet::from([table, int(id, 1), named("a")]));
    let touched = fixture.touches("update page set slug = repeat('y', 2000)");
    assert_eq!(
        touched,
        HashSet::from([table, int(id, 1), named("a"), slug.unknown()])
    );
    // One that is no longer than what is kept of a large row.
    let short = "z".repeat(250);
    let touched = fixture.touches(&format!("update page set slug = '{short}'"));
    let all = HashSet::from([table, int(id, 1), named(&short), slug.unknown()]);
    assert_eq!(touched, all);
}

#[test]
fn columns_without_a_selecting_query_are_left_out() {
    let schema = "create table page (id int primary key, body bytea)";
    let watch = objects::watch("public", "page");
    let script = script(
        &format!("{schema}; {}; {watch}", objects::install("public")),
        &[],
    );
    let mut fixture = FeedFixture::with(plain(), &script, by_triggers);
    let table = broad(fixture.oid("page"));
    let id = fixture.watch("page", "id", ValueClass::Integer);
    // No node tidies while this transaction can still be looked into.
    fixture.run("begin; insert into page values (1, '\\x00')");
    let row = fixture
        .client
        .query_one("select content::text from _millpond_change", &[]);
    assert_eq!(row.unwrap().get::<_, String>(0), r#"{"id": "1"}"#);
    let touched = fixture.touches("commit");
    assert_eq!(touched, HashSet::from([table, int(id, 1)]));
}

#[test]
fn a_statement_that_changes_much_is_one_that_changes_any_row() {
    let mut article = article();
    let (id, author) = (article.id, article.author);
    let insert = "insert into article select n, null, 'a' from generate_series(1, 5000) n";
    article.check(insert, &[id.unknown(), author.unknown()]);
    article.check(
        "update article set title = 'b'",
        &[id.unknown(), author.unknown()],
    );
    article.check("delete from article", &[id.unknown(), author.unknown()]);
    // Many transactions' worth between two looks: what they were is not looked at.
    let seen = article.fixture.feed.sink.len();
    article.fixture.run(
        "do $$ begin for n in 1..20 loop insert into article select n * 10000 + m, null, 'a' from generate_series(1, 1000) m; end loop; end $$",
    );
    article
        .fixture
        .feed
        .sink
        .wait_for_epoch(seen, "more has changed");
}

#[test]
fn no_column_name_or_change_makes_a_write_fail() {
    let schema = "create table odd (id int primary key, tg_argv int, changed int, moment int, content int, r int, n int, e int, \
        _millpond_row int, \"two words\" int, transaction int)";
    let mut fixture = recorded(plain(), schema, &["odd"]);
    let table = broad(fixture.oid("odd"));
    let id = fixture.watch("odd", "id", ValueClass::Integer);
    let watched = fixture.watch("odd", "changed", ValueClass::Integer);
    let touched = fixture.touches("insert into odd (id, tg_argv, changed) values (1, 2, 3)");
    assert_eq!(touched, HashSet::from([table, int(id, 1), int(watched, 3)]));
    for change in [
        "alter table odd rename column changed to other",
        "alter table odd drop column content",
        "alter table odd add column fresh text default 'x'",
        "alter table odd alter column id type bigint",
        "alter table odd rename to odder",
    ] {
        fixture.run(change);
        let table = if change.ends_with("odder") {
            "odder"
        } else {
            "odd"
        };
        fixture.run(&format!("update {table} set tg_argv = tg_argv + 1"));
    }
    // A column that is watched and no longer there may have had any value.
    fixture.feed.sink.settle();
    let touched = fixture.touches("update odder set n = 1");
    assert_eq!(
        touched,
        HashSet::from([table, int(id, 1), watched.unknown()])
    );
}

#[test]
fn partitions_their_root_and_moves_between_them_are_one_family() {
    let schema = "create table parted (id int, at int, primary key (id, at)) partition by range (at); \
        create table early partition of parted for values from (0) to (10); \
        create table late partition of parted for values from (10) to (20)";
    let mut fixture = recorded(plain(), schema, &["parted", "early", "late"]);
    let family = broad(fixture.oid("parted"));
    let id = fixture.watch("parted", "id", ValueClass::Integer);
    let at = fixture.watch("parted", "at", ValueClass::Integer);
    for (sql, touched) in [
        (
            "insert into parted values (1, 5)",
            vec![int(id, 1), int(at, 5)],
        ),
        (
            "update parted set at = 15",
            vec![int(id, 1), int(at, 5), int(at, 15)],
        ),
        (
            "update late set id = 2",
            vec![int(id, 1), int(id, 2), int(at, 15)],
        ),
        (
            "insert into early values (3, 6)",
            vec![int(id, 3), int(at, 6)],
        ),
        (
            "delete from parted where id = 2",
            vec![int(id, 2), int(at, 15)],
        ),
        ("truncate early", vec![id.unknown(), at.unknown()]),
        (
            "insert into parted values (4, 6)",
            vec![int(id, 4), int(at, 6)],
        ),
        ("truncate parted", vec![id.unknown(), at.unknown()]),
    ] {
        let mut expected: HashSet<Tag> = touched.into_iter().collect();
        expected.insert(family);
        assert_eq!(fixture.touches(sql), expected, "{sql}");
    }
}

#[test]
fn changes_of_a_child_by_a_statement_on_the_parent_are_recorded() {
    let schema = "create table parent (id int primary key); create table child (extra int) inherits (parent)";
    let mut fixture = recorded(plain(), schema, &["parent", "child"]);
    let family = broad(fixture.oid("parent"));
    let id = fixture.watch("parent", "id", ValueClass::Integer);
    let extra = fixture.watch("parent", "extra", ValueClass::Integer);
    let touched = fixture.touches("insert into child values (1, 7)");
    assert_eq!(touched, HashSet::from([family, int(id, 1), int(extra, 7)]));
    // The statement knows the parent's columns only.
    let touched = fixture.touches("update parent set id = 2");
    assert_eq!(
        touched,
        HashSet::from([family, int(id, 1), int(id, 2), extra.unknown()])
    );
}

#[test]
fn cascades_and_the_owners_triggers_are_recorded_with_their_cause() {
    let schema = format!(
        "{ARTICLE}; create table comment (id int primary key, article bigint references article on delete cascade); \
         create table audit (id serial primary key, what text); \
         create function note() returns trigger language plpgsql as 'begin insert into audit (what) values (old.title); return old; end'; \
         create trigger note after delete on article for each row execute function note(); \
         insert into article values (1, 7, 'a'); insert into comment values (5, 1), (6, 1)"
    );
    let mut fixture = recorded(plain(), &schema, &["article", "comment", "audit"]);
    let comment = fixture.watch("comment", "id", ValueClass::Integer);
    let what = fixture.watch("audit", "what", ValueClass::Text);
    let touched = fixture.touches("delete from article");
    for tag in [
        int(comment, 5),
        int(comment, 6),
        what.equal_to(&"a".into()).unwrap(),
    ] {
        assert!(touched.contains(&tag), "{touched:?}");
    }
    // By a statement that changes another table with the same words.
    let touched = fixture.touches(
        "with gone as (delete from audit returning id) insert into article select id, 1, 'b' from gone",
    );
    assert!(touched.contains(&what.equal_to(&"a".into()).unwrap()));
    let touched = fixture.touches("truncate article cascade");
    let (article, comment) = (fixture.oid("article"), fixture.oid("comment"));
    assert!(touched.is_superset(&HashSet::from([broad(article), broad(comment)])));
}

#[test]
fn a_writer_needs_no_rights_and_cannot_interpose_functions() {
    let mut fixture = recorded(plain(), ARTICLE, &["article"]);
    let id = fixture.watch("article", "id", ValueClass::Integer);
    fixture.run(
        "do $$ begin create role writer login; exception when duplicate_object or unique_violation then null; end $$; \
         set role site; grant insert on article to writer; reset role; \
         create schema evil; create function evil.to_jsonb(public.article) returns jsonb language sql as 'select null::jsonb'; \
         create function evil.pg_current_xact_id() returns xid8 language sql as 'select ''3''::xid8'; \
         grant usage on schema evil to public",
    );
    let touched = fixture.touches(
        "set role writer; set search_path = evil, pg_catalog, public; insert into public.article values (1, 7, 'a'); reset search_path; reset role",
    );
    assert!(touched.contains(&int(id, 1)));
}

#[test]
fn with_prepared_transactions_no_notification_is_sent_and_every_change_is_read() {
    let server = server(Options::new());
    let mut fixture = recorded(&server, ARTICLE, &["article"]);
    let id = fixture.watch("article", "id", ValueClass::Integer);
    let table = broad(fixture.oid("article"));
    let prepare = "begin; insert into article values (1, null, 'a'); prepare transaction 'later'";
    assert_eq!(fixture.touches(prepare), HashSet::new());
    let events = HashSet::from([table, int(id, 1)]);
    assert_eq!(fixture.touches("commit prepared 'later'"), events);
}

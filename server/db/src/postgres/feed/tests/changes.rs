//! What changes touch, by replica identity and kind of table.

use super::*;

pub(super) const ARTICLE: &str =
    "create table article (id bigint primary key, author int, title text)";

/// A table with a key and another column, both watched.
pub(super) struct Article<'a> {
    pub(super) fixture: FeedFixture<'a>,
    pub(super) table: Tag,
    pub(super) id: ColumnName,
    pub(super) author: ColumnName,
}

fn article(identity: &str) -> Article<'static> {
    Article::of(FeedFixture::new(
        shared(),
        &format!("{ARTICLE}; {identity}"),
    ))
}

impl<'a> Article<'a> {
    /// In a database that has the table.
    pub(super) fn of(mut fixture: FeedFixture<'a>) -> Self {
        let table = broad(fixture.oid("article"));
        let id = fixture.watch("article", "id", ValueClass::Integer);
        let author = fixture.watch("article", "author", ValueClass::Integer);
        Self {
            fixture,
            table,
            id,
            author,
        }
    }

    #[track_caller]
    pub(super) fn check(&mut self, sql: &str, expected: &[Tag]) {
        let mut expected: HashSet<Tag> = expected.iter().copied().collect();
        if !expected.is_empty() {
            expected.insert(self.table);
        }
        assert_eq!(self.fixture.touches(sql), expected, "{sql}");
    }
}

#[test]
fn with_the_default_identity_old_keys_are_known_and_other_old_values_are_not() {
    let mut article = article("");
    let (id, author) = (article.id, article.author);
    let unknown = author.unknown();
    article.check(
        "insert into article values (1, 7, 'a'), (2, null, 'b')",
        &[int(id, 1), int(id, 2), int(author, 7)],
    );
    article.check(
        "update article set author = 8 where id = 1",
        &[int(id, 1), unknown, int(author, 8)],
    );
    article.check(
        "update article set id = 3 where id = 1",
        &[int(id, 1), int(id, 3), unknown, int(author, 8)],
    );
    article.check("delete from article where id = 3", &[int(id, 3), unknown]);
    article.check("update article set author = 9 where id = 77", &[]);
}

#[test]
fn with_the_full_identity_all_old_values_are_known() {
    let mut article = article("alter table article replica identity full");
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
        "delete from article where id = 1",
        &[int(id, 1), int(author, 8)],
    );
    article.check("delete from article where id = 2", &[int(id, 2)]);
}

#[test]
fn with_an_index_as_identity_its_columns_are_known() {
    let identity = "alter table article alter author set not null; create unique index by_author on article (author); \
        alter table article replica identity using index by_author";
    let mut article = article(identity);
    let (id, author) = (article.id, article.author);
    let unknown = id.unknown();
    article.check(
        "insert into article values (1, 7, 'a')",
        &[int(id, 1), int(author, 7)],
    );
    article.check(
        "update article set title = 'b' where id = 1",
        &[int(id, 1), unknown, int(author, 7)],
    );
    article.check(
        "update article set author = 8 where id = 1",
        &[int(id, 1), unknown, int(author, 7), int(author, 8)],
    );
    article.check("delete from article", &[unknown, int(author, 8)]);
}

#[test]
fn a_large_value_that_is_not_sent_is_what_it_was() {
    let schema = |identity| {
        format!(
            "create table page (id int primary key, body text); alter table page alter body set storage external; {identity}"
        )
    };
    let long = "repeat('x', 10000)";
    let insert = format!("insert into page values (1, {long})");
    let update = "update page set id = 2";
    let mut default = FeedFixture::new(shared(), &schema(""));
    let body = default.watch("page", "body", ValueClass::Text);
    let table = broad(default.oid("page"));
    default.run(&insert);
    assert_eq!(
        default.touches(update),
        HashSet::from([table, body.unknown()])
    );
    let mut full = FeedFixture::new(shared(), &schema("alter table page replica identity full"));
    let body = full.watch("page", "body", ValueClass::Text);
    let table = broad(full.oid("page"));
    full.run(&insert);
    let known = body.equal_to(&"x".repeat(10_000).as_str().into()).unwrap();
    assert_eq!(full.touches(update), HashSet::from([table, known]));
}

#[test]
fn a_truncated_table_takes_along_those_that_refer_to_it() {
    let schema = format!(
        "{ARTICLE}; create table comment (id int primary key, article bigint references article)"
    );
    let mut fixture = FeedFixture::new(shared(), &schema);
    let article = fixture.oid("article");
    let comment = fixture.oid("comment");
    let refers = fixture.watch("comment", "article", ValueClass::Integer);
    // Its files are others then, so an epoch may follow; what matters is that it is delivered.
    let seen = fixture.feed.sink.len();
    fixture.run("truncate article cascade");
    let expected = [broad(article), broad(comment), refers.unknown()];
    fixture.feed.sink.wait_for("the truncation", seen, |event| {
        matches!(event, SinkEvent::Apply(_, tags) if expected.iter().all(|tag| tags.contains(tag)))
    });
}

#[test]
fn cascades_and_triggers_are_delivered_with_their_cause() {
    let schema = format!(
        "{ARTICLE}; create table comment (id int primary key, article bigint references article on delete cascade); \
         insert into article values (1, 7, 'a'); insert into comment values (5, 1)"
    );
    let mut fixture = FeedFixture::new(shared(), &schema);
    let comment = fixture.watch("comment", "id", ValueClass::Integer);
    let touched = fixture.touches("delete from article");
    assert!(touched.contains(&int(comment, 5)));
}

const PARTED: &str = "create table parted (id int, at int, primary key (id, at)) partition by range (at); \
    create table early partition of parted for values from (0) to (10); \
    create table late partition of parted for values from (10) to (20)";

#[test]
fn a_change_in_a_partition_is_one_in_the_family() {
    for by_root in [false, true] {
        let publication = format!(
            "create publication millpond for all tables with (publish_via_partition_root = {by_root})"
        );
        let schema = format!("{PARTED}; {publication}");
        let mut fixture = FeedFixture::with(shared(), &schema, |_| {});
        let id = fixture.watch("parted", "id", ValueClass::Integer);
        let family = broad(fixture.oid("parted"));
        let inserted = fixture.touches("insert into parted values (1, 5)");
        assert_eq!(inserted, HashSet::from([family, int(id, 1)]));
        let moved = fixture.touches("update parted set at = 15");
        assert!(moved.is_superset(&HashSet::from([family, int(id, 1)])));
        let deleted = fixture.touches("delete from parted");
        // By the root's name, old values are not believed.
        let old = if by_root { id.unknown() } else { int(id, 1) };
        assert_eq!(deleted, HashSet::from([family, old]));
    }
}

#[test]
fn a_root_with_another_identity_than_its_partition_hides_no_old_value() {
    // Counterexample: By the root's identity the row before has all values, by the partition's it
    // has the key alone.
    let schema = format!(
        "{PARTED}; alter table parted add author int; alter table parted replica identity full; \
         insert into parted values (1, 5, 7); \
         create publication millpond for all tables with (publish_via_partition_root = true)"
    );
    let mut fixture = FeedFixture::with(shared(), &schema, |_| {});
    let author = fixture.watch("parted", "author", ValueClass::Integer);
    let touched = fixture.touches("update parted set author = 8");
    assert!(touched.contains(&author.unknown()));
    let touched = fixture.touches("delete from parted");
    assert!(touched.contains(&author.unknown()));
}

#[test]
fn rolled_back_changes_are_not_delivered() {
    let mut article = article("");
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
}

#[test]
fn a_prepared_transaction_is_delivered_when_it_is_committed() {
    let server = server(Options::new());
    let mut fixture = FeedFixture::new(&server, ARTICLE);
    let id = fixture.watch("article", "id", ValueClass::Integer);
    let table = broad(fixture.oid("article"));
    let prepare = "begin; insert into article values (1, null, 'a'); prepare transaction 'later'";
    assert_eq!(fixture.touches(prepare), HashSet::new());
    assert_eq!(
        fixture.touches("commit prepared 'later'"),
        HashSet::from([table, int(id, 1)])
    );
    let prepare = "begin; insert into article values (2, null, 'a'); prepare transaction 'never'";
    assert_eq!(fixture.touches(prepare), HashSet::new());
    assert_eq!(fixture.touches("rollback prepared 'never'"), HashSet::new());
}

#[test]
fn a_write_completes_with_its_own_token_and_by_no_other_node() {
    let mut fixture = FeedFixture::new(shared(), ARTICLE);
    let (token, mut arrival) = fixture.feed.link.pending.expect().unwrap();
    let write = |node: &str| {
        format!(
            "begin; insert into article values (nextval('n'), 1, 'a'); \
             select pg_logical_emit_message(true, 'millpond', '{node}:w:{token}'); commit"
        )
    };
    fixture.run("create sequence n");
    fixture.feed.sink.settle();
    fixture.run(&write("00000000000000ab"));
    fixture.feed.sink.settle();
    assert!(arrival.try_recv().is_err());
    let seen = fixture.feed.sink.len();
    fixture.run(&write("00000000000000aa"));
    let position = arrival.blocking_recv().unwrap().at();
    // It was applied before.
    let events = fixture.feed.sink.since(seen);
    assert!(
        events
            .iter()
            .any(|event| matches!(event, SinkEvent::Apply(mark, _) if mark.at == position))
    );
}

#[test]
fn a_new_interest_is_watched_from_its_epoch_on() {
    let mut fixture = FeedFixture::new(shared(), ARTICLE);
    fixture.run("insert into article values (1, 7, 'a')");
    let seen = fixture.feed.sink.len();
    let title = fixture.watch("article", "title", ValueClass::Text);
    fixture.feed.sink.wait_for_epoch(seen, "were not watched");
    let touched = fixture.touches("insert into article values (2, 7, 'b')");
    assert!(touched.contains(&title.equal_to(&"b".into()).unwrap()));
}

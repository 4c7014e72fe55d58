//! Which pages of a record shop end with which change: a schema of the shape of the Chinook sample
//! (<https://github.com/lerocha/chinook-database>), with rows of our own.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::expect;
use millpond_db::{Call, Database, Query, ReadResult, ResultRows};

use crate::support::{RecordingSink, SqliteFixture, int, wait};

/// For both databases.
pub(crate) const SCHEMA: &str = "
create table artist (id integer primary key, name text);
create table album (id integer primary key, title text, artist_id integer not null references artist);
create table genre (id integer primary key, name text);
create table media_type (id integer primary key, name text);
create table track (id integer primary key, name text, album_id integer references album, media_type_id integer not null references media_type,
    genre_id integer references genre, composer text, milliseconds integer, price integer);
create table playlist (id integer primary key, name text);
create table playlist_track (playlist_id integer references playlist, track_id integer references track, primary key (playlist_id, track_id));
create table employee (id integer primary key, name text, reports_to integer references employee);
create table customer (id integer primary key, name text, support_rep_id integer references employee);
create table invoice (id integer primary key, customer_id integer not null references customer, day text);
create table invoice_line (id integer primary key, invoice_id integer not null references invoice, track_id integer not null references track, quantity integer);
create index album_artist on album (artist_id);
create index track_album on track (album_id);
create index track_genre on track (genre_id);
create index playlist_track_track on playlist_track (track_id);
create index customer_rep on customer (support_rep_id);
create index invoice_customer on invoice (customer_id);
create index line_invoice on invoice_line (invoice_id);
create index line_track on invoice_line (track_id);
create view shown as select t.id, t.name, t.price, a.id as album_id, a.title, r.id as artist_id, r.name as artist, g.name as genre
    from track t join album a on a.id = t.album_id join artist r on r.id = a.artist_id left join genre g on g.id = t.genre_id;
create view sold as select l.invoice_id, s.name, s.artist, l.quantity, l.quantity * s.price as total
    from invoice_line l join shown s on s.id = l.track_id;
insert into artist values (1, 'r1'), (2, 'r2'), (3, 'r3'), (4, 'r4');
insert into album values (1, 'a1', 1), (2, 'a2', 1), (3, 'a3', 2), (4, 'a4', 3);
insert into genre values (1, 'g1'), (2, 'g2'), (3, 'g3'), (4, 'g4');
insert into media_type values (1, 'm1'), (2, 'm2');
insert into track values (1, 't1', 1, 1, 1, 'c', 100, 99), (2, 't2', 1, 2, 2, 'c', 100, 99), (3, 't3', 2, 1, 1, 'c', 100, 99),
    (4, 't4', 3, 1, 3, 'c', 100, 99), (5, 't5', 4, 2, 1, 'c', 100, 99), (6, 't6', 4, 2, null, 'c', 100, 99);
insert into playlist values (1, 'p1'), (2, 'p2'), (3, 'p3'), (4, 'p4');
insert into playlist_track values (1, 1), (1, 4), (2, 2), (3, 6);
insert into employee values (1, 'e1', null), (2, 'e2', 1), (3, 'e3', 1), (4, 'e4', 2);
insert into customer values (1, 'k1', 1), (2, 'k2', 1), (3, 'k3', 2), (4, 'k4', null);
insert into invoice values (1, 1, 'd1'), (2, 1, 'd2'), (3, 2, 'd3'), (4, 3, 'd4');
insert into invoice_line values (1, 1, 1, 1), (2, 1, 3, 2), (3, 2, 4, 1), (4, 3, 5, 1), (5, 4, 2, 1);
";

/// The queries of the pages, each for the rows 1 to 4.
pub(crate) const PAGES: &[(&str, &str)] = &[
    ("artist", "select * from artist where id = :id"),
    (
        "discs",
        "select a.id, a.title, count(t.id) from album a left join track t on t.album_id = a.id where a.artist_id = :id group by a.id, a.title order by a.id",
    ),
    (
        "album",
        "select a.title, r.name from album a join artist r on r.id = a.artist_id where a.id = :id",
    ),
    (
        "tracks",
        "select t.id, t.name, g.name as genre, m.name as media from track t left join genre g on g.id = t.genre_id join media_type m on m.id = t.media_type_id where t.album_id = :id order by t.id",
    ),
    (
        "track",
        "select name, title, artist, genre from shown where id = :id",
    ),
    (
        "genre",
        "select t.name, r.name as artist from genre g join track t on t.genre_id = g.id join album a on a.id = t.album_id join artist r on r.id = a.artist_id where g.id = :id order by t.id",
    ),
    (
        "playlist",
        "with x as (select track_id from playlist_track where playlist_id = :id) select t.name, a.title from x join track t on t.id = x.track_id join album a on a.id = t.album_id order by t.id",
    ),
    (
        "customer",
        "select c.name, e.name as rep, b.name as boss from customer c left join employee e on e.id = c.support_rep_id left join employee b on b.id = e.reports_to where c.id = :id",
    ),
    (
        "invoices",
        "select i.id, i.day, (select sum(l.quantity) from invoice_line l where l.invoice_id = i.id) as many from invoice i where i.customer_id = :id order by i.id",
    ),
    (
        "invoice",
        "select name, artist, total from sold where invoice_id = :id order by name",
    ),
    (
        "served",
        "select c.id, c.name from customer c where c.support_rep_id = :id and exists (select 1 from invoice i where i.customer_id = c.id) order by c.id",
    ),
    (
        "bought",
        "select t.id, t.name from track t where t.id in (select l.track_id from invoice_line l where l.invoice_id = :id) order by t.id",
    ),
    (
        "artists",
        "select name from artist where :id > 0 order by id",
    ),
];

/// Changes of one row each, and those that undo them.
const CHANGES: &[(&str, &str)] = &[
    (
        "update artist set name = 'new' where id = 1",
        "update artist set name = 'r1' where id = 1",
    ),
    (
        "update artist set name = 'new' where id = 4",
        "update artist set name = 'r4' where id = 4",
    ),
    (
        "insert into artist values (5, 'r5')",
        "delete from artist where id = 5",
    ),
    (
        "update album set title = 'new' where id = 1",
        "update album set title = 'a1' where id = 1",
    ),
    (
        "update album set artist_id = 2 where id = 2",
        "update album set artist_id = 1 where id = 2",
    ),
    (
        "insert into album values (5, 'a5', 4)",
        "delete from album where id = 5",
    ),
    (
        "update genre set name = 'new' where id = 1",
        "update genre set name = 'g1' where id = 1",
    ),
    (
        "update media_type set name = 'new' where id = 2",
        "update media_type set name = 'm2' where id = 2",
    ),
    (
        "update track set name = 'new' where id = 1",
        "update track set name = 't1' where id = 1",
    ),
    (
        "update track set album_id = 2 where id = 4",
        "update track set album_id = 3 where id = 4",
    ),
    (
        "insert into track values (7, 't7', 3, 1, 4, 'c', 1, 99)",
        "delete from track where id = 7",
    ),
    (
        "update playlist set name = 'new' where id = 1",
        "update playlist set name = 'p1' where id = 1",
    ),
    (
        "insert into playlist_track values (4, 2)",
        "delete from playlist_track where playlist_id = 4",
    ),
    (
        "update employee set name = 'new' where id = 1",
        "update employee set name = 'e1' where id = 1",
    ),
    (
        "update employee set reports_to = 3 where id = 2",
        "update employee set reports_to = 1 where id = 2",
    ),
    (
        "update customer set name = 'new' where id = 1",
        "update customer set name = 'k1' where id = 1",
    ),
    (
        "update customer set support_rep_id = 2 where id = 4",
        "update customer set support_rep_id = null where id = 4",
    ),
    (
        "insert into invoice values (5, 4, 'd5')",
        "delete from invoice where id = 5",
    ),
    (
        "update invoice_line set quantity = 9 where id = 1",
        "update invoice_line set quantity = 1 where id = 1",
    ),
    (
        "insert into invoice_line values (6, 2, 6, 1)",
        "delete from invoice_line where id = 6",
    ),
];

/// A database with a cache of the pages.
pub(crate) struct Shop<'a> {
    database: &'a Database,
    sink: &'a RecordingSink,
    queries: Vec<Query>,
}

/// The pages that a change has ended, by name: the ids of those that it has changed, and of those
/// that it has not.
type Ended = BTreeMap<&'static str, (Vec<i64>, Vec<i64>)>;

impl<'a> Shop<'a> {
    pub(crate) fn new(database: &'a Database, sink: &'a RecordingSink) -> Self {
        let prepared = PAGES.iter().map(|(_, sql)| database.prepare(sql).unwrap());
        let queries = prepared.collect();
        let shop = Self {
            database,
            sink,
            queries,
        };
        // What is selected by for the first time begins an epoch.
        shop.fill();
        shop
    }

    /// Lists the pages that each change ends, one line each: the pages that it has changed, and
    /// behind a star those that it has not.
    ///
    /// # Panics
    /// If a page is kept that is not as it was.
    pub(crate) fn table(&self, mut change: impl FnMut(&str)) -> String {
        let mut lines = String::new();
        self.each_change(&mut change, |sql, ended| {
            let mut line = String::new();
            for (page, (changed, unchanged)) in ended {
                line += &format!(" {page} {}", list(&changed));
                if !unchanged.is_empty() {
                    line += &format!("*{}", list(&unchanged));
                }
            }
            if line.is_empty() {
                line += " nothing";
            }
            writeln!(lines, "{sql}\n   {line}").unwrap();
        });
        lines
    }

    /// The changes that end other pages than those that they have changed, with the others.
    ///
    /// # Panics
    /// If a page is kept that is not as it was.
    pub(crate) fn besides(&self, mut change: impl FnMut(&str)) -> String {
        let mut lines = String::new();
        self.each_change(&mut change, |sql, ended| {
            let mut line = String::new();
            for (page, (_, unchanged)) in ended {
                if !unchanged.is_empty() {
                    line += &format!(" {page} {}", list(&unchanged));
                }
            }
            if !line.is_empty() {
                writeln!(lines, "{sql}\n   {line}").unwrap();
            }
        });
        lines
    }

    fn each_change(&self, change: &mut impl FnMut(&str), mut report: impl FnMut(&str, Ended)) {
        for (forth, back) in CHANGES {
            for sql in [forth, back] {
                let before = self.fill();
                let epoch = self.sink.epoch();
                change(sql);
                report(sql, self.ended(sql, before));
                let calls = self.sink.calls();
                assert_eq!(self.sink.epoch(), epoch, "{sql}: {:?}", calls.last());
            }
        }
    }

    /// Keeps all pages, and returns what they show.
    fn fill(&self) -> Vec<Vec<ResultRows>> {
        all().map(|(page, id)| self.keep(page, id)).collect()
    }

    fn keep(&self, page: usize, id: i64) -> Vec<ResultRows> {
        let key = key(page, id);
        for _ in 0..1_000 {
            if let Some(kept) = self.sink.cached(&key) {
                return kept.rows;
            }
            let epoch = self.sink.epoch();
            if !self.sink.store(&key, epoch, &self.read(page, id)) {
                self.sink.settle();
            }
        }
        panic!("{key} is never kept: {:?}", self.read(page, id).deps);
    }

    fn read(&self, page: usize, id: i64) -> ReadResult {
        let call = Call {
            query: self.queries[page].clone(),
            params: vec![int(id)],
        };
        wait(self.database.read(vec![call])).unwrap()
    }

    fn ended(&self, change: &str, before: Vec<Vec<ResultRows>>) -> Ended {
        let mut ended = Ended::new();
        for ((page, id), before) in all().zip(before) {
            let name = PAGES[page].0;
            let has_changed = self.read(page, id).results != before;
            if self.sink.cached(&key(page, id)).is_some() {
                assert!(!has_changed, "{name} {id} is stale after {change}");
                continue;
            }
            let (changed, unchanged) = ended.entry(name).or_default();
            if has_changed { changed } else { unchanged }.push(id);
        }
        ended
    }
}

/// Each page with each id.
fn all() -> impl Iterator<Item = (usize, i64)> {
    (0..PAGES.len()).flat_map(|page| (1..=4).map(move |id| (page, id)))
}

fn key(page: usize, id: i64) -> String {
    format!("{} {id}", PAGES[page].0)
}

fn list(ids: &[i64]) -> String {
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    ids.join(",")
}

#[test]
fn exactly_the_pages_that_show_a_row_end_with_it() {
    let fixture = SqliteFixture::new(SCHEMA);
    let shop = Shop::new(&fixture.database, &fixture.sink);
    let table = shop.table(|sql| {
        fixture.write(sql, vec![]);
    });
    expect![[r#"
        update artist set name = 'new' where id = 1
            album 1,2 artist 1 artists 1,2,3,4 genre 1,2 invoice 1,4 track 1,2,3
        update artist set name = 'r1' where id = 1
            album 1,2 artist 1 artists 1,2,3,4 genre 1,2 invoice 1,4 track 1,2,3
        update artist set name = 'new' where id = 4
            artist 4 artists 1,2,3,4
        update artist set name = 'r4' where id = 4
            artist 4 artists 1,2,3,4
        insert into artist values (5, 'r5')
            artists 1,2,3,4
        delete from artist where id = 5
            artists 1,2,3,4
        update album set title = 'new' where id = 1
            album 1 discs 1 invoice *1,4 playlist 1,2 track 1,2
        update album set title = 'a1' where id = 1
            album 1 discs 1 invoice *1,4 playlist 1,2 track 1,2
        update album set artist_id = 2 where id = 2
            album 2 discs 1,2 genre 1 invoice 1 track 3
        update album set artist_id = 1 where id = 2
            album 2 discs 1,2 genre 1 invoice 1 track 3
        insert into album values (5, 'a5', 4)
            discs 4
        delete from album where id = 5
            discs 4
        update genre set name = 'new' where id = 1
            invoice *1,3 track 1,3 tracks 1,2,4
        update genre set name = 'g1' where id = 1
            invoice *1,3 track 1,3 tracks 1,2,4
        update media_type set name = 'new' where id = 2
            tracks 1,4
        update media_type set name = 'm2' where id = 2
            tracks 1,4
        update track set name = 'new' where id = 1
            bought 1 discs *1 genre 1 invoice 1 playlist 1 track 1 tracks 1
        update track set name = 't1' where id = 1
            bought 1 discs *1 genre 1 invoice 1 playlist 1 track 1 tracks 1
        update track set album_id = 2 where id = 4
            discs 1,2 genre 3 invoice 2 playlist 1 track 4 tracks 2,3
        update track set album_id = 3 where id = 4
            discs 1,2 genre 3 invoice 2 playlist 1 track 4 tracks 2,3
        insert into track values (7, 't7', 3, 1, 4, 'c', 1, 99)
            discs 2 genre 4 tracks 3
        delete from track where id = 7
            discs 2 genre 4 tracks 3
        update playlist set name = 'new' where id = 1
            nothing
        update playlist set name = 'p1' where id = 1
            nothing
        insert into playlist_track values (4, 2)
            playlist 4
        delete from playlist_track where playlist_id = 4
            playlist 4
        update employee set name = 'new' where id = 1
            customer 1,2,3
        update employee set name = 'e1' where id = 1
            customer 1,2,3
        update employee set reports_to = 3 where id = 2
            customer 3
        update employee set reports_to = 1 where id = 2
            customer 3
        update customer set name = 'new' where id = 1
            customer 1 served 1
        update customer set name = 'k1' where id = 1
            customer 1 served 1
        update customer set support_rep_id = 2 where id = 4
            customer 4 served *2
        update customer set support_rep_id = null where id = 4
            customer 4 served *2
        insert into invoice values (5, 4, 'd5')
            invoices 4
        delete from invoice where id = 5
            invoices 4
        update invoice_line set quantity = 9 where id = 1
            invoice 1 invoices 1
        update invoice_line set quantity = 1 where id = 1
            invoice 1 invoices 1
        insert into invoice_line values (6, 2, 6, 1)
            bought 2 invoice 2 invoices 1
        delete from invoice_line where id = 6
            bought 2 invoice 2 invoices 1
    "#]]
    .assert_eq(&table);
}

/// The triggers record all values, old and new, but not which columns were changed.
#[test]
fn another_program_ends_the_pages_that_show_a_row() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let foreign = fixture.foreign();
    let besides = Shop::new(&fixture.database, &fixture.sink).besides(|sql| {
        foreign.execute_batch(sql).unwrap();
        fixture.sink.settle();
    });
    expect![[r#"
        update album set title = 'new' where id = 1
            invoice 1,4
        update album set title = 'a1' where id = 1
            invoice 1,4
        update genre set name = 'new' where id = 1
            invoice 1,3
        update genre set name = 'g1' where id = 1
            invoice 1,3
        update track set name = 'new' where id = 1
            discs 1
        update track set name = 't1' where id = 1
            discs 1
        update customer set support_rep_id = 2 where id = 4
            served 2
        update customer set support_rep_id = null where id = 4
            served 2
    "#]]
    .assert_eq(&besides);
}

//! The tables that the scenario is about, and what can be told apart in them.

use std::fmt;

use crate::coherence::rules;

/// Accounts, numbered from 1.
pub(crate) const ACCOUNTS: u32 = 12;
/// Names of owners of accounts.
pub(crate) const OWNERS: [&str; 4] = ["ada", "bob", "cy", "d'eon"];
/// The sum of all balances, which no transfer changes.
pub(crate) const MONEY: u64 = ACCOUNTS as u64 * 1000;
/// Items on shelves, and as many boxes.
pub(crate) const ITEMS: u32 = 10;
/// Shelves, numbered from 0.
pub(crate) const SHELVES: u32 = 3;
/// Guests; each sits on a seat of its own.
pub(crate) const GUESTS: u32 = 5;
/// Seats, numbered from 0: some stay empty.
pub(crate) const SEATS: u32 = 8;
/// Songs, each on an album; an album is of an artist, and an artist has a publisher.
pub(crate) const SONGS: u32 = 8;
/// Albums, numbered from 1.
pub(crate) const ALBUMS: u32 = 6;
/// Artists, numbered from 1.
pub(crate) const ARTISTS: u32 = 4;
/// Publishers, numbered from 1.
pub(crate) const PUBLISHERS: u32 = 3;
/// Rules, numbered from 0.
pub(crate) const RULES: u32 = 8;
/// Pieces of scrap in every state of that table.
pub(crate) const PIECES: i32 = 5;

/// A kind of thing that has versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ThingKind {
    /// A row of `account` with its row of `mirror`; its place is the owner, a text.
    Account,
    /// A row of `item`, whose old values the feed carries in full; its place is the shelf.
    Item,
    /// A row of `box`, where the feed carries the old key alone.
    Boxed,
    /// A row of `seat`, by its guest; its place is the primary key, so that moves change keys.
    Guest,
    /// The newest entry of an account, in a partitioned table.
    Entries,
    /// The table that is truncated and filled again; there is one.
    Scrap,
    /// The constant within a view that is replaced; there is one.
    Label,
    /// A row of `song`; its place is the album, by the key that joins them.
    Song,
    /// A row of `album`, of which each of its songs has the version; its place is the artist.
    Album,
    /// A row of `artist`, of which each of its albums has the version; its place is the publisher.
    Artist,
    /// A row of `publisher`, of which each of its artists has the version.
    Publisher,
    /// Dependency of pages besides rows ([`rules`](super::rules)).
    Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Thing(pub(crate) ThingKind, pub(crate) u32);

impl fmt::Display for Thing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} {}", self.0, self.1)
    }
}

impl ThingKind {
    /// The numbers of the things of this kind.
    pub(crate) fn ids(self) -> std::ops::Range<u32> {
        match self {
            Self::Account | Self::Entries => 1..ACCOUNTS + 1,
            Self::Item | Self::Boxed => 1..ITEMS + 1,
            Self::Guest => 1..GUESTS + 1,
            Self::Scrap | Self::Label => 0..1,
            Self::Song => 1..SONGS + 1,
            Self::Album => 1..ALBUMS + 1,
            Self::Artist => 1..ARTISTS + 1,
            Self::Publisher => 1..PUBLISHERS + 1,
            Self::Rule => 0..RULES,
        }
    }
}

/// The place of a thing before its first move; `None` for kinds without a place.
pub(crate) fn first_place(Thing(kind, id): Thing) -> Option<String> {
    match kind {
        ThingKind::Account => Some(OWNERS[id as usize % OWNERS.len()].to_owned()),
        ThingKind::Item | ThingKind::Boxed => Some((id % SHELVES).to_string()),
        ThingKind::Guest => Some(id.to_string()),
        ThingKind::Song => Some((id % ALBUMS + 1).to_string()),
        ThingKind::Album => Some((id % ARTISTS + 1).to_string()),
        ThingKind::Artist => Some((id % PUBLISHERS + 1).to_string()),
        ThingKind::Entries
        | ThingKind::Scrap
        | ThingKind::Label
        | ThingKind::Publisher
        | ThingKind::Rule => None,
    }
}

/// Every thing of the schema.
pub(crate) fn things() -> impl Iterator<Item = Thing> {
    let kinds = [
        ThingKind::Account,
        ThingKind::Item,
        ThingKind::Boxed,
        ThingKind::Guest,
        ThingKind::Entries,
        ThingKind::Scrap,
        ThingKind::Label,
        ThingKind::Song,
        ThingKind::Album,
        ThingKind::Artist,
        ThingKind::Publisher,
        ThingKind::Rule,
    ];
    kinds
        .into_iter()
        .flat_map(|kind| kind.ids().map(move |id| Thing(kind, id)))
}

/// The statement that makes the view `label` show `number`.
pub(crate) fn label(number: u64) -> String {
    format!("create or replace view label as select id, {number}::bigint as label from account")
}

/// Returns the statements that make the view show `number` on SQLite, in a transaction.
pub(crate) fn label_on_sqlite(number: u64) -> String {
    format!("drop view label; create view label as select id, {number} as label from account")
}

/// The tables in their first state, and the publication that the feeds read.
pub(crate) fn create() -> String {
    let views = label(0);
    format!(
        "{TABLES}{ENTRIES}{OLD_VALUES}{}{views};\n{};\ncreate publication millpond for all tables;\n",
        rows(),
        rules::create()
    )
}

/// The tables in their first state on SQLite.
pub(crate) fn create_on_sqlite() -> String {
    let entries = "create table entry (account_id int not null, number bigint not null, primary key (account_id, number));";
    format!(
        "{TABLES}{entries}{}create view label as select id, 0 as label from account;\n",
        rows()
    )
}

/// The statements that fill the tables.
fn rows() -> String {
    let mut sql = String::new();
    let mut insert = |table: &str, values: String| {
        sql += &format!("insert into {table} values ({values});\n");
    };
    for Thing(kind, id) in things() {
        let place = first_place(Thing(kind, id)).unwrap_or_default();
        match kind {
            ThingKind::Account => {
                let owner = place.replace('\'', "''");
                insert("account", format!("{id}, '{owner}', 1000, 0, 0"));
                insert("mirror", format!("{id}, 0, 0"));
            }
            ThingKind::Item => insert("item", format!("{id}, {place}, 0")),
            ThingKind::Boxed => insert("box", format!("{id}, {place}, 0")),
            ThingKind::Guest => insert("seat", format!("{place}, {id}, 0")),
            ThingKind::Entries => insert("entry", format!("{id}, 0")),
            ThingKind::Scrap => {
                (1..=PIECES).for_each(|piece| insert("scrap", format!("{piece}, 0")))
            }
            ThingKind::Song => insert("song", format!("{id}, {place}, 0, 0")),
            ThingKind::Album => insert("album", format!("{id}, {place}, 0, 0")),
            ThingKind::Artist => insert("artist", format!("{id}, {place}, 0, 0")),
            ThingKind::Publisher => insert("publisher", format!("{id}, 0")),
            ThingKind::Label | ThingKind::Rule => {}
        }
    }
    sql
}

const TABLES: &str = "
create table account (id int primary key, owner text not null, balance bigint not null, version bigint not null, stamp bigint not null);
create index account_owner on account (owner);
create table mirror (account_id int primary key, version bigint not null, stamp bigint not null);
create table item (id bigint primary key, shelf int not null, version bigint not null);
create table box (id bigint primary key, shelf int not null, version bigint not null);
create table seat (id int primary key, guest int not null unique, version bigint not null);
create table scrap (piece int primary key, round bigint not null);
create table round (id int primary key, round bigint not null);
insert into round values (0, 0);
create table bulk (id bigint primary key, filling text not null);
create view account_state as
    select a.id, a.version, m.version as mirrored from account a join mirror m on m.account_id = a.id;
create table song (id int primary key, album int not null, version bigint not null, copied bigint not null);
create index song_album on song (album);
create table album (id int primary key, artist int not null, version bigint not null, copied bigint not null);
create index album_artist on album (artist);
create table artist (id int primary key, publisher int not null, version bigint not null, copied bigint not null);
create index artist_publisher on artist (publisher);
create table publisher (id int primary key, version bigint not null);
create view release as
    select b.id, b.version, b.copied, r.id as artist, r.version as artist_version, r.publisher
    from album b join artist r on r.id = b.artist;
";
/// A partitioned table.
const ENTRIES: &str = "
create table entry (account_id int not null, number bigint not null, primary key (account_id, number)) partition by hash (account_id);
create table entry_0 partition of entry for values with (modulus 2, remainder 0);
create table entry_1 partition of entry for values with (modulus 2, remainder 1);
";
/// Of these tables the feed has all old values, of the others the old keys.
const OLD_VALUES: &str = "
alter table mirror replica identity full;
alter table item replica identity full;
alter table album replica identity full;
alter table artist replica identity full;
";

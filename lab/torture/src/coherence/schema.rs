//! The tables that the scenario is about, and what can be told apart in them.

use std::fmt;

/// Accounts, numbered from 1.
pub(crate) const ACCOUNTS: u32 = 12;
/// Who may own an account.
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
/// Pieces of scrap in every state of that table.
pub(crate) const PIECES: i32 = 5;

/// A kind of thing that has versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ThingKind {
    /// A row of `account` with its row of `mirror`; its place is the owner, a text.
    Account,
    /// A row of `item`, whose old values the feed carries in full; its place is the shelf.
    Item,
    /// The same in `box`, where the feed carries the old key alone.
    Boxed,
    /// A row of `seat`, by its guest; its place is the primary key, so that moves change keys.
    Guest,
    /// The newest entry of an account, in a partitioned table.
    Entries,
    /// The table that is truncated and filled again; there is one.
    Scrap,
    /// The constant within a view that is replaced; there is one.
    Label,
}

/// One thing of a kind.
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
        }
    }
}

/// The place of a thing before its first move; `None` for kinds without a place.
pub(crate) fn first_place(Thing(kind, id): Thing) -> Option<String> {
    match kind {
        ThingKind::Account => Some(OWNERS[id as usize % OWNERS.len()].to_owned()),
        ThingKind::Item | ThingKind::Boxed => Some((id % SHELVES).to_string()),
        ThingKind::Guest => Some(id.to_string()),
        ThingKind::Entries | ThingKind::Scrap | ThingKind::Label => None,
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
    ];
    kinds
        .into_iter()
        .flat_map(|kind| kind.ids().map(move |id| Thing(kind, id)))
}

/// The statement that makes the view `label` show `number`.
pub(crate) fn label(number: u64) -> String {
    format!("create or replace view label as select id, {number}::bigint as label from account")
}

/// The tables in their first state, and the publication that the feeds read.
pub(crate) fn create() -> String {
    let mut sql = TABLES.to_owned();
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
            ThingKind::Label => {}
        }
    }
    sql + &label(0) + ";\ncreate publication millpond for all tables;\n"
}

const TABLES: &str = "
create table account (id int primary key, owner text not null, balance bigint not null, version bigint not null, stamp bigint not null);
create index on account (owner);
create table mirror (account_id int primary key, version bigint not null, stamp bigint not null);
alter table mirror replica identity full;
create table item (id bigint primary key, shelf int not null, version bigint not null);
alter table item replica identity full;
create table box (id bigint primary key, shelf int not null, version bigint not null);
create table seat (id int primary key, guest int not null unique, version bigint not null);
create table entry (account_id int not null, number bigint not null, primary key (account_id, number)) partition by hash (account_id);
create table entry_0 partition of entry for values with (modulus 2, remainder 0);
create table entry_1 partition of entry for values with (modulus 2, remainder 1);
create table scrap (piece int primary key, round bigint not null);
create table round (id int primary key, round bigint not null);
insert into round values (0, 0);
create table bulk (id bigint primary key, filling text not null);
create view account_state as
    select a.id, a.version, m.version as mirrored from account a join mirror m on m.account_id = a.id;
";

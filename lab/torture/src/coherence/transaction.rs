//! What a transaction does, one statement at a time.

use crate::Choices;

use crate::coherence::database::{SqlConnection, StatementValue};
use crate::coherence::log::Change;
use crate::coherence::schema::{
    ACCOUNTS, ALBUMS, ARTISTS, GUESTS, ITEMS, OWNERS, PIECES, PUBLISHERS, SEATS, SHELVES, SONGS,
    Thing, ThingKind,
};
use crate::coherence::shop;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionStep {
    /// The version of an account, and of its mirror.
    Raise,
    /// Money from one account to another.
    Transfer,
    /// Another owner for an account.
    Sell,
    /// An item on another shelf, or the same.
    MoveItem,
    /// A box on another shelf, or on the one it has.
    MoveBox,
    /// A guest on another seat, whose number is the primary key.
    MoveGuest,
    /// A new entry of an account, and the end of old ones.
    Enter,
    /// The table of scrap truncated and filled again.
    Truncate,
    /// A row behind the joins along keys, with its copies before them.
    Rename,
    /// The key of a song, an album or an artist, which then belongs to another row.
    MoveKey,
}

/// Entries that are kept of one account.
const ENTRIES: i64 = 20;

impl TransactionStep {
    /// Any step; seldom one that locks a whole table.
    pub(crate) fn any(choices: &mut Choices<'_>) -> Self {
        match choices.below(21) {
            0..3 => Self::Raise,
            3..5 => Self::Transfer,
            5..7 => Self::Sell,
            7..9 => Self::MoveItem,
            9..11 => Self::MoveBox,
            11..13 => Self::MoveGuest,
            13 => Self::Enter,
            14 => Self::Truncate,
            15..18 => Self::Rename,
            _ => Self::MoveKey,
        }
    }

    /// Does it, as the write with this number.
    ///
    /// # Errors
    /// The server refused it: a seat is taken, there is a deadlock, or it is away.
    pub(crate) fn run<D: SqlConnection>(
        self,
        client: &mut D,
        write: u64,
        choices: &mut Choices<'_>,
    ) -> Result<Vec<Change>, D::Error> {
        let mut number = |bound: u32| u32::try_from(choices.below(bound as usize)).unwrap_or(0);
        match self {
            Self::Raise => Ok(vec![raise(client, number(ACCOUNTS) + 1, 0, None, write)?]),
            Self::Transfer => {
                let from = number(ACCOUNTS) + 1;
                let to = from % ACCOUNTS + 1;
                Ok(vec![
                    raise(client, from, -7, None, write)?,
                    raise(client, to, 7, None, write)?,
                ])
            }
            Self::Sell => {
                let (id, owner) = (number(ACCOUNTS) + 1, number(OWNERS.len() as u32));
                let owner = OWNERS[owner as usize];
                Ok(vec![raise(client, id, 0, Some(owner), write)?])
            }
            Self::MoveItem => {
                let item = Thing(ThingKind::Item, number(ITEMS) + 1);
                put(client, ("item", "shelf", "id"), item, number(SHELVES))
            }
            Self::MoveBox => {
                let boxed = Thing(ThingKind::Boxed, number(ITEMS) + 1);
                put(client, ("box", "shelf", "id"), boxed, number(SHELVES))
            }
            Self::MoveGuest => {
                let guest = Thing(ThingKind::Guest, number(GUESTS) + 1);
                put(client, ("seat", "id", "guest"), guest, number(SEATS))
            }
            Self::Enter => enter(client, number(ACCOUNTS) + 1),
            Self::Truncate => truncate(client),
            Self::Rename => match number(3) {
                0 => shop::rename(client, Thing(ThingKind::Album, number(ALBUMS) + 1)),
                1 => shop::rename(client, Thing(ThingKind::Artist, number(ARTISTS) + 1)),
                _ => shop::rename(client, Thing(ThingKind::Publisher, number(PUBLISHERS) + 1)),
            },
            Self::MoveKey => {
                let (thing, places) = match number(3) {
                    0 => (Thing(ThingKind::Song, number(SONGS) + 1), ALBUMS),
                    1 => (Thing(ThingKind::Album, number(ALBUMS) + 1), ARTISTS),
                    _ => (Thing(ThingKind::Artist, number(ARTISTS) + 1), PUBLISHERS),
                };
                shop::move_key(client, thing, number(places) + 1)
            }
        }
    }
}

/// The next version of an account and of its mirror, with this much more money, and perhaps another
/// owner.
pub(crate) fn raise<D: SqlConnection>(
    client: &mut D,
    id: u32,
    money: i64,
    owner: Option<&str>,
    write: u64,
) -> Result<Change, D::Error> {
    let (row, stamp) = (integer(id), StatementValue::Integer(write.cast_signed()));
    let version = client.number(
        "update account set version = version + 1, stamp = $2, balance = balance + $3, owner = coalesce($4, owner) \
         where id = $1 returning version",
        &[row, stamp, StatementValue::Integer(money), StatementValue::Text(owner)],
    )?;
    client.run(
        "update mirror set version = version + 1, stamp = $2 where account_id = $1",
        &[row, stamp],
    )?;
    Ok(Change {
        thing: Thing(ThingKind::Account, id),
        version: version.unsigned_abs(),
        place: owner.map(str::to_owned),
    })
}

fn integer(id: u32) -> StatementValue<'static> {
    StatementValue::Integer(id.into())
}

/// Puts a thing into a place: that column of the row that has its number in the other column.
fn put<D: SqlConnection>(
    client: &mut D,
    (table, place, number): (&str, &str, &str),
    thing: Thing,
    to: u32,
) -> Result<Vec<Change>, D::Error> {
    let statement = format!(
        "update {table} set {place} = $2, version = version + 1 where {number} = $1 returning version"
    );
    let version = client.number(&statement, &[integer(thing.1), integer(to)])?;
    Ok(vec![Change {
        thing,
        version: version.unsigned_abs(),
        place: Some(to.to_string()),
    }])
}

fn placeless(thing: Thing, version: i64) -> Vec<Change> {
    vec![Change {
        thing,
        version: version.unsigned_abs(),
        place: None,
    }]
}

/// The lock of the account makes entries come one after the other.
fn enter<D: SqlConnection>(client: &mut D, id: u32) -> Result<Vec<Change>, D::Error> {
    client.locked("select id from account where id = $1", &[integer(id)])?;
    let number = client.number(
        "insert into entry select $1, max(number) + 1 from entry where account_id = $1 returning number",
        &[integer(id)],
    )?;
    client.run(
        "delete from entry where account_id = $1 and number < $2",
        &[integer(id), StatementValue::Integer(number - ENTRIES)],
    )?;
    Ok(placeless(Thing(ThingKind::Entries, id), number))
}

fn truncate<D: SqlConnection>(client: &mut D) -> Result<Vec<Change>, D::Error> {
    let round = client.number("update round set round = round + 1 returning round", &[])?;
    client.batch(&format!("{} scrap", D::EMPTY))?;
    for piece in 1..=PIECES {
        client.run(
            "insert into scrap values ($1, $2)",
            &[
                StatementValue::Integer(piece.into()),
                StatementValue::Integer(round),
            ],
        )?;
    }
    Ok(placeless(Thing(ThingKind::Scrap, 0), round))
}

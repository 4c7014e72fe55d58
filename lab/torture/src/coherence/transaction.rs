//! What a transaction does, one statement at a time.

use crate::Choices;
use postgres::{Client, Error, Row};

use crate::coherence::log::Change;
use crate::coherence::schema::{
    ACCOUNTS, GUESTS, ITEMS, OWNERS, PIECES, SEATS, SHELVES, Thing, ThingKind,
};

/// One step of a transaction.
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
    /// The same for a box.
    MoveBox,
    /// A guest on another seat, whose number is the primary key.
    MoveGuest,
    /// A new entry of an account, and the end of old ones.
    Enter,
    /// The table of scrap truncated and filled again.
    Truncate,
}

/// Entries that are kept of one account.
const ENTRIES: i64 = 20;

impl TransactionStep {
    /// Any step; seldom one that locks a whole table.
    pub(crate) fn any(choices: &mut Choices<'_>) -> Self {
        match choices.below(15) {
            0..3 => Self::Raise,
            3..5 => Self::Transfer,
            5..7 => Self::Sell,
            7..9 => Self::MoveItem,
            9..11 => Self::MoveBox,
            11..13 => Self::MoveGuest,
            13 => Self::Enter,
            _ => Self::Truncate,
        }
    }

    /// Does it, as the write with this number.
    ///
    /// # Errors
    /// The server refused it: a seat is taken, there is a deadlock, or it is away.
    pub(crate) fn run(
        self,
        client: &mut Client,
        write: u64,
        choices: &mut Choices<'_>,
    ) -> Result<Vec<Change>, Error> {
        let mut number =
            |bound: u32| i32::try_from(choices.below(bound as usize)).unwrap_or_default();
        match self {
            Self::Raise => Ok(vec![raise(client, number(ACCOUNTS) + 1, 0, None, write)?]),
            Self::Transfer => {
                let from = number(ACCOUNTS) + 1;
                let to = from % ACCOUNTS.cast_signed() + 1;
                Ok(vec![
                    raise(client, from, -7, None, write)?,
                    raise(client, to, 7, None, write)?,
                ])
            }
            Self::Sell => {
                let (id, owner) = (number(ACCOUNTS) + 1, number(OWNERS.len() as u32));
                let owner = OWNERS[owner.unsigned_abs() as usize];
                Ok(vec![raise(client, id, 0, Some(owner), write)?])
            }
            Self::MoveItem => {
                let text = "update item set shelf = $2, version = version + 1 where id = $1 returning version";
                let (id, shelf) = (number(ITEMS) + 1, number(SHELVES));
                let row = client.query_one(text, &[&i64::from(id), &shelf])?;
                Ok(vec![moved(ThingKind::Item, id, &row, shelf)])
            }
            Self::MoveBox => {
                let text = "update box set shelf = $2, version = version + 1 where id = $1 returning version";
                let (id, shelf) = (number(ITEMS) + 1, number(SHELVES));
                let row = client.query_one(text, &[&i64::from(id), &shelf])?;
                Ok(vec![moved(ThingKind::Boxed, id, &row, shelf)])
            }
            Self::MoveGuest => {
                let text = "update seat set id = $2, version = version + 1 where guest = $1 returning version";
                let (guest, seat) = (number(GUESTS) + 1, number(SEATS));
                let row = client.query_one(text, &[&guest, &seat])?;
                Ok(vec![moved(ThingKind::Guest, guest, &row, seat)])
            }
            Self::Enter => enter(client, number(ACCOUNTS) + 1),
            Self::Truncate => truncate(client),
        }
    }
}

/// The next version of an account and of its mirror, with this much more money, and perhaps another
/// owner.
pub(crate) fn raise(
    client: &mut Client,
    id: i32,
    money: i64,
    owner: Option<&str>,
    write: u64,
) -> Result<Change, Error> {
    let stamp = write.cast_signed();
    let row = client.query_one(
        "update account set version = version + 1, stamp = $2, balance = balance + $3, owner = coalesce($4, owner) \
         where id = $1 returning version",
        &[&id, &stamp, &money, &owner],
    )?;
    client.execute(
        "update mirror set version = version + 1, stamp = $2 where account_id = $1",
        &[&id, &stamp],
    )?;
    Ok(Change {
        thing: Thing(ThingKind::Account, id.unsigned_abs()),
        version: row.get::<_, i64>(0).unsigned_abs(),
        place: owner.map(str::to_owned),
    })
}

fn moved(kind: ThingKind, id: i32, row: &Row, place: i32) -> Change {
    Change {
        thing: Thing(kind, id.unsigned_abs()),
        version: row.get::<_, i64>(0).unsigned_abs(),
        place: Some(place.to_string()),
    }
}

fn placeless(kind: ThingKind, id: i32, version: i64) -> Vec<Change> {
    vec![Change {
        thing: Thing(kind, id.unsigned_abs()),
        version: version.unsigned_abs(),
        place: None,
    }]
}

/// The lock of the account makes entries come one after the other.
fn enter(client: &mut Client, id: i32) -> Result<Vec<Change>, Error> {
    client.execute("select from account where id = $1 for update", &[&id])?;
    let row = client.query_one(
        "insert into entry select $1, max(number) + 1 from entry where account_id = $1 returning number",
        &[&id],
    )?;
    let number: i64 = row.get(0);
    client.execute(
        "delete from entry where account_id = $1 and number < $2",
        &[&id, &(number - ENTRIES)],
    )?;
    Ok(placeless(ThingKind::Entries, id, number))
}

fn truncate(client: &mut Client) -> Result<Vec<Change>, Error> {
    let row = client.query_one("update round set round = round + 1 returning round", &[])?;
    let round: i64 = row.get(0);
    client.batch_execute("truncate scrap")?;
    client.execute(
        "insert into scrap select piece, $1 from generate_series(1, $2::int) piece",
        &[&round, &PIECES],
    )?;
    Ok(placeless(ThingKind::Scrap, 0, round))
}

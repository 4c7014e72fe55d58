//! Writes to the tables that are joined along keys.
//!
//! A row has the version of the row that its key leads to, as a copy, so a page that joins rows of
//! two states shows it. A writer of a copy holds the lock of the row that the copy is from.

use crate::Choices;

use crate::coherence::database::{SqlConnection, StatementValue};
use crate::coherence::log::Change;
use crate::coherence::schema::{ALBUMS, ARTISTS, PUBLISHERS, SONGS, Thing, ThingKind};

/// Step of a form on one thing.
pub(crate) struct ShopStep {
    pub(crate) form: &'static str,
    pub(crate) thing: Thing,
    /// Place of the thing from then on.
    pub(crate) place: Option<u32>,
}

impl ShopStep {
    /// Any of them; only with `moves` one after which a thing has another place.
    pub(crate) fn any(choices: &mut Choices<'_>, moves: bool) -> Self {
        let mut number = |bound: u32| u32::try_from(choices.below(bound as usize)).unwrap_or(0);
        let (form, kind, things, places) = match number(if moves { 6 } else { 3 }) {
            0 => ("/rename_album", ThingKind::Album, ALBUMS, None),
            1 => ("/rename_artist", ThingKind::Artist, ARTISTS, None),
            2 => ("/rename_publisher", ThingKind::Publisher, PUBLISHERS, None),
            3 => ("/move_song", ThingKind::Song, SONGS, Some(ALBUMS)),
            4 => ("/move_album", ThingKind::Album, ALBUMS, Some(ARTISTS)),
            _ => ("/move_artist", ThingKind::Artist, ARTISTS, Some(PUBLISHERS)),
        };
        Self {
            form,
            thing: Thing(kind, number(things) + 1),
            place: places.map(|places| number(places) + 1),
        }
    }
}

/// The table of a kind, and its column with the place.
fn columns(kind: ThingKind) -> (&'static str, &'static str) {
    match kind {
        ThingKind::Song => ("song", "album"),
        ThingKind::Album => ("album", "artist"),
        ThingKind::Artist => ("artist", "publisher"),
        _ => ("publisher", "id"),
    }
}

/// Whose rows have a copy of the version of this kind.
fn before(kind: ThingKind) -> Option<ThingKind> {
    match kind {
        ThingKind::Publisher => Some(ThingKind::Artist),
        ThingKind::Artist => Some(ThingKind::Album),
        ThingKind::Album => Some(ThingKind::Song),
        _ => None,
    }
}

/// The next version of a thing, with all copies of it.
pub(crate) fn rename<D: SqlConnection>(
    client: &mut D,
    thing: Thing,
) -> Result<Vec<Change>, D::Error> {
    let Thing(kind, id) = thing;
    let (table, _) = columns(kind);
    let version = client.number(
        &format!("update {table} set version = version + 1 where id = $1 returning version"),
        &[StatementValue::Integer(id.into())],
    )?;
    copy(client, thing, version)?;
    Ok(change(thing, version, None))
}

/// Another place for a thing, whose version is copied into it.
pub(crate) fn move_key<D: SqlConnection>(
    client: &mut D,
    thing: Thing,
    place: u32,
) -> Result<Vec<Change>, D::Error> {
    let Thing(kind, id) = thing;
    let (table, key) = columns(kind);
    let to = StatementValue::Integer(place.into());
    let copied = client.locked(&format!("select version from {key} where id = $1"), &[to])?;
    let version = client.number(
        &format!(
            "update {table} set {key} = $2, copied = $3, version = version + 1 where id = $1 returning version"
        ),
        &[StatementValue::Integer(id.into()), to, StatementValue::Integer(copied)],
    )?;
    copy(client, thing, version)?;
    Ok(change(thing, version, Some(place.to_string())))
}

/// A thing that was moved away meanwhile has its copy from elsewhere.
fn copy<D: SqlConnection>(
    client: &mut D,
    Thing(kind, id): Thing,
    version: i64,
) -> Result<(), D::Error> {
    let Some((table, key)) = before(kind).map(columns) else {
        return Ok(());
    };
    client.run(
        &format!("update {table} set copied = $2 where {key} = $1"),
        &[
            StatementValue::Integer(id.into()),
            StatementValue::Integer(version),
        ],
    )
}

fn change(thing: Thing, version: i64, place: Option<String>) -> Vec<Change> {
    vec![Change {
        thing,
        version: version.unsigned_abs(),
        place,
    }]
}

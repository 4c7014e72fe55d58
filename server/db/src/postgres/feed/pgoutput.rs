//! The messages of PostgreSQL's output plugin `pgoutput`, protocol version 2 (the manual, "Logical
//! Replication Message Formats").
//!
//! Bytes in, events out, no IO. The decoder has one bit of state: between Stream Start and Stream
//! Stop, messages carry the number of their (sub)transaction, which is not needed here.

use super::reader::Reader;

/// The most columns that PostgreSQL's tables have is 1,600; more is not reserved for on the word of
/// a message.
const USUAL_COLUMNS: usize = 1_600;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    Begin {
        transaction: u32,
    },
    Commit {
        /// The end of the commit record.
        end: u64,
    },
    Relation(u32, StreamRelation),
    Insert {
        relation: u32,
        new: Tuple<'a>,
    },
    Update {
        relation: u32,
        old: OldRow<'a>,
        new: Tuple<'a>,
    },
    Delete {
        relation: u32,
        old: OldRow<'a>,
    },
    Truncate {
        relations: Vec<u32>,
    },
    /// Message that `pg_logical_emit_message` left.
    Message {
        transactional: bool,
        prefix: &'a str,
        content: &'a [u8],
    },
    /// Changes of a transaction that is not committed yet follow.
    StreamStart {
        transaction: u32,
    },
    StreamStop,
    StreamCommit {
        transaction: u32,
        end: u64,
    },
    /// A streamed transaction, or part of it, was rolled back.
    StreamAbort {
        transaction: u32,
        part: u32,
    },
    /// Origins and types.
    Other,
}

/// How a table's rows come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamRelation {
    pub(crate) columns: Vec<StreamColumn>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamColumn {
    pub(crate) name: String,
    /// True if it is part of the replica identity.
    pub(crate) key: bool,
    pub(crate) type_oid: u32,
}

/// The values of a row, one for each column of the relation.
pub(crate) type Tuple<'a> = Vec<Field<'a>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    Null,
    /// Stored out of line, and not changed: it is not sent.
    Unchanged,
    /// As the type's output function writes it.
    Text(&'a [u8]),
    /// Never asked for.
    Binary,
}

/// Values that the stream tells of a row that is no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OldRow<'a> {
    /// Nothing: the columns of the replica identity are as in the new row.
    Same,
    /// The columns of the replica identity; the others are sent as nulls.
    Key(Tuple<'a>),
    /// All columns.
    Full(Tuple<'a>),
}

/// A message that is not as the manual has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Decodes one message after the other.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    in_stream: bool,
}

impl Decoder {
    pub(crate) fn decode<'a>(&mut self, bytes: &'a [u8]) -> Result<Event<'a>, Malformed> {
        let mut reader = Reader(bytes);
        let event = self.event(&mut reader).ok_or(Malformed)?;
        if !reader.is_empty() {
            return Err(Malformed);
        }
        match event {
            Event::StreamStart { .. } => self.in_stream = true,
            Event::StreamStop => self.in_stream = false,
            _ => {}
        }
        Ok(event)
    }

    fn event<'a>(&self, reader: &mut Reader<'a>) -> Option<Event<'a>> {
        let tag = reader.u8()?;
        if self.in_stream && b"RYIUDTM".contains(&tag) {
            reader.u32()?;
        }
        match tag {
            b'B' => {
                reader.take(16)?;
                let transaction = reader.u32()?;
                Some(Event::Begin { transaction })
            }
            b'C' => commit(reader).map(|end| Event::Commit { end }),
            b'R' => {
                let (table, relation) = relation(reader)?;
                Some(Event::Relation(table, relation))
            }
            b'I' | b'U' | b'D' => row(tag, reader),
            b'T' => truncate(reader),
            b'M' => message(reader),
            b'S' => {
                let transaction = reader.u32()?;
                reader.u8()?;
                Some(Event::StreamStart { transaction })
            }
            b'E' => Some(Event::StreamStop),
            b'c' => {
                let transaction = reader.u32()?;
                let end = commit(reader)?;
                Some(Event::StreamCommit { transaction, end })
            }
            b'A' => {
                let (transaction, part) = (reader.u32()?, reader.u32()?);
                Some(Event::StreamAbort { transaction, part })
            }
            b'O' | b'Y' => {
                reader.take(reader.0.len())?;
                Some(Event::Other)
            }
            _ => None,
        }
    }
}

/// Flags, the record's place, its end, the time.
fn commit(reader: &mut Reader<'_>) -> Option<u64> {
    reader.take(9)?;
    let end = reader.u64()?;
    reader.take(8)?;
    Some(end)
}

fn relation(reader: &mut Reader<'_>) -> Option<(u32, StreamRelation)> {
    let table = reader.u32()?;
    // Schema, name, replica identity: the columns say which of them are part of it.
    reader.text()?;
    reader.text()?;
    reader.u8()?;
    let count = usize::from(reader.u16()?);
    let mut columns = Vec::with_capacity(count.min(USUAL_COLUMNS));
    for _ in 0..count {
        let key = reader.u8()? & 1 == 1;
        let name = reader.text()?.to_owned();
        let type_oid = reader.u32()?;
        // The type's modifier.
        reader.take(4)?;
        columns.push(StreamColumn {
            name,
            key,
            type_oid,
        });
    }
    Some((table, StreamRelation { columns }))
}

fn row<'a>(tag: u8, reader: &mut Reader<'a>) -> Option<Event<'a>> {
    let relation = reader.u32()?;
    let mut old = OldRow::Same;
    let mut kind = reader.u8()?;
    if tag != b'I' && matches!(kind, b'K' | b'O') {
        let tuple = tuple(reader)?;
        old = if kind == b'K' {
            OldRow::Key(tuple)
        } else {
            OldRow::Full(tuple)
        };
        if tag == b'D' {
            return Some(Event::Delete { relation, old });
        }
        kind = reader.u8()?;
    }
    if kind != b'N' || tag == b'D' {
        return None;
    }
    let new = tuple(reader)?;
    Some(if tag == b'I' {
        Event::Insert { relation, new }
    } else {
        Event::Update { relation, old, new }
    })
}

fn tuple<'a>(reader: &mut Reader<'a>) -> Option<Tuple<'a>> {
    let count = usize::from(reader.u16()?);
    let mut fields = Vec::with_capacity(count.min(USUAL_COLUMNS));
    for _ in 0..count {
        fields.push(match reader.u8()? {
            b'n' => Field::Null,
            b'u' => Field::Unchanged,
            b't' => Field::Text(reader.sized()??),
            b'b' => {
                reader.sized()??;
                Field::Binary
            }
            _ => return None,
        });
    }
    Some(fields)
}

fn truncate<'a>(reader: &mut Reader<'a>) -> Option<Event<'a>> {
    let count = reader.u32()?;
    // Whether it cascades and restarts sequences; what it reached is in the list.
    reader.u8()?;
    let relations = (0..count)
        .map(|_| reader.u32())
        .collect::<Option<Vec<u32>>>()?;
    Some(Event::Truncate { relations })
}

fn message<'a>(reader: &mut Reader<'a>) -> Option<Event<'a>> {
    let transactional = reader.u8()? & 1 == 1;
    reader.take(8)?;
    let prefix = reader.text()?;
    let content = reader.sized()??;
    Some(Event::Message {
        transactional,
        prefix,
        content,
    })
}

#[cfg(test)]
#[path = "pgoutput_tests.rs"]
mod tests;

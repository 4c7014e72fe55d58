//! What a statement takes and gives, as the server has described it: all that is needed to run it
//! on any connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_postgres::Statement;
use tokio_postgres::types::Type;

use super::types::Decoder;

/// A column as the server describes it: its name and the number of its type.
pub(crate) type Described = (String, u32);

/// A statement in the form in which it is run. It holds for one state of the catalog, and for every
/// connection.
pub(crate) struct Shape {
    /// Tells it from all others: what was prepared for another state of the catalog is another's.
    pub(crate) id: u64,
    /// Statement that is run: the owner's statement, or another around it that casts its columns.
    pub(crate) text: String,
    /// The types of its parameters.
    pub(crate) params: Vec<Type>,
    /// How its columns are read.
    pub(crate) decoders: Vec<Decoder>,
    /// Its columns.
    pub(crate) given: Vec<Described>,
    /// The columns of the owner's statement; the same if none is cast.
    pub(crate) described: Vec<Described>,
    /// Their names.
    pub(crate) columns: Arc<[Arc<str>]>,
    /// True if a column is cast to text.
    pub(crate) is_cast: bool,
}

impl Shape {
    /// Of the owner's statement that is `described` and run as `statement`, whose text is `text`.
    pub(crate) fn new(
        text: &str,
        statement: &Statement,
        described: &Statement,
        decoders: Vec<Decoder>,
    ) -> Self {
        let columns = described.columns();
        let is_cast = columns
            .iter()
            .any(|column| Decoder::of(column.type_()).is_none());
        Self {
            id: next(),
            text: text.to_owned(),
            params: statement.params().to_vec(),
            decoders,
            given: columns_of(statement),
            described: columns_of(described),
            columns: columns.iter().map(|column| column.name().into()).collect(),
            is_cast,
        }
    }

    /// Of one of Millpond's own statements without parameters, whose columns are text and have
    /// these names.
    pub(crate) fn of_texts(text: &str, names: &[&str]) -> Self {
        Self::own(text, Vec::new(), names)
    }

    /// Describes one of Millpond's own statements with parameters of these types.
    pub(crate) fn own(text: &str, params: Vec<Type>, names: &[&str]) -> Self {
        let columns = |name: &&str| ((*name).to_owned(), Type::TEXT.oid());
        let given: Vec<Described> = names.iter().map(columns).collect();
        Self {
            id: next(),
            text: text.to_owned(),
            params,
            decoders: vec![Decoder::Text; names.len()],
            described: given.clone(),
            given,
            columns: names.iter().map(|name| Arc::from(*name)).collect(),
            is_cast: false,
        }
    }
}

/// The columns of a statement that the driver has prepared.
pub(crate) fn columns_of(statement: &Statement) -> Vec<Described> {
    let columns = statement.columns().iter();
    columns
        .map(|column| (column.name().to_owned(), column.type_().oid()))
        .collect()
}

fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

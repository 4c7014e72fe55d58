//! What the site keeps in the store, and under which keys.

use std::{borrow::Cow, sync::Arc};

use millpond_db::{DatabaseFeed, Value};
use millpond_http::Prepared;
use millpond_pages::Refused;
use millpond_store::Store;

use crate::session::Session;
use millpond_site_compile::{
    object::QueryResult,
    page::{Page, PageQuery},
};
use millpond_site_format::{
    param_value::{push_bytes, push_key},
    params::{BadParam, Given},
};

/// The store of a site.
pub(crate) type SiteStore = Store<Cached, DatabaseFeed>;

/// One kept value.
#[derive(Debug)]
pub(crate) enum Cached {
    /// A rendered page.
    Page(Arc<Prepared>),
    /// The page does not exist: its query at this place, a `:one`, gave no row, or no bytes.
    Missing(usize),
    /// The result of one query.
    Object(Arc<QueryResult>),
    /// All results of a page that is rendered for each visitor anew.
    Bundle(Vec<Arc<QueryResult>>),
    /// The fill failed; never stored, only given to waiting requests.
    Failed(PageFailure),
}

/// Why a page could not be made. The details are in the owner's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PageFailure {
    /// 503: too much at once.
    Busy(Refused),
    /// 503: a statement took longer than it may.
    Slow,
    /// 503: the database is away.
    Away,
    /// 400: the database cannot use a value.
    Parameter {
        /// For the client.
        sentence: Arc<str>,
        /// The parameter, if it is known which.
        name: Option<Arc<str>>,
    },
    /// 404: the database cannot read a part of the path as what it is to be.
    NoSuchPage,
    /// 500.
    Internal,
}

impl PageFailure {
    /// Too much at once, which will soon be over.
    pub(crate) const BUSY: Self = Self::Busy(Refused::BRIEFLY);
}

impl From<Refused> for PageFailure {
    fn from(refused: Refused) -> Self {
        Self::Busy(refused)
    }
}

impl millpond_store::Value for Cached {
    fn weight(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Page(prepared) => prepared.weight(),
                Self::Object(object) => object.weight(),
                Self::Bundle(objects) => objects.iter().map(|object| object.weight()).sum(),
                Self::Missing(_) | Self::Failed(_) => 0,
            }
    }
}

/// Writes the key of a page for the parameters of a request. `vary` gives the value of a request
/// field, `session` the claims that the page's queries use.
///
/// The generation is in every key: a worker that still holds the pages of an earlier reading of the
/// folder must not fill the keys of a later one.
pub(crate) fn page_key<'v>(
    key: &mut Vec<u8>,
    generation: u32,
    page: &Page,
    given: &Given<'_>,
    session: Option<&Session>,
    vary: impl Fn(&str) -> Option<Cow<'v, [u8]>>,
) -> Result<(), BadParam> {
    key.clear();
    push_page_address(key, generation, page, given)?;
    // As they are, and not as the queries are given them: the template may show them.
    let claims = page.needs.claims(session.map(Session::claims));
    claims.for_each(|claim| push_key(key, claim.unwrap_or(&Value::Null)));
    for field in page.vary.iter() {
        match vary(field) {
            Some(value) => push_bytes(key, b'h', &value),
            None => key.push(b'n'),
        }
    }
    Ok(())
}

/// Writes the beginning that the keys of a page for these parameters share: all visitors' keys.
pub(crate) fn push_page_address(
    key: &mut Vec<u8>,
    generation: u32,
    page: &Page,
    given: &Given<'_>,
) -> Result<(), BadParam> {
    begin_page_key(key, generation, page);
    given.push_keys(&page.params, key)
}

fn begin_page_key(key: &mut Vec<u8>, generation: u32, page: &Page) {
    key.push(b'P');
    key.extend_from_slice(&generation.to_le_bytes());
    key.extend_from_slice(&page.index.to_le_bytes());
}

/// The key of a page that needs no session and varies by no field, for these values of its
/// parameters.
pub(crate) fn page_key_of(generation: u32, page: &Page, values: &[Value]) -> Vec<u8> {
    let mut key = Vec::with_capacity(32);
    begin_page_key(&mut key, generation, page);
    values.iter().for_each(|value| push_key(&mut key, value));
    key
}

/// The generation, the page's index and the rest of a page's key; none of any other key.
pub(crate) fn page_key_parts(key: &[u8]) -> Option<(u32, u32, &[u8])> {
    let (generation, rest) = key.strip_prefix(b"P")?.split_first_chunk()?;
    let (index, rest) = rest.split_first_chunk()?;
    let number = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
    Some((number(generation), number(index), rest))
}

/// The key of all results of a private page, made from the key of the page: results do not vary by
/// visitor.
pub(crate) fn bundle_key(generation: u32, page: &Page, values: &[Value]) -> Vec<u8> {
    let mut key = Vec::with_capacity(32);
    key.push(b'B');
    key.extend_from_slice(&generation.to_le_bytes());
    key.extend_from_slice(&page.index.to_le_bytes());
    values.iter().for_each(|value| push_key(&mut key, value));
    key
}

/// The key of one query's result. Equal statements with equal values share it, on any page. The key
/// has the expected number of rows, which decides how templates see the result; the owner's
/// `max-age`, because a page must not get from another page a result that it would not have kept
/// itself; and the dependencies that the owner declares.
pub(crate) fn object_key(generation: u32, query: &PageQuery, values: &[Value]) -> Vec<u8> {
    let mut key = Vec::with_capacity(64);
    key.push(b'O');
    key.extend_from_slice(&generation.to_le_bytes());
    key.push(query.rows as u8);
    let age = query.max_age.map_or(u64::MAX, |age| {
        u64::try_from(age.as_nanos()).unwrap_or(u64::MAX - 1)
    });
    key.extend_from_slice(&age.to_le_bytes());
    let statement = query.statement(values);
    push_bytes(&mut key, b'q', statement.query.sql().as_bytes());
    query
        .depends
        .iter()
        .for_each(|table| push_bytes(&mut key, b'd', table.as_bytes()));
    statement
        .args
        .iter()
        .for_each(|&at| push_key(&mut key, &values[at]));
    key
}

//! What all threads of a database share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use parking_lot::Mutex;
use tokio_postgres::Client;

use super::catalog::Catalog;
use super::link::FeedLink;
use super::options::{ConnectionTarget, PostgresOptions};
use super::tls::Tls;
use crate::SqlError;

/// State that all threads of a database share, and those with connections to one of its replicas.
pub(crate) struct DatabaseContext {
    pub(super) options: PostgresOptions,
    pub(super) target: ConnectionTarget,
    /// Its hosts and ports, for messages.
    pub(super) place: String,
    pub(super) tls: Tls,
    pub(super) link: Arc<FeedLink>,
    catalogs: Catalogs,
    pub(super) waiting: QueueLengths,
    /// True if the one connection is in a transaction that is never committed.
    pub(super) rehearsing: AtomicBool,
    /// Tells this program's messages in the log from those of others.
    pub(super) node: String,
    /// The context of each replica.
    pub(super) replicas: Vec<Arc<Self>>,
}

/// The catalog as it was loaded last, and for which number.
#[derive(Default)]
struct Catalogs(Mutex<Option<(u64, Arc<Catalog>)>>);

/// Jobs that wait, by what they want.
#[derive(Default)]
pub(super) struct QueueLengths {
    pub(super) reads: AtomicUsize,
    pub(super) writes: AtomicUsize,
}

impl DatabaseContext {
    pub(super) fn new(
        options: PostgresOptions,
        target: ConnectionTarget,
        tls: Tls,
        link: Arc<FeedLink>,
        node: String,
    ) -> Self {
        Self {
            place: target.place(),
            options,
            target,
            tls,
            link,
            catalogs: Catalogs::default(),
            waiting: QueueLengths::default(),
            rehearsing: AtomicBool::new(false),
            node,
            replicas: Vec::new(),
        }
    }

    /// Returns the catalog of the number `schema`, loaded by `client` if it is a new one.
    pub(super) async fn catalog(
        &self,
        schema: u64,
        client: &Client,
    ) -> Result<Arc<Catalog>, SqlError> {
        if let Some((number, catalog)) = &*self.catalogs.0.lock()
            && *number == schema
        {
            return Ok(Arc::clone(catalog));
        }
        let options = &self.options;
        let catalog = Catalog::load(client, options.feed, &options.publication).await?;
        let catalog = Arc::new(catalog);
        *self.catalogs.0.lock() = Some((schema, Arc::clone(&catalog)));
        Ok(catalog)
    }
}

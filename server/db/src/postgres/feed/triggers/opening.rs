//! The beginning of a life: a connection, the node's registration, and the floor below which
//! nothing is kept (see [`super`]).

use std::sync::Arc;
use std::time::Duration;

use super::super::login::{self, Purpose};
use super::super::opening::{FLOOR, at_first_place, one, read_tables};
use super::super::relations::TableFamilies;
use super::super::settings::FeedSettings;
use super::super::setup;
use super::super::socket::ServerHost;
use super::super::wait::{FeedEnd, Patience, Stop};
use super::super::wire::{FeedConnection, unexpected};
use super::objects::{CHANGES, CHANNEL, MAX_BYTES, NODES};
use super::poll::{self, NodeRegistration};
use crate::feed::Transactions;
use crate::postgres::catalog::fingerprint;
use crate::postgres::families::TABLES;
use crate::postgres::link::FeedLink;
use crate::postgres::liveness::SERVER_SIDE;

/// How long anything may take while a life begins.
const PATIENCE: Duration = Duration::from_secs(10);

/// Query for the database system of a server, and for its timeline: the first digits of the log's
/// file name the timeline, from the moment of a promotion on.
const SYSTEM: &str = "select system_identifier::text, \
    pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8) from pg_catalog.pg_control_system()";

/// Settings that the session needs; they override the owner's defaults. A registration need not be
/// on the disk: it goes with a crash anyway.
const SESSION: &str = "-c synchronous_commit=off -c statement_timeout=0 -c lock_timeout=0 -c default_transaction_read_only=off \
    -c default_transaction_isolation=read\\ committed -c plan_cache_mode=force_generic_plan";

/// The schema of the tables, as it is written in SQL, if they are there.
const SCHEMA: &str = "select pg_catalog.quote_ident(n.nspname) from pg_catalog.pg_class c \
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
    where c.relname = '_millpond_change' and n.nspname = pg_catalog.current_schema()";

/// A life that is about to begin.
pub(super) struct OpenedTriggerFeed {
    pub(super) control: FeedConnection,
    pub(super) names: NodeRegistration,
    pub(super) tables: Arc<TableFamilies>,
    pub(super) fingerprint: String,
    pub(super) lost: String,
    pub(super) floor: u64,
    /// The first snapshot: what it sees is not delivered.
    pub(super) seen: Arc<Transactions>,
    /// The first snapshot as PostgreSQL writes it.
    pub(super) snapshot: String,
    /// System identifier and timeline, and that positions are transactions.
    pub(super) system: String,
    /// When its server was started.
    pub(super) started: String,
}

/// Gets everything ready at the first place that is a primary.
pub(super) fn open(
    settings: &FeedSettings,
    link: &FeedLink,
    stop: &Stop,
    number: u64,
) -> Result<OpenedTriggerFeed, FeedEnd> {
    at_first_place(settings, |place| at(settings, link, stop, number, place))
}

fn at(
    settings: &FeedSettings,
    link: &FeedLink,
    stop: &Stop,
    number: u64,
    place: &ServerHost,
) -> Result<OpenedTriggerFeed, FeedEnd> {
    let config = &settings.config;
    let time = config.get_connect_timeout().copied().unwrap_or(PATIENCE);
    let patience = || Patience::of(stop, time.min(PATIENCE));
    let liveness = SERVER_SIDE.map(|(name, value)| format!(" -c {name}={value}"));
    let options = format!("{SESSION}{}", liveness.concat());
    let mut control = login::open(
        config,
        &settings.tls,
        place,
        Purpose::Control,
        &options,
        patience(),
    )?;
    let server = setup::server(&mut control, settings.kind, patience())?;
    link.reached();
    let schema = control.query(SCHEMA, patience())?;
    let Some(Some(schema)) = schema.first().and_then(|row| row.first()) else {
        return Err(FeedEnd::lost(format!(
            "there is no table {CHANGES} in the database, in which triggers record changes; run millpond check --fix"
        )));
    };
    let names = NodeRegistration {
        schema: schema.clone(),
        node: settings.node.clone(),
        life: number,
    };
    let system = system(&mut control, &server.started, patience())?;
    begin(control, names, (system, server.started), patience()).map_err(explain)
}

/// The source of this life's positions ([`SYSTEM`]). Some providers hide it; the moment at which
/// the server was started tells it from all others too, but ends with it.
fn system(
    control: &mut FeedConnection,
    started: &str,
    patience: Patience<'_>,
) -> Result<String, FeedEnd> {
    let rows = match control.query(SYSTEM, patience) {
        Err(FeedEnd::Refused { .. }) => {
            // Behind the refusal comes the word that the session is ready.
            return match control.expect(patience)?.tag {
                b'Z' => Ok(format!("started {started}, transactions")),
                tag => Err(unexpected(tag)),
            };
        }
        rows => rows?,
    };
    let part = |at: usize| rows.first().and_then(|row| row.get(at)?.as_deref());
    let timeline = part(1).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    match (part(0), timeline) {
        (Some(system), Some(timeline)) => {
            Ok(format!("{system}, timeline {timeline}, transactions"))
        }
        _ => Err(FeedEnd::lost("the server does not say which it is")),
    }
}

/// The order of what follows is the argument of [`super`].
fn begin(
    mut control: FeedConnection,
    names: NodeRegistration,
    (system, started): (String, String),
    patience: Patience<'_>,
) -> Result<OpenedTriggerFeed, FeedEnd> {
    control.query(&names.shrink(MAX_BYTES / 4), patience)?;
    control.query(&names.register(), patience)?;
    control.query(&names.prepare(), patience)?;
    let lost = one(&control.query(&names.lost(), patience)?)?;
    // Counterexample: The tables first: a change between the two would be in the fingerprint alone,
    // and never be noticed.
    let known = format!("select {}", fingerprint());
    let fingerprint = one(&control.query(&known, patience)?)?;
    let tables = Arc::new(read_tables(&control.query(TABLES, patience)?)?);
    let floor = one(&control.query(FLOOR, patience)?)?;
    let floor = floor.parse().map_err(FeedEnd::lost)?;
    control.query(&format!("listen {CHANNEL}"), patience)?;
    let snapshot = "select pg_catalog.pg_current_snapshot()::text";
    let snapshot = one(&control.query(snapshot, patience)?)?;
    let seen = poll::transactions(&snapshot)?;
    Ok(OpenedTriggerFeed {
        control,
        names,
        tables,
        fingerprint,
        lost,
        floor,
        seen,
        snapshot,
        system,
        started,
    })
}

/// Adds what to do about a right that is missing.
fn explain(end: FeedEnd) -> FeedEnd {
    match end {
        // insufficient_privilege
        FeedEnd::Refused { code, sentence } if code == "42501" => FeedEnd::lost(format!(
            "{sentence}; millpond check says which rights on {CHANGES} and {NODES} are missing"
        )),
        end => end,
    }
}

//! The beginning of a life: two connections, a slot, and the floor below which nothing is kept (see
//! [`super`]).

use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;

use super::heartbeat;
use super::login::{self, Purpose};
use super::relations::TableFamilies;
use super::replication;
use super::settings::FeedSettings;
use super::setup::{self, ServerSettings};
use super::socket::{ServerHost, places};
use super::wait::{FeedEnd, Patience, Stop};
use super::wire::{FeedConnection, QueryRows, unexpected};
use crate::postgres::TextRow;
use crate::postgres::catalog::fingerprint;
use crate::postgres::families::TABLES;
use crate::postgres::link::FeedLink;
use crate::postgres::liveness::SERVER_SIDE;

/// How long anything may take while a life begins, but for the slot.
const PATIENCE: Duration = Duration::from_secs(10);
/// While the slot is waited for, the server is asked this often for what it waits.
const STATE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Sessions whose transactions have written and not ended, but for our own.
const WRITERS: &str = "select pg_catalog.string_agg(pid::text, ', ' order by pid) from pg_catalog.pg_stat_activity \
    where backend_xid is not null and pid <> pg_catalog.pg_backend_pid()";

/// A life that is about to begin.
pub(crate) struct OpenedFeed {
    pub(crate) control: FeedConnection,
    pub(crate) stream: FeedConnection,
    pub(crate) tables: Arc<TableFamilies>,
    pub(crate) fingerprint: String,
    /// Begun after the slot was ready.
    pub(crate) floor: u64,
    /// System identifier and timeline.
    pub(crate) system: String,
    /// When its server was started.
    pub(crate) started: String,
}

/// Gets everything ready at the first place that is a primary.
pub(crate) fn open(
    settings: &FeedSettings,
    link: &FeedLink,
    stop: &Stop,
    slot: &str,
) -> Result<OpenedFeed, FeedEnd> {
    at_first_place(settings, |place| at(settings, link, stop, slot, place))
}

/// Tries each place until one can be opened. Of several that cannot, one that can be reached says
/// why.
pub(super) fn at_first_place<T>(
    settings: &FeedSettings,
    open: impl Fn(&ServerHost) -> Result<T, FeedEnd>,
) -> Result<T, FeedEnd> {
    let mut last = None;
    for place in &places(&settings.config) {
        match open(place) {
            Err(FeedEnd::Stopped) => return Err(FeedEnd::Stopped),
            Err(end) if last.as_ref().is_none_or(FeedEnd::is_disconnection) => {
                last = Some(end.at(&place.describe()));
            }
            Err(_) => {}
            opened => return opened,
        }
    }
    Err(last.unwrap_or_else(|| FeedEnd::lost("database.url names no host")))
}

fn at(
    settings: &FeedSettings,
    link: &FeedLink,
    stop: &Stop,
    slot: &str,
    place: &ServerHost,
) -> Result<OpenedFeed, FeedEnd> {
    let patience = || {
        Patience::of(
            stop,
            settings
                .config
                .get_connect_timeout()
                .map_or(PATIENCE, |time| (*time).min(PATIENCE)),
        )
    };
    let connect = |purpose| {
        let options = session_options(settings);
        login::open(
            &settings.config,
            &settings.tls,
            place,
            purpose,
            &options,
            patience(),
        )
    };
    let mut control = connect(Purpose::Control)?;
    let server = setup::server(&mut control, settings.kind, patience())?;
    link.reached();
    let publication = setup::publication(&settings.publication);
    setup::publishes_everything(
        &control.query(&publication, patience())?,
        &settings.publication,
    )?;
    let mut stream = connect(Purpose::Replication).map_err(|end| setup::explain(end, &server))?;
    let system = identify(&mut stream, &server, patience())?;
    create_slot(
        settings,
        link,
        stop,
        slot,
        &server,
        &mut control,
        &mut stream,
    )
    .map_err(|end| setup::explain(end, &server))?;
    setup::is_logical(&one(&control.query(setup::LEVEL, patience())?)?)?;
    let patience = patience();
    begin(
        settings,
        slot,
        (system, server.started),
        control,
        stream,
        patience,
    )
}

/// The id of a transaction that begins now.
pub(crate) const FLOOR: &str = "select pg_catalog.pg_current_xact_id()::text";

/// The slot is ready. The order of what follows is the argument of [`super`].
fn begin(
    settings: &FeedSettings,
    slot: &str,
    (system, started): (String, String),
    mut control: FeedConnection,
    mut stream: FeedConnection,
    patience: Patience<'_>,
) -> Result<OpenedFeed, FeedEnd> {
    control.query(&heartbeat::prepare(), patience)?;
    // Counterexample: The tables first: a change between the two would be in the fingerprint alone,
    // and never be noticed.
    let known = format!("select {}", fingerprint());
    let fingerprint = one(&control.query(&known, patience)?)?;
    let tables = Arc::new(read_tables(&control.query(TABLES, patience)?)?);
    let floor = one(&control.query(FLOOR, patience)?)?;
    let floor = floor.parse().map_err(FeedEnd::lost)?;
    stream.ask(&replication::start(slot, &settings.publication))?;
    match stream.expect(patience)?.tag {
        b'W' => {}
        tag => return Err(unexpected(tag)),
    }
    Ok(OpenedFeed {
        control,
        stream,
        tables,
        fingerprint,
        floor,
        system,
        started,
    })
}

/// Settings that both sessions need; they override the owner's defaults.
///
/// `wal_sender_timeout`: the server ends the stream of a node that froze, and with it the slot,
/// which keeps WAL back. `synchronous_commit = local`: a heartbeat waits for this server's disk and
/// for no standby. One that waited would stop while a standby is away, and transactions that wait
/// for a standby have not been acknowledged to any client. `extra_float_digits`: two numbers that
/// the stream writes alike are the same.
fn session_options(settings: &FeedSettings) -> String {
    let liveness = SERVER_SIDE.map(|(name, value)| format!(" -c {name}={value}"));
    format!(
        "-c wal_sender_timeout={} -c synchronous_commit=local -c statement_timeout=0 -c lock_timeout=0 -c default_transaction_read_only=off -c plan_cache_mode=force_generic_plan \
         -c extra_float_digits=1 -c datestyle=ISO -c intervalstyle=postgres{}",
        settings.wal_sender_timeout.as_millis().max(1),
        liveness.concat()
    )
}

/// Both connections must have reached the same server; a balancer between may have thought
/// otherwise.
fn identify(
    stream: &mut FeedConnection,
    server: &ServerSettings,
    patience: Patience<'_>,
) -> Result<String, FeedEnd> {
    if one(&stream.query(setup::STARTED, patience)?)? != server.started {
        return Err(FeedEnd::lost(
            "two connections have reached two servers: database.url must lead to one, without a balancer between",
        ));
    }
    let rows = stream.query("IDENTIFY_SYSTEM", patience)?;
    let part = |at: usize| rows.first().and_then(|row| row.get(at)?.as_deref());
    match (part(0), part(1)) {
        (Some(system), Some(timeline)) => Ok(format!("{system}, timeline {timeline}")),
        _ => Err(FeedEnd::lost("the server does not say which it is")),
    }
}

/// Makes the slot. That waits for all transactions that have written and are open; it is said once
/// for which, and the other connection shows meanwhile that the server is there.
fn create_slot(
    settings: &FeedSettings,
    link: &FeedLink,
    stop: &Stop,
    slot: &str,
    server: &ServerSettings,
    control: &mut FeedConnection,
    stream: &mut FeedConnection,
) -> Result<(), FeedEnd> {
    stream.ask(&replication::create_slot(slot, server.version))?;
    let mut answer = QueryRows::default();
    let mut look = Boottime::now().plus(STATE_CHECK_INTERVAL);
    let mut said = false;
    loop {
        stream.fill()?;
        while let Some(frame) = stream.next()? {
            if answer.take(&frame)?.is_some() {
                return Ok(());
            }
        }
        stop.wait(
            [(std::os::fd::AsFd::as_fd(stream), stream.waits_for())],
            look,
        )?;
        if Boottime::now() >= look {
            let patience = Patience::of(stop, settings.wal_sender_timeout);
            let rows = control.query(WRITERS, patience)?;
            if !said {
                // Others' transactions are shown only to members of pg_read_all_stats.
                let writers =
                    one(&rows).map_or_else(|_| String::new(), |pids| format!(" ({pids})"));
                link.failures.count(&format!(
                    "the feed waits for transactions that were open when it began, and until they end everything is served \
                     uncached: see the processes with a backend_xid in pg_stat_activity{writers}"
                ));
                said = true;
            }
            look = Boottime::now().plus(STATE_CHECK_INTERVAL);
        }
    }
}

/// The first value of the first row.
pub(crate) fn one(rows: &[TextRow]) -> Result<String, FeedEnd> {
    let value = rows.first().and_then(|row| row.first()?.clone());
    value.ok_or_else(|| FeedEnd::lost("the server answers a question with nothing"))
}

pub(crate) fn read_tables(rows: &[TextRow]) -> Result<TableFamilies, FeedEnd> {
    let text = |row: &TextRow, at: usize| row.get(at)?.clone();
    let number = |row: &TextRow, at: usize| text(row, at)?.parse::<u32>().ok();
    let (mut tables, mut types) = (Vec::new(), Vec::new());
    for row in rows {
        let pair = number(row, 1).zip(number(row, 2));
        match (text(row, 0).as_deref(), pair) {
            (Some("table"), Some(pair)) => tables.push(pair),
            (Some("type"), Some(pair)) => types.push(pair),
            _ => return Err(FeedEnd::lost("the list of tables makes no sense")),
        }
    }
    Ok(TableFamilies::new(&tables, &types))
}

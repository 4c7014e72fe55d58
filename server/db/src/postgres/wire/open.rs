//! Opens a session: the first server that lets us in and is of the kind that the URL asks for.

use tokio::task::JoinHandle;
use tokio_postgres::config::{SslMode, SslNegotiation, TargetSessionAttrs};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::batch::Wire;
use super::dial::{Address, addresses, in_turn};
use super::share::Share;
use crate::postgres::context::DatabaseContext;
use crate::postgres::failure::chain;
use crate::postgres::options::ConnectionTarget;

/// Why a standby in the primary's place is not read (coherence.md, rules 6 and 18). The age of its
/// rows is unknown: that is told by a heartbeat of the primary, and without one a standby where
/// nothing was written looks as one that was cut off hours ago (`pg_last_xact_replay_timestamp` is
/// the same for both).
pub(crate) const STANDBY: &str = "it is a standby, and how far it is behind is unknown: it is read from here once it has been \
    promoted; database.replicas names standbys that are to be read beside the primary";

/// A session: the driver's side, and ours.
pub(crate) struct OpenedWire {
    pub(crate) client: Client,
    pub(crate) wire: Wire,
    /// Task that drives the client. It ends by itself once the client is gone.
    pub(crate) driver: JoinHandle<()>,
}

/// Why a server does not let us in.
pub(crate) struct Refusal {
    pub(crate) why: String,
    /// True if it wants another user or password, so that trying again is of no use.
    pub(crate) is_login: bool,
}

impl<T: Into<String>> From<T> for Refusal {
    fn from(why: T) -> Self {
        Self {
            why: why.into(),
            is_login: false,
        }
    }
}

/// The class of SQLSTATEs of a wrong user or password.
const INVALID_AUTHORIZATION: &str = "28";

impl Refusal {
    fn of_login(error: &tokio_postgres::Error) -> Self {
        let code = error.as_db_error().map(|error| error.code().code());
        Self {
            why: chain(error),
            is_login: match code {
                Some(code) => code.starts_with(INVALID_AUTHORIZATION),
                // The server asks for a password, and the URL has none.
                None => error.to_string().starts_with("invalid configuration"),
            },
        }
    }
}

/// Tries the servers of the URL in turn; why none of them would do.
pub(crate) async fn open(shared: &DatabaseContext) -> Result<OpenedWire, Refusal> {
    let config = &shared.target.config;
    let places = in_turn(config);
    let mut reasons = Vec::new();
    let mut is_login = true;
    for place in &places {
        let mut refused = |refusal: Refusal| {
            is_login &= refusal.is_login;
            match places.len() {
                1 => reasons.push(refusal.why),
                _ => reasons.push(format!("{}: {}", place.describe(), refusal.why)),
            }
        };
        let found = match addresses(place, config).await {
            Ok(found) => found,
            Err(error) => {
                refused(error.to_string().into());
                continue;
            }
        };
        for address in found {
            match at(shared, address).await {
                Ok(opened) => return Ok(opened),
                Err(refusal) => refused(refusal),
            }
        }
    }
    if reasons.is_empty() {
        return Err("the URL names no host".into());
    }
    Err(Refusal {
        why: reasons.join("; "),
        is_login,
    })
}

async fn at(shared: &DatabaseContext, address: Address) -> Result<OpenedWire, Refusal> {
    let config = &shared.target.config;
    let stream = address.open(config, shared.tls.config()).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let (share, end) = Share::new(stream);
    // TLS is below; the driver need not know.
    let mut plain = config.clone();
    plain.ssl_mode(SslMode::Disable);
    plain.ssl_negotiation(SslNegotiation::Postgres);
    let (client, connection) = plain
        .connect_raw(end, NoTls)
        .await
        .map_err(|error| Refusal::of_login(&error))?;
    let driver = tokio::task::spawn_local(async move {
        // The client reports errors to the waiting caller; notices are ignored here.
        let _ = connection.await;
    });
    check_kind(&client, &shared.target).await?;
    Ok(OpenedWire {
        client,
        wire: Wire::new(share, address),
        driver,
    })
}

/// Query that tells if the server is a standby, and if it takes no writes.
const KIND: &str = "select pg_catalog.pg_is_in_recovery(), \
    pg_catalog.current_setting('transaction_read_only')::boolean";

/// Checks that the server is of the kind that is wanted: no standby in the primary's place, and as
/// `target_session_attrs` in the URL says.
///
/// A server that is none now becomes none while the connection lives: for that it has to be started
/// anew.
async fn check_kind(client: &Client, target: &ConnectionTarget) -> Result<(), String> {
    let rows = client.simple_query(KIND).await;
    let rows = rows.map_err(|error| chain(&error))?;
    let row = rows.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some((row.get(0) == Some("t"), row.get(1) == Some("t"))),
        _ => None,
    });
    let (is_standby, is_read_only) = row.ok_or("it does not say what it is")?;
    if is_standby && !target.is_replica {
        return Err(STANDBY.to_owned());
    }
    match target.config.get_target_session_attrs() {
        TargetSessionAttrs::ReadWrite if is_read_only => {
            Err("it takes no writes, and target_session_attrs asks for a server that does".into())
        }
        TargetSessionAttrs::ReadOnly if !is_read_only => {
            Err("it takes writes, and target_session_attrs asks for one that does not".into())
        }
        _ => Ok(()),
    }
}

//! Opens a session: the first server that lets us in and is of the kind that the URL asks for.

use tokio::task::JoinHandle;
use tokio_postgres::config::{SslMode, SslNegotiation, TargetSessionAttrs};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::batch::Wire;
use super::dial::{Address, addresses, in_turn};
use super::share::Share;
use crate::postgres::Shared;
use crate::postgres::failure::chain;

/// A session: the driver's side, and ours.
pub(crate) struct Opened {
    pub(crate) client: Client,
    pub(crate) wire: Wire,
    /// What drives the client. It ends by itself once the client is gone.
    pub(crate) driver: JoinHandle<()>,
}

/// Tries the servers of the URL in turn; why the last of them would not do. Where it names several and takes any, a standby, which may be
/// behind, is the last resort.
pub(crate) async fn open(shared: &Shared) -> Result<Opened, String> {
    let config = &shared.target.config;
    let mut last = "the URL names no host".to_owned();
    let places = in_turn(config);
    let prefers_primary =
        places.len() > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any;
    let mut standby = None;
    for place in places {
        let found = match addresses(&place, config).await {
            Ok(found) => found,
            Err(error) => {
                last = format!("{}: {error}", place.describe());
                continue;
            }
        };
        for address in found {
            match at(shared, address).await {
                Ok(opened) if prefers_primary => match is_standby(&opened.client).await {
                    Ok(false) => return Ok(opened),
                    Ok(true) => standby = standby.or(Some(opened)),
                    Err(why) => last = why,
                },
                Ok(opened) => return Ok(opened),
                Err(why) => last = why,
            }
        }
    }
    standby.ok_or(last)
}

async fn is_standby(client: &Client) -> Result<bool, String> {
    Ok(first_word(client, "select pg_is_in_recovery()")
        .await?
        .as_deref()
        == Some("t"))
}

/// The first column of the only row.
async fn first_word(client: &Client, sql: &str) -> Result<Option<String>, String> {
    let rows = client.simple_query(sql).await;
    let rows = rows.map_err(|error| chain(&error))?;
    Ok(rows.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}

async fn at(shared: &Shared, address: Address) -> Result<Opened, String> {
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
        .map_err(|error| chain(&error))?;
    let driver = tokio::task::spawn_local(async move {
        // Whoever waits for an answer is told by the client; notices are nobody's here.
        let _ = connection.await;
    });
    check_kind(&client, config).await?;
    Ok(Opened {
        client,
        wire: Wire::new(share, address),
        driver,
    })
}

/// Whether the server takes writes or not, where the URL asks for one of the two.
async fn check_kind(client: &Client, config: &Config) -> Result<(), String> {
    let wanted = config.get_target_session_attrs();
    if wanted == TargetSessionAttrs::Any {
        return Ok(());
    }
    let read_only = first_word(client, "show transaction_read_only").await?;
    match (wanted, read_only.as_deref()) {
        (TargetSessionAttrs::ReadWrite, Some("on")) => {
            Err("it takes no writes, and target_session_attrs asks for a server that does".into())
        }
        (TargetSessionAttrs::ReadOnly, Some("off")) => {
            Err("it takes writes, and target_session_attrs asks for one that does not".into())
        }
        _ => Ok(()),
    }
}

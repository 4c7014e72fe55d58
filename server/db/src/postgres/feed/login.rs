//! From a socket to a session: TLS as far as `sslmode` asks for it, the startup message, and who we
//! are.

use std::sync::Arc;

use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::frontend;
use rustls::ClientConfig;
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, SslMode, SslNegotiation};

use super::reader::Reader;
use super::socket::ServerHost;
use super::tls::TlsSession;
use super::wait::{FeedEnd, Patience};
use super::wire::{FeedConnection, unexpected};

/// Purpose of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// SQL.
    Control,
    /// The stream of changes of one database, and SQL before it.
    Replication,
}

/// Opens a session at one place. `options` are settings of the session, added to those of the
/// owner.
pub(crate) fn open(
    config: &Config,
    tls: &Arc<ClientConfig>,
    place: &ServerHost,
    purpose: Purpose,
    options: &str,
    patience: Patience<'_>,
) -> Result<FeedConnection, FeedEnd> {
    let mut connection = FeedConnection::new(place.connect(config, patience)?);
    if let Some(host) = place
        .host()
        .filter(|_| config.get_ssl_mode() != SslMode::Disable)
    {
        let direct = config.get_ssl_negotiation() == SslNegotiation::Direct;
        if direct || connection.offers_tls(patience)? {
            connection.secure(TlsSession::new(tls, &host)?, patience)?;
        } else if config.get_ssl_mode() == SslMode::Require {
            return Err(FeedEnd::lost(
                "the server offers no TLS and sslmode asks for it: switch ssl on there, or use sslmode=prefer",
            ));
        }
    }
    let user = user(config)?;
    startup(&mut connection, config, &user, purpose, options)?;
    authenticate(&mut connection, config, &user, patience)?;
    // The key of the session, and the word that it is ready.
    loop {
        match connection.expect(patience)?.tag {
            b'K' => {}
            b'Z' => return Ok(connection),
            tag => return Err(unexpected(tag)),
        }
    }
}

/// As libpq has it, without a name in the configuration the user of this process.
fn user(config: &Config) -> Result<String, FeedEnd> {
    config
        .get_user()
        .map(str::to_owned)
        .or_else(|| std::env::var("USER").ok())
        .ok_or_else(|| {
            FeedEnd::lost("database.url names no user; write postgres://USER@HOST/DATABASE")
        })
}

fn startup(
    connection: &mut FeedConnection,
    config: &Config,
    user: &str,
    purpose: Purpose,
    options: &str,
) -> Result<(), FeedEnd> {
    let options = format!("{} {options}", config.get_options().unwrap_or_default());
    let mut parameters = vec![
        ("user", user),
        ("client_encoding", "UTF8"),
        ("application_name", "millpond_feed"),
        ("options", options.trim()),
    ];
    if let Some(database) = config.get_dbname() {
        parameters.push(("database", database));
    }
    if purpose == Purpose::Replication {
        parameters.push(("replication", "database"));
    }
    frontend::startup_message(parameters, connection.output())?;
    Ok(())
}

fn authenticate(
    connection: &mut FeedConnection,
    config: &Config,
    user: &str,
    patience: Patience<'_>,
) -> Result<(), FeedEnd> {
    loop {
        let frame = connection.expect(patience)?;
        if frame.tag != b'R' {
            return Err(unexpected(frame.tag));
        }
        let mut body = Reader(&frame.body);
        match body.u32() {
            Some(0) => return unbound(config),
            Some(3) => {
                unbound(config)?;
                frontend::password_message(password(config)?, connection.output())?;
            }
            Some(5) => {
                unbound(config)?;
                let salt = body.take(4).and_then(|salt| salt.try_into().ok());
                let salt = salt.ok_or_else(|| FeedEnd::lost("a salt is cut short"))?;
                let hash = md5_hash(user.as_bytes(), password(config)?, salt);
                frontend::password_message(hash.as_bytes(), connection.output())?;
            }
            Some(10) => {
                unbound(config)?;
                scram(connection, config, body, patience)?;
            }
            _ => {
                return Err(FeedEnd::lost(
                    "the server asks for a kind of authentication other than a password's; use scram-sha-256 in pg_hba.conf",
                ));
            }
        }
    }
}

/// Channel binding is not done here, as it is not where reads and writes connect.
fn unbound(config: &Config) -> Result<(), FeedEnd> {
    if config.get_channel_binding() == ChannelBinding::Require {
        return Err(FeedEnd::lost(
            "channel_binding=require is not supported; use sslmode=verify-full",
        ));
    }
    Ok(())
}

fn password(config: &Config) -> Result<&[u8], FeedEnd> {
    config
        .get_password()
        .ok_or_else(|| FeedEnd::lost("the server wants a password and database.url has none"))
}

/// SCRAM-SHA-256 (RFC 7677); `offered` is the list of mechanisms.
fn scram(
    connection: &mut FeedConnection,
    config: &Config,
    mut offered: Reader<'_>,
    patience: Patience<'_>,
) -> Result<(), FeedEnd> {
    let mut mechanisms = std::iter::from_fn(|| offered.text());
    if !mechanisms.any(|mechanism| mechanism == sasl::SCRAM_SHA_256) {
        return Err(FeedEnd::lost(
            "the server offers no SCRAM-SHA-256; use scram-sha-256 in pg_hba.conf",
        ));
    }
    let binding = sasl::ChannelBinding::unsupported();
    let mut scram = sasl::ScramSha256::new(password(config)?, binding);
    frontend::sasl_initial_response(sasl::SCRAM_SHA_256, scram.message(), connection.output())?;
    let challenge = step(connection, 11, patience)?;
    scram.update(&challenge)?;
    frontend::sasl_response(scram.message(), connection.output())?;
    let proof = step(connection, 12, patience)?;
    Ok(scram.finish(&proof)?)
}

fn step(
    connection: &mut FeedConnection,
    kind: u32,
    patience: Patience<'_>,
) -> Result<Vec<u8>, FeedEnd> {
    let frame = connection.expect(patience)?;
    let mut body = Reader(&frame.body);
    if frame.tag == b'R' && body.u32() == Some(kind) {
        Ok(body.0.to_vec())
    } else {
        Err(unexpected(frame.tag))
    }
}

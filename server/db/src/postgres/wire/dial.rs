//! Opens a socket to one of the servers that the URL names, with TLS as far as `sslmode` asks for
//! it.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::time::timeout;
use tokio_postgres::config::{LoadBalanceHosts, SslMode, SslNegotiation};
use tokio_postgres::{CancelToken, Config, NoTls};
use tokio_rustls::TlsConnector;

use super::super::feed::{HostAddress, ServerHost, places};
use super::super::liveness::watch;
use super::stream::Stream;
use crate::random::random;

/// One socket address of a server: the same server is reached by it once more, as a request to
/// cancel must.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    at: Resolved,
    /// Whose certificate is expected; none for a file, which has no TLS.
    host: Option<String>,
}

#[derive(Clone, Debug)]
enum Resolved {
    Tcp(SocketAddr),
    File(PathBuf),
}

/// The servers in the order in which they are to be tried: the owner's, or any.
pub(super) fn in_turn(config: &Config) -> Vec<ServerHost> {
    let mut places = places(config);
    if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
        places.sort_by_cached_key(|_| random());
    }
    places
}

pub(super) async fn addresses(place: &ServerHost, config: &Config) -> io::Result<Vec<Address>> {
    let address = |at| Address {
        at,
        host: place.host(),
    };
    let port = match place.at() {
        HostAddress::File(path) => return Ok(vec![address(Resolved::File(path.clone()))]),
        HostAddress::Address(at) => return Ok(vec![address(Resolved::Tcp(*at))]),
        HostAddress::Name(port) => *port,
    };
    let found = lookup_host((place.name(), port)).await?;
    let mut addresses: Vec<Address> = found.map(|at| address(Resolved::Tcp(at))).collect();
    if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
        addresses.sort_by_cached_key(|_| random());
    }
    Ok(addresses)
}

impl Address {
    /// Opens a socket, on which nothing has been said yet but about TLS.
    pub(super) async fn open(
        &self,
        config: &Config,
        tls: &Arc<ClientConfig>,
    ) -> io::Result<Stream> {
        let limit = config.get_connect_timeout().copied();
        match &self.at {
            Resolved::File(path) => within(limit, UnixStream::connect(path))
                .await
                .map(Stream::File),
            Resolved::Tcp(at) => {
                let socket = within(limit, TcpStream::connect(at)).await?;
                socket.set_nodelay(true)?;
                watch(&socket, config)?;
                match &self.host {
                    Some(host) => secure(socket, host, config, tls).await,
                    None => Ok(Stream::Tcp(socket)),
                }
            }
        }
    }

    /// Asks the server to end what runs on a connection that leads here.
    pub(crate) async fn cancel(
        &self,
        token: &CancelToken,
        config: &Config,
        tls: &Arc<ClientConfig>,
    ) -> io::Result<()> {
        let stream = self.open(config, tls).await?;
        let asked = token.cancel_query_raw(stream, NoTls).await;
        asked.map_err(io::Error::other)
    }
}

async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    match limit {
        Some(limit) => timeout(limit, work)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
        None => work.await,
    }
}

/// Puts TLS on a socket, unless `sslmode` does without, or prefers it and the server has none.
async fn secure(
    mut socket: TcpStream,
    host: &str,
    config: &Config,
    tls: &Arc<ClientConfig>,
) -> io::Result<Stream> {
    let mode = config.get_ssl_mode();
    if mode == SslMode::Disable {
        return Ok(Stream::Tcp(socket));
    }
    if config.get_ssl_negotiation() == SslNegotiation::Direct {
        if mode == SslMode::Prefer {
            return Err(io::Error::other(
                "sslnegotiation=direct needs TLS: write sslmode=require with it",
            ));
        }
    } else if !offers_tls(&mut socket).await? {
        if mode == SslMode::Prefer {
            return Ok(Stream::Tcp(socket));
        }
        return Err(io::Error::other(
            "the server offers no TLS and sslmode asks for it: switch ssl on there, or use sslmode=prefer",
        ));
    }
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let secured = TlsConnector::from(Arc::clone(tls)).connect(name, socket);
    let secured = secured
        .await
        .map_err(|error| io::Error::other(format!("TLS: {error}")))?;
    Ok(Stream::Tls(Box::new(secured)))
}

/// Reads the answer of the server to a wish for TLS. Exactly one byte is read: what an attacker who
/// speaks in the clear has put behind it becomes part of the handshake, which fails
/// (CVE-2021-23222).
async fn offers_tls(socket: &mut TcpStream) -> io::Result<bool> {
    let mut wish = BytesMut::new();
    frontend::ssl_request(&mut wish);
    socket.write_all(&wish).await?;
    match socket.read_u8().await? {
        b'S' => Ok(true),
        b'N' => Ok(false),
        _ => Err(io::Error::other(
            "the server does not understand a wish for TLS",
        )),
    }
}

//! The sockets of a server: those that were handed over, else new ones by the configuration.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, BorrowedFd};

use millpond_http::{ListenAddress, listen_group, listen_unix, share};
use millpond_process::Inherited;
use millpond_site::Config;

use crate::failure::{CommandFailure, CommandResult};
use crate::output::note;

/// The names by which sockets are handed over: of the site by http or the redirect, of the site by
/// https, and of the answers for the owner.
const HTTP: &str = "http";
const HTTPS: &str = "https";
const ADMIN: &str = "admin";
/// The option with the address for http.
const LISTEN: &str = "--listen";

/// The sockets of a server.
pub(crate) struct Sockets {
    /// Sockets of the site, at least one for each worker.
    pub(crate) site: Vec<TcpListener>,
    /// Sockets of the redirect to https, if there is one.
    pub(crate) redirect: Option<Vec<TcpListener>>,
    /// That of the answers for the owner, if there are any.
    pub(crate) admin: Option<Vec<TcpListener>>,
    is_https: bool,
}

impl Sockets {
    /// Takes what was handed over, and opens the others.
    pub(crate) fn open(
        config: &Config,
        workers: usize,
        inherited: &mut Inherited,
    ) -> CommandResult<Self> {
        let is_https = config.has_tls();
        let admin = inherited.sockets(|name, _| name == ADMIN);
        // With one unit of systemd for both ports, both have the name of the unit.
        let site = inherited.sockets(|name, socket| match name {
            HTTP => !is_https,
            HTTPS => is_https,
            _ => !is_https || !is_port_of_http(socket),
        });
        let plain = inherited.sockets(|name, _| name != HTTPS);
        let [secure_addresses, plain_addresses] = config.https_addresses();
        let site = match site.is_empty() {
            false => share(site, workers).map_err(CommandFailure::new)?,
            true if is_https => bind_first(&secure_addresses, workers, "--tls-listen")?,
            true => bind(&config.listen, workers, LISTEN)?,
        };
        let redirect = match plain.is_empty() {
            _ if !is_https => None,
            false => Some(plain),
            true => match bind_first(&plain_addresses, 1, LISTEN) {
                Ok(plain) => Some(plain),
                Err(failure) if config.is_listen_given() => return Err(failure),
                // A port of http that was not asked for may be taken: https does not need it.
                Err(failure) => {
                    failure.print();
                    note(
                        "note: the site is served by https only: http is not redirected, and an authority can check \
                         its names on the port of https only",
                    );
                    None
                }
            },
        };
        let admin = match (config.admin, admin.is_empty()) {
            (_, false) => Some(admin),
            (Some(address), true) => Some(bind(&address.into(), 1, "admin.listen")?),
            (None, true) => None,
        };
        // A client must not wait on what nothing answers.
        inherited.sockets(|name, socket| {
            if let Ok(address) = ListenAddress::of(socket) {
                note(format_args!(
                    "note: the socket `{name}` on {address} was handed over, but the settings have no use for it: it is closed"
                ));
            }
            true
        });
        Ok(Self {
            site,
            redirect,
            admin,
            is_https,
        })
    }

    /// Returns an address of the site that others than this machine reach, if there is one.
    pub(crate) fn outside(&self) -> Option<ListenAddress> {
        let all = self.site.iter().chain(self.redirect.iter().flatten());
        let mut addresses = all.filter_map(|socket| ListenAddress::of(socket).ok());
        addresses.find(|address| !address.is_loopback())
    }

    /// Returns all of them with the names by which they are handed over.
    pub(crate) fn named(&self) -> Vec<(&'static str, BorrowedFd<'_>)> {
        let site = (if self.is_https { HTTPS } else { HTTP }, Some(&self.site));
        let all = [
            site,
            (HTTP, self.redirect.as_ref()),
            (ADMIN, self.admin.as_ref()),
        ];
        let all = all.into_iter().flat_map(|(name, sockets)| {
            let sockets = sockets.into_iter().flatten();
            sockets.map(move |socket| (name, socket.as_fd()))
        });
        all.collect()
    }
}

fn is_port_of_http(socket: &TcpListener) -> bool {
    socket
        .local_addr()
        .is_ok_and(|address| address.port() == 80)
}

/// Listeners for `workers` on `address`, which `option` of the command line changes.
fn bind(address: &ListenAddress, workers: usize, option: &str) -> CommandResult<Vec<TcpListener>> {
    let bound = match address {
        ListenAddress::Ip(address) => listen_group(*address, workers),
        ListenAddress::Unix(path) => listen_unix(path).and_then(|one| share(vec![one], workers)),
    };
    bound.map_err(|error| cannot_listen(address, option, &error))
}

fn cannot_listen(address: &ListenAddress, option: &str, error: &io::Error) -> CommandFailure {
    let failure = CommandFailure::new(format!("cannot listen on {address}: {error}"));
    match (error.kind(), address) {
        (io::ErrorKind::AddrInUse, ListenAddress::Unix(_)) => failure.hint(format!(
            "a program listens there, or the file is no socket: stop it, or choose another path with {option}"
        )),
        (io::ErrorKind::AddrInUse, _) => failure.hint(format!(
            "another program has this port: stop it, or choose another with {option} (port 0 is any free one)"
        )),
        (io::ErrorKind::PermissionDenied, ListenAddress::Ip(_)) => failure.hint(format!(
            "ports below 1024 need a privilege: choose a higher one with {option}, or give the program CAP_NET_BIND_SERVICE"
        )),
        (io::ErrorKind::AddrNotAvailable, _) => {
            failure.hint("this machine has no such address; 0.0.0.0 is all that it has")
        }
        _ => failure,
    }
}

/// Listeners on the first of the addresses that the machine has; `option` changes them.
fn bind_first(
    addresses: &[ListenAddress],
    workers: usize,
    option: &str,
) -> CommandResult<Vec<TcpListener>> {
    let mut last = Err(CommandFailure::new("there is no address to listen on"));
    for address in addresses {
        last = bind(address, workers, option);
        let is_missing = address.ip().is_some_and(|ip| ip.is_ipv6()) && !has_ipv6();
        if last.is_ok() || !is_missing {
            break;
        }
    }
    last
}

fn has_ipv6() -> bool {
    TcpListener::bind("[::]:0").is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;

    #[test]
    fn the_first_address_that_can_be_bound_is_taken() {
        let any = ListenAddress::Ip(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let found = bind_first(&[any.clone(), any], 2, LISTEN).map(|found| found.len());
        assert_eq!(found.ok(), Some(2));
        assert!(bind_first(&[], 1, LISTEN).is_err());
    }
}

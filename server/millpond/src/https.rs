//! https: where the certificates come from, and what is answered on the port of http.

use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::path::Path;
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use base_clock::Boottime;
use millpond_certificates::{
    AcmeRenewal, Certificates, ClientCertificates, FileCertificates, LocalAuthority, LocalRenewal,
    PemFiles, PreparedRenewal, TicketSecret, TlsOptions, TrustedAuthority, server_config,
    shell_word,
};
use millpond_http::{
    ClientLimits, Limits, ListenAddress, Listener, Reply, Request, Response, ServerConfig, Service,
};
use millpond_process::Workers;
use millpond_site::Config;

use crate::acme::{self, RenewalFailures};
use crate::events::Event;
use crate::failure::{CommandFailure, CommandResult};
use crate::output::{log, note};
use crate::reminder::DailyReminder;
use crate::server;

/// Path at which the challenges of an authority are asked for (RFC 8555 section 8.3).
const CHALLENGES: &str = "/.well-known/acme-challenge/";
/// The folder of the local authority, in that of the certificates.
pub(crate) const LOCAL: &str = "localhost";

/// The certificates of a server, and the threads that renew them.
pub(crate) struct Https {
    tls: Arc<ServerConfig>,
    certificates: Arc<Certificates>,
    failures: RenewalFailures,
    files: FileCertificates,
    /// Question for an authority, until the ports are served.
    prepared: Option<PreparedRenewal>,
    acme: Option<AcmeRenewal>,
    _local: Option<LocalRenewal>,
    /// The local authority, if there is one.
    authority: Option<TrustedAuthority>,
    reminder: DailyReminder,
}

impl Https {
    /// The certificates of the configuration of the site in `dir`; `None` if the site is served by
    /// http. An authority of the web is asked for nothing yet.
    pub(crate) fn open(dir: &Path, config: &Config) -> CommandResult<Option<Self>> {
        if !config.has_tls() {
            return Ok(None);
        }
        let certificates = Arc::new(Certificates::new());
        let files = config.certificate_files();
        let files = files
            .into_iter()
            .map(|(chain, key)| PemFiles { chain, key });
        let files = FileCertificates::open(files.collect(), Arc::clone(&certificates));
        let (local, authority) = match config.tls.has_localhost() {
            true => {
                let (local, authority) = local(&config.tls.folder(dir).join(LOCAL), &certificates)?;
                (Some(local), authority)
            }
            false => (None, None),
        };
        let failures = RenewalFailures::default();
        let prepared = acme::prepare(dir, config, &certificates, &failures)?;
        Ok(Some(Self {
            tls: server_config(Arc::clone(&certificates), &options(config)?).map_err(failure)?,
            certificates,
            failures,
            files: files.map_err(failure)?,
            prepared,
            acme: None,
            _local: local,
            authority,
            reminder: DailyReminder::default(),
        }))
    }

    /// Returns the certificates that are shown, and the tries that failed.
    pub(crate) fn state(&self) -> (Arc<Certificates>, RenewalFailures) {
        (Arc::clone(&self.certificates), self.failures.clone())
    }

    /// Prints, once a day, which certificates in files have expired or soon will. Certificates of
    /// an authority are renewed, and a renewal that fails is printed by itself.
    pub(crate) fn remind(&mut self) {
        if self.reminder.is_due(Boottime::now()) {
            self.print_validity();
        }
    }

    fn print_validity(&self) {
        for problem in self.files.validity_problems(base_clock::wall()) {
            let severity = if problem.is_valid { "warning" } else { "error" };
            note(format_args!("{severity}: {}", problem.sentence));
        }
    }

    /// Shows the certificates that are stored. The database of the site is open by now, if they are
    /// stored there.
    pub(crate) fn show_stored(&mut self) {
        if let Some(prepared) = &mut self.prepared {
            prepared.show_stored();
        }
    }

    /// Asks an authority for the certificates that are missing or old. It connects to this server
    /// in its turn, so the ports are served by now.
    pub(crate) fn begin_renewals(&mut self) -> CommandResult {
        if let Some(prepared) = self.prepared.take() {
            self.acme = Some(prepared.begin().map_err(failure)?);
        }
        Ok(())
    }

    /// Begins to end the renewals of an authority's certificates.
    pub(crate) fn stop_renewals(&mut self) {
        if let Some(acme) = &mut self.acme {
            acme.stop();
        }
    }

    /// The listeners with TLS.
    pub(crate) fn secure(&self, listeners: Vec<TcpListener>, config: &Config) -> Vec<Listener> {
        let fields = match config.tls.hsts.as_secs() {
            0 => String::new(),
            seconds => format!("Strict-Transport-Security: max-age={seconds}\r\n"),
        };
        let secure = |socket| Listener {
            socket,
            tls: Some(Arc::clone(&self.tls)),
            fields: fields.clone(),
        };
        listeners.into_iter().map(secure).collect()
    }

    /// Reads the files with certificates again. What is faulty stays as it was.
    pub(crate) fn reload(&self) {
        match self.files.reload(base_clock::wall()) {
            Ok(0) => {}
            Ok(1) => log("note: a new certificate is in use"),
            Ok(more) => log(format_args!("note: {more} new certificates are in use")),
            Err(errors) => {
                for error in errors {
                    log(format_args!("error: {error}"));
                }
                log("note: the old certificates stay in use");
            }
        }
        self.print_validity();
    }

    /// The URL of the site on `address`: on this machine with the name that the certificate of the
    /// local authority has.
    pub(crate) fn url(&self, address: &ListenAddress) -> String {
        let Some(address) = address.ip() else {
            return format!("https ({address})");
        };
        let (ip, port) = (address.ip(), address.port());
        let is_here = ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST || ip.is_unspecified();
        if self.authority.is_some() && is_here {
            format!("https://localhost:{port}")
        } else {
            format!("https://{address}")
        }
    }

    /// Prints how a browser is made to trust the local authority, and so this server on `port`, if
    /// no server has used the authority before. Later it prints the command that shows the same.
    pub(crate) fn print_trust(&self, site: &Path, port: u16) {
        let Some(authority) = &self.authority else {
            return;
        };
        if authority.served_port().is_none() {
            for line in authority.instructions(port) {
                note(format_args!("  {line}"));
            }
        } else {
            note(format_args!(
                "note: `millpond check --trust {}` shows how browsers are made to trust this server",
                shell_word(site)
            ));
        }
        if let Err(error) = authority.note_served(port) {
            note(format_args!("error: {error}"));
        }
    }

    /// Redirects on `listeners` to https on `port`, and answers the challenges of authorities.
    /// Proxies and clients are limited as `of_site` says.
    pub(crate) fn redirect(
        &self,
        listeners: Vec<TcpListener>,
        port: u16,
        of_site: &Limits,
        events: &Sender<Event>,
    ) -> CommandResult<Workers> {
        let certificates = Arc::clone(&self.certificates);
        let service = move || Redirect {
            certificates: Arc::clone(&certificates),
            port,
        };
        let limits = Limits {
            body: 0,
            connections: 1024,
            client: ClientLimits {
                // Authorities need room too.
                connections: match of_site.client.connections {
                    0 => REDIRECTED,
                    connections => connections.min(REDIRECTED),
                },
                ..of_site.client.clone()
            },
            proxies: of_site.proxies.clone(),
            ..Limits::default()
        };
        let listeners = listeners.into_iter().map(Listener::from).collect();
        server::start(service, "redirect", listeners, &limits, events).map_err(|error| {
            CommandFailure::new(format!("cannot start the redirects to https: {error}"))
        })
    }
}

pub(crate) fn failure(error: millpond_certificates::Error) -> CommandFailure {
    CommandFailure::new(error)
}

pub(crate) fn options(config: &Config) -> CommandResult<TlsOptions> {
    let secret = match config.shared_secret() {
        Some(secret) => TicketSecret::shared(secret.as_bytes()),
        None => TicketSecret::random(),
    };
    let mut options = TlsOptions::new(
        vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        secret.map_err(failure)?,
    );
    let authorities = config.tls.client_authorities.clone();
    options.client_certificates = authorities.map(|authorities| ClientCertificates {
        authorities,
        required: true,
    });
    Ok(options)
}

fn local(
    folder: &Path,
    certificates: &Arc<Certificates>,
) -> CommandResult<(LocalRenewal, Option<TrustedAuthority>)> {
    let authority = LocalAuthority::open(folder, base_clock::wall()).map_err(failure)?;
    if authority.replaces_another() {
        note(format_args!(
            "warning: {}: the key of the authority was lost or exchanged, so a new authority was made; \
             browsers that trust the old one must be made to trust the new one",
            folder.display()
        ));
    }
    let report = |error: &millpond_certificates::Error| log(format_args!("error: {error}"));
    let renewal = authority.serve(Arc::clone(certificates), report);
    let trusted = TrustedAuthority::in_folder(folder).map_err(failure)?;
    Ok((renewal.map_err(failure)?, trusted))
}

/// Connections of one client to the port that redirects.
const REDIRECTED: usize = 64;

/// Service on the port of http, which redirects.
struct Redirect {
    certificates: Arc<Certificates>,
    /// The port of https.
    port: u16,
}

impl Service for Redirect {
    fn call(&self, request: &Request<'_>) -> Reply {
        if let Some(token) = request.path.strip_prefix(CHALLENGES) {
            return match self.certificates.http_challenge(token) {
                Some(answer) => Response::builder(200)
                    .field("Content-Type", "application/octet-stream")
                    .body(answer)
                    .into(),
                None => Response::text(404, "no such challenge\n").into(),
            };
        }
        let Some(host) = request.host().and_then(without_port) else {
            return Response::text(400, "name a host: this server answers by https\n").into();
        };
        let port = match self.port {
            443 => String::new(),
            port => format!(":{port}"),
        };
        // Only GET and HEAD may become another method by 301 (RFC 9110 section 15.4.2).
        let status = match request.method {
            "GET" | "HEAD" => 301,
            _ => 308,
        };
        let path = if request.path.starts_with('/') {
            request.path
        } else {
            "/"
        };
        let query = request
            .query
            .map_or(String::new(), |query| format!("?{query}"));
        Response::builder(status)
            .field("Location", &format!("https://{host}{port}{path}{query}"))
            .body("this site is served by https\n")
            .into()
    }
}

/// The host of a Host field.
fn without_port(host: &str) -> Option<&str> {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if u16::from_str(port).is_ok() && !name.ends_with(':') => name,
        _ => host,
    };
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use millpond_http::OwnedRequest;

    use super::*;

    fn redirect(method: &str, target: &str, host: &str, port: u16) -> (u16, Option<String>) {
        let service = Redirect {
            certificates: Arc::default(),
            port,
        };
        let request = OwnedRequest::new(method, target).field("Host", host);
        let Reply::Ready(response) = service.call(&request.as_request()) else {
            panic!("it is ready");
        };
        let location = response.field("location").map(str::to_owned);
        (response.status(), location)
    }

    #[test]
    fn every_address_leads_to_the_same_address_by_https() {
        for (method, target, host, port, status, location) in [
            (
                "GET",
                "/a?b=1",
                "example.org",
                443,
                301,
                Some("https://example.org/a?b=1"),
            ),
            (
                "HEAD",
                "/",
                "example.org:80",
                8443,
                301,
                Some("https://example.org:8443/"),
            ),
            (
                "POST",
                "/x",
                "[::1]:8080",
                443,
                308,
                Some("https://[::1]/x"),
            ),
            (
                "GET",
                "/.well-known/acme-challenge/none",
                "example.org",
                443,
                404,
                None,
            ),
            ("GET", "/", "", 443, 400, None),
        ] {
            let (found, to) = redirect(method, target, host, port);
            assert_eq!(
                (found, to.as_deref()),
                (status, location),
                "{method} {target} {host}"
            );
        }
    }
}

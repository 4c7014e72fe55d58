//! What `millpond check` says of https: the faults that `serve` would find, and how browsers are
//! made to trust the local authority.

use std::path::Path;
use std::sync::Arc;

use millpond_certificates::{
    AcmeRenewal, Certificates, Error, FileStorage, PemFiles, TrustedAuthority, server_config,
};
use millpond_http::ListenAddress;
use millpond_site::Config;

use crate::acme;
use crate::failure::{CommandFailure, CommandResult};
use crate::https::{LOCAL, failure, options};

/// Findings about the certificates.
#[derive(Default)]
pub(crate) struct TlsFindings {
    /// Faults that stop the start, or keep visitors away.
    pub(crate) errors: Vec<CommandFailure>,
    /// Faults that will do so later.
    pub(crate) warnings: Vec<String>,
}

impl TlsFindings {
    fn note<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        result
            .map_err(|error| self.errors.push(failure(error)))
            .ok()
    }
}

/// Reads what https of the site in `dir` needs as `serve` does. Nothing is made, and nothing asked
/// of an authority.
pub(crate) fn check(dir: &Path, config: &Config) -> TlsFindings {
    let mut findings = TlsFindings::default();
    if let Err(problem) = config.check_tls() {
        findings.errors.push(problem.into());
    }
    if !config.has_tls() {
        return findings;
    }
    let now = base_clock::wall();
    for (chain, key) in config.certificate_files() {
        let files = PemFiles { chain, key };
        let served = findings.note(files.read());
        if let Some(problem) = served.and_then(|served| files.validity_problem(&served, now)) {
            match problem.is_valid {
                true => findings.warnings.push(problem.sentence),
                false => findings.errors.push(CommandFailure::new(problem.sentence)),
            }
        }
    }
    match options(config) {
        Ok(options) => drop(findings.note(server_config(Arc::default(), &options))),
        Err(failure) => findings.errors.push(failure),
    }
    findings.note(TrustedAuthority::in_folder(
        &config.tls.folder(dir).join(LOCAL),
    ));
    if let Some(options) = acme::options(config)
        && let Ok(storage) = FileStorage::new(dir)
    {
        let certificates = Arc::new(Certificates::new());
        let prepared = AcmeRenewal::prepare(options, Arc::new(storage), certificates, drop);
        findings.note(prepared);
    }
    findings
}

/// How browsers are made to trust the local authority of the site in `dir`, line by line. The port
/// is that of the last server with this authority.
pub(crate) fn trust_lines(dir: &Path, config: &Config) -> CommandResult<Vec<String>> {
    let folder = config.tls.folder(dir).join(LOCAL);
    let authority = TrustedAuthority::in_folder(&folder).map_err(failure)?;
    let authority = authority.ok_or_else(|| {
        CommandFailure::new(format!("there is no authority in {}", folder.display()))
            .hint("`millpond serve --domain localhost` makes it at its first start")
    })?;
    let port = authority
        .served_port()
        .unwrap_or_else(|| https_port(config));
    Ok(authority.instructions(port))
}

/// The port for `localhost` that the configuration says.
fn https_port(config: &Config) -> u16 {
    let mut config = config.clone();
    if !config.tls.has_localhost() {
        config.tls.domains = vec![LOCAL.to_owned()];
    }
    let [secure, _] = config.https_addresses();
    let address = secure.first().and_then(ListenAddress::ip);
    address.map_or(443, |address| address.port())
}

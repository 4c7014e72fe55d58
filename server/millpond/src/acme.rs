//! What is asked of an authority of the web, and where its certificates are stored.

use std::collections::HashMap;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

use millpond_certificates::{
    AcmeOptions, AcmeRenewal, AcmeReport, CertificateStorage, Certificates, FileStorage,
    PreparedRenewal,
};
use millpond_site::{Config, DatabaseUrl};

use crate::certificate_storage::DatabaseStorage;
use crate::failure::{CommandFailure, CommandResult};
use crate::https::failure;
use crate::output::log;

/// How often the processes of one machine look at each other's certificates, in the same folder.
const POLL: Duration = Duration::from_secs(1);

/// The last try for each name, if it failed: when, and why.
#[derive(Clone, Default)]
pub(crate) struct RenewalFailures(Arc<Mutex<HashMap<String, (u64, String)>>>);

impl RenewalFailures {
    fn note(&self, report: &AcmeReport) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match report {
            AcmeReport::Issued { name, .. } => drop(failures.remove(&name.to_string())),
            AcmeReport::Failed { name, cause, .. } => {
                let now = base_clock::unix_nanos() / base_clock::SECOND;
                failures.insert(name.to_string(), (now, cause.clone()));
            }
            _ => {}
        }
    }

    /// Returns when the last try for a name failed, and why.
    pub(crate) fn of(&self, name: &str) -> Option<(u64, String)> {
        let failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failures.get(name).cloned()
    }
}

/// The renewal of the certificates of `tls.domains`; `None` if no name needs an authority.
pub(crate) fn prepare(
    dir: &Path,
    config: &Config,
    certificates: &Arc<Certificates>,
    failures: &RenewalFailures,
) -> CommandResult<Option<PreparedRenewal>> {
    let Some(options) = options(config) else {
        return Ok(None);
    };
    let storage = storage(dir, config)?;
    let failures = failures.clone();
    let report = move |report: AcmeReport| {
        failures.note(&report);
        log(format_args!("millpond: {report}"));
    };
    let prepared = AcmeRenewal::prepare(options, storage, Arc::clone(certificates), report);
    prepared.map(Some).map_err(failure)
}

/// Returns the options for an authority; `None` if no name needs one.
pub(crate) fn options(config: &Config) -> Option<AcmeOptions> {
    let names: Vec<String> = config.tls.public_domains().map(str::to_owned).collect();
    if names.is_empty() {
        return None;
    }
    let tls = &config.tls;
    let mut options = AcmeOptions::new(names);
    options.trust.clone_from(&tls.acme_trust);
    options.email.clone_from(&tls.acme_email);
    options.profile.clone_from(&tls.profile);
    if let Some(directory) = &tls.acme_directory {
        options.directory.clone_from(directory);
    }
    Some(options)
}

/// The folder that the configuration names, else the database if several nodes can share it, else
/// the usual folder.
fn storage(dir: &Path, config: &Config) -> CommandResult<Arc<dyn CertificateStorage>> {
    if let (None, DatabaseUrl::Postgres(url)) = (&config.tls.storage, &config.database) {
        let storage = DatabaseStorage::new(url.reveal()).map_err(|error| {
            CommandFailure::new(format!(
                "no thread for certificates in the database: {error}"
            ))
        })?;
        return Ok(Arc::new(storage));
    }
    let folder = config.tls.folder(dir);
    make_private(&folder).map_err(|error| {
        CommandFailure::new(format!("{}: {error}", folder.display()))
            .hint("the server keeps its certificates there: let it write, or set tls.storage")
    })?;
    let storage = FileStorage::new(&folder)
        .map_err(|error| CommandFailure::new(format!("{}: {error}", folder.display())))?;
    Ok(Arc::new(storage.shared(POLL)))
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)
}

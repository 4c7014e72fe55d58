//! Certificates from an authority of the web, by ACME (RFC 8555) with renewal information (RFC
//! 9773).
//!
//! One thread asks for certificates, with a current-thread runtime of its own. It first shows what
//! the storage has, so that a restart needs no authority. A certificate is due when the authority's
//! renewal information says so, or else when two thirds of its lifetime are over. Of several nodes
//! with one storage the one that has the lock asks; every node answers the challenges. A failure is
//! reported, remembered in the storage and tried again later; what is shown stays shown.

mod account;
pub(crate) mod challenges;
mod failure;
mod http_client;
mod lease;
mod managed;
mod names;
mod order;
mod renewal_info;
mod renewer;
mod retry_after;
mod schedule;
mod shared_challenges;
mod storage;
mod storage_faults;
mod stored_value;
mod web_client;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

pub use storage::{CertificateStorage, FileStorage};
pub use web_client::WebClient;

use self::renewer::Renewer;
use crate::Error;
use crate::facts::{CertificateName, date};
use crate::resolver::Certificates;

/// How long the end of the thread is waited for. It may wait for a storage that does not answer.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// Names to certify, and the authority to ask.
#[derive(Clone, Debug)]
pub struct AcmeOptions {
    /// The authority's directory (`acme_directory`), an `https://` URL.
    pub directory: String,
    /// A PEM file with the root behind the directory's own certificate (`acme_trust`); `None`: the
    /// roots of the system.
    pub trust: Option<PathBuf>,
    /// Address to which the authority may write (`acme_email`).
    pub email: Option<String>,
    /// The kind of certificate (`profile`), such as `shortlived`; `None`: the authority's default,
    /// but `shortlived` for an address if the authority has this profile.
    pub profile: Option<String>,
    /// Hosts and addresses. Each gets a certificate of its own, so that a name that fails does not
    /// hold up the others.
    pub names: Vec<String>,
    /// How long things may take, and are waited for.
    pub timing: AcmeTiming,
}

impl AcmeOptions {
    /// Certificates for `names` from Let's Encrypt.
    #[must_use]
    pub fn new(names: Vec<String>) -> Self {
        Self {
            directory: LETS_ENCRYPT.to_owned(),
            trust: None,
            email: None,
            profile: None,
            names,
            timing: AcmeTiming::default(),
        }
    }
}

/// How long the thread waits. Tests wait less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcmeTiming {
    /// Before the first new try after a failure; doubled by each further failure.
    pub first_retry: Duration,
    /// The longest wait before a new try, unless the authority asks for more.
    pub longest_retry: Duration,
    /// Between two looks at an order that the authority works on; grows by half each time.
    pub order_poll: Duration,
    /// Until an order that makes no progress is given up.
    pub order_timeout: Duration,
    /// How long the lock of the node that asks lasts without being prolonged. A node prolongs it
    /// ten times in this time while it asks; after a node that died another one waits so long.
    pub lease: Duration,
    /// Before the lock is tried again that another node holds.
    pub lock_retry: Duration,
    /// Between two requests for renewal information, if the authority asks for more; a quarter of
    /// this time if the authority does not answer.
    pub renewal_info: Duration,
}

impl Default for AcmeTiming {
    /// Let's Encrypt allows five failed validations of a name in an hour, and a try makes two: so
    /// a failure is tried again after 25 minutes, then after 50.
    fn default() -> Self {
        Self {
            first_retry: Duration::from_secs(25 * 60),
            longest_retry: Duration::from_secs(12 * 60 * 60),
            order_poll: Duration::from_millis(500),
            order_timeout: Duration::from_secs(120),
            lease: Duration::from_secs(10 * 60),
            lock_retry: Duration::from_secs(10),
            renewal_info: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// Event of a certificate; written as a sentence by `Display`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcmeReport {
    /// A new certificate is shown.
    Issued {
        /// The host or address.
        name: CertificateName,
        /// The last moment at which it is valid.
        not_after: SystemTime,
    },
    /// No certificate was got. The old one, if there is one, stays in use.
    Failed {
        /// The host or address.
        name: CertificateName,
        /// The cause, and what helps.
        cause: String,
        /// When it is tried again.
        retry_at: SystemTime,
        /// Until when the certificate that is shown is valid; `None`: there is none.
        not_after: Option<SystemTime>,
    },
    /// The storage cannot be read or written.
    StorageFailed {
        /// Message of the storage.
        cause: String,
    },
    /// The storage can be read and written again.
    StorageRecovered,
}

impl fmt::Display for AcmeReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Issued { name, not_after } => {
                let end = date(*not_after);
                write!(formatter, "{name}: a new certificate, valid until {end}")
            }
            Self::Failed {
                name,
                cause,
                retry_at,
                not_after,
            } => {
                let retry = date(*retry_at);
                write!(formatter, "{name}: no new certificate: {cause}; ")?;
                match not_after {
                    Some(end) => write!(formatter, "the old one ends on {}", date(*end))?,
                    None => formatter.write_str("there is none yet, so HTTPS fails")?,
                }
                write!(formatter, "; the next try is at {retry}")
            }
            Self::StorageFailed { cause } => {
                write!(
                    formatter,
                    "the storage of certificates fails: {cause}; the certificates in use stay, and \
                     it is tried again"
                )
            }
            Self::StorageRecovered => {
                formatter.write_str("the storage of certificates works again")
            }
        }
    }
}

/// Request to the thread.
#[derive(Debug)]
enum RenewalCommand {
    /// Look at all certificates now, and try again what failed by itself.
    CheckNow,
}

/// Certificates that are shown as far as they are stored. Nothing is asked of the authority yet: it
/// connects to ports 443 and 80 as soon as it is asked, so they must be served first.
pub struct PreparedRenewal {
    renewer: Renewer,
}

impl fmt::Debug for PreparedRenewal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PreparedRenewal")
            .finish_non_exhaustive()
    }
}

impl PreparedRenewal {
    /// Shows the stored certificates, so that the first client after a restart gets one. A storage
    /// that fails is reported, and read again by the thread.
    pub fn show_stored(&mut self) {
        self.renewer.read_storage();
    }

    /// Starts the thread that asks for certificates. The caller serves port 443 (with
    /// [`server_config`](crate::server_config)) or port 80 (with
    /// [`Certificates::http_challenge`]) by now.
    ///
    /// # Errors
    /// There are no threads, or no file descriptors.
    pub fn begin(self) -> Result<AcmeRenewal, Error> {
        let renewer = self.renewer;
        let (commands, received) = unbounded_channel();
        let (end, ended) = channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2)
            .build()
            .map_err(|error| Error::new(format!("no sockets or timers for ACME: {error}")))?;
        let run = move || {
            let _end: Sender<()> = end;
            runtime.block_on(renewer.run(received));
            // A look-up in DNS may still wait on a thread of the runtime.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("acme".to_owned()).spawn(run);
        let thread = thread.map_err(|error| Error::new(format!("no thread for ACME: {error}")))?;
        Ok(AcmeRenewal {
            commands: Some(commands),
            thread: Some(thread),
            ended,
        })
    }
}

/// The thread that asks for certificates. Dropping it ends the thread: an order that is under way
/// is given up, and the lock is freed. A thread that still waits for the storage after two seconds
/// is left to the end of the process; then the lock ends with its lease.
#[derive(Debug)]
pub struct AcmeRenewal {
    commands: Option<UnboundedSender<RenewalCommand>>,
    thread: Option<JoinHandle<()>>,
    /// Closed by the end of the thread.
    ended: Receiver<()>,
}

impl AcmeRenewal {
    /// Checks the options, and reserves the places of the certificates. `report` is called by
    /// [`PreparedRenewal::show_stored`] and on the thread.
    ///
    /// # Errors
    ///
    /// The options are wrong, or the file `trust` cannot be read. That the authority or the storage
    /// fails is no error: it is reported.
    pub fn prepare(
        options: AcmeOptions,
        storage: Arc<dyn CertificateStorage>,
        certificates: Arc<Certificates>,
        report: impl Fn(AcmeReport) + Send + 'static,
    ) -> Result<PreparedRenewal, Error> {
        let renewer = Renewer::new(options, storage, certificates, Box::new(report))?;
        Ok(PreparedRenewal { renewer })
    }

    /// Looks at all certificates now. What failed is tried again without waiting, unless the
    /// authority asked for a pause.
    pub fn check_now(&self) {
        if let Some(commands) = &self.commands {
            // The thread ends only by a panic, which was printed.
            let _ = commands.send(RenewalCommand::CheckNow);
        }
    }

    /// Begins to end the thread, and does not wait for its end.
    pub fn stop(&mut self) {
        drop(self.commands.take());
    }
}

impl Drop for AcmeRenewal {
    fn drop(&mut self) {
        self.stop();
        let ended = self.ended.recv_timeout(STOP_TIMEOUT);
        if ended == Err(RecvTimeoutError::Disconnected)
            && let Some(thread) = self.thread.take()
        {
            // A panic in it was printed already.
            let _ = thread.join();
        }
    }
}

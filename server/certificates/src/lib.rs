//! Where the server's TLS certificates come from: PEM files, a local authority for `localhost`, or
//! an authority of the web by ACME (RFC 8555).
//!
//! It knows certificates, keys, and how they are renewed while the server runs. It must not know
//! HTTP connections, sites or databases: [`server_config`] gives the transport its settings, and
//! what several nodes share goes through [`CertificateStorage`], which the caller may implement on
//! a database.
//!
//! Choosing a certificate for a client ([`Certificates`]) happens on a worker and neither waits nor
//! locks. All else is done by threads of this crate, one for each source. The client that asks
//! authorities also posts what the program has for others ([`WebClient`]).

mod acme;
mod config;
mod der;
mod error;
mod facts;
mod local;
mod pem;
mod private_file;
mod resolver;
mod served;
#[cfg(test)]
mod testing;
mod tickets;
mod trust;

pub use acme::{
    AcmeOptions, AcmeRenewal, AcmeReport, AcmeTiming, CertificateStorage, FileStorage,
    LETS_ENCRYPT, PreparedRenewal, WebClient,
};
pub use config::{ClientCertificates, TlsOptions, server_config};
pub use error::Error;
pub use facts::{CertificateFacts, CertificateName};
pub use local::{LocalAuthority, LocalRenewal};
pub use pem::{FileCertificates, PemFiles, ValidityProblem};
pub use resolver::{ACME_TLS_ALPN, Certificates};
pub use served::ServedCertificate;
pub use tickets::TicketSecret;
pub use trust::{TrustedAuthority, shell_word};

//! The account with an authority, made once and stored.

use instant_acme::{Account, AccountCredentials, NewAccount};

use super::failure::AcmeFailure;
use super::http_client::AcmeHttpClient;
use super::storage::CertificateStorage;

/// The stored account; `None` if none was stored.
pub(super) async fn stored(
    storage: &dyn CertificateStorage,
    key: &str,
    client: &AcmeHttpClient,
) -> Result<Option<Account>, AcmeFailure> {
    let value = storage.load(key).map_err(|error| storage_failure(&error))?;
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let credentials: AccountCredentials = serde_json::from_slice(&value)
        .map_err(|error| AcmeFailure::new(format!("the stored account is damaged: {error}")))?;
    let builder = Account::builder_with_http(Box::new(client.clone()));
    Ok(Some(builder.from_credentials(credentials).await?))
}

/// Makes an account and stores it. To ask for a certificate is to agree to the authority's terms.
pub(super) async fn create(
    storage: &dyn CertificateStorage,
    key: &str,
    client: &AcmeHttpClient,
    directory: &str,
    email: Option<&str>,
) -> Result<Account, AcmeFailure> {
    let contact = email.map(|email| format!("mailto:{email}"));
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    let wanted = NewAccount {
        contact: &contact,
        terms_of_service_agreed: true,
        only_return_existing: false,
    };
    let builder = Account::builder_with_http(Box::new(client.clone()));
    let (account, credentials) = builder.create(&wanted, directory.to_owned(), None).await?;
    let value = serde_json::to_vec(&credentials)
        .map_err(|error| AcmeFailure::new(format!("the account cannot be stored: {error}")))?;
    storage
        .store(key, &value)
        .map_err(|error| storage_failure(&error))?;
    Ok(account)
}

pub(super) fn storage_failure(error: &std::io::Error) -> AcmeFailure {
    AcmeFailure::new(format!("the storage of certificates fails: {error}"))
}

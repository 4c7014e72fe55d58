//! A client that posts documents to one address, which is no authority's.

use bytes::Bytes;
use http::{Request, Uri};
use instant_acme::{BodyWrapper, HttpClient as _};
use tokio::runtime::Builder;

use super::http_client::AcmeHttpClient;
use crate::Error;

/// Posts documents to a URL, by https or http.
pub struct WebClient {
    client: AcmeHttpClient,
    url: Uri,
}

impl WebClient {
    /// A client for `url`, which is in the setting of this name.
    ///
    /// # Errors
    /// It is no URL, or the system has no root certificates for one of https.
    pub fn new(url: &str, setting: &'static str) -> Result<Self, Error> {
        let parsed = url.parse::<Uri>().ok().filter(|url| {
            let is_known = |scheme| ["http", "https"].contains(&scheme);
            url.host().is_some() && url.scheme_str().is_some_and(is_known)
        });
        let url = parsed.ok_or_else(|| {
            Error::new(format!("{setting}: `{url}` is no http:// or https:// URL"))
        })?;
        let client = AcmeHttpClient::for_setting(setting, url.scheme_str() == Some("https"))?;
        Ok(Self { client, url })
    }

    /// Posts a document with these fields, and returns the status of the response. Blocks for at
    /// most a minute.
    ///
    /// # Errors
    /// A sentence, if there is no response.
    pub fn post(&self, fields: &[(String, String)], body: Vec<u8>) -> Result<u16, String> {
        let mut request = Request::post(self.url.clone());
        for (name, value) in fields {
            request = request.header(name, value);
        }
        let request = request.body(BodyWrapper::<Bytes>::from(body));
        let request = request.map_err(|error| error.to_string())?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let response = runtime.block_on(self.client.request(request));
        let response = response.map_err(|error| error.to_string())?;
        Ok(response.parts.status.as_u16())
    }
}

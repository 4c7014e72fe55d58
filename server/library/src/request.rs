//! What a handler sees of a request.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use crate::failure::Failure;
use crate::json_values::members;
use crate::response::Response;
use crate::values::NamedValues;

/// A request. It is borrowed: copy what is to outlive the handler.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    http: &'a millpond_http::Request<'a>,
    /// Set when the program reads `Accept`: what it answers depends on it.
    accept_read: &'a AtomicBool,
}

impl<'a> Request<'a> {
    /// One that sets `accept_read` when its `Accept` is read.
    pub(crate) const fn new(
        http: &'a millpond_http::Request<'a>,
        accept_read: &'a AtomicBool,
    ) -> Self {
        Self { http, accept_read }
    }

    fn note_accept(&self) {
        self.accept_read.store(true, Ordering::Relaxed);
    }

    /// Returns the response of the program to this request: with `Vary: Accept, Authorization` if
    /// the program has read `Accept`.
    pub(crate) fn answered(&self, response: Response) -> Response {
        match self.accept_read.load(Ordering::Relaxed) {
            true => response.varying_by_accept(),
            false => response,
        }
    }

    /// The method, such as `GET`. A HEAD comes to the handler of GET; its body is not sent.
    #[must_use]
    pub fn method(&self) -> &'a str {
        self.http.method
    }

    /// Returns true if the request came through TLS that ends here, or if a trusted proxy says that
    /// it came by https. If another proxy ends TLS, this is false and the scheme is not known.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.http.is_secure
    }

    /// The path as it was sent, percent-encoded.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.http.path
    }

    /// Returns the text behind the question mark, percent-encoded.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        self.http.query
    }

    /// Returns the values of the query, decoded, to be read as types by name. A value that is not
    /// UTF-8 is a 400.
    #[must_use]
    pub fn query_values(&self) -> NamedValues<'a> {
        NamedValues::decoded(self.http.query.unwrap_or_default().as_bytes())
    }

    /// The value of the first field line with this name, if it is UTF-8. Names are compared without
    /// regard to case. A response of a handler that reads `Accept` has `Vary: Accept,
    /// Authorization`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'a str> {
        if name.eq_ignore_ascii_case("accept") {
            self.note_accept();
        }
        std::str::from_utf8(self.http.fields.get(name)?).ok()
    }

    /// All field lines: name as sent, value without surrounding white space. A response of a
    /// handler that reads them has `Vary: Accept, Authorization`.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        self.note_accept();
        self.http.fields.iter()
    }

    /// True if JSON suits this client better than HTML: its `Accept` prefers `application/json` or
    /// `application/problem+json` to `text/html`, or its `Accept` does not name HTML and it sends a
    /// token (`Authorization: Bearer`) or, by another method than GET, JSON. False without these.
    /// The response of a handler that asks has `Vary: Accept, Authorization`, and so has that of
    /// [`Routes::failures`](crate::Routes::failures).
    #[must_use]
    pub fn prefers_json(&self) -> bool {
        self.note_accept();
        millpond_http::prefers_json(self.http) || millpond_http::sends_json(self.http)
    }

    /// The host, with its port if it has one, that the client addressed; none only in HTTP/1.0.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.http.host()
    }

    /// Returns the address of the client: that of the peer, or the one that a trusted proxy names
    /// ([`Limits::proxies`](crate::Limits)).
    #[must_use]
    pub fn client(&self) -> IpAddr {
        self.http.client().address()
    }

    /// The address of the client, or of a proxy.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.http.peer
    }

    /// The whole body, of any media type, at most `limits.body` bytes. Empty where the handler
    /// [reads](crate::reading) it. A long one is in a file and not in memory; cloning copies
    /// nothing.
    #[must_use]
    pub fn body(&self) -> &'a Bytes {
        &self.http.body
    }

    /// The body as text.
    ///
    /// # Errors
    /// 400 if it is not UTF-8.
    pub fn text(&self) -> Result<&'a str, Failure> {
        std::str::from_utf8(&self.http.body).map_err(|error| {
            let at = error.valid_up_to();
            Failure::new(400, format!("the body is not UTF-8 at byte {at}"))
        })
    }

    /// The fields of a form in the body (`application/x-www-form-urlencoded`), decoded, in order.
    /// What is not UTF-8 becomes U+FFFD.
    pub fn form(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> + use<'a> {
        form_urlencoded::parse(&self.http.body)
    }

    /// Returns the fields of the form, to be read as types by name. A value that is not UTF-8 is a
    /// 400.
    ///
    /// ```
    /// use millpond::{Failure, Request, Routes, blocking};
    ///
    /// let mut routes = Routes::new();
    /// routes.post("/orders", blocking(|request: &Request| {
    ///     let form = request.form_values();
    ///     let (article, count) = (form.get::<String>("article")?, form.get::<u16>("count")?);
    ///     Ok::<_, Failure>(format!("{count} of {article}"))
    /// }));
    /// ```
    #[must_use]
    pub fn form_values(&self) -> NamedValues<'a> {
        NamedValues::decoded(&self.http.body)
    }

    /// The named values of a body of either kind that clients send: the fields of a form, or the
    /// members of a JSON object (`application/json`, or a type written in JSON, RFC 6839). A member
    /// is read as a field would be: `5` and `"5"` are one number, null is not given, an array gives
    /// several values of its name ([`NamedValues::get_all`]). An object, and an array in an array,
    /// is not read: a crate such as `serde_json` reads that.
    ///
    /// ```
    /// use millpond::{Failure, Request, Routes, blocking};
    ///
    /// let mut routes = Routes::new();
    /// routes.post("/orders", blocking(|request: &Request| {
    ///     let order = request.body_values()?;
    ///     let (article, count) = (order.get::<String>("article")?, order.get::<u16>("count")?);
    ///     Ok::<_, Failure>(format!("{count} of {article}"))
    /// }));
    /// ```
    ///
    /// # Errors
    /// 415 for a body of another type, with the types that are taken in `Accept` (RFC 9110 section
    /// 15.5.16); 400 for one that is no JSON object, for a member that is an object, and for null,
    /// an array or an object in an array: the sentence names the member.
    pub fn body_values(&self) -> Result<NamedValues<'a>, Failure> {
        const FORM: &str = "application/x-www-form-urlencoded";
        const TAKEN: &str = "application/json, application/x-www-form-urlencoded";
        let declared = self.field("content-type").unwrap_or_default();
        let media_type = declared.split(';').next().unwrap_or_default().trim();
        let media_type = media_type.to_ascii_lowercase();
        let is_json = media_type == "application/json"
            || (media_type.starts_with("application/") && media_type.ends_with("+json"));
        match &*media_type {
            _ if is_json => members(&self.http.body),
            FORM => Ok(self.form_values()),
            "" if self.http.body.is_empty() => Ok(NamedValues::new()),
            _ => Err(Failure::new(
                415,
                format!("the body must be {}", TAKEN.replace(", ", " or ")),
            )
            .with_field("Accept", TAKEN)),
        }
    }
}

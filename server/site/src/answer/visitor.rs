//! What a template sees of the request, and how each access is noted (coherence.md, rule 15).

use std::collections::BTreeMap;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use millpond_db as db;
use millpond_http::OwnedRequest;
use minijinja::value::{Enumerator, Object, Value};

use crate::session::{Session, Sessions};
use millpond_site_compile::{object::template_value, page::Page, template::REQUEST_MEMBERS};
use millpond_site_format::access::SessionRequirements;

/// `request` in a template. Reading from it makes the page private to its visitor, except for the
/// page's address and for the fields and claims that are part of its key: shared pages are made of
/// declared parameters only.
#[derive(Debug)]
pub(crate) struct Visitor {
    request: OwnedRequest,
    path: String,
    /// The address of the page, which its key determines.
    page_path: String,
    vary: Arc<[String]>,
    needs: Arc<SessionRequirements>,
    sessions: Arc<Sessions>,
    /// Read from the cookie when it is first looked at.
    session: OnceLock<Option<Session>>,
    touched: Arc<AtomicBool>,
}

impl Visitor {
    /// `values` are those of the page's key, and `entered` is the session with which it was made,
    /// if it wants one.
    pub(crate) fn new(
        request: OwnedRequest,
        path: String,
        (page, values): (&Page, &[db::Value]),
        sessions: &Arc<Sessions>,
        entered: Option<&Session>,
    ) -> Arc<Self> {
        let session = OnceLock::new();
        if !page.needs.is_none() {
            // The session that is in the key. If it were read again later, it might have expired
            // meanwhile.
            let _ = session.set(entered.cloned());
        }
        Arc::new(Self {
            request,
            path,
            page_path: page.path.of(values),
            vary: page.vary.clone(),
            needs: page.needs.clone(),
            sessions: sessions.clone(),
            session,
            touched: Arc::default(),
        })
    }

    /// True if a template has looked at something that is not part of the page's key.
    pub(crate) fn touched(&self) -> bool {
        self.touched.load(Ordering::Relaxed)
    }

    pub(crate) fn request(&self) -> &OwnedRequest {
        &self.request
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn session(&self) -> Option<&Session> {
        let read = || self.sessions.of(&self.request.as_request());
        self.session.get_or_init(read).as_ref()
    }
}

impl Object for Visitor {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        if key == "headers" {
            return Some(Value::from_object(Headers(self.clone())));
        }
        if key == "claims" {
            return Some(Value::from_object(ClaimsOf(self.clone())));
        }
        if key == "path" {
            return Some(Value::from(self.page_path.as_str()));
        }
        self.touched.store(true, Ordering::Relaxed);
        let request = self.request.as_request();
        match key {
            "method" => Some(Value::from(request.method)),
            "host" => Some(request.host().map_or(Value::from(()), Value::from)),
            "query" => {
                let pairs = form_urlencoded::parse(request.query.unwrap_or_default().as_bytes());
                let fields: BTreeMap<String, Value> = pairs
                    .map(|(name, value)| (name.into_owned(), Value::from(value)))
                    .collect();
                Some(Value::from(fields))
            }
            _ => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.touched.store(true, Ordering::Relaxed);
        Enumerator::Str(REQUEST_MEMBERS)
    }
}

/// `request.headers` in a template; a field that the request does not have is none.
#[derive(Debug)]
struct Headers(Arc<Visitor>);

impl Object for Headers {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        let name = key.to_ascii_lowercase();
        if !self.0.vary.contains(&name) {
            self.0.touched.store(true, Ordering::Relaxed);
        }
        let request = self.0.request.as_request();
        let value = self.0.sessions.field(&request, &name);
        let value = value.map(|value| Value::from(String::from_utf8_lossy(&value)));
        Some(value.unwrap_or(Value::from(())))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.0.touched.store(true, Ordering::Relaxed);
        let request = self.0.request.as_request();
        Enumerator::Values(
            request
                .fields
                .iter()
                .map(|(name, _)| Value::from(name.to_ascii_lowercase()))
                .collect(),
        )
    }
}

/// `request.claims` in a template; what the session does not say is none.
#[derive(Debug)]
struct ClaimsOf(Arc<Visitor>);

impl Object for ClaimsOf {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        if !self.0.needs.is_in_key(key) {
            self.0.touched.store(true, Ordering::Relaxed);
        }
        let claim = self.0.session().and_then(|session| session.claims.get(key));
        Some(claim.map_or(Value::from(()), template_value))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.0.touched.store(true, Ordering::Relaxed);
        let claims = self.0.session().into_iter();
        let names =
            claims.flat_map(|session| session.claims.iter().map(|(name, _)| Value::from(name)));
        Enumerator::Values(names.collect())
    }
}

//! The stream of a page that the developer looks at: that of the live page, if it is one, and the
//! news that the folder has changed.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use millpond_http::{Body, BodyCut, BodySource, Request, Response};

use super::DevState;
use crate::live::{script::STREAM, stream::streamed};

/// A browser comes again soon: the server may have been restarted.
const RETRY: &[u8] = b"retry: 500\n\n";
/// The page is to be loaded again.
const RELOAD: &[u8] = b"event: reload\ndata: 1\n\n";

/// Returns the state that a page in development knows, if this is the request for its stream, and
/// true if it asks for the stream of a live page too.
pub(super) fn known(request: &Request<'_>) -> Option<(String, bool)> {
    if request.path != STREAM || request.method != "GET" {
        return None;
    }
    let (mut known, mut has_page) = (None, false);
    for (name, value) in form_urlencoded::parse(request.query?.as_bytes()) {
        match &*name {
            "state" => known = Some(value.into_owned()),
            "page" => has_page = true,
            _ => {}
        }
    }
    Some((known?, has_page))
}

/// Returns the answer `page` with the changes of the folder after the state `known`. Without a live
/// page it has nothing but these.
pub(super) fn with_changes(
    page: Option<&Response>,
    state: &Arc<DevState>,
    known: String,
) -> Response {
    let mut opening = RETRY.to_vec();
    let page = match page.map(Response::body) {
        Some(Body::Streamed(page)) => page.take(),
        // It is gone, or there are too many.
        Some(Body::Bytes(said)) => {
            opening.extend_from_slice(said);
            None
        }
        _ => None,
    };
    streamed(DevStream {
        page,
        changed: Box::pin(state.clone().has_changed(known)),
        opening: Some(opening.into()),
        is_over: false,
    })
}

struct DevStream {
    /// The stream of the live page.
    page: Option<Box<dyn BodySource>>,
    /// Ends with the state; gives false if the server stops.
    changed: Pin<Box<dyn Future<Output = bool> + Send>>,
    opening: Option<Bytes>,
    is_over: bool,
}

impl BodySource for DevStream {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyCut>>> {
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Some(Ok(opening)));
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(has_changed) = self.changed.as_mut().poll(context) {
            self.is_over = true;
            return Poll::Ready(has_changed.then(|| Ok(Bytes::from_static(RELOAD))));
        }
        let Some(page) = &mut self.page else {
            return Poll::Pending;
        };
        match page.poll_piece(context) {
            Poll::Ready(None) => {
                self.is_over = true;
                Poll::Ready(Some(Ok(Bytes::from_static(RETRY))))
            }
            other => other,
        }
    }
}

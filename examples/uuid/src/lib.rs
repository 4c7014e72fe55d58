//! A web service that makes UUIDs (RFC 9562); README.md says how to ask it.

mod parse;
mod uuids;

use millpond::{BodyReader, Failure, Request, Response, Routes, Shown, Stream, quick, reading};
use uuids::{Uuids, order};

const HEAD: &str = "<?xml version='1.0' encoding='UTF-8'?>\n";

/// The service.
pub fn routes() -> Routes {
    let mut routes = Routes::new();
    let get = |request: &Request<'_>| answer(vec![order(&request.query_values())?]);
    let post = |_: &Request<'_>, body: BodyReader| answer(parse::orders(body)?);
    routes.get("/uuid", quick(get));
    routes.post("/uuid", reading(2 << 20, post));
    routes.failures(|_, failure| {
        let message = quick_xml::escape::escape(failure.message());
        Response::xml(format!("{HEAD}<error>{message}</error>\n"))
    });
    routes
}

fn answer(orders: Vec<Uuids>) -> Result<Response, Failure> {
    let count: usize = orders.iter().map(Uuids::len).sum();
    if !(1..=10_000).contains(&count) {
        let message = format!("{count} UUIDs, not from 1 to 10000");
        return Err(Failure::bad_request(message));
    }
    let uuids = orders.into_iter().flatten();
    let lines = uuids.map(|uuid| ("  <uuid>", Some(Shown(uuid)), "</uuid>\n"));
    let begin = [(HEAD, None, "<response>\n")].into_iter();
    let xml = begin.chain(lines).chain([("</response>\n", None, "")]);
    Ok(Response::stream("application/xml", Stream::quick(xml)))
}

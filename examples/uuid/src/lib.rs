//! A web service that makes UUIDs (RFC 9562): `GET /uuid?method=TIME&count=3`, or a POST of
//!
//! ```xml
//! <request>
//!   <generate-uuid method="RANDOM"/>
//!   <generate-uuid method="TIME" version="7" count="3"/>
//!   <generate-uuid method="NAME" namespace="dns">www.example.com</generate-uuid>
//! </request>
//! ```
//!
//! `RANDOM` is version 4, `TIME` version 1 or 7, `NAME` version 5. The answer is XML, and so is
//! what is wrong with a request.

mod parse;
mod uuids;

use std::iter;

use millpond::{BodyReader, Failure, Request, Response, Routes, Stream, quick, reading};
use uuids::{Order, order};

const HEAD: &str = "<?xml version='1.0' encoding='UTF-8'?>\n";

/// The service.
pub fn routes() -> Routes {
    let mut routes = Routes::new();
    routes.get("/uuid", quick(get));
    routes.post("/uuid", reading(2 << 20, post));
    routes.failures(|failure| {
        let message = quick_xml::escape::escape(failure.message());
        Response::xml(format!("{HEAD}<error>{message}</error>\n"))
    });
    routes
}

fn get(request: &Request<'_>) -> Result<Response, Failure> {
    let values = request
        .query_pairs()
        .map(|(name, value)| (name.into(), value.into()));
    answer(vec![order(&values.collect())?])
}

fn post(_: &Request<'_>, body: BodyReader) -> Result<Response, Failure> {
    answer(parse::orders(body)?)
}

/// Up to 128 UUIDs at once, more as the client takes them.
fn answer(orders: Vec<Order>) -> Result<Response, Failure> {
    let count: usize = orders.iter().map(|(count, _)| usize::from(*count)).sum();
    let uuids = |(count, make)| iter::repeat_with(make).take(usize::from(count));
    let mut uuids = orders.into_iter().flat_map(uuids);
    let pieces = iter::from_fn(move || {
        let mut xml = String::new();
        for uuid in uuids.by_ref().take(128) {
            xml += &format!("  <uuid>{uuid}</uuid>\n");
        }
        (!xml.is_empty()).then_some(xml)
    });
    let begin = iter::once(format!("{HEAD}<response>\n"));
    let pieces = begin.chain(pieces).chain(["</response>\n".to_owned()]);
    match count {
        1..=128 => Ok(Response::xml(pieces.collect::<String>())),
        129..=10_000 => Ok(Response::stream("application/xml", Stream::quick(pieces))),
        _ => Err(Failure::bad_request(format!(
            "{count} UUIDs, not from 1 to 10000"
        ))),
    }
}

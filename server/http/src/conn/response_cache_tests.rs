//! What the cache gives, for how long, and within which bounds.

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;

use super::*;
use crate::conn::cached_response::RepeatedResponse;
use crate::conn::output::COPIED;
use crate::h1::{Decoder, Event};
use crate::h2::StreamId;
use crate::h2::frame::END_STREAM;
use crate::h2::tests::support::{GET, TestClient};
use crate::limits::REPEATED_ANSWER;
use crate::validity::{Validity, ValidityCheck};
use crate::{Body, Limits, Response};

struct Switch(Rc<Cell<bool>>);

impl ValidityCheck for Switch {
    fn is_valid(&self, _received: Boottime) -> bool {
        self.0.get()
    }

    fn is_over(&self) -> bool {
        !self.0.get()
    }
}

const NOW: Boottime = Boottime::from_nanos(1);
const TAIL: &[u8] = b"Date: 1\r\n\r\n";

fn keep(cache: &mut ResponseCache, request: &str, body: Bytes, is_valid: &Rc<Cell<bool>>) {
    let hash = missed(cache, request);
    let mut decoder = Decoder::new();
    let limits = Limits::default();
    decoder.space(&limits)[..request.len()].copy_from_slice(request.as_bytes());
    decoder.received(request.len());
    let Event::Request(head, _) = decoder.next(&limits) else {
        panic!("{request:?}");
    };
    let body = Body::Bytes(body);
    let response = Response::prepared(200, "head\r\n".into(), Bytes::new(), body);
    let validity = Validity::Check(Box::new(Switch(Rc::clone(is_valid))));
    if let Some(response) = CachedResponse::new(&decoder, &head, &response, TAIL, validity) {
        cache.insert(hash, response);
    }
}

/// The response that the cache has, as it is sent.
fn get(cache: &mut ResponseCache, request: &str, tail: &[u8]) -> Option<RepeatedResponse> {
    let hash = cache.hash(request.as_bytes());
    let found = cache.get(hash, request.as_bytes(), NOW, tail);
    found.map(|response| response.repeat(false))
}

fn text(response: &RepeatedResponse) -> &str {
    std::str::from_utf8(response.text()).unwrap()
}

fn missed(cache: &mut ResponseCache, request: &str) -> RequestHash {
    assert!(get(cache, request, TAIL).is_none());
    cache.hash_alone(request.as_bytes()).unwrap()
}

fn asking(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")
}

fn counted(cache: &ResponseCache) -> usize {
    let kept = cache.sets.iter().flat_map(|set| &set.responses).flatten();
    kept.map(|kept| kept.weight()).sum()
}

#[test]
fn a_response_is_given_for_as_long_as_it_is_valid() {
    let mut cache = ResponseCache::default();
    let is_valid = Rc::new(Cell::new(true));
    let request = asking("/");
    keep(&mut cache, &request, "body".into(), &is_valid);
    let answer = get(&mut cache, &request, b"Date: 2\r\n\r\n").unwrap();
    assert_eq!(text(&answer), "head\r\nDate: 2\r\n\r\nbody");
    let later = get(&mut cache, &request, b"Date: 3\r\n\r\n").unwrap();
    assert_eq!(text(&later), "head\r\nDate: 3\r\n\r\nbody");
    assert_eq!(text(&answer), "head\r\nDate: 2\r\n\r\nbody", "on its way");
    assert!(get(&mut cache, &asking("/?"), TAIL).is_none());
    is_valid.set(false);
    assert!(get(&mut cache, &request, TAIL).is_none());
    is_valid.set(true);
    assert!(get(&mut cache, &request, TAIL).is_none(), "forgotten");
    assert_eq!((cache.bytes, counted(&cache)), (0, 0));
}

#[test]
fn only_what_comes_twice_appeared_before() {
    let mut cache = ResponseCache::default();
    let request = asking("/");
    let first = missed(&mut cache, &request);
    assert!(!cache.appeared_before(first));
    let second = missed(&mut cache, &request);
    assert!(cache.appeared_before(second));
    // A thousand in turn are not in each other's way.
    let mut wanted = |target: usize| {
        let hash = missed(&mut cache, &asking(&target.to_string()));
        cache.appeared_before(hash)
    };
    assert_eq!((0..1000).filter(|n| wanted(*n)).count(), 0);
    assert!((0..1000).filter(|n| wanted(*n)).count() > 990);
}

#[test]
fn requests_of_one_set_that_arrive_in_turn_are_remembered() {
    let mut cache = ResponseCache::default();
    let hashes = (1..=WAYS as u64).map(|number| RequestHash {
        value: number << 40 | 7 << 20,
        len: 0,
    });
    for round in 0..3 {
        for hash in hashes.clone() {
            assert_eq!(cache.appeared_before(hash), round > 0, "{hash:?}, {round}");
        }
    }
}

/// Keeps a response of HTTP/2; the hash and the text of its request.
fn keep_http2(
    cache: &mut ResponseCache,
    target: &str,
    body: Bytes,
    is_valid: &Rc<Cell<bool>>,
) -> (RequestHash, Vec<u8>) {
    let mut client = TestClient::new();
    let mut head = GET;
    head[2].1 = target;
    client.head(1, END_STREAM, &head);
    let stream = StreamId::of_client(1).unwrap();
    let validity = Validity::Check(Box::new(Switch(Rc::clone(is_valid))));
    let response = Response::builder(200).body(body);
    let known = KnownResponse::new(&client.session, stream, &response, validity).unwrap();
    let text = client.session.repeatable_text(stream).unwrap();
    let hash = cache.hash(text);
    cache.insert_http2(hash, &Rc::new(known));
    (hash, text.to_vec())
}

#[test]
fn a_response_of_http2_is_given_for_as_long_as_it_is_valid() {
    let mut cache = ResponseCache::default();
    let is_valid = Rc::new(Cell::new(true));
    let (hash, text) = keep_http2(&mut cache, "/", "body".into(), &is_valid);
    assert!(cache.get_http2(hash, &text, NOW).is_some());
    assert!(cache.get_http2(hash, b"another", NOW).is_none());
    assert!(
        cache.get(hash, &text, NOW, TAIL).is_none(),
        "another encoding"
    );
    is_valid.set(false);
    assert!(cache.get_http2(hash, &text, NOW).is_none());
    is_valid.set(true);
    assert!(cache.get_http2(hash, &text, NOW).is_none(), "forgotten");
    assert_eq!((cache.bytes, counted(&cache)), (0, 0));
}

#[test]
fn the_bytes_are_bounded_and_counted() {
    let mut cache = ResponseCache::default();
    let is_valid = Rc::new(Cell::new(true));
    let body = Bytes::from(vec![b'x'; REPEATED_ANSWER / 2]);
    for n in 0..3 * REPEATED_BYTES / body.len() {
        let target = format!("/{n}");
        if n % 2 == 0 {
            keep(&mut cache, &asking(&target), body.clone(), &is_valid);
        } else {
            keep_http2(&mut cache, &target, body.clone(), &is_valid);
        }
        assert!(cache.bytes <= REPEATED_BYTES);
    }
    assert_eq!(cache.bytes, counted(&cache));
    assert!(cache.bytes > REPEATED_BYTES / 2);
    let large = asking("/large");
    keep(
        &mut cache,
        &large,
        vec![0; REPEATED_ANSWER + 1].into(),
        &is_valid,
    );
    assert!(get(&mut cache, &large, TAIL).is_none());
}

#[test]
fn what_is_over_does_not_stay_until_it_is_asked_for() {
    let mut cache = ResponseCache::default();
    let over = Rc::new(Cell::new(true));
    for n in 0..500 {
        let target = format!("/old/{n}");
        keep(&mut cache, &asking(&target), "old".into(), &over);
        keep_http2(&mut cache, &target, "old".into(), &over);
    }
    over.set(false);
    let is_valid = Rc::new(Cell::new(true));
    for n in 0..SETS / SWEPT {
        keep(
            &mut cache,
            &asking(&format!("/{n}")),
            "new".into(),
            &is_valid,
        );
    }
    assert_eq!(Rc::strong_count(&over), 1);
    assert_eq!(cache.bytes, counted(&cache));
}

#[test]
fn a_head_ends_where_an_empty_line_is() {
    let cache = ResponseCache::default();
    assert_eq!(cache.head(b"GET / HTTP/1.1\r\nHost: a\r\n"), None);
    let two = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2";
    assert_eq!(cache.head(two), Some(&two[..two.len() - 6]));
}

#[test]
fn one_body_serves_its_source_and_all_workers() {
    let source = Bytes::from(vec![b'x'; COPIED + 1]);
    let is_valid = Rc::new(Cell::new(true));
    let request = asking("/");
    let mut workers = [ResponseCache::default(), ResponseCache::default()];
    for cache in &mut workers {
        keep(cache, &request, source.clone(), &is_valid);
        for _ in 0..3 {
            let response = get(cache, &request, TAIL).unwrap();
            assert_eq!(text(&response), "head\r\nDate: 1\r\n\r\n");
            assert_eq!(response.body().as_ptr(), source.as_ptr(), "no copy");
        }
        // The body counts for each worker, which may keep it longer than its source does.
        assert!(cache.bytes > source.len());
    }
    assert!(!source.is_unique());
    is_valid.set(false);
    for cache in &mut workers {
        assert!(get(cache, &request, TAIL).is_none());
    }
    assert!(source.is_unique(), "no worker keeps a reference");
}

#[test]
fn a_part_of_a_body_does_not_keep_the_whole() {
    let source = Bytes::from(vec![b'x'; 1 << 20]);
    let mut decoder = Decoder::new();
    let limits = Limits::default();
    let request = asking("/");
    decoder.space(&limits)[..request.len()].copy_from_slice(request.as_bytes());
    decoder.received(request.len());
    let Event::Request(head, _) = decoder.next(&limits) else {
        panic!("{request:?}");
    };
    let body = Body::Bytes(source.slice(..COPIED + 1));
    let response = Response::prepared(206, "head\r\n".into(), Bytes::new(), body);
    let validity = Validity::Check(Box::new(Switch(Rc::new(Cell::new(true)))));
    let part = CachedResponse::new(&decoder, &head, &response, TAIL, validity).unwrap();
    drop(response);
    assert!(source.is_unique());
    assert_eq!(part.repeat(false).body().len(), COPIED + 1);
}

//! Whole hits: a worker, a socket, and a client that waits for each answer, so every run of the
//! loop is alike.

use std::ops::RangeInclusive;

use super::folder::{Served, file, page as address_of_page};
use super::http2_client::literal_request;

/// Requests that are sent at once.
const DEPTH: u32 = 16;
/// The length of each file.
const FILE_BYTES: RangeInclusive<usize> = 8 << 10..=8 << 10;
/// The length of a page: a title between `Article 0` and `Article 99`, and a text of 8,000 bytes.
const PAGE_BYTES: RangeInclusive<usize> = 8025..=8026;

pub(super) fn static_file(times: u32) {
    let served = Served::new();
    let worker = served.counted_worker();
    let mut client = worker.connect();
    for number in 0..times {
        client.ask(&client.request(&file(number)), 1);
    }
}

pub(super) fn pipelined(times: u32) {
    let served = Served::new();
    let worker = served.counted_worker();
    let mut client = worker.connect();
    for batch in 0..times / DEPTH {
        let numbers = batch * DEPTH..(batch + 1) * DEPTH;
        let requests: String = numbers
            .map(|number| client.request(&file(number)))
            .collect();
        client.ask(&requests, DEPTH);
    }
}

pub(super) fn page(times: u32) {
    let served = Served::new();
    served.fill();
    let worker = served.counted_worker();
    let mut client = worker.connect();
    for number in 0..times {
        let head = client.ask(&client.request(&address_of_page(number)), 1);
        assert!(head.contains("Cache-Status: millpond; hit\r\n"), "{head}");
    }
}

pub(super) fn http2_file(times: u32) {
    let served = Served::new();
    let worker = served.counted_worker();
    let mut client = worker.connect_http2();
    for number in 0..times {
        let request = literal_request(&file(number));
        client.ask(&[request], FILE_BYTES);
    }
}

pub(super) fn http2_indexed(times: u32) {
    let served = Served::new();
    let worker = served.counted_worker();
    let mut client = worker.connect_http2();
    for number in 0..times {
        let request = client.indexed_request(&file(number));
        client.ask(&[request], FILE_BYTES);
    }
}

pub(super) fn http2_streams(times: u32) {
    let served = Served::new();
    let worker = served.counted_worker();
    let mut client = worker.connect_http2();
    for batch in 0..times / DEPTH {
        let numbers = batch * DEPTH..(batch + 1) * DEPTH;
        let requests: Vec<_> = numbers
            .map(|number| literal_request(&file(number)))
            .collect();
        client.ask(&requests, FILE_BYTES);
    }
}

pub(super) fn http2_page(times: u32) {
    let served = Served::new();
    served.fill();
    let worker = served.counted_worker();
    let mut client = worker.connect_http2();
    for number in 0..times {
        let request = literal_request(&address_of_page(number));
        client.ask(&[request], PAGE_BYTES);
    }
}

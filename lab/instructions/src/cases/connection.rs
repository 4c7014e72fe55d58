//! Whole hits: a worker, a socket, and a client that waits for each answer, so every run of the
//! loop is alike.

use super::folder::{Served, file, page as address_of_page};

/// Requests that are sent at once.
const DEPTH: u32 = 16;

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

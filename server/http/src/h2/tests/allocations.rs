//! What a request costs the allocator once a connection is warm.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use super::super::frame::{END_HEADERS, END_STREAM, FrameKind};
use super::super::{SessionEvent, encode_fields};
use super::support::{Files, GET, TestClient, block, ok, peer};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

thread_local! {
    // Needs no allocation and no destructor, so the allocator may use it at any time.
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which counts calls of each thread.
struct CountingAllocator;

fn count() {
    CALLS.with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: every call is passed on to `System` with the same arguments, and its result is returned
// as it is. The count is a cell of the thread and does not allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller promises of `layout` what `System` wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` is from `System`, with this `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as for `dealloc`; of `size` the caller promises what `System` wants.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// A small GET and its response, again and again, several streams at a time.
#[test]
fn a_small_request_on_a_warm_connection_allocates_nothing() {
    let mut client = TestClient::new();
    let response = ok(b"hello");
    let date = encode_fields("date: Sun, 06 Nov 1994 08:49:37 GMT");
    let list = [
        &GET[..],
        &[
            ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
            ("accept-encoding", "gzip, br"),
            ("cookie", "a=b"),
            ("cookie", "c=d"),
        ],
    ];
    let list = block(&list.concat());
    let mut out = Vec::with_capacity(64 << 10);
    let mut before = 0;
    for round in 0..200_u32 {
        if round == 100 {
            before = CALLS.with(Cell::get);
        }
        let mut input = [0; 4096];
        let mut len = 0;
        for stream in 0..4 {
            let number = 1 + 2 * (4 * round + stream);
            let head = super::super::frame::FrameHead {
                len: u32::try_from(list.len()).expect("a small block"),
                kind: FrameKind::Headers,
                flags: END_HEADERS | END_STREAM,
                stream: number,
            };
            for part in [&head.to_bytes()[..], &list] {
                input[len..len + part.len()].copy_from_slice(part);
                len += part.len();
            }
        }
        let mut input = &input[..len];
        let mut context = super::super::ReceiveContext {
            now: client.now,
            limits: &client.limits,
            buffers: &mut client.buffers,
        };
        let mut seen = 0;
        client.session.begin_turn();
        while let Some(event) = client.session.receive(&mut input, &mut context) {
            let SessionEvent::Request(id) = event else {
                panic!("{event:?}");
            };
            let request = client.session.request(id, &peer(), client.now);
            assert_eq!(request.expect("a request").fields.len(), 4);
            client.session.respond_with(id, &response, &date);
            seen += 1;
        }
        assert_eq!(seen, 4);
        out.clear();
        client
            .session
            .write(&mut out, 64 << 10, &mut Files, client.now);
        assert!(out.len() > 4 * 50);
        while let Some(stream) = client.session.next_ended() {
            client.buffers.give_back(stream);
        }
        // As if the client gave back what it has read.
        client.session.send_window = super::super::flow::SendWindow::new(65_535);
    }
    assert_eq!(CALLS.with(Cell::get) - before, 0);
}

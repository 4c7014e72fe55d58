//! A request to its response, without a socket: normal form of the path, route, key, look-up,
//! conditions.

use std::hint::black_box;

use millpond_http::{OwnedRequest, Reply, Service as _};

use super::folder::{FILES, PAGES, Served, file, page as address_of_page};

/// Field by which a response says that its page was in the store.
const HIT: &[u8] = b"Cache-Status: millpond; hit\r\n";

pub(super) fn static_file() -> Box<dyn FnMut()> {
    call(Served::new(), (0..FILES).map(file), b"")
}

pub(super) fn page() -> Box<dyn FnMut()> {
    let served = Served::new();
    served.fill();
    call(served, (0..PAGES).map(address_of_page), HIT)
}

/// Asks for each target in turn; each is answered at once, with `extra` in the head.
fn call(
    served: Served,
    targets: impl Iterator<Item = String>,
    extra: &'static [u8],
) -> Box<dyn FnMut()> {
    let service = served.service();
    let requests: Vec<OwnedRequest> = targets
        .map(|target| OwnedRequest::new("GET", &target).field("Host", "127.0.0.1:8080"))
        .collect();
    for request in &requests {
        let Reply::Ready(response) = service.call(&request.as_request()) else {
            panic!("{request:?} is not answered at once");
        };
        assert_eq!((response.status(), &response.extra()[..]), (200, extra));
    }
    let mut next = 0;
    Box::new(move || {
        next = (next + 1) % requests.len();
        black_box(service.call(black_box(&requests[next].as_request())));
        // The site is served for as long as it is asked.
        let _ = &served;
    })
}

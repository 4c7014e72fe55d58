//! A waker continues the stream that it belongs to, and no other one of its connection.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Request as ClientRequest;
use millpond_http::{
    BodyCut, BodyHandling, BodyReceiver, BodySource, Limits, Reply, Request, Response, Service,
    StreamedBody, WorkerGroup, listen, run_worker,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::http2::{Http2Client, futures_of, run};

/// One less than a connection may have: another request shows that a turn is over.
const STREAMS: usize = 99;

/// A future, the source of a body, or the receiver of one. Tells of each poll, and is ready once
/// the gate is open.
struct Polled {
    number: usize,
    polls: UnboundedSender<(usize, Waker)>,
    is_open: Arc<AtomicBool>,
}

impl Polled {
    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_open.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        // A first look, with a waker that does nothing, is no poll.
        if context.waker().data() != Waker::noop().data() {
            let _ = self.polls.send((self.number, context.waker().clone()));
        }
        Poll::Pending
    }
}

impl BodySource for Polled {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyCut>>> {
        self.poll(context).map(|()| None)
    }
}

impl BodyReceiver for Polled {
    fn limit(&self) -> u64 {
        1 << 20
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.poll(context)
    }

    fn receive(&mut self, _piece: &[u8]) -> Result<(), Response> {
        Ok(())
    }

    fn finish(self: Box<Self>, _request: &Request<'_>) -> Reply {
        Response::text(200, "taken").into()
    }
}

/// `/later`, `/made` and `/taken`, each with `?` and the number of the stream, and `/`.
struct PolledService {
    polls: UnboundedSender<(usize, Waker)>,
    is_open: Arc<AtomicBool>,
}

impl PolledService {
    fn polled(&self, request: &Request<'_>) -> Polled {
        Polled {
            number: request.query.unwrap().parse().unwrap(),
            polls: self.polls.clone(),
            is_open: Arc::clone(&self.is_open),
        }
    }
}

impl Service for PolledService {
    fn call(&self, request: &Request<'_>) -> Reply {
        if request.path == "/" {
            return Response::text(200, "at once").into();
        }
        let polled = self.polled(request);
        match request.path {
            "/made" => Response::builder(200)
                .streamed(StreamedBody::new(polled))
                .into(),
            _ => Reply::later(async move {
                std::future::poll_fn(|context| polled.poll(context)).await;
                Response::text(200, "later")
            }),
        }
    }

    fn body_begins(&self, request: &Request<'_>) -> BodyHandling {
        BodyHandling::Streamed(Box::new(self.polled(request)))
    }
}

/// Begins a request for each stream, wakes each one by itself and then all together, and gives the
/// number of polls until everything was ready.
async fn count_polls(
    addr: SocketAddr,
    path: &str,
    polls: &mut UnboundedReceiver<(usize, Waker)>,
    is_open: &AtomicBool,
) -> usize {
    is_open.store(false, Ordering::SeqCst);
    let client = Http2Client::at(addr).await;
    let (mut responses, mut bodies) = (Vec::new(), Vec::new());
    for number in 0..STREAMS {
        let has_body = path == "/taken";
        let request = ClientRequest::builder()
            .method(if has_body { "POST" } else { "GET" })
            .uri(format!("http://localhost{path}?{number}"));
        let mut requests = client.requests.clone().ready().await.unwrap();
        let request = request.body(()).unwrap();
        let (response, mut sending) = requests.send_request(request, !has_body).unwrap();
        if has_body {
            sending.send_data(Bytes::from_static(b"x"), false).unwrap();
            bodies.push(sending);
        }
        responses.push(response);
    }
    let (mut count, mut wakers) = (0, BTreeMap::new());
    // Takes polls until there was one of each stream of `wanted`, and those of the same turn.
    let mut see = async |wakers: &mut BTreeMap<usize, Waker>, mut wanted: BTreeSet<usize>| {
        while !wanted.is_empty() {
            let (number, waker) = polls.recv().await.unwrap();
            wanted.remove(&number);
            wakers.insert(number, waker);
            count += 1;
        }
        assert_eq!(client.get("/").await, "at once");
        while let Ok((number, waker)) = polls.try_recv() {
            wakers.insert(number, waker);
            count += 1;
        }
    };
    see(&mut wakers, (0..STREAMS).collect()).await;
    for number in 0..STREAMS {
        wakers[&number].wake_by_ref();
        see(&mut wakers, [number].into()).await;
    }
    wakers.values().for_each(Waker::wake_by_ref);
    see(&mut wakers, (0..STREAMS).collect()).await;
    is_open.store(true, Ordering::SeqCst);
    wakers.into_values().for_each(Waker::wake);
    for mut body in bodies {
        body.send_data(Bytes::new(), true).unwrap();
    }
    for response in futures_of(responses.into_iter()).await {
        let mut body = response.unwrap().into_body();
        while body.data().await.is_some() {}
    }
    while polls.try_recv().is_ok() {
        count += 1;
    }
    count
}

#[test]
fn a_wake_polls_the_stream_that_it_belongs_to_and_no_other() {
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let addr = listener.local_addr().unwrap();
    let (group, (sender, mut polls)) = (WorkerGroup::new(), unbounded_channel());
    let is_open = Arc::new(AtomicBool::new(false));
    let worker = std::thread::spawn({
        let (group, is_open) = (Arc::clone(&group), Arc::clone(&is_open));
        move || {
            let polls = sender;
            let service = PolledService { polls, is_open };
            run_worker(listener, service, Limits::default(), group).unwrap();
        }
    });
    run(async {
        for path in ["/later", "/made", "/taken"] {
            let count = count_polls(addr, path, &mut polls, &is_open).await;
            // The first one, and one for each wake.
            assert_eq!(count, 3 * STREAMS, "{path}");
        }
    });
    group.shutdown();
    worker.join().unwrap();
}

//! Load, refusals, the log, and the end.

use std::time::Duration;

use lab_testkit::PATIENCE;
use millpond::{
    Limits, Request, Response, Routes, ServeError, ServerSettings, StartError, blocking, quick,
};

use crate::support::{Gate, connect, get, serve, settings};

fn routes(gate: &Gate) -> Routes {
    let mut routes = Routes::new();
    let passed = gate.clone();
    routes
        .get("/quick", quick(|_: &Request| "quick"))
        .get(
            "/gated",
            blocking(move |_: &Request| {
                passed.pass();
                "passed"
            }),
        )
        .get(
            "/panic",
            blocking(|_: &Request| -> Response { panic!("asked for") }),
        )
        .post(
            "/echo",
            blocking(|request: &Request| Response::text(request.body().clone())),
        );
    routes
}

#[test]
fn a_full_pool_refuses_at_once_and_quick_handlers_go_on() {
    let gate = Gate::default();
    let server = settings()
        .blocking_threads(2)
        .blocking_queue(3)
        .serve(routes(&gate))
        .unwrap();
    let mut clients: Vec<_> = (0..5).map(|_| connect(&server)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send("GET /gated HTTP/1.1\r\nHost: a\r\n\r\n");
        gate.wait_for((number + 1).min(2));
    }
    // The queue is full as soon as all five have been read.
    while server.stats().requests < 5 {
        std::thread::yield_now();
    }
    let response = get(&server, "/gated");
    assert_eq!(
        (response.status, response.field("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(get(&server, "/quick").text(), "quick");
    gate.open(5);
    for client in &mut clients {
        assert_eq!(client.receive().text(), "passed");
    }
    for _ in 0..5 {
        assert_eq!(get(&server, "/panic").status, 500);
    }
    assert_eq!(connect(&server).post("/echo", "text").text(), "text");
}

#[test]
fn a_pipeline_is_answered_in_order() {
    let gate = Gate::default();
    gate.open(1000);
    let server = serve(routes(&gate));
    let mut client = connect(&server);
    let both = "GET /quick HTTP/1.1\r\nHost: a\r\n\r\nGET /gated HTTP/1.1\r\nHost: a\r\n\r\n";
    client.send(both.repeat(200));
    for _ in 0..200 {
        assert_eq!(client.receive().text(), "quick");
        assert_eq!(client.receive().text(), "passed");
    }
}

#[test]
fn a_thousand_connections_are_served() {
    let gate = Gate::default();
    let server = settings()
        .limits(Limits {
            connections: 1000,
            ..Limits::default()
        })
        .blocking_queue(1000)
        .serve(routes(&gate))
        .unwrap();
    gate.open(1000);
    let mut clients: Vec<_> = (0..900).map(|_| connect(&server)).collect();
    for path in ["/quick", "/gated"] {
        for client in &mut clients {
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        }
        for client in &mut clients {
            assert_eq!(client.receive().status, 200);
        }
    }
}

#[test]
fn a_shutdown_waits_for_what_is_in_flight_and_no_longer_than_its_limit() {
    let gate = Gate::default();
    let server = serve(routes(&gate));
    let (address, handle) = (server.address(), server.handle());
    let mut client = connect(&server);
    client.send("GET /gated HTTP/1.1\r\nHost: a\r\n\r\n");
    gate.wait_for(1);
    let waiting = std::thread::spawn(move || server.wait());
    handle.shutdown();
    while std::net::TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
    gate.open(1);
    let response = client.receive();
    assert_eq!(
        (&*response.text(), response.field("connection")),
        ("passed", Some("close"))
    );
    waiting.join().unwrap().unwrap();
    // A handler that is slower than the limit is left.
    let limits = Limits {
        drain_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = settings()
        .limits(limits.clone())
        .serve(routes(&gate))
        .unwrap();
    let mut client = connect(&server);
    client.send("GET /gated HTTP/1.1\r\nHost: a\r\n\r\n");
    gate.wait_for(2);
    server.shutdown().unwrap();
    assert!(client.is_closed());
    gate.open(1);
    // One that blocks a worker is said.
    let mut routes = Routes::new();
    let gate = Gate::default();
    let passed = gate.clone();
    routes.get("/", quick(move |_: &Request| passed.pass()));
    let server = settings().limits(limits).serve(routes).unwrap();
    let mut client = connect(&server);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    gate.wait_for(1);
    assert!(matches!(server.shutdown(), Err(ServeError::Stuck(1))));
    gate.open(1);
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let start = |settings: ServerSettings, routes| settings.serve(routes).unwrap_err();
    let server = serve(Routes::new());
    let taken = settings().listen(server.address().to_string());
    let error = start(taken, Routes::new());
    assert!(matches!(error, StartError::Listen { .. }), "{error}");
    let error = start(settings().listen("localhost"), Routes::new());
    assert!(error.to_string().contains("127.0.0.1:8080"), "{error}");
    let error = start(settings().access_log("/nonexistent/log"), Routes::new());
    assert!(error.to_string().contains("/nonexistent/log"), "{error}");
    let mut routes = Routes::new();
    routes.get("/{id}", quick(|_: &Request| ()));
    let error = start(settings(), routes);
    let sentence = "the route /{id} has 1 parameter, and the function of its handler takes 0";
    assert_eq!(error.to_string(), sentence);
    // What Rust writes of an error that `main` returns.
    assert_eq!(format!("{error:?}"), sentence);
    let boxed = Box::<dyn std::error::Error>::from(error);
    assert_eq!(format!("{boxed:?}"), sentence);
}

#[test]
fn requests_are_logged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    let server = settings()
        .access_log(&path)
        .serve(routes(&Gate::default()))
        .unwrap();
    get(&server, "/quick");
    get(&server, "/none");
    let mut client = connect(&server);
    client.send("nonsense\r\n\r\n");
    assert_eq!(client.receive().status, 400);
    server.shutdown().unwrap();
    let log = std::fs::read_to_string(path).unwrap();
    assert!(log.contains("\"GET /quick HTTP/1.1\" 200 5"), "{log}");
    assert!(log.contains("\"GET /none HTTP/1.1\" 404 10"), "{log}");
    assert_eq!(log.lines().count(), 3, "{log}");
}

#[test]
fn a_client_that_goes_away_costs_no_handler_that_waits_in_the_queue() {
    let gate = Gate::default();
    let server = settings().blocking_threads(1).serve(routes(&gate)).unwrap();
    let mut first = connect(&server);
    first.send("GET /gated HTTP/1.1\r\nHost: a\r\n\r\n");
    gate.wait_for(1);
    drop(first);
    gate.open(1);
    assert_eq!(connect(&server).post("/echo", "on").text(), "on");
    let begun = std::time::Instant::now();
    while server.stats().open > 0 {
        assert!(begun.elapsed() < PATIENCE, "the connection stays");
    }
}

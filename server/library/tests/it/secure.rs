//! https from files.

use std::sync::Arc;

use lab_testkit::tls::{certificates_in, client_config, request, self_signed};
use millpond::{Request, Response, Routes, StartError, Stream, quick};

use crate::support::settings;

#[test]
fn a_service_is_secured_by_two_files() {
    let dir = tempfile::tempdir().unwrap();
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| dir.path().join(name));
    let [pem, key_pem] = self_signed("localhost", [2020, 2090]);
    std::fs::write(&certificate, pem).unwrap();
    std::fs::write(&key, key_pem).unwrap();
    let routes = || {
        let mut routes = Routes::new();
        let numbers = || Stream::quick((0..9000).map(|n| format!("{n},")));
        routes.get(
            "/",
            quick(move |_: &Request| Response::stream("text/plain", numbers())),
        );
        routes
    };
    let server = settings()
        .tls_files(&certificate, &key)
        .serve(routes())
        .unwrap();
    assert!(server.url().starts_with("https://127.0.0.1:"));
    let client = Arc::new(client_config(&certificates_in(&certificate)));
    let asked = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let (_, response) = request(server.address(), "localhost", &client, asked).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.contains("Transfer-Encoding"));
    assert!(response.ends_with("8998,8999,\r\n0\r\n\r\n"));
    let error = settings()
        .tls_files(&key, &certificate)
        .serve(routes())
        .unwrap_err();
    assert!(matches!(error, StartError::Tls(_)), "{error}");
    let error = settings()
        .tls_files(&certificate, "/nonexistent")
        .serve(routes())
        .unwrap_err();
    assert!(error.to_string().contains("/nonexistent"), "{error}");
}

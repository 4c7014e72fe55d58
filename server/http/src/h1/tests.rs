//! The decoder, with bytes: what is a request, what is refused and how, and that the cut of the
//! input never matters.

use std::net::{Ipv4Addr, SocketAddr};

use base_clock::Boottime;
use proptest::prelude::*;

use super::{Decoder, Event, Phase};
use crate::limits::{Limits, READ_BUFFER};

mod bodies;
mod smuggling;

fn limits() -> Limits {
    Limits {
        target: 100,
        head: 2000,
        body: 1000,
        ..Limits::default()
    }
}

/// Decodes `pieces` to one word per event: the requests as the service would see them, then how it
/// ended.
fn decode<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
    reclaim: bool,
) -> Vec<String> {
    decode_with(Decoder::new(), pieces, limits, reclaim)
}

fn decode_with<'a>(
    mut decoder: Decoder,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
    reclaim: bool,
) -> Vec<String> {
    let mut seen = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            let space = decoder.space(limits);
            let len = space.len().min(piece.len());
            space[..len].copy_from_slice(&piece[..len]);
            piece = &piece[len..];
            decoder.received(len);
            loop {
                match decoder.next(limits) {
                    Event::Request(head, body) => {
                        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                        let request =
                            decoder.request(&head, body, &peer.into(), Boottime::default());
                        let fields: Vec<_> = request
                            .fields
                            .iter()
                            .map(|(name, value)| {
                                format!("{name}={}", String::from_utf8_lossy(value))
                            })
                            .collect();
                        seen.push(format!(
                            "{} {} {:?} {:?} {:?} keep={} [{}] {:?}",
                            request.method,
                            request.path,
                            request.query,
                            request.version,
                            request.host(),
                            head.keep_alive,
                            fields.join(" "),
                            request.body
                        ));
                    }
                    Event::Refused(refusal) => {
                        seen.push(refusal.status().to_string());
                        return seen;
                    }
                    Event::More => break,
                    Event::Continue | Event::Body(_) => {}
                }
            }
            if reclaim {
                decoder.reclaim();
            }
        }
    }
    seen.push(format!("{:?}", decoder.phase()));
    seen
}

/// How `input` ends: a status, or the phase that is left.
fn end(input: &str) -> String {
    let seen = decode([input.as_bytes()], &limits(), false);
    seen.last().cloned().unwrap_or_default()
}

fn check(cases: &[(&str, &str)]) {
    for (input, expected) in cases {
        assert_eq!(end(input), *expected, "{input:?}");
        assert_eq!(
            decode(input.as_bytes().chunks(1), &limits(), false),
            decode([input.as_bytes()], &limits(), true),
            "byte by byte: {input:?}"
        );
    }
}

fn get(rest: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{rest}")
}

#[test]
fn a_request_in_full() {
    let seen = decode(
        [&b"GET /a?b=c HTTP/1.1\r\nHost: x:80\r\nA:  1 \t\r\nB:\r\n\r\nPOST /d HTTP/1.0\r\ncontent-length: 3\r\n\r\nxyz"[..]],
        &limits(),
        false,
    );
    assert_eq!(
        seen,
        [
            r#"GET /a Some("b=c") Http11 Some("x:80") keep=true [Host=x:80 A=1 B=] b"""#,
            r#"POST /d None Http10 None keep=false [content-length=3] b"xyz""#,
            "Idle"
        ]
    );
}

#[test]
fn request_lines() {
    check(&[
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", "400"),
        ("GET / HTTP/1.1\rHost: a\r\n\r\n", "400"),
        ("GET /\r\n\r\n", "400"),
        ("GET\r\n\r\n", "400"),
        ("\n", "400"),
        ("\r\n\r\n\r\n", "400"),
        (" GET / HTTP/1.1\r\n\r\n", "400"),
        ("GET  / HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/1.1 \r\n\r\n", "400"),
        ("GET / a HTTP/1.1\r\n\r\n", "400"),
        ("GET\t/ HTTP/1.1\r\n\r\n", "400"),
        ("G(T / HTTP/1.1\r\n\r\n", "400"),
        ("GET /\0 HTTP/1.1\r\n\r\n", "400"),
        ("GET /\x01 HTTP/1.1\r\n\r\n", "400"),
        ("GET /\x7f HTTP/1.1\r\n\r\n", "400"),
        ("GET /ä HTTP/1.1\r\n\r\n", "400"),
        ("GET /#a HTTP/1.1\r\n\r\n", "400"),
        ("GET a HTTP/1.1\r\n\r\n", "400"),
        ("GET * HTTP/1.1\r\n\r\n", "400"),
        ("GET ftp://a/ HTTP/1.1\r\n\r\n", "400"),
        ("GET http:///a HTTP/1.1\r\n\r\n", "400"),
        ("GET http://u@a/ HTTP/1.1\r\n\r\n", "400"),
        ("GET http:/a HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/11\r\n\r\n", "400"),
        ("GET / http/1.1\r\n\r\n", "400"),
        ("GET / HTTP/2.0\r\n\r\n", "505"),
        ("GET / HTTP/0.9\r\n\r\n", "505"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"),
        ("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", "501"),
        (
            "THIS-METHOD-NAME-IS-LONGER-THAN-32-BYTES / HTTP/1.1\r\n\r\n",
            "501",
        ),
        (
            "THIS-IS-NO-METHOD-(AT-ALL)-BUT-LONG / HTTP/1.1\r\n\r\n",
            "400",
        ),
        ("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "421"),
        ("GET https:///a HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("GET http://:80/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("GET http://a:b/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("GET http://a/ HTTP/1.1\r\n\r\n", "400"),
        ("GET http://a/ HTTP/1.1\r\nHost: a b\r\n\r\n", "400"),
        ("TRACE * HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("OPTIONS *a HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n", "501"),
        ("GET / HTTP/1.7\r\nHost: a\r\n\r\n", "Idle"),
        ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "Idle"),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "Idle"),
        ("BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n", "Idle"),
        ("GET /", "Head"),
        ("\r", "Head"),
    ]);
}

#[test]
fn absolute_forms() {
    for (target, seen) in [
        (
            "http://b.example:8080/x?y",
            r#"GET /x Some("y") Http11 Some("b.example:8080")"#,
        ),
        ("HTTP://b?y", r#"GET / Some("y") Http11 Some("b")"#),
        ("http://b", r#"GET / None Http11 Some("b")"#),
        ("http://b:/a", r#"GET /a None Http11 Some("b:")"#),
        ("http://[::1]:80", r#"GET / None Http11 Some("[::1]:80")"#),
    ] {
        let input = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(
            decode([input.as_bytes()], &limits(), false)[0].starts_with(seen),
            "{target}"
        );
    }
}

/// RFC 9112 section 3.2.2, RFC 9110 section 7.4.
#[test]
fn absolute_forms_have_the_scheme_of_their_connection() {
    for (is_secured, target, expected) in [
        (
            true,
            "https://b:8443/x?y",
            r#"GET /x Some("y") Http11 Some("b:8443") "#,
        ),
        (true, "HTTPS://b", r#"GET / None Http11 Some("b") "#),
        (true, "http://b/x", "421"),
        (true, "https://u@b/x", "400"),
        (true, "ftp://b/x", "400"),
        (true, "/x", r#"GET /x None Http11 Some("a") "#),
        (false, "https://b/x", "421"),
        (false, "http://b/x", r#"GET /x None Http11 Some("b") "#),
    ] {
        let input = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        for length in [1, input.len()] {
            let decoder = Decoder::new().secured(is_secured);
            let pieces = input.as_bytes().chunks(length);
            let seen = decode_with(decoder, pieces, &limits(), false);
            assert!(
                seen[0].starts_with(expected),
                "{is_secured} {target}: {seen:?}"
            );
        }
    }
}

#[test]
fn field_lines() {
    let cases = [
        ("A: 1\nB: 2\r\n\r\n", "400"),
        ("A: 1\rB: 2\r\n\r\n", "400"),
        ("A: 1\r\r\n\r\n", "400"),
        ("A : 1\r\n\r\n", "400"),
        ("A\t: 1\r\n\r\n", "400"),
        (" A: 1\r\n\r\n", "400"),
        ("A: 1\r\n 2\r\n\r\n", "400"),
        ("A: 1\r\n\t2\r\n\r\n", "400"),
        ("A: \0\r\n\r\n", "400"),
        ("A: \x0b\r\n\r\n", "400"),
        (": 1\r\n\r\n", "400"),
        ("A\r\n\r\n", "400"),
        ("Ä: 1\r\n\r\n", "400"),
        ("A: ä\r\n\r\n", "Idle"),
        ("Host: a\r\n\r\n", "400"),
        ("Expect: more\r\n\r\n", "417"),
        ("Expect: more\r\nExpect: 100-continue\r\n\r\n", "417"),
        ("Expect: 100-Continue\r\n\r\n", "Idle"),
        ("Expect: , 100-continue,\r\n\r\n", "Idle"),
        ("Expect: 100-continue, more\r\n\r\n", "417"),
        ("Expect:\r\n\r\n", "Idle"),
        ("Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n", "Idle"),
        ("Unheard-Of: yes\r\n\r\n", "Idle"),
    ];
    for (rest, expected) in cases {
        check(&[(&get(rest), expected)]);
    }
    let body = "Content-Length: 1\r\n\r\na";
    for (coding, expected) in [
        ("gzip", "415"),
        ("br, identity", "415"),
        ("identity\r\nContent-Encoding: x-gzip", "415"),
        ("Identity", "Idle"),
        (", ,", "Idle"),
        ("", "Idle"),
    ] {
        let with = |end: &str| get(&format!("Content-Encoding: {coding}\r\n{end}"));
        check(&[(&with(body), expected), (&with("\r\n"), "Idle")]);
        let chunked = with("Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n");
        check(&[(&chunked, expected)]);
        check(&[(&with("Content-Length: 0\r\n\r\n"), "Idle")]);
    }
    check(&[
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/1.0\r\n\r\n", "Idle"),
        ("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", "400"),
        ("GET / HTTP/1.0\r\nExpect: x\r\n\r\n", "Idle"),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", "Idle"),
        ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", "Idle"),
    ]);
}

#[test]
fn hosts() {
    for (host, expected) in [
        ("a", "Idle"),
        ("A.b-c_d~e.example.:80", "Idle"),
        ("a:", "Idle"),
        ("127.0.0.1:65535", "Idle"),
        ("a%20b", "Idle"),
        ("a%2", "400"),
        ("a%zz", "400"),
        ("a%41:80", "Idle"),
        ("a%41:8x", "400"),
        ("a%41/", "400"),
        ("[::1]", "Idle"),
        ("[2001:db8::7]:80", "Idle"),
        ("[::ffff:192.0.2.1]", "Idle"),
        ("[v1.fe80::a+en1]:80", "Idle"),
        ("[v.a]", "400"),
        ("[v1.]", "400"),
        ("[]", "400"),
        ("[a]", "400"),
        ("[::1", "400"),
        ("[::1]]", "400"),
        ("[[::1]", "400"),
        ("[::1]a", "400"),
        ("[::1]:a", "400"),
        ("[::1%25en1]", "400"),
        ("a[::1]", "400"),
        ("a,b", "400"),
        ("a\\b", "400"),
        ("ä", "400"),
        ("a:80:80", "400"),
        ("http://a", "400"),
    ] {
        let input = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        check(&[(&input, expected)]);
    }
}

#[test]
fn limits_of_a_head() {
    let long = |n: usize| "a".repeat(n);
    check(&[
        (
            &format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", long(99)),
            "Idle",
        ),
        (
            &format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", long(100)),
            "414",
        ),
        (&format!("GET /{}", long(200)), "414"),
        (&get(&format!("A: {}\r\n\r\n", long(1900))), "Idle"),
        (&get(&format!("A: {}\r\n\r\n", long(2000))), "431"),
        (&get(&format!("A: {}", long(2000))), "431"),
        (&get(&format!("{}\r\n", "A: 1\r\n".repeat(99))), "Idle"),
        (&get(&format!("{}\r\n", "A: 1\r\n".repeat(100))), "431"),
    ]);
}

#[test]
fn persistence() {
    for (version, fields, keep) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: x, CLOSE\r\n", false),
        ("1.1", "Connection: x\r\nConnection: close\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
        ("1.0", "Connection: ,, keep-alive ,\r\n", true),
        (
            "1.1",
            "Connection: keep-alive\r\nConnection: ,close,\r\n",
            false,
        ),
    ] {
        let input = format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n");
        let seen = decode([input.as_bytes()], &limits(), false);
        assert!(
            seen[0].contains(&format!("keep={keep}")),
            "{input:?}: {seen:?}"
        );
    }
}

#[test]
fn the_buffer_is_bounded_and_reusable() {
    let limits = Limits::default();
    let mut decoder = Decoder::new();
    assert!(decoder.renew());
    let body = "x".repeat(1 << 20);
    let input = get(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let mut rest = input.as_bytes();
    let whole = loop {
        let space = decoder.space(&limits);
        assert!(space.len() <= 2 * READ_BUFFER, "body bytes do not pile up");
        let len = space.len().min(rest.len());
        space[..len].copy_from_slice(&rest[..len]);
        rest = &rest[len..];
        decoder.received(len);
        match decoder.next(&limits) {
            Event::Request(_, body) => break body,
            Event::More => decoder.reclaim(),
            event => panic!("{event:?}"),
        }
    };
    assert_eq!(whole, body);
    decoder.reclaim();
    assert!(decoder.renew());
    assert_eq!(decoder.phase(), Phase::Idle);
}

#[test]
fn a_decoder_that_is_used_again_knows_nothing_of_before() {
    let limits = Limits::default();
    let good = get("A: 1\r\n\r\n");
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nbody";
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n7";
    let left = [
        "",
        "\r\n",
        "GET / HT",
        "GET / HTTP/1.1\r\nHost: a\r\nB",
        "GET / HTTP/1.1\r\nHost: a\r\n : wrong\r\n\r\nGET /secret",
        &format!("{good}GET /next"),
        post,
        chunked,
    ];
    let feed = |decoder: &mut Decoder, input: &str| {
        decoder.space(&limits)[..input.len()].copy_from_slice(input.as_bytes());
        decoder.received(input.len());
        format!("{:?}", decoder.next(&limits))
    };
    let expected = feed(&mut Decoder::new(), &good);
    for input in left {
        let mut decoder = Decoder::new();
        feed(&mut decoder, input);
        assert!(decoder.renew(), "{input:?}");
        assert_eq!(decoder.phase(), Phase::Idle, "{input:?}");
        assert_eq!(decoder.undecoded(), None, "{input:?}");
        assert_eq!(decoder.body_len(), 0, "{input:?}");
        assert_eq!(feed(&mut decoder, &good), expected, "{input:?}");
    }
}

/// Streams of whole and broken requests, to be cut anywhere.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let request = prop_oneof![
        8 => "(GET|HEAD|POST|G T|DELETE) (/[a-z%?=]{0,8}|http://[a-z@]{1,3}/|\\*) HTTP/[12]\\.[01]\r\n(Host: a\r\n){1,2}\r\n",
        8 => "GET /[a-z]{0,60} HTTP/1\\.1\r\nHost: a\r\n([A-C]: [ -~]{0,9}\r\n){0,4}\r\n",
        4 => "POST / HTTP/1\\.1\r\nHost: a\r\nContent-Length: [0-9]{1,2}\r\n\r\n[a-z]{0,12}",
        8 => "POST / HTTP/1\\.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n(1\r\na\r\n|3;x=y\r\nabc\r\n){0,3}0\r\n(A: b\r\n){0,2}\r\n",
        2 => "\r\n",
        1 => "[\\x00-\\x7f]{0,20}",
        1 => "POST / HTTP/1\\.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n[0-9a-f \r\n;=]{0,12}",
    ];
    proptest::collection::vec(request, 1..6).prop_map(|requests| requests.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cut_of_the_input_never_matters(input in stream(), cuts in proptest::collection::vec(1_usize..40, 1..10), reclaim: bool) {
        let limits = Limits { target: 40, head: 150, body: 30, ..Limits::default() };
        let whole = decode([&input[..]], &limits, false);
        let mut pieces = Vec::new();
        let mut rest = &input[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break }
            let (piece, left) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = left;
        }
        prop_assert_eq!(&decode(pieces, &limits, reclaim), &whole);
        prop_assert_eq!(&decode(input.chunks(1), &limits, false), &whole);
    }

    #[test]
    fn nothing_that_is_sent_makes_it_panic(input in proptest::collection::vec(any::<u8>(), 0..400)) {
        decode(input.chunks(7), &limits(), true);
    }
}

//! Request heads, chunked bodies and whole connections.

use lab_torture::{
    Choices,
    http::{smuggling, words},
};

use super::corpus;
use super::events::{DecodedRequest, StreamEnd, decode, decode_whole};
use super::reading::hold_against;
use crate::Limits;

/// Limits that random inputs reach.
fn tight() -> Limits {
    Limits {
        target: 40,
        head: 150,
        body: 30,
        ..Limits::default()
    }
}

/// Decodes `input` and holds the outcome against the second reading.
fn read_twice(input: &[u8], limits: &Limits) -> DecodedRequest {
    let mut heads = Vec::new();
    let seen = decode([input], limits, false, |start, len| {
        heads.push((start, len))
    });
    hold_against(input, &seen, &heads);
    seen
}

#[test]
fn heads() {
    let (corpus, usual, tight) = (corpus("heads", &words::HTTP), Limits::default(), tight());
    bolero::check!(name = "heads")
        .with_max_len(512)
        .for_each(|engine: &[u8]| {
            for input in corpus.inputs(engine) {
                read_twice(&input, &usual);
                read_twice(&input, &tight);
            }
        });
}

#[test]
fn chunked_bodies() {
    const HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (corpus, usual, tight) = (
        corpus("chunked_bodies", &words::HTTP),
        Limits::default(),
        tight(),
    );
    bolero::check!(name = "chunked_bodies")
        .with_max_len(512)
        .for_each(|engine: &[u8]| {
            for body in corpus.inputs(engine) {
                let input = [HEAD, &body].concat();
                let seen = read_twice(&input, &usual);
                let small = read_twice(&input, &tight);
                assert!(
                    small.end == seen.end || matches!(small.end, StreamEnd::Refused(_)),
                    "a tighter limit may only refuse: {}",
                    input.escape_ascii()
                );
                let bytewise = decode(input.chunks(1), &usual, true, |_, _| {});
                assert_eq!(bytewise, seen, "{}", input.escape_ascii());
            }
        });
}

/// The cuts between the bytes of a connection do not change their meaning. A refused connection
/// stays refused.
#[test]
fn connections() {
    let (corpus, usual, tight) = (
        corpus("connections", &words::HTTP),
        Limits::default(),
        tight(),
    );
    bolero::check!(name = "connections")
        .with_max_len(512)
        .for_each(|engine: &[u8]| {
            let mut choices = Choices::of(engine);
            let limits = if choices.chance(50) { &tight } else { &usual };
            let mut input = Vec::new();
            for _ in 0..=choices.below(4) {
                input.extend(corpus.mutated(&mut choices));
            }
            input.truncate(lab_torture::http::MAX_INPUT);
            let whole = read_twice(&input, limits);
            let pieces = cut(&input, &mut choices);
            let shown = || input.escape_ascii().to_string();
            let cut = decode(
                pieces.iter().copied(),
                limits,
                choices.chance(50),
                |_, _| {},
            );
            assert_eq!(cut, whole, "cut into {}: {}", pieces.len(), shown());
            if input.len() < 1000 {
                let bytewise = decode(input.chunks(1), limits, false, |_, _| {});
                assert_eq!(bytewise, whole, "byte by byte: {}", shown());
            }
            if matches!(whole.end, StreamEnd::Refused(_)) {
                let longer = [&input[..], &corpus.mutated(&mut choices)].concat();
                assert_eq!(decode_whole(&longer, limits), whole, "{}", shown());
            }
            let shorter = decode_whole(&input[..choices.below(input.len() + 1)], limits);
            assert!(whole.requests.starts_with(&shorter.requests), "{}", shown());
        });
}

/// One to nine pieces, cut anywhere.
fn cut<'i>(input: &'i [u8], choices: &mut Choices<'_>) -> Vec<&'i [u8]> {
    let mut cuts: Vec<_> = (0..choices.below(9))
        .map(|_| choices.below(input.len() + 1))
        .collect();
    cuts.extend([0, input.len()]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|pair| &input[pair[0]..pair[1]])
        .collect()
}

/// Accepts each request that follows the grammar, with just its parts.
#[test]
fn good_requests() {
    let usual = Limits::default();
    bolero::check!(name = "good_requests")
        .with_max_len(512)
        .for_each(|engine: &[u8]| {
            let mut choices = Choices::of(engine);
            let (mut input, mut expected) = (Vec::new(), Vec::new());
            for _ in 0..=choices.below(3) {
                expected.push(write_request(&mut input, &mut choices));
            }
            let seen = read_twice(&input, &usual);
            let shown = || input.escape_ascii().to_string();
            assert_eq!(
                seen.end,
                StreamEnd::Left(crate::h1::Phase::Idle),
                "{}",
                shown()
            );
            let bodies: Vec<_> = seen.requests.iter().map(|got| got.body.to_vec()).collect();
            assert_eq!(bodies, expected, "{}", shown());
        });
}

/// Writes a request that the grammar allows; gives its body.
fn write_request(to: &mut Vec<u8>, choices: &mut Choices<'_>) -> Vec<u8> {
    const METHODS: [&str; 5] = ["GET", "HEAD", "POST", "DELETE", "M-SEARCH"];
    const TARGETS: [&str; 6] = [
        "/",
        "/a%20b?c=d?e",
        "/..//%2e?",
        "http://b.example:80/x",
        "http://[::1]",
        "//x",
    ];
    let method = choices.pick(&METHODS).copied().unwrap_or("GET");
    let target = choices.pick(&TARGETS).copied().unwrap_or("/");
    if choices.chance(20) {
        to.extend_from_slice(b"\r\n");
    }
    to.extend(format!("{method} {target} HTTP/1.1\r\nhOST:a.example:8080\t \r\n").bytes());
    for number in 0..choices.below(20) {
        let value: Vec<u8> = choices.bytes(20);
        to.extend(format!("X-{number}:").bytes());
        to.extend(
            value
                .into_iter()
                .filter(|&b| crate::syntax::is_field_value(b)),
        );
        to.extend_from_slice(b"\r\n");
    }
    let body = choices.bytes(60);
    match choices.below(3) {
        0 => {
            to.extend_from_slice(b"\r\n");
            Vec::new()
        }
        1 => {
            to.extend(format!("Content-Length: {:03}\r\n\r\n", body.len()).bytes());
            to.extend_from_slice(&body);
            body
        }
        _ => {
            write_chunks(to, &body, choices);
            body
        }
    }
}

fn write_chunks(to: &mut Vec<u8>, mut body: &[u8], choices: &mut Choices<'_>) {
    const EXTENSIONS: [&str; 5] = ["", ";a", " ; a = b", ";a=\"b;\\\"c\"", ";a;b=c"];
    const TRAILERS: [&str; 3] = ["", "A: b\r\n", "A:\r\nContent-MD5: c d\r\n"];
    to.extend_from_slice(b"Transfer-Encoding: Chunked\r\n\r\n");
    while !body.is_empty() {
        let (chunk, rest) = body.split_at(1 + choices.below(body.len()));
        let extension = choices.pick(&EXTENSIONS).copied().unwrap_or_default();
        to.extend(format!("{:02X}{extension}\r\n", chunk.len()).bytes());
        to.extend_from_slice(chunk);
        to.extend_from_slice(b"\r\n");
        body = rest;
    }
    let trailers = choices.pick(&TRAILERS).copied().unwrap_or_default();
    to.extend(format!("000\r\n{trailers}\r\n").bytes());
}

/// Every known way to smuggle a request is refused, and nothing behind it is read.
#[test]
fn smuggled_requests() {
    for shape in smuggling() {
        let seen = read_twice(&shape, &Limits::default());
        let shown = shape.escape_ascii();
        assert!(matches!(seen.end, StreamEnd::Refused(_)), "{shown}");
        assert!(seen.requests.is_empty(), "{shown}");
    }
}

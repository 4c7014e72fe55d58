//! Responses in every split, good and bad.

use super::*;
use crate::sink::Discard;

/// Feeds `bytes` cut in two at every place, and byte by byte; the responses must always be the
/// same.
fn check(bytes: &[u8], expected: &Result<Vec<(u16, bool)>, ()>) {
    for cut in 0..=bytes.len() {
        let got = run(&[&bytes[..cut], &bytes[cut..]], false);
        assert_eq!(
            got,
            *expected,
            "{:?} cut at {cut}",
            String::from_utf8_lossy(bytes)
        );
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(
        run(&single, false),
        *expected,
        "{:?} in single bytes",
        String::from_utf8_lossy(bytes)
    );
}

/// The responses in `pieces`; when all are complete, they must account for every byte.
fn run(pieces: &[&[u8]], head: bool) -> Result<Vec<(u16, bool)>, ()> {
    let mut parser = Parser::new();
    let (mut answers, mut bytes, mut whole) = (Vec::new(), 0, true);
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let (used, answer) = parser.feed(rest, head, &mut Discard).map_err(|_| ())?;
            rest = &rest[used..];
            whole = answer.is_some();
            bytes += answer.map_or(0, |answer| answer.bytes);
            answers.extend(answer.map(|answer| (answer.status, answer.reusable)));
        }
    }
    if let Some(answer) = parser.closed() {
        whole = true;
        bytes += answer.bytes;
        answers.push((answer.status, answer.reusable));
    }
    if whole {
        assert_eq!(
            bytes,
            pieces.iter().map(|piece| piece.len() as u64).sum::<u64>()
        );
    }
    Ok(answers)
}

#[test]
fn answers_end_where_they_should() {
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        &Ok(vec![(200, true)]),
    );
    // A field over two lines (RFC 9112 section 5.2).
    check(
        b"HTTP/1.1 200 OK\r\nX-A: one\r\n two\r\nContent-Length:\r\n\t5\r\n\r\nhello",
        &Ok(vec![(200, true)]),
    );
    check(
        b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 \r\nContent-Length: 9\r\n\r\n",
        &Ok(vec![(204, true), (304, true)]),
    );
    check(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 404 x\r\ncontent-length: 0\r\n\r\n",
        &Ok(vec![(200, true), (404, true)]),
    );
    check(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 E\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", &Ok(vec![(200, true)]));
    check(
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        &Ok(vec![(200, false)]),
    );
}

#[test]
fn the_connection_is_kept_only_when_both_may() {
    check(
        b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n",
        &Ok(vec![(200, false)]),
    );
    check(
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        &Ok(vec![(200, false)]),
    );
    check(
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
        &Ok(vec![(200, true)]),
    );
}

#[test]
fn an_answer_to_head_has_no_body() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n";
    assert_eq!(run(&[bytes], true), Ok(vec![(200, true)]));
}

#[test]
fn ambiguous_responses_are_refused() {
    for bytes in [
        &b"garbage\r\n\r\n"[..],
        b"\x16\x03\x01 tls alert",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1 999 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ] {
        assert_eq!(
            run(&[bytes], false),
            Err(()),
            "{:?}",
            String::from_utf8_lossy(bytes)
        );
    }
}

#[test]
fn an_endless_head_is_bounded() {
    for piece in [
        &b"X: y\r\n"[..],
        b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        b"y",
    ] {
        let mut parser = Parser::new();
        let mut fed = 0;
        let mut result = parser.feed(b"HTTP/1.1 200 OK\r\nX: ", false, &mut Discard);
        while result.is_ok() {
            result = parser.feed(piece, false, &mut Discard);
            fed += piece.len();
            assert!(fed <= 2 * HEAD && parser.carry.len() <= HEAD);
        }
    }
    assert!(
        Parser::new()
            .feed(&vec![b'\n'; 2 * HEAD], false, &mut Discard)
            .is_err()
    );
}

#[test]
fn interim_responses_are_bounded() {
    let mut parser = Parser::new();
    let mut sent = 0;
    while parser
        .feed(b"HTTP/1.1 102 Processing\r\n\r\n", false, &mut Discard)
        .is_ok()
    {
        sent += 1;
        assert!(sent <= INTERIM);
    }
}

#[test]
fn a_response_cut_short_is_not_complete() {
    for bytes in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        b"HTTP/1.1 200 O",
    ] {
        assert_eq!(run(&[bytes], false), Ok(vec![]));
    }
}

#[test]
fn no_input_causes_a_panic() {
    let good = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5;a\r\nhello\r\n0\r\nT: v\r\n\r\n";
    let mut numbers = lab_testkit::Random::new(7);
    let mut random = move |below| numbers.index(below);
    for _ in 0..20_000 {
        let mut bytes = good.to_vec();
        for _ in 0..1 + random(6) {
            let (at, from) = (random(bytes.len()), random(good.len()));
            match random(3) {
                0 => bytes[at] = random(256) as u8,
                1 => drop(
                    bytes
                        .splice(at..at, good[from..].iter().copied())
                        .collect::<Vec<_>>(),
                ),
                _ => bytes.truncate(at + 1),
            }
        }
        let cut = random(bytes.len());
        // It must return, and its lengths must be right, which `run` checks.
        let _ = run(&[&bytes[..cut], &bytes[cut..]], random(2) == 0);
    }
}

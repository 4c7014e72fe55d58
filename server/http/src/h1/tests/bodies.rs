//! Bodies: how long they are, what is in them, and when the client is told to send them.

use super::{check, decode, get, limits};
use crate::h1::{Decoder, Event};
use crate::limits::CHUNK_LINE;

#[test]
fn framing() {
    for (fields, body, expected) in [
        ("Content-Length: 3\r\n", "abc", "Idle"),
        ("Content-Length: 3\r\n", "ab", "Body"),
        ("Content-Length: 0\r\n", "", "Idle"),
        ("Content-Length: 003\r\n", "abc", "Idle"),
        ("Content-Length: 1000\r\n", "", "Body"),
        ("Content-Length: 1001\r\n", "", "413"),
        ("Content-Length: 18446744073709551615\r\n", "", "413"),
        ("Content-Length: 18446744073709551616\r\n", "", "400"),
        ("Content-Length: +3\r\n", "abc", "400"),
        ("Content-Length: -3\r\n", "abc", "400"),
        ("Content-Length: 3,3\r\n", "abc", "400"),
        ("Content-Length: 3 3\r\n", "abc", "400"),
        ("Content-Length: 0x3\r\n", "abc", "400"),
        ("Content-Length:\r\n", "", "400"),
        ("Content-Length: 3\r\nContent-Length: 3\r\n", "abc", "400"),
        ("Content-Length: 3\r\nContent-Length: 4\r\n", "abc", "400"),
        (
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            "0\r\n\r\n",
            "400",
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
            "0\r\n\r\n",
            "400",
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "0\r\n\r\n",
            "400",
        ),
        ("Transfer-Encoding: CHUNKED\r\n", "0\r\n\r\n", "Idle"),
        ("Transfer-Encoding: gzip\r\n", "", "400"),
        ("Transfer-Encoding: gzip, chunked\r\n", "", "501"),
        ("Transfer-Encoding: chunked, gzip\r\n", "", "400"),
        ("Transfer-Encoding: \x0bchunked\r\n", "", "400"),
        ("Transfer-Encoding: xchunked\r\n", "", "400"),
        ("Transfer-Encoding:\r\n", "", "400"),
        ("Transfer-Encoding: chunked, chunked\r\n", "", "400"),
        ("Transfer-Encoding: , chunked\r\n", "", "400"),
        ("Transfer-Encoding: chunked,\r\n", "", "400"),
        ("Transfer-Encoding: chunked;a=b\r\n", "", "400"),
        ("Transfer-Encoding: gzip;a=\",chunked\"\r\n", "", "400"),
    ] {
        check(&[(&get(&format!("{fields}\r\n{body}")), expected)]);
    }
    check(&[(
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "400",
    )]);
}

#[test]
fn chunks() {
    let trailer = |len: usize| format!("0\r\nA: {}\r\n\r\n", "x".repeat(len));
    for (body, expected) in [
        ("0\r\n\r\n", "Idle"),
        ("3\r\nabc\r\n0\r\n\r\n", "Idle"),
        ("000003\r\nabc\r\n00\r\n\r\n", "Idle"),
        ("00000000000000003\r\nabc\r\n0\r\n\r\n", "400"),
        ("3;a\r\nabc\r\n0;b=c;d=\"e;\\\"f\"\r\n\r\n", "Idle"),
        ("3 ; a = b\r\nabc\r\n0\r\n\r\n", "Idle"),
        ("0\r\nA: b\r\nC: d\r\n\r\n", "Idle"),
        ("3e8\r\n", "Body"),
        ("3\r\nab", "Body"),
        ("3\r\nabc\r", "Body"),
        ("3e9\r\n", "413"),
        ("ffffffffffffffff\r\n", "413"),
        ("10000000000000000\r\n", "400"),
        ("\r\n", "400"),
        ("x\r\n", "400"),
        ("0x3\r\nabc\r\n", "400"),
        ("+3\r\nabc\r\n", "400"),
        ("-3\r\nabc\r\n", "400"),
        (" 3\r\nabc\r\n", "400"),
        ("3 \r\nabc\r\n", "400"),
        ("3\nabc\r\n", "400"),
        ("3\r\nabcd\r\n", "400"),
        ("3\r\nabc\n0\r\n\r\n", "400"),
        ("3\r\nabc0\r\n\r\n", "400"),
        ("3\r\nabc\rx", "400"),
        ("3;\r\nabc\r\n", "400"),
        ("3;a=\r\nabc\r\n", "400"),
        ("3;a=\"b\r\nabc\r\n", "400"),
        ("3;a\rb\r\nabc\r\n", "400"),
        ("0\r\nA\r\n\r\n", "400"),
        ("0\r\n A: b\r\n\r\n", "400"),
        ("0\r\nA : b\r\n\r\n", "400"),
        ("0\r\nA: b\n\r\n", "400"),
        ("0\r\nA: \0\r\n\r\n", "400"),
        ("0\r\n\n", "400"),
        (&trailer(8000), "Idle"),
        (&trailer(9000), "431"),
        (&format!("0\r\n{}\r\n", "A: 1\r\n".repeat(2000)), "431"),
        (&format!("3;{}\r\nabc\r\n", "a".repeat(CHUNK_LINE)), "400"),
        (&format!("3;{}", "a".repeat(CHUNK_LINE)), "400"),
        (&format!("1;{}\r\na\r\n", "a".repeat(900)).repeat(20), "400"),
    ] {
        check(&[(
            &get(&format!("Transfer-Encoding: chunked\r\n\r\n{body}")),
            expected,
        )]);
    }
}

#[test]
fn trailers_are_passed_over() {
    let input = get("Transfer-Encoding: chunked\r\n\r\n")
        + "3\r\nabc\r\n0\r\nHost: b\r\nContent-Length: 9\r\nX:\r\n\r\n";
    assert_eq!(
        decode([input.as_bytes()], &limits(), false),
        [
            r#"GET / None Http11 Some("a") keep=true [Host=a Transfer-Encoding=chunked] b"abc""#,
            "Idle"
        ]
    );
}

#[test]
fn a_chunked_body_over_the_limit_is_refused_at_the_chunk_that_is_too_much() {
    let input = get("Transfer-Encoding: chunked\r\n\r\n")
        + &format!("1f4\r\n{}\r\n", "a".repeat(500)).repeat(2);
    check(&[
        (&input, "Body"),
        (&(input.clone() + "1\r\n"), "413"),
        (&(input.clone() + "0\r\n\r\n"), "Idle"),
    ]);
}

#[test]
fn continue_is_wanted_only_while_nothing_of_the_body_is_there() {
    for (framing, body, wanted) in [
        ("Content-Length: 3", "", true),
        ("Content-Length: 3", "a", false),
        ("Content-Length: 0", "", false),
        ("Transfer-Encoding: chunked", "", true),
        ("Transfer-Encoding: chunked", "3", false),
        ("A: b", "", false),
    ] {
        let input = get(&format!("Expect: 100-continue\r\n{framing}\r\n\r\n{body}"));
        let mut decoder = Decoder::new();
        decoder.space(&limits())[..input.len()].copy_from_slice(input.as_bytes());
        decoder.received(input.len());
        let event = decoder.next(&limits());
        assert_eq!(
            matches!(event, Event::Continue),
            wanted,
            "{input:?}: {event:?}"
        );
        if wanted {
            assert!(
                matches!(decoder.next(&limits()), Event::More),
                "once is enough"
            );
        }
    }
}

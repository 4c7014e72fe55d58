//! Request smuggling: one byte stream that two readers take for different requests (RFC 9112
//! section 11.2).
//!
//! Each case follows from a rule of the grammar, broken or stretched. It is either refused, so that
//! nothing behind it is read, or has the one reading that the grammar gives it. In no case does the
//! request for `/smuggled`, which some other reader would see, come out.

use super::{decode, limits};

/// The paths that are asked for in `input`, then how it ends.
fn read(input: &str) -> Vec<String> {
    let mut seen = decode([input.as_bytes()], &limits(), false);
    let byte_by_byte = decode(input.as_bytes().chunks(1), &limits(), true);
    assert_eq!(seen, byte_by_byte, "{input:?}");
    for event in &mut seen {
        if let Some(path) = event.split(' ').nth(1) {
            *event = path.to_owned();
        }
    }
    seen
}

/// `fields` before `body`, and behind it a request of which there is no doubt.
#[track_caller]
fn check(fields: &str, body: &str, expected: &[&str]) {
    let input = format!(
        "POST /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
    );
    assert_eq!(read(&input), expected, "{input:?}");
}

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
/// Its length.
const LEN: usize = 35;
const REFUSED: &[&str] = &["400"];
const READ: &[&str] = &["/a", "/next", "Idle"];

#[test]
fn lengths_that_have_two_readings_are_refused() {
    assert_eq!(SMUGGLED.len(), LEN);
    for length in [
        "0, 35",
        "35, 35",
        "35,",
        ",35",
        "35 35",
        "+35",
        "-0",
        " 0x23",
        "0x0",
        "0b0",
        "3_8",
        "35;",
        "35.0",
        "\"35\"",
        "3 8",
        "3\t8",
        "٣",
        "",
        "18446744073709551616",
        "99999999999999999999999999",
        "35\0",
        "35\u{b}",
    ] {
        let fields = format!("Content-Length: {length}\r\n");
        check(&fields, SMUGGLED, REFUSED);
    }
    for fields in [
        "Content-Length: 0\r\nContent-Length: 35\r\n",
        "Content-Length: 35\r\nContent-Length: 0\r\n",
        "Content-Length: 35\r\ncontent-length: 35\r\n",
        "Content-Length : 0\r\n",
        "Content-Length\t: 0\r\n",
        "Content-Length: 35\r\n 0\r\n",
        "Content-Length:\r\n 35\r\n",
        " Content-Length: 0\r\n",
        "A: b\r\n Content-Length: 0\r\n",
        "A: b\r\n\tContent-Length: 0\r\n",
        "A: b\rContent-Length: 0\r\n",
        "A: b\nContent-Length: 0\r\n",
        "A: b\r\r\nContent-Length: 0\r\n",
        "A: b\0Content-Length: 0\r\n",
        "Content-Length\0: 0\r\n",
        "Content-Length\r: 0\r\n",
        ": Content-Length: 0\r\n",
        "Content-Length 0\r\n",
    ] {
        check(fields, SMUGGLED, REFUSED);
    }
    check("Content-Length: 35\r\n", SMUGGLED, READ);
    check("Content-Length: \t35 \t\r\n", SMUGGLED, READ);
    check("content-LENGTH:035\r\n", SMUGGLED, READ);
}

#[test]
fn a_length_and_chunks_together_are_refused() {
    let chunked = format!("0\r\n\r\n{SMUGGLED}");
    for fields in [
        "Content-Length: 40\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 40\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: identity\r\n",
        "Content-Length: 40\r\nTransfer-Encoding: xchunked\r\n",
        "Content-Length: 40\r\nTransfer-Encoding:\r\n",
        "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
    ] {
        check(fields, &chunked, REFUSED);
    }
}

#[test]
fn a_transfer_encoding_in_disguise_is_refused() {
    let body = format!("0\r\n\r\n{SMUGGLED}");
    for fields in [
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding\t: chunked\r\n",
        " Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding: chunked\r\n x\r\n",
        "X: y\rTransfer-Encoding: chunked\r\n",
        "X: y\nTransfer-Encoding: chunked\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: \u{b}chunked\r\n",
        "Transfer-Encoding: \u{c}chunked\r\n",
        "Transfer-Encoding: chunked\0\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: 'chunked'\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding: chunk\r\n",
        "Transfer-Encoding: chunked chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: ,chunked\r\n",
        "Transfer-Encoding: chunked,\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
        "Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: \r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encodıng: chunked\r\n",
    ] {
        check(fields, &body, REFUSED);
    }
    for codings in ["identity, chunked", "gzip, chunked", "gzip;a=b , chunked"] {
        let fields = format!("Transfer-Encoding: {codings}\r\n");
        check(&fields, &body, &["501"]);
    }
    for fields in [
        "Transfer-Encoding: chunked\r\n",
        "transfer-ENCODING:\tChunked \r\n",
    ] {
        check(fields, "0\r\n\r\n", READ);
    }
    // Other names are other fields, which say nothing of the body.
    check("Transfer_Encoding: chunked\r\n", "", READ);
    check("X-Transfer-Encoding: chunked\r\n", "", READ);
}

#[test]
fn chunks_that_have_two_readings_are_refused() {
    for body in [
        "0x0\r\n\r\n",
        "+0\r\n\r\n",
        "-0\r\n\r\n",
        " 0\r\n\r\n",
        "0 \r\n\r\n",
        "\t0\r\n\r\n",
        "0_0\r\n\r\n",
        "0,0\r\n\r\n",
        "\r\n0\r\n\r\n",
        "g\r\n\r\n",
        "0\n\r\n",
        "0\r\n\n",
        "0\r\r\n\r\n",
        "0\r\n\r\r\n",
        "0;\r\n\r\n",
        "0;a\rb\r\n\r\n",
        "0;a\nb\r\n\r\n",
        "0;a=\"\r\n\r\n",
        "0;\0\r\n\r\n",
        "10000000000000000\r\n",
        "fffffffffffffffffffff\r\n",
        // A parser that keeps sixteen digits reads 0 here.
        "00000000000000001\r\nx\r\n0\r\n\r\n",
        // 2 to the power of 64 and one more: the lower half of it would be 1.
        "10000000000000001\r\nx\r\n0\r\n\r\n",
        "1\r\nxy\r\n0\r\n\r\n",
        "1\r\nx\n0\r\n\r\n",
        "1\r\nx0\r\n\r\n",
        "1\nx\r\n0\r\n\r\n",
        "2\r\nx\r\n0\r\n\r\n",
        "0\r\nA\r\n\r\n",
        "0\r\nA : b\r\n\r\n",
        "0\r\n A: b\r\n\r\n",
        "0\r\nA: b\r\n c\r\n\r\n",
        "0\r\nA: b\n\r\n",
        "0\r\nA: b\r\r\n\r\n",
        "0\r\nA: \0\r\n\r\n",
        "0\r\n: b\r\n\r\n",
    ] {
        check(
            "Transfer-Encoding: chunked\r\n",
            &format!("{body}{SMUGGLED}"),
            REFUSED,
        );
    }
    check(
        "Transfer-Encoding: chunked\r\n",
        "8000000000000000\r\n",
        &["413"],
    );
    for body in [
        format!("23\r\n{SMUGGLED}\r\n0\r\n\r\n"),
        format!("0000000000000023\r\n{SMUGGLED}\r\n0\r\n\r\n"),
        format!("23;a=\"\t;\"\r\n{SMUGGLED}\r\n0\r\n\r\n"),
        format!("23\t ;\ta\r\n{SMUGGLED}\r\n0;b\r\n\r\n"),
        // What stands in a trailer changes neither this request nor the next.
        "0\r\nContent-Length: 35\r\nTransfer-Encoding: chunked\r\nHost: b\r\nConnection: close\r\n\r\n".to_owned(),
    ] {
        check("Transfer-Encoding: chunked\r\n", &body, READ);
    }
}

#[test]
fn lines_that_have_two_readings_are_refused() {
    for input in [
        "GET /a HTTP/1.1\r\nHost: a\r\n\rGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\n\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\r\n\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a HTTP/1.1\r\n Host: a\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
        "GET /a HTTP/1.1\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a\r\n Host: b\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: a,b\r\n\r\n",
        "GET /a HTTP/1.1 \r\nHost: a\r\n\r\n",
        "GET /a HTTP/1.1\rX\r\nHost: a\r\n\r\n",
        "GET /a HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET\t/a\tHTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a\u{b}HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /a HTTP/1.1GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.0\r\n\r\n",
        "\0GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        assert_eq!(read(input), REFUSED, "{input:?}");
    }
}

/// GET and HEAD may have a body too: it is passed over, not taken for the next request.
#[test]
fn a_body_where_none_is_expected_is_not_a_request() {
    for method in ["GET", "HEAD", "OPTIONS", "DELETE", "TRACE", "BREW"] {
        let input =
            format!("{method} /a HTTP/1.1\r\nHost: a\r\nContent-Length: {LEN}\r\n\r\n{SMUGGLED}");
        assert_eq!(read(&input), ["/a", "Idle"]);
        let input = format!(
            "{method} /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n23\r\n{SMUGGLED}\r\n0\r\n\r\n"
        );
        assert_eq!(read(&input), ["/a", "Idle"]);
    }
}

#[test]
fn what_is_over_a_limit_is_not_read_in_part() {
    let long = "x".repeat(3000);
    for (input, status) in [
        (format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"), "414"),
        (
            format!("GET /a HTTP/1.1\r\nHost: a\r\nA: {long}\r\n\r\n{SMUGGLED}"),
            "431",
        ),
        (
            format!(
                "GET /a HTTP/1.1\r\nHost: a\r\n{}\r\n{SMUGGLED}",
                "A:\r\n".repeat(200)
            ),
            "431",
        ),
        (
            format!("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n{SMUGGLED}"),
            "413",
        ),
        (
            format!(
                "{} /a HTTP/1.1\r\nHost: a\r\n\r\n{SMUGGLED}",
                "X".repeat(33)
            ),
            "501",
        ),
    ] {
        assert_eq!(read(&input), [status]);
    }
}

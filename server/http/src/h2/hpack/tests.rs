//! The examples of the RFC, its errors, and the bounds of the table.

use super::encoder::{push_field, push_status};
use super::{BlockError, CompressionError, ENTRY_OVERHEAD, FieldSink, HpackDecoder, TABLE_SIZE};
use super::{huffman, integer};

type FieldPairs = Vec<(String, String)>;

/// Collects all fields.
#[derive(Default)]
struct AllFields(FieldPairs);

impl FieldSink for AllFields {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.push((text(name), text(value)));
    }
}

fn decode(decoder: &mut HpackDecoder, block: &[u8]) -> Result<FieldPairs, BlockError> {
    let mut fields = AllFields::default();
    decoder.decode(block, 1 << 20, &mut Vec::new(), &mut fields)?;
    Ok(fields.0)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[track_caller]
fn check(decoder: &mut HpackDecoder, hex: &str, expected: &[(&str, &str)]) {
    let fields = decode(decoder, &bytes(hex)).unwrap();
    let got: Vec<_> = fields.iter().map(|(n, v)| (&n[..], &v[..])).collect();
    assert_eq!(got, expected);
}

/// RFC 7541 appendix C.1.
#[test]
fn integers_of_the_appendix() {
    for (prefix, value, expected) in [
        (5, 10, &[10][..]),
        (5, 1337, &[31, 154, 10]),
        (8, 42, &[42]),
    ] {
        let mut out = Vec::new();
        integer::push(&mut out, 0, prefix, value);
        assert_eq!(out, expected);
        assert_eq!(integer::take(&mut &out[..], prefix), Ok(value));
    }
}

/// RFC 7541 section 5.1: an integer that overflows, or never ends, is an error.
#[test]
fn an_integer_is_bounded() {
    for input in [
        &[][..],
        &[0x1f],
        &[0x1f, 0x80, 0x80],
        &[0x1f, 0x80, 0x80, 0x80, 0x80, 0x00],
        &[0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f],
    ] {
        assert_eq!(integer::take(&mut &input[..], 5), Err(CompressionError));
    }
    assert_eq!(
        integer::take(&mut &[0x1f, 0xff, 0xff, 0xff, 0x7f][..], 5),
        Ok(31 + (1 << 28) - 1)
    );
}

/// RFC 7541 appendices C.2, C.3 and C.4.
#[test]
fn requests_of_the_appendix() {
    let mut decoder = HpackDecoder::new();
    check(
        &mut decoder,
        "400a637573746f6d2d6b65790d637573746f6d2d686561646572",
        &[("custom-key", "custom-header")],
    );
    check(
        &mut decoder,
        "040c2f73616d706c652f70617468",
        &[(":path", "/sample/path")],
    );
    check(
        &mut decoder,
        "100870617373776f726406736563726574",
        &[("password", "secret")],
    );
    check(&mut decoder, "82", &[(":method", "GET")]);
    let first = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ];
    let mut second = first.to_vec();
    second.push(("cache-control", "no-cache"));
    let third = [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ];
    let mut plain = HpackDecoder::new();
    check(
        &mut plain,
        "828684410f7777772e6578616d706c652e636f6d",
        &first,
    );
    check(&mut plain, "828684be58086e6f2d6361636865", &second);
    check(
        &mut plain,
        "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        &third,
    );
    let mut coded = HpackDecoder::new();
    check(&mut coded, "828684418cf1e3c2e5f23a6ba0ab90f4ff", &first);
    check(&mut coded, "828684be5886a8eb10649cbf", &second);
    check(
        &mut coded,
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        &third,
    );
}

/// RFC 7541 appendix C.6: with a table of 256 bytes entries are evicted.
#[test]
fn responses_of_the_appendix() {
    let mut decoder = HpackDecoder::new();
    check(&mut decoder, "3fe101", &[]);
    let date = "Mon, 21 Oct 2013 20:13:21 GMT";
    let place = ("location", "https://www.example.com");
    let rest = [("cache-control", "private"), ("date", date), place];
    check(
        &mut decoder,
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff\
         6e919d29ad171863c78f0b97c8e9ae82ae43d3",
        &[&[(":status", "302")], &rest[..]].concat(),
    );
    check(
        &mut decoder,
        "4883640effc1c0bf",
        &[&[(":status", "307")], &rest[..]].concat(),
    );
    check(
        &mut decoder,
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94\
         e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c0\
         03ed4ee5b1063d5007",
        &[
            (":status", "200"),
            ("cache-control", "private"),
            ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
            place,
            ("content-encoding", "gzip"),
            (
                "set-cookie",
                "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
            ),
        ],
    );
}

/// RFC 7541 sections 2.3.3, 4.2, 5.2 and 6.1.
#[test]
fn what_cannot_be_decoded_is_an_error() {
    for (why, block) in [
        ("index 0", &[0x80][..]),
        ("an index beyond both tables", &[0xbe]),
        ("a name beyond both tables", &[0x7e, 0x00]),
        ("a string that is cut off", &[0x00, 0x05, b'a']),
        ("a length that is cut off", &[0x00, 0x7f]),
        ("a literal without a value", &[0x00, 0x01, b'a']),
        ("a size update behind a field", &[0x82, 0x20]),
        ("a size update above the setting", &[0x3f, 0xe2, 0x1f]),
        (
            "padding of 8 bits",
            &[0x00, 0x01, b'a', 0x83, 0x1f, 0xff, 0xff],
        ),
        ("padding with a zero", &[0x00, 0x01, b'a', 0x81, 0x18]),
        (
            "the end symbol",
            &[0x00, 0x01, b'a', 0x84, 0xff, 0xff, 0xff, 0xff],
        ),
    ] {
        let decoded = decode(&mut HpackDecoder::new(), block);
        assert_eq!(decoded, Err(BlockError::Compression), "{why}");
    }
    // Two updates at the beginning, up to the setting itself.
    let updates = [0x20, 0x3f, 0xe1, 0x1f, 0x82];
    assert!(decode(&mut HpackDecoder::new(), &updates).is_ok());
}

/// RFC 7541 section 5.2 and appendix B, for every byte.
#[test]
fn strings_are_read_as_they_were_written() {
    let all: Vec<u8> = (0..=255).collect();
    for len in 0..=all.len() {
        for text in [&all[..len], &all[all.len() - len..]] {
            let (mut coded, mut back) = (Vec::new(), Vec::new());
            huffman::encode(text, &mut coded);
            assert_eq!(coded.len(), huffman::encoded_len(text));
            huffman::decode(&coded, &mut back).unwrap();
            assert_eq!(back, text);
        }
    }
}

/// RFC 7541 section 4.4: an entry larger than the table empties it.
#[test]
fn a_large_entry_empties_the_table() {
    let mut decoder = HpackDecoder::new();
    let mut block = vec![0x40];
    literal(&mut block, b"a", b"b");
    assert!(decode(&mut decoder, &block).is_ok());
    assert!(decode(&mut decoder, &[0xbe]).is_ok());
    let mut block = vec![0x40];
    literal(&mut block, b"a", &[b'x'; TABLE_SIZE]);
    assert!(decode(&mut decoder, &block).is_ok());
    assert!(decode(&mut decoder, &[0xbe]).is_err());
    decoder.shrink();
    assert_eq!(decoder.memory(), 0);
}

fn literal(block: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for part in [name, value] {
        integer::push(block, 0, 7, part.len());
        block.extend_from_slice(part);
    }
}

/// RFC 7541 section 4: however it is filled, the table has one size, and the memory follows it.
#[test]
fn the_table_is_bounded() {
    let mut decoder = HpackDecoder::new();
    for number in 0..5000_usize {
        let (name, value) = (vec![b'n'; number % 7 + 1], vec![b'v'; number % 301]);
        let mut block = vec![0x40];
        literal(&mut block, &name, &value);
        decode(&mut decoder, &block).unwrap();
        assert_eq!(
            decode(&mut decoder, &[0xbe]).unwrap()[0].1.len(),
            value.len()
        );
        let (mut age, mut size) = (0, 0);
        loop {
            let mut block = Vec::new();
            integer::push(&mut block, 0x80, 7, 62 + age);
            let Ok(fields) = decode(&mut decoder, &block) else {
                break;
            };
            size += fields[0].0.len() + fields[0].1.len() + ENTRY_OVERHEAD;
            age += 1;
        }
        assert!(size <= TABLE_SIZE);
        assert!(size > TABLE_SIZE / 2 || number < 300);
        assert!(decoder.memory() <= 5 * TABLE_SIZE, "{}", decoder.memory());
    }
    decoder.shrink();
    assert!(decoder.memory() <= TABLE_SIZE + TABLE_SIZE / 8);
    assert!(decode(&mut decoder, &[0xbe]).is_ok());
}

/// The encoder's blocks mean what was put in, and change no table.
#[test]
fn fields_are_read_as_they_were_encoded() {
    let mut block = Vec::new();
    for status in [200, 204, 206, 304, 400, 404, 500, 201, 503] {
        push_status(&mut block, status);
    }
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("accept-encoding", "gzip, deflate"),
        ("set-cookie", "a=b"),
        ("x-\u{e9}", "\u{e9}\u{1}"),
        ("etag", ""),
    ] {
        push_field(&mut block, name.as_bytes(), value.as_bytes());
    }
    let mut decoder = HpackDecoder::new();
    let fields = decode(&mut decoder, &block).unwrap();
    assert_eq!(decoder.generation(), 0);
    assert_eq!(fields.len(), 14);
    assert_eq!(fields[0], (":status".into(), "200".into()));
    assert_eq!(fields[8], (":status".into(), "503".into()));
    assert_eq!(fields[11], ("set-cookie".into(), "a=b".into()));
    assert_eq!(fields[12], ("x-\u{e9}".into(), "\u{e9}\u{1}".into()));
    // RFC 7541 section 7.1.3: a secret is never indexed.
    let mut cookie = Vec::new();
    push_field(&mut cookie, b"set-cookie", b"a=b");
    assert_eq!(cookie[0] & 0xf0, 0x10);
}

/// RFC 9113 section 6.5.2: the size of a list is counted with 32 bytes for each field.
#[test]
fn a_list_that_is_too_large_is_not_decoded_to_its_end() {
    let block = [0x82; 100];
    let size = ":methodGET".len() + ENTRY_OVERHEAD;
    for (max_list, fields, expected) in [
        (100 * size, 100, Ok(())),
        (100 * size - 1, 100, Err(BlockError::TooLarge)),
        (10 * size, 11, Err(BlockError::TooLarge)),
    ] {
        let mut seen = AllFields::default();
        let decoded = HpackDecoder::new().decode(&block, max_list, &mut Vec::new(), &mut seen);
        assert_eq!((decoded, seen.0.len()), (expected, fields));
    }
}

/// Equal generations mean equal tables.
#[test]
fn each_change_of_the_table_has_a_generation() {
    let mut decoder = HpackDecoder::new();
    let mut entry = vec![0x40];
    literal(&mut entry, b"a", b"b");
    let mut seen = vec![decoder.generation()];
    for block in [&entry[..], &entry, &[0x20], &[0x3f, 0xe1, 0x1f]] {
        assert!(decode(&mut decoder, block).is_ok());
        assert!(!seen.contains(&decoder.generation()));
        seen.push(decoder.generation());
    }
    assert!(decode(&mut decoder, &[0x82, 0x00, 1, b'a', 1, b'b']).is_ok());
    assert_eq!(seen.last(), Some(&decoder.generation()));
}

//! Session cookies: any input is read as what was signed, or as nothing.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use lab_torture::http::words;

use super::corpus;
use crate::session::parts::{Keys, LONGEST, open, open_seen, read, seal, seal_seen};

#[test]
fn session_tokens() {
    let corpus = corpus("session_tokens", &words::FORMS);
    let keys = Keys::parse(&"k".repeat(32)).unwrap();
    let sign = |text: &str| BASE64.encode(keys.sign(text.as_bytes()).unwrap());
    bolero::check!(name = "session_tokens")
        .with_max_len(256)
        .for_each(|engine: &[u8]| {
            for input in corpus.inputs(engine) {
                let shown = input.escape_ascii();
                // The input is not signed.
                assert_eq!(open(&input, &keys), None, "{shown}");
                assert_eq!(open_seen(&input, &keys), None, "{shown}");
                // A signed input is read as its payload, and a session from it is the same after it
                // is written and read again.
                let text = format!("1.{}", BASE64.encode(&input));
                let token = format!("{text}.{}", sign(&text));
                let signed = open(token.as_bytes(), &keys);
                let expected = read(&input).filter(|_| token.len() <= LONGEST);
                assert_eq!(signed, expected, "{shown}");
                // A number may be longer when it is written out; what is short fits all the same.
                if let Some(session) = signed.filter(|_| token.len() < LONGEST / 4) {
                    let token = seal(&session, &keys).unwrap();
                    assert_eq!(open(token.as_bytes(), &keys), Some(session), "{shown}");
                }
                let text = format!("w1.{}", BASE64.encode(&input));
                let written = format!("{text}.{}", sign(&text));
                if let Some((position, expires)) = open_seen(written.as_bytes(), &keys) {
                    let token = seal_seen(&position, expires, &keys).unwrap();
                    let again = open_seen(token.as_bytes(), &keys);
                    assert_eq!(again, Some((position, expires)), "{shown}");
                }
            }
        });
}

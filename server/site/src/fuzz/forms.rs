//! Forms: both encodings, good and broken.

use std::borrow::Cow;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use lab_torture::{Choices, http::words};
use millpond_http::OwnedRequest;

use super::corpus;
use crate::form::{Encoding, Fields, Refused, encoding, read, unix_lines};

/// Reads a body that has arrived whole, which nothing has to be waited for.
fn read_now(encoding: Encoding, body: &[u8]) -> Result<Fields<'static>, Refused> {
    let bytes = Bytes::copy_from_slice(body);
    let reading = pin!(read(encoding, &bytes));
    match reading.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(fields) => Ok(fields?
            .into_iter()
            .map(|(name, value)| (name.into_owned().into(), value.into_owned().into()))
            .collect()),
        Poll::Pending => panic!("waits for more of {}", body.escape_ascii()),
    }
}

#[test]
fn urlencoded_forms() {
    let corpus = corpus("urlencoded_forms", &words::FORMS);
    bolero::check!(name = "urlencoded_forms")
        .with_max_len(256)
        .for_each(|engine: &[u8]| {
            for body in corpus.inputs(engine) {
                let shown = body.escape_ascii();
                match read_now(Encoding::Urlencoded, &body) {
                    Err(refused) => assert_eq!(refused.0, 400, "{shown}"),
                    Ok(fields) => {
                        assert!(fields.len() <= 1000, "{shown}");
                        // The values are the same after serialization by the URL standard's rules
                        // and a second parse.
                        let mut again = form_urlencoded::Serializer::new(String::new());
                        again.extend_pairs(&fields);
                        let again = read_now(Encoding::Urlencoded, again.finish().as_bytes());
                        assert_eq!(again.as_ref(), Ok(&fields), "{shown}");
                    }
                }
            }
        });
}

#[test]
fn multipart_forms() {
    let corpus = corpus("multipart_forms", &words::FORMS);
    bolero::check!(name = "multipart_forms")
        .with_max_len(256)
        .for_each(|engine: &[u8]| {
            for body in corpus.inputs(engine) {
                check_broken(&body);
            }
            let mut choices = Choices::of(engine);
            let fields: Fields = (0..choices.below(6)).map(|_| field(&mut choices)).collect();
            let body = write_multipart(&fields);
            let read = read_now(Encoding::Multipart("x".into()), body.as_bytes());
            let fields = fields.into_iter();
            let fields: Fields = fields
                .map(|(name, text)| (name, unix_lines(text)))
                .collect();
            assert_eq!(read.as_ref(), Ok(&fields), "{body:?}");
        });
}

/// A form that may be broken gives a 400, or fields whose values were sent.
fn check_broken(body: &[u8]) {
    let shown = body.escape_ascii();
    match read_now(Encoding::Multipart("x".into()), body) {
        Err(refused) => assert_eq!(refused.0, 400, "{shown}"),
        Ok(fields) => {
            // A file has its lines as they were sent.
            let whole = String::from_utf8_lossy(body);
            let lines = unix_lines(whole.clone());
            for (_, value) in fields {
                let sent = whole.contains(&*value) || lines.contains(&*value);
                assert!(sent, "{value:?} of {shown}");
            }
        }
    }
}

/// A field whose value has no boundary in it.
fn field(choices: &mut Choices<'_>) -> (Cow<'static, str>, Cow<'static, str>) {
    const NAMES: [&str; 4] = ["a", "title", "x-1", "b"];
    let name = choices.pick(&NAMES).copied().unwrap_or("a");
    let value = String::from_utf8_lossy(&choices.bytes(40)).replace("--x", "");
    (name.into(), value.into())
}

fn write_multipart(fields: &Fields) -> String {
    let mut body = String::new();
    for (name, value) in fields {
        body +=
            &format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    }
    body + "--x--\r\n"
}

/// For every declared type, a form is of one of two kinds, or refused.
#[test]
fn media_types() {
    let corpus = corpus("media_types", &words::FORMS);
    bolero::check!(name = "media_types")
        .with_max_len(256)
        .for_each(|engine: &[u8]| {
            for declared in corpus.inputs(engine) {
                let request = OwnedRequest::new("POST", "/")
                    .field("Content-Type", &declared)
                    .body("a=b");
                match encoding(&request.as_request()) {
                    Ok(Encoding::Multipart(boundary)) => {
                        let declared = String::from_utf8_lossy(&declared);
                        assert!(
                            declared.contains(boundary.trim_matches('"')),
                            "{declared:?}"
                        );
                    }
                    Ok(Encoding::Urlencoded | Encoding::Read(_)) => {}
                    Err(Refused(status, _)) => assert!(matches!(status, 400 | 415)),
                }
            }
        });
}

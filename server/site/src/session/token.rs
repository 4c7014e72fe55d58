//! The content of the session cookie: claims and their expiry, signed.
//!
//! `1.PAYLOAD.TAG`: the version, then in base64 a small JSON text and the tag over everything
//! before it. The payload is parsed only after its tag was verified. The reason why a token is
//! invalid is not reported: an invalid token is no token.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use millpond_db::Value;
use serde_json::{Map, Value as Json};

use super::{Session, keys::Keys};
use millpond_site_format::access::{Claims, MOST_CLAIMS};

/// The longest token. Browsers keep a cookie of 4,096 bytes, its name and attributes counted.
pub(crate) const LONGEST: usize = 3_800;
const VERSION: &str = "1";

/// Writes a session; none if that would be too long, or if there is no key to sign with.
pub(crate) fn seal(session: &Session, keys: &Keys) -> Option<String> {
    let claims = session.claims.iter();
    let claims: Map<String, Json> = claims
        .map(|(name, value)| Some((name.to_owned(), json(value)?)))
        .collect::<Option<_>>()?;
    if claims.len() > MOST_CLAIMS {
        return None;
    }
    let payload = serde_json::json!({ "i": session.issued, "e": session.expires, "c": claims });
    sign(VERSION, payload.to_string().as_bytes(), keys)
}

/// Reads a token, if one of the keys has signed it. Whether its time is over is the caller's
/// question.
pub(crate) fn open(token: &[u8], keys: &Keys) -> Option<Session> {
    read(&verify(VERSION, token, keys)?)
}

/// `VERSION.PAYLOAD.TAG`; none if that would be too long, or if there is no key to sign with.
pub(super) fn sign(version: &str, payload: &[u8], keys: &Keys) -> Option<String> {
    let mut token = format!("{version}.{}", BASE64.encode(payload));
    let tag = keys.sign(token.as_bytes())?;
    token.push('.');
    BASE64.encode_string(tag, &mut token);
    (token.len() <= LONGEST).then_some(token)
}

/// The payload of a token of this version, if one of the keys has signed it.
pub(super) fn verify(version: &str, token: &[u8], keys: &Keys) -> Option<Vec<u8>> {
    if token.len() > LONGEST {
        return None;
    }
    let token = std::str::from_utf8(token).ok()?;
    let (signed, tag) = token.rsplit_once('.')?;
    let payload = signed.strip_prefix(version)?.strip_prefix('.')?;
    let tag = BASE64.decode(tag).ok()?;
    if !keys.verify(signed.as_bytes(), &tag) {
        return None;
    }
    BASE64.decode(payload).ok()
}

pub(crate) fn read(payload: &[u8]) -> Option<Session> {
    let payload: Json = serde_json::from_slice(payload).ok()?;
    let claims = payload.get("c")?.as_object()?;
    if claims.len() > MOST_CLAIMS {
        return None;
    }
    let claims = claims
        .iter()
        .map(|(name, json)| Some((name.clone(), value(json)?)));
    Some(Session {
        issued: payload.get("i")?.as_u64()?,
        expires: payload.get("e")?.as_u64()?,
        claims: Claims::new(claims.collect::<Option<_>>()?),
    })
}

/// A claim as JSON; none of what no claim can be.
fn json(value: &Value) -> Option<Json> {
    match value {
        Value::Integer(integer) => Some((*integer).into()),
        Value::Boolean(truth) => Some((*truth).into()),
        Value::Text(text) => Some(text.to_string().into()),
        Value::Real(real) => serde_json::Number::from_f64(*real).map(Json::Number),
        Value::Null | Value::Blob(_) | Value::Json(_) => None,
    }
}

fn value(json: &Json) -> Option<Value> {
    match json {
        Json::String(text) => Some(Value::Text(text.as_str().into())),
        Json::Bool(truth) => Some(Value::Boolean(*truth)),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Some(Value::Integer(integer)),
            None => number.as_f64().map(Value::Real),
        },
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::parse(&"k".repeat(32)).unwrap()
    }

    fn session() -> Session {
        let claims = [
            ("user", 7.into()),
            ("name", "Ann \"é\"".into()),
            ("admin", Value::Boolean(true)),
            ("half", Value::Real(0.5)),
        ];
        let claims = claims.map(|(name, value)| (name.to_owned(), value));
        Session {
            issued: 10,
            expires: 20,
            claims: Claims::new(claims.into()),
        }
    }

    #[test]
    fn what_was_sealed_is_read() {
        let token = seal(&session(), &keys()).unwrap();
        assert_eq!(open(token.as_bytes(), &keys()), Some(session()));
        assert!(
            token
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)),
            "{token}"
        );
    }

    #[test]
    fn no_bit_of_it_may_differ() {
        let token = seal(&session(), &keys()).unwrap();
        for at in 0..token.len() {
            for bit in 0..8 {
                let mut other = token.clone().into_bytes();
                other[at] ^= 1 << bit;
                assert_eq!(open(&other, &keys()), None, "byte {at} bit {bit}");
            }
            assert_eq!(open(&token.as_bytes()[..at], &keys()), None);
        }
        for other in [
            format!("{token}A"),
            format!("{token}="),
            format!("{token}."),
            format!(" {token}"),
            token.replacen('1', "2", 1),
            token.replacen("1.", "", 1),
        ] {
            assert_eq!(open(other.as_bytes(), &keys()), None, "{other}");
        }
        let foreign = Keys::parse(&"f".repeat(32)).unwrap();
        assert_eq!(open(token.as_bytes(), &foreign), None);
        assert_eq!(open(token.as_bytes(), &Keys::default()), None);
    }

    #[test]
    fn what_a_cookie_cannot_hold_is_not_sealed() {
        let with = |value: Value| Session {
            issued: 1,
            expires: 2,
            claims: Claims::new(vec![("a".to_owned(), value)]),
        };
        let long = "x".repeat(LONGEST);
        assert_eq!(seal(&with(long.as_str().into()), &keys()), None);
        assert_eq!(seal(&with(Value::Blob((*b"b").into())), &keys()), None);
        assert_eq!(seal(&with(Value::Real(f64::NAN)), &keys()), None);
        assert_eq!(seal(&session(), &Keys::default()), None);
        let signed = |payload: &str| {
            let text = format!("1.{}", BASE64.encode(payload));
            let tag = BASE64.encode(keys().sign(text.as_bytes()).unwrap());
            open(format!("{text}.{tag}").as_bytes(), &keys())
        };
        assert!(signed(r#"{"i":1,"e":2,"c":{}}"#).is_some());
        for payload in [
            "",
            "{}",
            r#"{"i":1,"e":2}"#,
            r#"{"i":-1,"e":2,"c":{}}"#,
            r#"{"i":1,"e":2,"c":{"a":null}}"#,
            r#"{"i":1,"e":2,"c":{"a":[1]}}"#,
            r#"{"i":1,"e":2,"c":{}} x"#,
        ] {
            assert_eq!(signed(payload), None, "{payload}");
        }
        let oversized = signed(&format!(r#"{{"i":1,"e":2,"c":{{"a":"{long}"}}}}"#));
        assert_eq!(oversized, None);
    }
}

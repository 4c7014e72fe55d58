//! What is asked for, and the UUIDs themselves.

use std::iter::{RepeatWith, Take, repeat_with};
use std::sync::{LazyLock, atomic::AtomicU64, atomic::Ordering};

use millpond::{Failure, NamedValues};
use uuid::{NoContext, Timestamp, Uuid};

/// As many UUIDs as were asked for, each made when it is sent.
pub(crate) type Uuids = Take<RepeatWith<Box<dyn FnMut() -> Uuid + Send>>>;

/// The UUIDs of `method`, `count`, `version`, `namespace` and `name`.
pub(crate) fn order(values: &NamedValues<'_>) -> Result<Uuids, Failure> {
    let text = |name| values.get::<Option<String>>(name);
    let bad = |message: &str| Failure::bad_request(message);
    let (method, version) = (text("method")?, values.get::<Option<u8>>("version")?);
    let make: Box<dyn FnMut() -> Uuid + Send> = match (method.as_deref(), version) {
        (None | Some("RANDOM"), None | Some(4)) => Box::new(Uuid::new_v4),
        (Some("TIME"), None | Some(1)) => Box::new(time_uuid),
        (Some("TIME"), Some(7)) => Box::new(Uuid::now_v7),
        (Some("NAME"), None | Some(5)) => {
            let space = match text("namespace")?.as_deref() {
                Some("dns") => Ok(Uuid::NAMESPACE_DNS),
                Some("url") | None => Ok(Uuid::NAMESPACE_URL),
                Some(other) => Uuid::try_parse(other),
            };
            let space = space.map_err(|_| bad("namespace is dns, url or a UUID"))?;
            let uuid = Uuid::new_v5(&space, values.get::<String>("name")?.as_bytes());
            Box::new(move || uuid)
        }
        _ => return Err(bad("method is RANDOM (4), TIME (1, 7) or NAME (5)")),
    };
    let count = values.get::<Option<u16>>("count")?.unwrap_or(1);
    Ok(repeat_with(make).take(count.into()))
}

/// Version 1. No two of a process have one time, as a finer clock would give (RFC 9562 section
/// 6.1), so the clock sequence stays; it and the node, with the multicast bit (section 6.10), are
/// random.
fn time_uuid() -> Uuid {
    static NODE: LazyLock<[u8; 8]> = LazyLock::new(|| Uuid::new_v4().as_u64_pair().1.to_be_bytes());
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = Timestamp::now(NoContext).to_gregorian().0;
    let later = |last: u64| Some(now.max(last + 1));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    let time = last.ok().and_then(later).unwrap_or(now);
    let [y, z, a, b, c, d, e, f] = *NODE;
    let time = Timestamp::from_gregorian_time(time, u16::from_be_bytes([y, z]));
    Uuid::new_v1(time, &[a | 1, b, c, d, e, f])
}

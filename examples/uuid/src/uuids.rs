//! What is asked for, and the UUIDs themselves.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond::Failure;
use uuid::{NoContext, Timestamp, Uuid};

/// How many UUIDs, and what makes each.
pub(crate) type Order = (u16, Box<dyn FnMut() -> Uuid + Send>);

/// An order by `method`, `count`, `version`, `namespace` and `name`.
pub(crate) fn order(values: &HashMap<String, String>) -> Result<Order, Failure> {
    let value = |name| values.get(name).map(|it| &**it).filter(|it| !it.is_empty());
    let bad = |what: &str| Failure::bad_request(what);
    let count = value("count").map_or(Ok(1), str::parse);
    let count: u16 = count.map_err(|_| bad("count is a number from 1 to 10000"))?;
    Ok(match (value("method"), value("version")) {
        (None | Some("RANDOM"), None | Some("4")) => (count, Box::new(Uuid::new_v4)),
        (Some("TIME"), None | Some("1")) => (count, Box::new(time_uuid)),
        (Some("TIME"), Some("7")) => (count, Box::new(Uuid::now_v7)),
        (Some("NAME"), None | Some("5")) => {
            let space = match value("namespace") {
                Some("dns") => Ok(Uuid::NAMESPACE_DNS),
                Some("url") | None => Ok(Uuid::NAMESPACE_URL),
                Some(other) => Uuid::try_parse(other),
            };
            let space = space.map_err(|_| bad("namespace is dns, url or a UUID"))?;
            let name = value("name").ok_or_else(|| bad("method NAME needs a name"))?;
            let uuid = Uuid::new_v5(&space, name.as_bytes());
            (count, Box::new(move || uuid))
        }
        _ => return Err(bad("method is RANDOM (version 4), TIME (1, 7) or NAME (5)")),
    })
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

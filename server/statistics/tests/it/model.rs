//! A random log, counted by a naive counter too.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};

use lab_testkit::Random;
use millpond_statistics::Options;
use serde_json::{Map, Value, json};

use crate::statistics;

/// A request, before it is written in one of the formats.
struct Made {
    day: u32,
    minute: u32,
    client: String,
    method: &'static str,
    path: String,
    query: String,
    status: u32,
    bytes: u64,
    referrer: Option<String>,
    agent: Option<&'static str>,
    millis: u64,
}

const CLASSES: [(&str, &str); 4] = [
    (
        "people",
        "Mozilla/5.0 (X11; rv:140.0) Gecko/20100101 Firefox/140.0",
    ),
    (
        "bots",
        "Mozilla/5.0 (compatible; ExampleBot/2.1; +http://example.org/)",
    ),
    ("programs", "curl/8.5"),
    ("unknown", "-"),
];

fn make(random: &mut Random) -> Made {
    let agent = CLASSES[random.index(4)].1;
    Made {
        day: 1 + random.below(9) as u32,
        minute: random.below(1440) as u32,
        client: match random.below(3) {
            0 => format!("2001:db8::{:x}", random.below(40)),
            _ => format!("192.0.2.{}", random.below(40)),
        },
        method: ["GET", "GET", "POST", "HEAD"][random.index(4)],
        path: format!("/{}/{}", random.below(6), random.below(6)),
        query: match random.below(2) {
            0 => String::new(),
            _ => format!("?q={}", random.below(3)),
        },
        status: *random.pick(&[200, 200, 200, 304, 404, 500]),
        bytes: random.below(100_000),
        referrer: (random.below(2) == 0).then(|| format!("r{}.example.org", random.below(5))),
        agent: (agent != "-").then_some(agent),
        millis: random.below(3000),
    }
}

/// Writes a request, and says if the format has agents and times.
fn write(log: &mut String, made: &Made, random: &mut Random) -> (bool, bool) {
    let Made {
        day,
        client,
        method,
        path,
        query,
        status,
        bytes,
        millis,
        ..
    } = made;
    let (hour, minute, second) = (made.minute / 60, made.minute % 60, random.below(60));
    let referrer = made
        .referrer
        .as_ref()
        .map_or("-".to_owned(), |host| format!("https://{host}/x"));
    let agent = made.agent.unwrap_or("-");
    let common = format!(
        "{client} - - [{day:02}/Nov/2026:{hour:02}:{minute:02}:{second:02} -0330] \"{method} {path}{query} HTTP/2.0\" {status} {bytes}"
    );
    let iso = format!("2026-11-{day:02}T{hour:02}:{minute:02}:{second:02}.123-03:30");
    let kind = random.below(5);
    let _ = match kind {
        0 => writeln!(log, "{common}"),
        1 => writeln!(log, "{common} \"{referrer}\" \"{agent}\""),
        2 => writeln!(
            log,
            "{common} \"{referrer}\" \"{agent}\" {}.{:03}",
            millis / 1000,
            millis % 1000
        ),
        3 => writeln!(
            log,
            "{}",
            json!({
                "remote_addr": client, "time_iso8601": iso, "request": format!("{method} {path}{query} HTTP/1.1"),
                "status": status.to_string(), "body_bytes_sent": bytes, "http_referer": referrer,
                "http_user_agent": agent, "request_time": format!("{}.{:03}", millis / 1000, millis % 1000),
            })
        ),
        _ => writeln!(
            log,
            "{}",
            json!({
                "ts": iso, "status": status, "size": bytes, "duration": *millis as f64 / 1e3,
                "request": { "client_ip": client, "method": method, "uri": format!("{path}{query}"),
                    "headers": { "User-Agent": [agent], "Referer": [referrer] } },
            })
        ),
    };
    (kind > 0, kind > 1)
}

#[derive(Default)]
struct Naive {
    bytes: u64,
    addresses: BTreeMap<String, (u64, u64, u64, u64)>,
    referrers: BTreeMap<String, u64>,
    methods: BTreeMap<String, u64>,
    statuses: BTreeMap<String, u64>,
    agents: BTreeMap<String, u64>,
    minutes: BTreeMap<(u32, u32), u64>,
    visitors: BTreeMap<u32, HashSet<(String, &'static str)>>,
    times: Vec<u64>,
}

impl Naive {
    fn add(&mut self, made: &Made, with_query: bool, (has_agent, has_time): (bool, bool)) {
        self.bytes += made.bytes;
        let query = if with_query { made.query.as_str() } else { "" };
        let sums = self
            .addresses
            .entry(format!("{}{query}", made.path))
            .or_default();
        sums.0 += 1;
        sums.1 += made.bytes;
        if has_time {
            sums.2 += made.millis * 1000;
            sums.3 += 1;
            self.times.push(made.millis * 1000);
        }
        *self.methods.entry(made.method.to_owned()).or_default() += 1;
        *self.statuses.entry(made.status.to_string()).or_default() += 1;
        let agent = made.agent.filter(|_| has_agent).unwrap_or("-");
        let class = CLASSES.iter().find(|(_, text)| *text == agent).unwrap().0;
        *self.agents.entry(class.to_owned()).or_default() += 1;
        if let Some(host) = made.referrer.as_ref().filter(|_| has_agent) {
            *self.referrers.entry(host.clone()).or_default() += 1;
        }
        *self.minutes.entry((made.day, made.minute)).or_default() += 1;
        self.visitors
            .entry(made.day)
            .or_default()
            .insert((made.client.clone(), agent));
    }
}

/// A list of names and requests as a map.
fn named(list: &Value) -> BTreeMap<String, u64> {
    let pairs = list.as_array().unwrap().iter();
    pairs
        .map(|row| {
            (
                row["name"].as_str().unwrap().to_owned(),
                row["requests"].as_u64().unwrap(),
            )
        })
        .collect()
}

fn mapped(object: &Value) -> BTreeMap<String, u64> {
    let members: &Map<String, Value> = object.as_object().unwrap();
    let members = members
        .iter()
        .map(|(name, count)| (name.clone(), count.as_u64().unwrap()));
    members.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn a_random_log_has_the_figures_of_a_naive_counter() {
    let variable = |name| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<u64>().ok())
    };
    let cases = variable("MILLPOND_PROPTEST_CASES").unwrap_or(24);
    let seed =
        variable("MILLPOND_PROPTEST_SEED").unwrap_or_else(|| RandomState::new().hash_one(0) >> 8);
    println!("MILLPOND_PROPTEST_SEED={seed}");
    for case in 0..cases {
        check(&mut Random::new(seed + case));
    }
}

fn check(random: &mut Random) {
    let with_query = random.below(2) == 0;
    let mut naive = Naive::default();
    let mut logs = vec![String::new(); 1 + random.index(3)];
    let (mut damaged, requests) = (0, random.below(6000));
    for _ in 0..requests {
        let log = random.index(logs.len());
        if random.below(50) == 0 {
            damaged += 1;
            logs[log] += "damaged - - [x] \"GET / HTTP/1.1\"\n";
        }
        let made = make(random);
        let has = write(&mut logs[log], &made, random);
        naive.add(&made, with_query, has);
    }
    let logs: Vec<&[u8]> = logs.iter().map(String::as_bytes).collect();
    let options = Options {
        with_query,
        ..Options::default()
    };
    let found = statistics(&logs, &options).json(usize::MAX);
    assert_eq!(found["requests"], requests);
    assert_eq!(found["damaged"], damaged);
    assert_eq!(found["bytes"], naive.bytes);
    assert_eq!(named(&found["referrers"]), naive.referrers);
    assert_eq!(named(&found["methods"]), naive.methods);
    assert_eq!(mapped(&found["statuses"]), naive.statuses);
    assert_eq!(mapped(&found["agents"]), naive.agents);
    let sums = |row: &Value| {
        let name = row["name"].as_str().unwrap().to_owned();
        let mean = row["mean_micros"].as_u64();
        (
            name,
            (
                row["requests"].as_u64().unwrap(),
                row["bytes"].as_u64().unwrap(),
                mean,
            ),
        )
    };
    let addresses: BTreeMap<_, _> = found["addresses"]
        .as_array()
        .unwrap()
        .iter()
        .map(sums)
        .collect();
    let expected = naive
        .addresses
        .into_iter()
        .map(|(name, (count, bytes, micros, timed))| {
            (name, (count, bytes, micros.checked_div(timed)))
        });
    assert_eq!(addresses, expected.collect());
    let days = found["days"].as_array().unwrap();
    assert_eq!(days.len(), naive.visitors.len());
    for (day, (number, visitors)) in days.iter().zip(&naive.visitors) {
        assert_eq!(day["day"], format!("2026-11-{number:02}"));
        assert_eq!(
            (&day["visitors"], &day["visitors_exact"]),
            (&visitors.len().into(), &true.into())
        );
        for (hour, count) in day["hours"].as_array().unwrap().iter().enumerate() {
            let minutes = naive
                .minutes
                .range((*number, hour as u32 * 60)..(*number, hour as u32 * 60 + 60));
            assert_eq!(*count, minutes.map(|(_, count)| count).sum::<u64>());
        }
    }
    for row in found["busiest_minutes"].as_array().unwrap() {
        let text = row["minute"].as_str().unwrap();
        let part = |from: usize| text[from..from + 2].parse::<u32>().unwrap();
        assert_eq!(
            row["requests"],
            naive.minutes[&(part(8), part(11) * 60 + part(14))]
        );
    }
    naive.times.sort_unstable();
    for (name, share) in [("50", 0.5), ("99", 0.99)] {
        let Some(last) = naive.times.len().checked_sub(1) else {
            continue;
        };
        let rank = ((share * naive.times.len() as f64).ceil() as usize).max(1) - 1;
        let expected = naive.times[rank.min(last)] as f64;
        let found = found["response_micros"][name].as_f64().unwrap();
        assert!(
            (found - expected).abs() <= 1.0 + expected * 0.032,
            "{name}: {found} for {expected}"
        );
    }
}

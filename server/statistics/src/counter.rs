//! Counts the requests of a log.

use std::hash::{BuildHasher as _, Hasher as _};

use base_logs::{Frequent, LogEntry};
use foldhash::quality::RandomState;

use crate::agent::AgentClasses;
use crate::day::{Days, SECONDS, add_all};
use crate::histogram::ResponseTimes;
use crate::run::Options;

/// Different addresses that are kept apart, and their bytes, over all threads. A thread that meets
/// all of them has its own part only.
const ADDRESSES: (usize, usize) = (1_000_000, 128 << 20);
/// Different referrers and methods.
const REFERRERS: (usize, usize) = (100_000, 8 << 20);
const METHODS: (usize, usize) = (1000, 1 << 16);
/// Visitors that are kept apart, over all days and threads.
const VISITORS: usize = 8 << 20;

/// Bytes and time of the answers of an address.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AddressSums {
    pub(crate) bytes: u64,
    pub(crate) micros: u64,
    pub(crate) timed: u64,
}

impl AddressSums {
    fn add(&mut self, more: Self) {
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.micros = self.micros.saturating_add(more.micros);
        self.timed += more.timed;
    }
}

/// The counts of a log, or of a part of one.
#[derive(Default)]
pub(crate) struct LogCounter {
    hasher: RandomState,
    pub(crate) lines: u64,
    pub(crate) damaged: u64,
    /// Log and number of the first damaged line.
    pub(crate) first_damaged: Option<(usize, u64)>,
    /// Requests that the filters leave out.
    pub(crate) left_out: u64,
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) statuses: Box<[u64]>,
    pub(crate) agents: [u64; 4],
    pub(crate) addresses: Frequent<AddressSums>,
    pub(crate) referrers: Frequent,
    pub(crate) methods: Frequent,
    pub(crate) times: ResponseTimes,
    pub(crate) days: Days,
    classes: AgentClasses,
    /// Visitors that may still be kept apart.
    room: usize,
}

impl LogCounter {
    /// A counter for one of `parts` parts of a log. Those of one log have one `hasher`.
    pub(crate) fn new(hasher: RandomState, parts: usize) -> Self {
        Self {
            hasher,
            statuses: vec![0; 1000].into_boxed_slice(),
            addresses: Frequent::new(ADDRESSES.0 / parts, ADDRESSES.1 / parts),
            referrers: Frequent::new(REFERRERS.0 / parts, REFERRERS.1 / parts),
            methods: Frequent::new(METHODS.0, METHODS.1),
            room: VISITORS / parts,
            ..Self::default()
        }
    }

    /// Counts a request, if the options ask for it. Returns true if they do.
    pub(crate) fn add(&mut self, entry: &LogEntry<'_>, options: &Options) -> bool {
        let local = entry.local_time();
        let (class, agent) = self.classes.class(entry.agent, &self.hasher);
        if !options.counts(entry, class) {
            self.left_out += 1;
            return false;
        }
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(entry.bytes);
        self.statuses[usize::from(entry.status)] += 1;
        self.agents[class as usize] += 1;
        if !entry.method.is_empty() {
            self.methods.add(entry.method);
        }
        self.addresses.add(options.address(entry)).add(AddressSums {
            bytes: entry.bytes,
            micros: entry.micros.unwrap_or(0),
            timed: entry.micros.is_some().into(),
        });
        self.times.extend(entry.micros);
        if !entry.referrer.is_empty() {
            self.referrers.add(host(entry.referrer));
        }
        if let Some(day) = self.days.day(local.div_euclid(SECONDS)) {
            day.requests += 1;
            day.bytes = day.bytes.saturating_add(entry.bytes);
            day.statuses[usize::from(entry.status / 100)] += 1;
            day.agents[class as usize] += 1;
            let minute = local.rem_euclid(SECONDS) / 60;
            day.minutes[minute as usize] += 1;
            day.times.extend(entry.micros);
            let mut visitor = self.hasher.build_hasher();
            visitor.write(entry.client);
            visitor.write_u64(agent);
            day.visitors.add(visitor.finish(), &mut self.room);
        }
        true
    }

    /// Counts a line that is no request.
    pub(crate) fn add_damaged(&mut self, log: usize, line: u64) {
        self.damaged += 1;
        let before = self.first_damaged.unwrap_or((log, line));
        self.first_damaged = Some(before.min((log, line)));
    }

    /// Adds the counts of another part.
    pub(crate) fn merge(&mut self, other: Self) {
        self.lines += other.lines;
        self.damaged += other.damaged;
        let damaged = [self.first_damaged, other.first_damaged];
        self.first_damaged = damaged.into_iter().flatten().min();
        self.left_out += other.left_out;
        self.requests += other.requests;
        self.bytes = self.bytes.saturating_add(other.bytes);
        add_all(&mut self.statuses, &other.statuses);
        add_all(&mut self.agents, &other.agents);
        self.addresses.merge(other.addresses, AddressSums::add);
        self.referrers.merge(other.referrers, |(), ()| ());
        self.methods.merge(other.methods, |(), ()| ());
        self.times.merge(&other.times);
        self.room += other.room;
        self.days.merge(other.days, &mut self.room);
    }
}

/// The host of an address: `example.org` of `https://example.org:443/x`.
pub(crate) fn host(address: &[u8]) -> &[u8] {
    let scheme = address.windows(3).take(24).position(|part| part == b"://");
    let rest = &address[scheme.map_or(0, |at| at + 3)..];
    // The colons of an IPv6 address are in brackets.
    let port = if rest.starts_with(b"[") { b'/' } else { b':' };
    let ends = |byte: &u8| b"/?#".contains(byte) || *byte == port;
    &rest[..rest.iter().position(ends).unwrap_or(rest.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_end_at_the_greatest_number_and_forgotten_addresses_are_said() {
        let counter = || LogCounter::new(RandomState::default(), 100_000);
        let (mut totals, mut other) = (counter(), counter());
        for n in 0..20 {
            let target = format!("/{n}");
            let entry = LogEntry {
                target: target.as_bytes(),
                bytes: u64::MAX,
                status: 200,
                ..LogEntry::default()
            };
            totals.add(&entry, &Options::default());
            other.add(&entry, &Options::default());
        }
        totals.merge(other);
        let found = crate::Statistics {
            logs: Vec::new(),
            totals,
            spikes: Vec::new(),
            problems: Vec::new(),
            is_whole: true,
        };
        let figures = found.json(100);
        let most = [&figures, &figures["days"][0], &figures["addresses"][0]];
        assert!(
            most.iter().all(|sums| sums["bytes"] == u64::MAX),
            "{figures}"
        );
        assert!(figures["different_addresses"].is_null());
        assert!(figures["addresses_too_low_by_at_most"].as_u64() > Some(0));
        let text = found.report(100).to_text();
        assert!(
            text.contains("Of at least ") && text.contains("tables that say so"),
            "{text}"
        );
    }

    #[test]
    fn a_referrer_is_known_by_its_host() {
        for (address, expected) in [
            ("https://example.org/a?b", "example.org"),
            ("http://example.org:8080", "example.org"),
            ("http://[::1]:8080/x", "[::1]:8080"),
            ("android-app://org.example.reader/", "org.example.reader"),
            ("example.org/x", "example.org"),
            ("https://", ""),
            ("x", "x"),
        ] {
            assert_eq!(host(address.as_bytes()), expected.as_bytes(), "{address}");
        }
    }
}

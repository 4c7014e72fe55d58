//! Requests counted in series: one for each label of the service, method, status, version and
//! scheme that has appeared.
//!
//! A worker notes each answer when its bytes have gone to the socket. The answers of one turn get
//! their times with one reading of the clock at its end. A series has one writer, its worker; other
//! threads read it at any time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base_clock::Boottime;
use foldhash::fast::RandomState;

use crate::latency::{BUCKETS, bucket_of};
use crate::limits::SERIES;
use crate::request::{Request, Version};
use crate::worker_group::Counter;

/// Names of methods. Every other one counts as the first.
const METHODS: [&str; 10] = [
    "_OTHER", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE",
];

/// Requests of one series since the start, of all workers together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestCounts {
    /// The label of the [response](crate::Response::with_label); 0 if the service gave none.
    pub label: u32,
    /// The method, `_OTHER` if it is not known.
    pub method: &'static str,
    /// The status; 0 if the client went away before a response was sent.
    pub status: u16,
    /// The version; none if the head could not be read.
    pub version: Option<Version>,
    /// True if the scheme is `https`.
    pub is_secure: bool,
    /// Requests.
    pub requests: u64,
    /// Bytes of the responses' bodies that were handed to sockets.
    pub body_bytes: u64,
    /// Sum of the times from the last byte of a request to the last byte of its response, in
    /// nanoseconds.
    pub nanos: u64,
    /// Requests by that time: up to each of [`LATENCY_EDGES`](crate::LATENCY_EDGES), and longer.
    pub buckets: [u64; BUCKETS],
}

impl RequestCounts {
    /// Label of the series that has the requests for which there was no room in a series of their
    /// own.
    pub const MERGED: u32 = u32::MAX;

    fn new(key: SeriesKey) -> Self {
        Self {
            label: key.label,
            method: METHODS[usize::from(key.kind.method)],
            status: key.status,
            version: key.kind.version,
            is_secure: key.kind.is_secure,
            requests: 0,
            body_bytes: 0,
            nanos: 0,
            buckets: [0; BUCKETS],
        }
    }
}

/// Facts of a request that tell series apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RequestKind {
    /// Its place in [`METHODS`].
    method: u8,
    version: Option<Version>,
    is_secure: bool,
}

impl RequestKind {
    pub(crate) fn of(request: &Request<'_>) -> Self {
        let method = METHODS.iter().position(|known| *known == request.method);
        Self {
            method: method.and_then(|at| at.try_into().ok()).unwrap_or(0),
            version: Some(request.version),
            is_secure: request.is_secure,
        }
    }

    /// A request whose head could not be read.
    pub(crate) fn unread(is_secure: bool) -> Self {
        Self {
            is_secure,
            ..Self::default()
        }
    }
}

/// Identity of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SeriesKey {
    pub(crate) label: u32,
    /// 0: no response was sent.
    pub(crate) status: u16,
    pub(crate) kind: RequestKind,
}

/// A series of a worker by its place; by default none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeriesId(u32);

impl SeriesId {
    /// Requests for which there was no room.
    const MERGED: Self = Self(1);

    pub(crate) const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// The series in which a request counts, and when the request was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CountedRequest {
    pub(crate) series: SeriesId,
    pub(crate) received: Boottime,
}

impl CountedRequest {
    /// Not counted.
    pub(crate) const NONE: Self = Self {
        series: SeriesId(0),
        received: Boottime::from_nanos(0),
    };
}

#[derive(Debug)]
struct Series {
    key: SeriesKey,
    body_bytes: Counter,
    nanos: Counter,
    buckets: [Counter; BUCKETS],
}

impl Series {
    fn new(key: SeriesKey) -> Arc<Self> {
        Arc::new(Self {
            key,
            body_bytes: Counter::default(),
            nanos: Counter::default(),
            buckets: [const { Counter::new() }; BUCKETS],
        })
    }

    #[inline]
    fn add(&self, note: &Note, now: Boottime) {
        let nanos = now
            .as_nanos()
            .saturating_sub(note.counted.received.as_nanos());
        self.body_bytes.add(note.body_bytes);
        self.nanos.add(nanos * note.count);
        self.buckets[bucket_of(nanos)].add(note.count);
    }

    fn add_to(&self, counts: &mut RequestCounts) {
        counts.body_bytes += self.body_bytes.get();
        counts.nanos += self.nanos.get();
        for (sum, bucket) in counts.buckets.iter_mut().zip(&self.buckets) {
            let requests = bucket.get();
            *sum += requests;
            counts.requests += requests;
        }
    }
}

/// The series of one worker, for other threads.
#[derive(Debug, Default)]
pub(crate) struct SharedSeries(Mutex<Vec<Arc<Series>>>);

impl SharedSeries {
    fn each(&self, act: impl FnMut(&Arc<Series>)) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().for_each(act);
    }

    /// Returns the requests for which there was no room.
    pub(crate) fn merged_requests(&self) -> u64 {
        let mut requests = 0;
        self.each(|series| {
            if series.key.label == RequestCounts::MERGED {
                requests += series.buckets.iter().map(Counter::get).sum::<u64>();
            }
        });
        requests
    }

    /// Returns how many series there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Returns the requests of all workers by series, in a fixed order.
pub(crate) fn merged<'s>(workers: impl Iterator<Item = &'s SharedSeries>) -> Vec<RequestCounts> {
    let mut merged = std::collections::BTreeMap::new();
    for worker in workers {
        worker.each(|series| {
            let counts = merged
                .entry(series.key)
                .or_insert_with(|| RequestCounts::new(series.key));
            series.add_to(counts);
        });
    }
    merged
        .into_values()
        .filter(|counts| counts.requests > 0)
        .collect()
}

/// Answers of equal requests whose time is not known yet.
#[derive(Clone, Copy, Debug, Default)]
struct Note {
    counted: CountedRequest,
    count: u64,
    body_bytes: u64,
}

/// Counts the requests of one worker.
#[derive(Debug)]
pub(crate) struct RequestCounter {
    shared: Arc<SharedSeries>,
    /// By their ids. The first place is that of no id.
    series: Vec<Arc<Series>>,
    by_key: HashMap<SeriesKey, SeriesId, RandomState>,
    /// True if the series of those without room is shown.
    has_merged: bool,
    /// The answers of this turn; the last one apart, because most turns have one.
    last: Note,
    earlier: Vec<Note>,
}

impl RequestCounter {
    /// Counts in series of which `shared` shows those that have appeared.
    pub(crate) fn new(shared: Arc<SharedSeries>) -> Self {
        let merged = Series::new(SeriesKey {
            label: RequestCounts::MERGED,
            status: 0,
            kind: RequestKind::default(),
        });
        Self {
            shared,
            series: vec![Arc::clone(&merged), merged],
            by_key: HashMap::default(),
            has_merged: false,
            last: Note::default(),
            earlier: Vec::new(),
        }
    }

    /// Returns the series with this key, which begins if it is new.
    #[inline]
    pub(crate) fn series(&mut self, key: SeriesKey) -> SeriesId {
        match self.by_key.get(&key) {
            Some(&series) => series,
            None => self.begin_series(key),
        }
    }

    /// Returns the label of a series; that of the merged requests if there is none.
    pub(crate) fn label(&self, series: SeriesId) -> u32 {
        self.series[series.0 as usize].key.label
    }

    #[cold]
    fn begin_series(&mut self, key: SeriesKey) -> SeriesId {
        let is_full = self.by_key.len() >= SERIES;
        let (id, series) = match u32::try_from(self.series.len()) {
            Ok(at) if !is_full => (SeriesId(at), Series::new(key)),
            _ => (SeriesId::MERGED, Arc::clone(&self.series[1])),
        };
        if id == SeriesId::MERGED && std::mem::replace(&mut self.has_merged, true) {
            return id;
        }
        let mut shown = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown.push(Arc::clone(&series));
        if id != SeriesId::MERGED {
            self.series.push(series);
            self.by_key.insert(key, id);
        }
        id
    }

    /// Notes an answer that was handed to the socket, or never will be. It counts when the turn is
    /// [settled](Self::settle).
    #[inline]
    pub(crate) fn note(&mut self, counted: CountedRequest, body_bytes: u64) {
        if self.last.counted != counted {
            if self.last.count > 0 {
                self.earlier.push(self.last);
            }
            self.last = Note {
                counted,
                count: 0,
                body_bytes: 0,
            };
        }
        self.last.count += 1;
        self.last.body_bytes += body_bytes;
    }

    /// Counts what was noted: its bytes have gone at `now`.
    #[inline]
    pub(crate) fn settle(&mut self, now: Boottime) {
        if self.last.count > 0 {
            if !self.earlier.is_empty() {
                self.settle_earlier(now);
            }
            self.series[self.last.counted.series.0 as usize].add(&self.last, now);
            (self.last.count, self.last.body_bytes) = (0, 0);
        }
    }

    fn settle_earlier(&mut self, now: Boottime) {
        for note in self.earlier.drain(..) {
            self.series[note.counted.series.0 as usize].add(&note, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(label: u32) -> SeriesKey {
        SeriesKey {
            label,
            status: 200,
            kind: RequestKind::default(),
        }
    }

    #[test]
    fn beyond_the_bound_requests_count_together() {
        let shared = Arc::<SharedSeries>::default();
        let mut counter = RequestCounter::new(Arc::clone(&shared));
        let all = SERIES + 50;
        for label in 0..all as u32 {
            for _ in 0..2 {
                let counted = CountedRequest {
                    series: counter.series(key(label)),
                    received: Boottime::from_nanos(5_000),
                };
                counter.note(counted, 3);
            }
        }
        counter.settle(Boottime::from_nanos(7_000));
        assert_eq!(shared.len(), SERIES + 1);
        let counts = merged([&*shared].into_iter());
        assert_eq!(counts.len(), SERIES + 1);
        let merged = counts.last().unwrap();
        assert_eq!(
            (merged.label, merged.requests),
            (RequestCounts::MERGED, 100)
        );
        assert_eq!((merged.body_bytes, merged.nanos), (300, 200_000));
        let requests: u64 = counts.iter().map(|counts| counts.requests).sum();
        assert_eq!(requests, 2 * all as u64);
        assert!(
            counts
                .iter()
                .all(|counts| counts.buckets[3] == counts.requests)
        );
    }

    #[test]
    fn workers_are_added_up_and_notes_count_once() {
        let workers: Vec<Arc<SharedSeries>> = (0..3).map(|_| Arc::default()).collect();
        for worker in &workers {
            let mut counter = RequestCounter::new(Arc::clone(worker));
            let series = [1, 2].map(|label| counter.series(key(label)));
            for round in 0..10 {
                for (at, series) in [0, 0, 1, 0, 1, 1]
                    .into_iter()
                    .enumerate()
                    .map(|(at, s)| (at, series[s]))
                {
                    let received = Boottime::from_nanos(round * 100 + at as u64 / 4);
                    counter.note(CountedRequest { series, received }, 1);
                }
                counter.settle(Boottime::from_nanos(round * 100 + 50));
                counter.settle(Boottime::from_nanos(round * 100 + 60));
            }
        }
        let counts = merged(workers.iter().map(|worker| &**worker));
        let requests: Vec<(u32, u64, u64)> = counts
            .iter()
            .map(|counts| (counts.label, counts.requests, counts.body_bytes))
            .collect();
        assert_eq!(requests, [(1, 90, 90), (2, 90, 90)]);
    }
}

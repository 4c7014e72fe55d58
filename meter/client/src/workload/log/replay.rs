//! A log's own requests at its own times.

use std::collections::HashMap;
use std::path::Path;

use base_logs::Frequent;

use super::class::{Classes, pattern};
use super::read::{LogLines, read};
use super::{LogError, class};
use crate::url::Url;
use crate::workload::alias::Alias;
use crate::workload::template::Value;
use crate::workload::{Entry, Script, Workload};
use crate::{Error, Plan};

/// Requests that are kept at most: 20 bytes each.
const MOST: usize = 50_000_000;
/// Bytes of different targets that are kept at most.
const MOST_BYTES: usize = 1 << 30;
/// Different methods.
const MOST_METHODS: usize = 32;

/// The requests of a log, to be sent again.
#[derive(Debug)]
pub struct Replay {
    /// Counts of the log's lines.
    pub lines: LogLines,
    /// Requests with an unsafe method, which are left out by default.
    pub unsafe_methods: u64,
    /// When each request is due, in nanoseconds from the first one; in order.
    pub times: Vec<u64>,
    targets: Vec<Box<[u8]>>,
    methods: Vec<Box<[u8]>>,
    /// In the order of the times. Classes are not known yet.
    entries: Vec<Entry>,
}

/// Requests collected while the log is read.
#[derive(Default)]
struct Collected {
    targets: HashMap<Box<[u8]>, u32>,
    methods: Vec<Box<[u8]>>,
    bytes: usize,
    entries: Vec<(i64, Entry)>,
}

impl Replay {
    /// Reads a log as [`Learned::from_log`](super::Learned::from_log) does. It keeps every request
    /// in memory with 20 bytes, and each target once. A log has a resolution of 1 s; the requests
    /// of a second are spread evenly over it, in the order of the log. Methods other than GET and
    /// HEAD are left out unless `with_unsafe`, and are then sent without a body, because a log has
    /// no bodies.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, that is no access log, that has no request to replay or too
    /// many.
    pub fn from_log(path: &Path, with_unsafe: bool) -> Result<Self, LogError> {
        let mut collected = Collected::default();
        let mut unsafe_methods = 0;
        let lines = read(path, |line| {
            let Some((method, target)) = line.request() else {
                return Ok(());
            };
            let is_safe = matches!(method, b"GET" | b"HEAD");
            if method == b"CONNECT" || !is_safe && !with_unsafe {
                unsafe_methods += 1;
                return Ok(());
            }
            let full = |most| {
                LogError(format!(
                    "{} has more than {most}, which a replay would keep in memory: cut the log, or learn from it without --replay",
                    path.display()
                ))
            };
            collected
                .add(line.time, method, target, line.status)
                .map_err(full)
        })?;
        if collected.entries.is_empty() {
            let path = path.display();
            return Err(LogError(format!("{path} has no request to replay")));
        }
        // Lines are written when requests end, so they are nearly in order. Lines of one second
        // keep their order.
        collected.entries.sort_by_key(|(time, _)| *time);
        let times = spread(&collected.entries);
        let mut targets = vec![Box::default(); collected.targets.len()];
        for (target, place) in collected.targets {
            targets[place as usize] = target;
        }
        Ok(Self {
            lines,
            unsafe_methods,
            times,
            targets,
            methods: collected.methods,
            entries: collected
                .entries
                .into_iter()
                .map(|(_, entry)| entry)
                .collect(),
        })
    }

    /// The workload whose session `n` is request `n` of the log, and when each is due. A status is
    /// good if `base` expects it, or if the log has it for this request.
    ///
    /// # Errors
    ///
    /// A URL or field of `base` that cannot be used.
    pub fn workload(mut self, base: &Plan) -> Result<(Workload, Vec<u64>), Error> {
        let url = Url::parse(&base.target.url)?;
        let names = self.classify();
        let classes = names
            .iter()
            .map(|_| class(&base.request, &url, Value::Target))
            .collect::<Result<_, _>>()?;
        let workload = Workload {
            seed: 0,
            url: base.target.url.clone(),
            origin: Workload::origin(&base.target.url, &url.authority),
            host: url.host,
            mix: Alias::new(&vec![1.0; names.len()]),
            names,
            classes,
            tables: Vec::new(),
            choices: Vec::new(),
            script: Some(Script {
                targets: self.targets,
                methods: self.methods,
                entries: self.entries,
            }),
            streams: None,
        };
        Ok((workload, self.times))
    }

    /// Gives each request its class; the names of the classes.
    fn classify(&mut self) -> Vec<String> {
        let patterns: Vec<Vec<u8>> = self.targets.iter().map(|target| pattern(target)).collect();
        let mut counts = Frequent::<()>::new(usize::MAX, usize::MAX);
        for entry in &self.entries {
            counts.add(&patterns[entry.target as usize]);
        }
        let classes = Classes::new(&counts.into_sorted());
        let places: Vec<u16> = patterns.iter().map(|pattern| classes.of(pattern)).collect();
        for entry in &mut self.entries {
            entry.class = places[entry.target as usize];
        }
        classes.names
    }
}

impl Collected {
    /// Keeps a request; the error is the limit that the request would exceed.
    fn add(
        &mut self,
        time: i64,
        method: &[u8],
        target: &[u8],
        status: u16,
    ) -> Result<(), &'static str> {
        if self.entries.len() >= MOST {
            return Err("50 million requests");
        }
        let target = match self.targets.get(target) {
            Some(&place) => place,
            None => {
                self.bytes += target.len();
                if self.bytes > MOST_BYTES {
                    return Err("1 GiB of different targets");
                }
                let place = self.targets.len() as u32;
                self.targets.insert(target.into(), place);
                place
            }
        };
        let method = match self.methods.iter().position(|known| **known == *method) {
            Some(place) => place,
            None if self.methods.len() >= MOST_METHODS => return Err("32 different methods"),
            None => {
                self.methods.push(method.into());
                self.methods.len() - 1
            }
        };
        self.entries.push((
            time,
            Entry {
                target,
                status,
                class: 0,
                method: method as u8,
            },
        ));
        Ok(())
    }
}

/// Due times of requests in these seconds, which are in order.
fn spread(entries: &[(i64, Entry)]) -> Vec<u64> {
    let first = entries.first().map_or(0, |(second, _)| *second);
    let mut times = Vec::with_capacity(entries.len());
    for second in entries.chunk_by(|(one, _), (other, _)| one == other) {
        let begin = second[0].0.saturating_sub(first) as f64;
        let count = second.len() as f64;
        times.extend((0..second.len()).map(|n| ((begin + n as f64 / count) * 1e9) as u64));
    }
    times
}

//! One session: the requests of one visitor, rendered one after the other.

use std::io::{self, Write};
use std::time::Duration;

use super::Workload;
use super::cookies::Jar;
use super::step::{RenderedRequest, RequestStep, ResponseVerdict};
use super::template::{Template, TemplatePart, Value};
use millrace_stats::random::{Random, mix};

/// The state of one session. It stays at one request until [`advance`](Self::advance) is called.
/// The order of calls is `render`, `answered`, `advance`.
#[derive(Debug)]
pub(crate) struct VisitorSession {
    number: u64,
    /// Seed of all random choices of the session.
    key: u64,
    random: Random,
    class: u16,
    step: u16,
    /// Requests before this one.
    done: u32,
    /// How often the step will still be sent, this time included.
    times: u32,
    slots: Vec<Vec<u8>>,
    jar: Option<Box<Jar>>,
    /// The target of the current request, where it is needed later.
    target: Vec<u8>,
    /// The body while its length is not known.
    body: Vec<u8>,
    /// Why the current request differs from the plan.
    flaw: Option<&'static str>,
}

impl VisitorSession {
    pub(crate) fn new(workload: &Workload, number: u64) -> Self {
        let key = mix(workload.seed, number);
        let mut random = Random::new(key);
        let class = match workload.recorded(number) {
            Some(recorded) => recorded.class,
            None => workload.mix.pick(&mut random) as u16,
        };
        let plan = &workload.classes[usize::from(class)];
        let mut session = Self {
            number,
            key,
            random,
            class,
            step: 0,
            done: 0,
            times: 1,
            slots: vec![Vec::new(); plan.slots],
            jar: plan.cookies.then(Box::default),
            target: Vec::new(),
            body: Vec::new(),
            flaw: None,
        };
        session.times = session.repeats(&plan.steps[0]);
        session
    }

    /// Appends the current request to `out`, head and body.
    pub(crate) fn render(&mut self, workload: &Workload, out: &mut Vec<u8>) -> RenderedRequest {
        let step = self.step(workload);
        let recorded = workload
            .recorded(self.number)
            .map(|recorded| recorded.method);
        let method = step.method.as_deref().or(recorded).unwrap_or(b"GET");
        self.flaw = None;
        out.extend_from_slice(method);
        out.push(b' ');
        let begin = out.len();
        self.put(workload, &step.target, out);
        self.keep_to_server(workload, begin, out);
        if self.jar.is_some() {
            self.target.clear();
            self.target.extend_from_slice(&out[begin..]);
        }
        out.extend_from_slice(b" HTTP/1.1\r\n");
        self.put(workload, &step.fields, out);
        if let Some(jar) = &mut self.jar {
            jar.put(&self.target, out);
        }
        self.put_body(workload, step, method, out);
        RenderedRequest {
            class: self.class,
            head: method == b"HEAD",
            wants_body: step.wants_body(),
            wants_fields: step.wants_fields() || self.jar.is_some(),
        }
    }

    /// Judges the response to the current request and takes values for later requests from it.
    /// `fields` are the lines of its head, with or without the status line, and `body` its content;
    /// each may be empty if it was not wanted.
    pub(crate) fn answered(
        &mut self,
        workload: &Workload,
        status: u16,
        fields: &[u8],
        body: &[u8],
    ) -> ResponseVerdict {
        if let Some(jar) = &mut self.jar {
            jar.take(fields, &self.target, &workload.host);
        }
        let step = self.step(workload);
        let recorded = workload
            .recorded(self.number)
            .map(|recorded| recorded.status);
        if !step.expects(status, recorded) {
            return ResponseVerdict::BadStatus;
        }
        if let Some(flaw) = self.flaw {
            return ResponseVerdict::NoMatch(flaw);
        }
        if let Some(fault) = step.check.as_ref().and_then(|check| check.fault(body)) {
            return ResponseVerdict::BadBody(fault);
        }
        for extract in &step.extract {
            match extract.find(fields, body) {
                Ok(value) => self.slots[extract.slot] = value,
                Err(why) => return ResponseVerdict::NoMatch(why),
            }
        }
        ResponseVerdict::Good
    }

    /// Advances to the next request and returns the pause before it; `None` ends the session.
    pub(crate) fn advance(&mut self, workload: &Workload) -> Option<Duration> {
        let pause = self.rest(workload);
        if self.times > 1 {
            self.times -= 1;
        } else {
            let steps = &workload.classes[usize::from(self.class)].steps;
            let next = steps.get(usize::from(self.step) + 1)?;
            self.step += 1;
            self.times = self.repeats(next);
        }
        self.done = self.done.saturating_add(1);
        Some(pause)
    }

    /// The pause after the current request. In a closed loop the pause also separates the session
    /// from the next one, because it is the same visitor.
    pub(crate) fn rest(&mut self, workload: &Workload) -> Duration {
        let think = self.step(workload).think;
        think.map_or(Duration::ZERO, |think| {
            Duration::from_nanos(think.draw(self.random.next_u64()))
        })
    }

    /// Turns an absolute link to the server, from `begin` on, into a path.
    fn keep_to_server(&mut self, workload: &Workload, begin: usize, out: &mut Vec<u8>) {
        if out.get(begin) == Some(&b'/') {
            return;
        }
        let target = &out[begin..];
        let path = target.strip_prefix(workload.origin.as_bytes());
        if path.is_some_and(|path| matches!(path.first(), None | Some(b'/' | b'?'))) {
            out.drain(begin..begin + workload.origin.len());
        } else if memchr::memmem::find(target, b"://").is_some() {
            self.flaw = Some("a target is a link to another server");
        }
        if out.get(begin) != Some(&b'/') {
            out.insert(begin, b'/');
        }
    }

    fn step<'w>(&self, workload: &'w Workload) -> &'w RequestStep {
        &workload.classes[usize::from(self.class)].steps[usize::from(self.step)]
    }

    fn repeats(&mut self, step: &RequestStep) -> u32 {
        let (least, most) = step.repeat;
        least + self.random.below((most - least) as usize + 1) as u32
    }

    /// Appends the length, the end of the head, and the body.
    fn put_body(
        &mut self,
        workload: &Workload,
        step: &RequestStep,
        method: &[u8],
        out: &mut Vec<u8>,
    ) {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        if let Some(template) = &step.body {
            self.put(workload, template, &mut body);
        }
        // Writing to memory does not fail.
        let _ = if !body.is_empty() || [&b"POST"[..], b"PUT", b"PATCH"].contains(&method) {
            write!(out, "Content-Length: {}\r\n\r\n", body.len())
        } else {
            out.write_all(b"\r\n")
        };
        out.extend_from_slice(&body);
        self.body = body;
    }

    fn put(&mut self, workload: &Workload, template: &Template, out: &mut Vec<u8>) {
        for part in &template.parts {
            match part {
                TemplatePart::Text(text) => out.extend_from_slice(text),
                TemplatePart::Value(value, encoding) => {
                    let whole = self.with(workload, *value, |bytes| encoding.put(bytes, out));
                    if !whole {
                        self.flaw =
                            Some("a value for a field has a control character, which was left out");
                    }
                }
            }
        }
    }

    fn with<T>(&mut self, workload: &Workload, value: Value, use_it: impl FnOnce(&[u8]) -> T) -> T {
        let mut small = Small::new();
        // A `Small` holds the longest of each.
        let _ = match value {
            Value::Counter => write!(small, "{}", self.number),
            Value::Step => write!(small, "{}", self.done),
            Value::Random(least, count) => {
                let more = self.random.below(count as usize) as u64;
                write!(small, "{}", least.wrapping_add_unsigned(more))
            }
            Value::Uuid => self.uuid(&mut small),
            Value::Hex(digits) => self.hex(digits, &mut small),
            Value::Data(table, column) => {
                let mut random = Random::new(mix(self.key ^ TABLES, table as u64));
                return use_it(workload.tables[table].value(column, self.number, &mut random));
            }
            Value::Choice(choice) => {
                // The same value everywhere in one request, and another value in the next request.
                let place = u64::from(self.done) << 32 | choice as u64;
                let mut random = Random::new(mix(self.key ^ CHOICES, place));
                return workload.choices[choice].pick(&mut random, use_it);
            }
            Value::Slot(slot) => return use_it(&self.slots[slot]),
            Value::Target => {
                return use_it(
                    workload
                        .recorded(self.number)
                        .map_or(b"/", |recorded| recorded.target),
                );
            }
        };
        use_it(small.written())
    }

    fn uuid(&mut self, out: &mut Small) -> io::Result<()> {
        let (high, low) = (self.random.next_u64(), self.random.next_u64());
        write!(
            out,
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 48 & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        )
    }

    fn hex(&mut self, digits: u32, out: &mut Small) -> io::Result<()> {
        for begin in (0..digits).step_by(16) {
            let text = self.random.next_u64();
            let width = (digits - begin).min(16) as usize;
            write!(out, "{:0width$x}", text >> (64 - 4 * width))?;
        }
        Ok(())
    }
}

/// Keep the random numbers of tables and choices apart from each other and from the session's own.
const TABLES: u64 = 0x7461_626c_6573_0000;
const CHOICES: u64 = 0x6368_6f69_6365_7300;

/// Hexadecimal digits that one value has at most.
pub(crate) const MOST_HEX: u32 = 128;

/// A value being written, on the stack.
struct Small {
    bytes: [u8; MOST_HEX as usize],
    length: usize,
}

impl Small {
    fn new() -> Self {
        Self {
            bytes: [0; MOST_HEX as usize],
            length: 0,
        }
    }

    fn written(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Write for Small {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = &mut self.bytes[self.length..];
        let count = bytes.len().min(room.len());
        room[..count].copy_from_slice(&bytes[..count]);
        self.length += count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

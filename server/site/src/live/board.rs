//! Who looks at which live page, and what they are told of it.
//!
//! They are told a state and no log: the newest tag of the page. So who reads slowly, was away or
//! comes again misses nothing and gets nothing twice.

use std::{
    collections::HashMap,
    num::NonZeroU64,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Poll, Waker},
    thread::Thread,
    time::Duration,
};

use base_clock::Boottime;
use bytes::Bytes;
use millpond_db::Value;
use millpond_http::ClientNetwork;
use parking_lot::Mutex;

use super::change::change;
use crate::answer::{cached::Cached, visitor::Visitor};
use millpond_site_compile::page::Page;
use millpond_site_format::config::LiveSettings;

/// Time in which each stream is sent something, so that a browser notices a dead one.
pub(crate) const BEAT: Duration = Duration::from_secs(20);
/// The event that a stream is sent when it was sent nothing else.
const HEARTBEAT: &[u8] = b"event: beat\ndata: 1\n\n";
/// Time of a worker for a page that a browser asks for: browsers are told to spread their requests.
const HIT: Duration = Duration::from_micros(20);
/// Seats that are woken before others may take or leave one.
const STRIDE: usize = 256;
/// One client may have a sixteenth of all streams.
const CLIENTS: usize = 16;

/// The live pages of a site that clients look at.
pub(crate) struct Board {
    pub(crate) settings: LiveSettings,
    /// False without a store: what is not kept cannot end.
    is_on: bool,
    pages: Mutex<HashMap<Box<[u8]>, Arc<LivePage>>>,
    streams: AtomicUsize,
    /// Streams of each client.
    clients: Mutex<HashMap<ClientNetwork, usize>>,
    /// Events that were given to streams, and streams that were turned away.
    pub(crate) events: AtomicU64,
    pub(crate) shed: AtomicU64,
    /// The thread that looks after the pages; none without one.
    watcher: Mutex<Option<Thread>>,
    /// Bytes of the texts of pages that are held for their next changes.
    pub(super) texts: Arc<AtomicUsize>,
}

/// Bytes of the texts that are held at most: changes of other pages are told without them.
const MOST_TEXTS: usize = 16 << 20;

/// The text of a page with the tag that was told, if there is room for it.
#[derive(Default)]
struct HeldText {
    text: Bytes,
    room: Option<Arc<AtomicUsize>>,
}

impl HeldText {
    fn new(text: Bytes, room: &Arc<AtomicUsize>) -> Self {
        let bytes = room.fetch_add(text.len(), Ordering::Relaxed) + text.len();
        let room = Some(Arc::clone(room));
        let held = Self { text, room };
        match bytes <= MOST_TEXTS {
            true => held,
            false => Self::default(),
        }
    }
}

impl Drop for HeldText {
    fn drop(&mut self) {
        if let Some(room) = &self.room {
            room.fetch_sub(self.text.len(), Ordering::Relaxed);
        }
    }
}

/// Figures for the owner.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveStats {
    /// Browsers and programs that look at a page now.
    pub streams: usize,
    /// Pages that they look at.
    pub pages: usize,
    /// Changes that were sent, one for each that looked.
    pub events: u64,
    /// Streams that were turned away because there were too many.
    pub shed: u64,
}

impl Board {
    pub(crate) fn new(settings: LiveSettings, is_on: bool) -> Self {
        Self {
            settings,
            is_on,
            pages: Mutex::default(),
            streams: AtomicUsize::new(0),
            clients: Mutex::default(),
            events: AtomicU64::new(0),
            shed: AtomicU64::new(0),
            watcher: Mutex::new(None),
            texts: Arc::default(),
        }
    }

    /// True if a page may be looked at live.
    pub(crate) fn is_live(&self, page: &Page) -> bool {
        self.is_on && (page.is_live || self.settings.everywhere && page.template.is_some())
    }

    pub(crate) fn set_watcher(&self, thread: Option<Thread>) {
        *self.watcher.lock() = thread;
    }

    /// Returns the pages that clients look at, without those that are over.
    pub(crate) fn pages(&self) -> Vec<Arc<LivePage>> {
        let mut pages = self.pages.lock();
        pages.retain(|_, page| !page.is_over());
        pages.values().cloned().collect()
    }

    /// Returns the page with a key, if clients look at it.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Arc<LivePage>> {
        let pages = self.pages.lock();
        pages.get(key).filter(|page| !page.is_over()).cloned()
    }

    /// Returns the page that a client wants: a new one, unless another client has opened it
    /// meanwhile. `tag` is that of the answer to the client: if it is another than was told, the
    /// page is looked at.
    pub(crate) fn page(&self, wanted: WantedPage, tag: &str) -> Arc<LivePage> {
        let page = match wanted {
            WantedPage::Known(page) => page,
            WantedPage::New(mut new) => {
                let mut pages = self.pages.lock();
                let known = pages.get(&new.key).filter(|page| !page.is_over());
                known.cloned().unwrap_or_else(|| {
                    new.begin(tag);
                    let page = Arc::new(*new);
                    pages.insert(page.key.clone(), page.clone());
                    page
                })
            }
        };
        page.doubt_unless(tag);
        if let Some(watcher) = &*self.watcher.lock() {
            watcher.unpark();
        }
        page
    }

    /// Room for one more stream of a client, unless there are as many as may be, of all or of this
    /// client. It is given back when the ticket is dropped.
    pub(crate) fn ticket(self: &Arc<Self>, client: Option<ClientNetwork>) -> Option<Ticket> {
        let most = self.settings.streams;
        let mut clients = self.clients.lock();
        let own = client.map_or(0, |client| clients.get(&client).copied().unwrap_or(0));
        let has_room = self.watcher.lock().is_some()
            && self.streams.load(Ordering::Relaxed) < most
            && own < most.div_ceil(CLIENTS);
        if !has_room {
            self.shed.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.streams.fetch_add(1, Ordering::Relaxed);
        if let Some(client) = client {
            *clients.entry(client).or_default() += 1;
        }
        Some(Ticket {
            board: self.clone(),
            client,
        })
    }

    /// Ends the streams of a session, which has ended or has other claims now.
    pub(crate) fn end_session(&self, session: NonZeroU64) {
        for page in self.pages() {
            page.end(StreamEnd::Gone, |seat| seat.session == Some(session));
        }
    }

    pub(crate) fn stats(&self) -> LiveStats {
        LiveStats {
            streams: self.streams.load(Ordering::Relaxed),
            pages: self.pages.lock().len(),
            events: self.events.load(Ordering::Relaxed),
            shed: self.shed.load(Ordering::Relaxed),
        }
    }
}

/// The page that a client wants to look at.
pub(crate) enum WantedPage {
    /// Others look at it.
    Known(Arc<LivePage>),
    New(Box<LivePage>),
}

impl WantedPage {
    pub(crate) fn is_shared(&self) -> bool {
        match self {
            Self::Known(page) => page.is_shared,
            Self::New(page) => page.is_shared,
        }
    }
}

/// Room for a stream.
pub(crate) struct Ticket {
    pub(crate) board: Arc<Board>,
    /// The client; none if its streams are not counted.
    client: Option<ClientNetwork>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.board.streams.fetch_sub(1, Ordering::Relaxed);
        if let Some(client) = self.client {
            let mut clients = self.board.clients.lock();
            let left = clients.get(&client).map_or(0, |count| count - 1);
            match left {
                0 => _ = clients.remove(&client),
                left => _ = clients.insert(client, left),
            }
        }
    }
}

/// Why a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// Its client is to come again, and is judged anew then.
    Again,
    /// The page is not there, or not for this visitor any more.
    Gone,
}

/// A page that clients look at.
pub(crate) struct LivePage {
    /// Its key in the store; of a page that is each visitor's own, the key of its results.
    pub(crate) key: Box<[u8]>,
    /// True if the page is the same for all who have its key.
    pub(crate) is_shared: bool,
    /// True if everyone may see it, so that its events may have parts of it.
    is_public: bool,
    pub(crate) generation: u32,
    pub(crate) page: Arc<Page>,
    pub(crate) values: Vec<Value>,
    /// The first who looked. What a shared page shows of a visitor is in its key.
    pub(crate) visitor: Arc<Visitor>,
    told: Mutex<Told>,
    /// Number of what was told last.
    version: AtomicU64,
    is_over: AtomicBool,
    seats: Mutex<Seats>,
}

/// The newest state that was told.
struct Told {
    /// The tag of the page; of one that is each visitor's own, a hash of its results.
    tag: Arc<str>,
    event: Bytes,
    /// The text of a public page with this tag, once it is known.
    text: HeldText,
    /// The value of the store that was looked at last.
    value: Weak<Cached>,
    /// The last moment at which that was the newest state.
    confirmed: Boottime,
    /// The first moment at which something else may be told.
    next: Boottime,
}

#[derive(Default)]
struct Seats {
    seats: Vec<Option<Seat>>,
    free: Vec<u32>,
    taken: usize,
    /// When the last one was left.
    left: Option<Boottime>,
}

/// The place of a stream.
struct Seat {
    waker: Option<Waker>,
    /// The session with which it was opened, by its hash.
    session: Option<NonZeroU64>,
    end: Option<StreamEnd>,
    is_beat_due: bool,
}

impl LivePage {
    /// A page with this key, of which nothing is known yet.
    pub(crate) fn new(
        (key, is_shared, is_public): (Vec<u8>, bool, bool),
        generation: u32,
        (page, values): (&Arc<Page>, Vec<Value>),
        visitor: Arc<Visitor>,
    ) -> Self {
        let now = Boottime::now();
        Self {
            key: key.into(),
            is_shared,
            is_public,
            generation,
            page: page.clone(),
            values,
            visitor,
            told: Mutex::new(Told {
                tag: "".into(),
                event: Bytes::new(),
                text: HeldText::default(),
                value: Weak::new(),
                confirmed: now,
                next: now,
            }),
            version: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            seats: Mutex::new(Seats {
                left: Some(now),
                ..Seats::default()
            }),
        }
    }

    /// Sets the tag of the state that its first client has.
    fn begin(&mut self, tag: &str) {
        self.told.get_mut().tag = tag.into();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Takes a seat for a stream. None if the page is over: its client is to come again.
    pub(crate) fn sit(&self, session: Option<NonZeroU64>) -> Option<u32> {
        let mut seats = self.seats.lock();
        if self.is_over() {
            return None;
        }
        let seat = Seat {
            waker: None,
            session,
            end: None,
            is_beat_due: false,
        };
        seats.taken += 1;
        seats.left = None;
        Some(match seats.free.pop() {
            Some(free) => {
                seats.seats[free as usize] = Some(seat);
                free
            }
            None => {
                seats.seats.push(Some(seat));
                seats.seats.len() as u32 - 1
            }
        })
    }

    pub(crate) fn leave(&self, seat: u32) {
        let mut seats = self.seats.lock();
        seats.seats[seat as usize] = None;
        seats.free.push(seat);
        seats.taken -= 1;
        seats.left = (seats.taken == 0).then(Boottime::now);
    }

    /// The next piece for a seat that was told up to `version`.
    pub(crate) fn next(&self, seat: u32, version: &mut u64, waker: &Waker) -> Poll<Piece> {
        let mut seats = self.seats.lock();
        let Some(own) = &mut seats.seats[seat as usize] else {
            return Poll::Ready(Piece::End(StreamEnd::Again));
        };
        if let Some(end) = own.end {
            return Poll::Ready(Piece::End(end));
        }
        let newest = self.version.load(Ordering::Acquire);
        if *version != newest {
            *version = newest;
            own.is_beat_due = false;
            drop(seats);
            return Poll::Ready(Piece::Event(self.told.lock().event.clone()));
        }
        if std::mem::take(&mut own.is_beat_due) {
            return Poll::Ready(Piece::Event(Bytes::from_static(HEARTBEAT)));
        }
        match &mut own.waker {
            Some(known) if known.will_wake(waker) => {}
            known => *known = Some(waker.clone()),
        }
        Poll::Pending
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Tells that `tag` is the tag of the newest state, as it was at `since`, and `text` its page.
    /// Only the watcher calls it, and counts the texts in `room`.
    pub(crate) fn tell(
        &self,
        (tag, text): (&str, &Bytes),
        since: Boottime,
        interval: Duration,
        room: &Arc<AtomicUsize>,
    ) {
        let within = self.within();
        let mut told = self.told.lock();
        told.confirmed = told.confirmed.max(since);
        let text = match self.is_public {
            true => text.clone(),
            false => Bytes::new(),
        };
        let before = std::mem::take(&mut told.text);
        told.text = HeldText::new(text.clone(), room);
        let of = std::mem::replace(&mut told.tag, tag.into());
        drop(told);
        if *of == *tag {
            return;
        }
        let known = Some(&before.text).filter(|before| !before.is_empty());
        let change = known.and_then(|before| change((before, &of), (&text, tag)));
        // Who looks at a page of its own learns its tag when it asks.
        let event = match (self.is_shared, change) {
            (true, Some(change)) => format!("id: {tag}\ndata: {within}\ndata: {change}\n\n"),
            (true, None) => format!("id: {tag}\ndata: {within}\n\n"),
            (false, _) => format!("data: {within}\n\n"),
        };
        let mut told = self.told.lock();
        told.event = event.into();
        told.next = Boottime::now().plus(interval);
        self.version.fetch_add(1, Ordering::AcqRel);
        drop(told);
        self.wake(|_, _| true);
    }

    /// The milliseconds within which those who look are to ask, each at a moment of its own.
    fn within(&self) -> u128 {
        let others = self.seats.lock().taken.saturating_sub(1) as u32;
        let cost = match self.is_shared {
            true => HIT,
            false => HIT + self.page.counters.mean_fill(),
        };
        (cost * others).as_millis()
    }

    /// Notes which value of the store is the newest state at `now`. True if it was another before.
    pub(crate) fn saw(&self, value: &Arc<Cached>, now: Boottime) -> bool {
        let mut told = self.told.lock();
        let is_known = std::ptr::eq(told.value.as_ptr(), Arc::as_ptr(value));
        match is_known {
            true => told.confirmed = told.confirmed.max(now),
            false => told.value = Arc::downgrade(value),
        }
        !is_known
    }

    /// Has the page looked at again, unless this is the tag that was told last.
    fn doubt_unless(&self, tag: &str) {
        let mut told = self.told.lock();
        if self.is_shared && *told.tag != *tag {
            told.value = Weak::new();
        }
    }

    /// Has the page looked at no more for this time: it cannot be kept, and is made at each look.
    pub(crate) fn pause(&self, time: Duration) {
        let mut told = self.told.lock();
        told.next = told.next.max(Boottime::now().plus(time));
    }

    /// The time for which nothing may be told; zero if something may.
    pub(crate) fn rest(&self, now: Boottime) -> Duration {
        self.told.lock().next.since(now)
    }

    /// The time since it was last known what the newest state is.
    pub(crate) fn doubt(&self, now: Boottime) -> Duration {
        now.since(self.told.lock().confirmed)
    }

    /// True if it has had no stream for this long.
    pub(crate) fn is_empty_for(&self, time: Duration, now: Boottime) -> bool {
        let seats = self.seats.lock();
        seats.taken == 0 && seats.left.is_some_and(|left| now.since(left) > time)
    }

    /// Sends a heartbeat to each of the seats whose turn `at` of `of` is.
    pub(crate) fn beat(&self, at: usize, of: usize) {
        self.wake(|number, seat| {
            let is_its = number % of == at;
            seat.is_beat_due |= is_its;
            is_its
        });
    }

    /// Ends the streams of the seats that `which` names.
    fn end(&self, end: StreamEnd, which: impl Fn(&Seat) -> bool) {
        self.wake(|_, seat| {
            let is_meant = which(seat);
            if is_meant {
                seat.end.get_or_insert(end);
            }
            is_meant
        });
    }

    /// Ends all streams, and the page.
    pub(crate) fn close(&self, end: StreamEnd) {
        let seats = self.seats.lock();
        self.is_over.store(true, Ordering::Release);
        drop(seats);
        self.end(end, |_| true);
    }

    fn wake(&self, mut is_woken: impl FnMut(usize, &mut Seat) -> bool) {
        let mut from = 0;
        loop {
            let mut seats = self.seats.lock();
            let some = seats.seats.iter_mut().enumerate();
            let mut is_last = true;
            for (number, seat) in some.skip(from).take(STRIDE) {
                is_last = false;
                if let Some(seat) = seat
                    && is_woken(number, seat)
                    && let Some(waker) = &seat.waker
                {
                    waker.wake_by_ref();
                }
            }
            if is_last {
                return;
            }
            from += STRIDE;
        }
    }
}

/// The next thing that a stream sends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Event(Bytes),
    End(StreamEnd),
}

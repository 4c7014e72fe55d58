//! One thread of the null server: an epoll loop with a heap of the responses that are not due yet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, accept_with, sockopt};

use super::connection::{NullConnection, RepeatedResponse};
use super::timestamps::Stamped;
use super::{Delay, NullAnswer, NullLog, NullPlan, NullShared, failed};
use crate::Error;
use base_clock::{MS, Nanos, nanos};

/// Events taken from epoll at once.
const EVENTS: usize = 256;
/// Bytes read at once.
const READ: usize = 64 * 1024;
/// Tokens of descriptors that are not connections.
const WAKE: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;
/// Pause of accepting when the process has no descriptor left.
const PAUSE: Nanos = 50 * MS;

pub(super) struct Worker {
    shared: Arc<NullShared>,
    thread: usize,
    epoll: OwnedFd,
    listener: Option<OwnedFd>,
    /// The thread that gets the next connection.
    turn: usize,
    answer: RepeatedResponse,
    delay: Delay,
    spin: bool,
    places: Vec<ConnectionSlot>,
    free: Vec<u32>,
    /// Connections by when their next answer is due.
    due: BinaryHeap<Reverse<(Nanos, u64)>>,
    log: NullLog,
    capacity: usize,
    /// Times of the answer, if there is a log.
    stamped: Option<Stamped>,
    /// Index at which the next answer is logged once the log is full.
    oldest: usize,
}

/// A place for a connection. A token of an earlier connection has another generation.
struct ConnectionSlot {
    generation: u32,
    connection: Option<NullConnection>,
}

impl Worker {
    pub(super) fn new(
        plan: &NullPlan,
        shared: &Arc<NullShared>,
        thread: usize,
        listener: Option<OwnedFd>,
    ) -> Result<Self, Error> {
        let watch = || {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let readable = epoll::EventFlags::IN;
            let wake = &shared.mailboxes[thread].wake;
            epoll::add(&epoll, wake, epoll::EventData::new_u64(WAKE), readable)?;
            if let Some(listener) = &listener {
                epoll::add(
                    &epoll,
                    listener,
                    epoll::EventData::new_u64(LISTENER),
                    readable,
                )?;
            }
            Ok(epoll)
        };
        let epoll = watch()
            .map_err(|errno: Errno| errno.into())
            .map_err(failed("create an epoll"))?;
        Ok(Self {
            shared: Arc::clone(shared),
            thread,
            epoll,
            listener,
            turn: 0,
            answer: RepeatedResponse::new(plan.body, nanos(plan.work)),
            delay: plan.delay.clone(),
            spin: plan.spin,
            places: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
            log: NullLog {
                answers: Vec::with_capacity(plan.log),
                lost: 0,
            },
            capacity: plan.log,
            stamped: (plan.log > 0).then(Stamped::new),
            oldest: 0,
        })
    }

    pub(super) fn run(mut self) -> Result<NullLog, Error> {
        if !self.delay.is_none() {
            crate::limits::precise_timers();
        }
        let mut buffer = vec![0; READ].into_boxed_slice();
        let mut events = Vec::with_capacity(EVENTS);
        while !self.shared.stop.load(Ordering::Relaxed) {
            let poll_timeout = self.poll_timeout();
            events.clear();
            match epoll::wait(
                &self.epoll,
                spare_capacity(&mut events),
                poll_timeout.as_ref(),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(failed("wait for events")(errno.into())),
            }
            for event in &events {
                let (token, flags) = (event.data.u64(), event.flags);
                match token {
                    WAKE => self.take_connections(),
                    LISTENER => self.accept(),
                    _ if flags.intersects(!epoll::EventFlags::OUT) => self.read(token, &mut buffer),
                    _ => self.advance(token),
                }
            }
            self.answer_due();
        }
        Ok(self.log)
    }

    /// Longest wait for events; `None` waits for ever.
    fn poll_timeout(&self) -> Option<Timespec> {
        if self.spin {
            return Some(Timespec::default());
        }
        let Reverse((due, _)) = self.due.peek()?;
        let left = Duration::from_nanos(due.saturating_sub(base_clock::now()));
        // A time that does not fit is replaced by the longest wait; the next event ends it.
        Some(Timespec::try_from(left).unwrap_or(Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        }))
    }

    /// Takes the connections that another thread left, after it woke this thread.
    fn take_connections(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mailbox = &shared.mailboxes[self.thread];
        // Nothing to read is no error: an earlier read has emptied the counter.
        let _ = rustix::io::read(&mailbox.wake, &mut [0_u8; 8]);
        let mut inbox = mailbox.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let sockets = std::mem::take(&mut *inbox);
        drop(inbox);
        sockets.into_iter().for_each(|socket| self.admit(socket));
    }

    /// Accepts all waiting connections and assigns them to the threads in turn.
    fn accept(&mut self) {
        while let Some(listener) = &self.listener {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match accept_with(listener, flags) {
                Ok(socket) => {
                    // Where Nagle's algorithm cannot be turned off there is none.
                    let _ = sockopt::set_tcp_nodelay(&socket, true);
                    self.assign(socket);
                }
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    // The listener stays readable, so it is not watched until there may be room
                    // again.
                    let _ = epoll::delete(&self.epoll, listener);
                    self.due
                        .push(Reverse((base_clock::now() + PAUSE, LISTENER)));
                    return;
                }
                Err(Errno::AGAIN) => return,
                // A connection that has ended while it waited.
                Err(_) => {}
            }
        }
    }

    fn assign(&mut self, socket: OwnedFd) {
        let shared = Arc::clone(&self.shared);
        let to = self.turn % shared.mailboxes.len();
        self.turn += 1;
        if to == self.thread {
            return self.admit(socket);
        }
        let mailbox = &shared.mailboxes[to];
        let mut inbox = mailbox.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.push(socket);
        drop(inbox);
        mailbox.wake_thread();
    }

    fn admit(&mut self, socket: OwnedFd) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(ConnectionSlot {
                generation: 0,
                connection: None,
            });
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[index as usize];
        let data = epoll::EventData::new_u64(token(index, place.generation));
        // A connection that cannot be watched is closed.
        match epoll::add(&self.epoll, &socket, data, interest((true, false))) {
            Ok(()) => place.connection = Some(NullConnection::new(socket)),
            Err(_) => self.free.push(index),
        }
    }

    fn read(&mut self, token: u64, buffer: &mut [u8]) {
        let (delay, number) = (&self.delay, &self.shared.number);
        let Some(connection) = connection(&mut self.places, token) else {
            return;
        };
        let read = match &mut self.stamped {
            Some(stamped) => stamped.receive(&connection.socket, buffer),
            None => rustix::net::recv(&connection.socket, &mut *buffer, RecvFlags::empty())
                .map(|(_, count)| (count, None)),
        };
        let (count, received) = match read {
            Ok((count, received)) if count > 0 => (count, received),
            Err(Errno::AGAIN | Errno::INTR) => return self.advance(token),
            Ok(_) | Err(_) => return self.close(token),
        };
        let now = base_clock::now();
        let mut bytes = &buffer[..count];
        let mut first_due = None;
        while !bytes.is_empty() && !connection.ending {
            match connection.scanner.next(&mut bytes) {
                Ok(Some(request)) => {
                    let wait = if delay.is_none() {
                        0
                    } else {
                        delay.of(number.fetch_add(1, Ordering::Relaxed))
                    };
                    let due = now.saturating_add(wait);
                    if connection.push(request, received, now, due) && wait > 0 {
                        first_due = Some(due);
                    }
                }
                Ok(None) => {}
                Err(_) => connection.ending = true,
            }
        }
        match first_due {
            Some(due) => {
                self.due.push(Reverse((due, token)));
                self.update_interest(token);
            }
            None => self.advance(token),
        }
    }

    /// Answers what is due, and begins to accept again after a pause.
    fn answer_due(&mut self) {
        while let Some(&Reverse((due, token))) = self.due.peek()
            && due <= base_clock::now()
        {
            self.due.pop();
            if token != LISTENER {
                self.advance(token);
            } else if let Some(listener) = &self.listener {
                let data = epoll::EventData::new_u64(LISTENER);
                // Cannot fail for a descriptor that was watched before.
                let _ = epoll::add(&self.epoll, listener, data, epoll::EventFlags::IN);
            }
        }
    }

    /// Sends what is due on a connection and notes when the next answer is.
    fn advance(&mut self, token: u64) {
        let now = base_clock::now();
        let Some(connection) = connection(&mut self.places, token) else {
            return;
        };
        let before = connection.next_due();
        let (log, oldest, capacity) = (&mut self.log, &mut self.oldest, self.capacity);
        let stop = &self.shared.stop;
        let result = connection.advance(&self.answer, now, stop, |answer| {
            record(log, oldest, capacity, answer);
        });
        if result.is_err() {
            return self.close(token);
        }
        // A due time in the past waits for room to write, which epoll reports.
        if let Some(due) = connection.next_due()
            && before != Some(due)
            && due > now
        {
            self.due.push(Reverse((due, token)));
        }
        self.update_interest(token);
    }

    /// Closes a connection that is done, or registers the events that it needs.
    fn update_interest(&mut self, token: u64) {
        let Some(connection) = connection(&mut self.places, token) else {
            return;
        };
        let wanted = connection.wanted_events();
        if !connection.is_done() && wanted == connection.watched {
            return;
        }
        connection.watched = wanted;
        let data = epoll::EventData::new_u64(token);
        // A connection that cannot be watched is closed.
        if connection.is_done()
            || epoll::modify(&self.epoll, &connection.socket, data, interest(wanted)).is_err()
        {
            self.close(token);
        }
    }

    fn close(&mut self, token: u64) {
        let index = token as u32;
        if connection(&mut self.places, token).is_some() {
            let place = &mut self.places[index as usize];
            place.connection = None;
            place.generation = place.generation.wrapping_add(1);
            self.free.push(index);
        }
    }
}

/// The connection of a token, if it is still there.
fn connection(places: &mut [ConnectionSlot], token: u64) -> Option<&mut NullConnection> {
    let place = places.get_mut(token as u32 as usize)?;
    (u64::from(place.generation) == token >> 32)
        .then_some(place.connection.as_mut())
        .flatten()
}

fn record(log: &mut NullLog, oldest: &mut usize, capacity: usize, answer: NullAnswer) {
    if capacity == 0 {
        return;
    }
    if log.answers.len() < capacity {
        log.answers.push(answer);
    } else {
        log.answers[*oldest] = answer;
        *oldest = (*oldest + 1) % capacity;
        log.lost += 1;
    }
}

fn token(index: u32, generation: u32) -> u64 {
    // The highest generations equal WAKE and LISTENER only with indices that no process can reach.
    u64::from(generation) << 32 | u64::from(index)
}

fn interest((read, write): (bool, bool)) -> epoll::EventFlags {
    let mut flags = epoll::EventFlags::empty();
    flags.set(epoll::EventFlags::IN, read);
    flags.set(epoll::EventFlags::OUT, write);
    flags
}

//! Content codings that are made in the background.
//!
//! The first client that asks for a coding gets the content without it; one thread of low priority
//! makes the coding for later requests. So no request waits for a compressor, and a flood of
//! codings costs only one thread's leftover time.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::{Coding, Prepared};

/// Jobs that wait. One more is dropped, and comes again with the next request.
const QUEUE: usize = 256;
/// Added to the thread's nice value: any worker that wants the processor gets it first.
const NICENESS: i32 = 10;

/// Makes codings of prepared responses. Clones share one thread, which ends after the last clone is
/// dropped.
#[derive(Clone, Debug)]
pub struct Compressor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    queue: SyncSender<CodingJob>,
    state: Arc<CompressorState>,
}

/// State that the thread sees; it must not keep the sender alive.
#[derive(Debug, Default)]
struct CompressorState {
    /// Jobs that are in the queue or being worked on.
    known: Mutex<HashSet<CodingKey, foldhash::fast::RandomState>>,
    closed: AtomicBool,
}

/// No other response has the address while the job exists: the job's `Weak` holds the allocation.
type CodingKey = (usize, Coding);

struct CodingJob {
    /// Weak, so that a response that the store evicts meanwhile is neither kept in memory nor
    /// compressed.
    prepared: Weak<Prepared>,
    coding: Coding,
    done: Box<dyn FnOnce(usize) + Send>,
}

impl Compressor {
    /// Starts the thread. If the system has none to give, nothing is ever compressed.
    #[must_use]
    pub fn start() -> Self {
        let (compressor, receiver) = Self::new();
        let state = Arc::clone(&compressor.0.state);
        // Without a thread the receiver is dropped here, and each job finds the queue closed.
        let _ = std::thread::Builder::new()
            .name("compressor".to_owned())
            .spawn(move || {
                // On Linux the nice value belongs to the thread. A sandbox may refuse it; then the
                // thread has the ordinary priority.
                let _ = rustix::process::nice(NICENESS);
                work(&receiver, &state);
            });
        compressor
    }

    fn new() -> (Self, Receiver<CodingJob>) {
        let (queue, receiver) = sync_channel(QUEUE);
        let state = Arc::default();
        (Self(Arc::new(Inner { queue, state })), receiver)
    }

    /// Asks for `coding` of `prepared`. Returns at once.
    ///
    /// `done` is called on the compressor's thread with the bytes that were added to
    /// [`Prepared::weight`] (0 if the coding saves nothing). `done` is dropped without a call if
    /// the same coding is already queued, if the queue is full, or if `prepared` has no owner when
    /// its turn comes.
    pub fn request_coding(
        &self,
        prepared: &Arc<Prepared>,
        coding: Coding,
        done: impl FnOnce(usize) + Send + 'static,
    ) {
        let Inner { queue, state } = &*self.0;
        let key = (Arc::as_ptr(prepared).addr(), coding);
        let mut known = state.known();
        if !known.insert(key) {
            return;
        }
        let job = CodingJob {
            prepared: Arc::downgrade(prepared),
            coding,
            done: Box::new(done),
        };
        // Under the lock: otherwise the thread could finish the job before this thread knows that
        // the job was refused, and the key of another job would be removed.
        let refused = queue.try_send(job);
        if refused.is_err() {
            known.remove(&key);
        }
        drop(known);
        // The closure of a refused job is dropped here, where its destructor may call anything.
        drop(refused);
    }
}

impl CompressorState {
    fn known(&self) -> MutexGuard<'_, HashSet<CodingKey, foldhash::fast::RandomState>> {
        // No panic leaves the set half changed.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::Relaxed);
    }
}

impl CodingJob {
    fn key(&self) -> CodingKey {
        (self.prepared.as_ptr().addr(), self.coding)
    }

    fn encode(self) {
        if let Some(prepared) = self.prepared.upgrade() {
            (self.done)(prepared.make(self.coding));
        }
    }
}

/// Until the last sender is gone; what then still waits is dropped.
fn work(queue: &Receiver<CodingJob>, state: &CompressorState) {
    for job in queue {
        if state.closed.load(Ordering::Relaxed) {
            return;
        }
        let key = job.key();
        // Held so that the address stays this job's until its key is removed.
        let _address = Weak::clone(&job.prepared);
        // A panic in an encoder or in `done` costs only this coding. The panic hook has reported
        // it, and no partial coding is visible: a coding is stored whole.
        let _ = catch_unwind(AssertUnwindSafe(|| job.encode()));
        state.known().remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::{OwnedRequest, Parts};
    use bytes::Bytes;

    /// Longer than any machine takes; only a failing test waits for it.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn prepared() -> Arc<Prepared> {
        Arc::new(Prepared::new(Parts {
            status: 200,
            media_type: "text/plain",
            fields: &[],
            body: "again and again ".repeat(200).into(),
            last_modified: None,
            compressible: true,
        }))
    }

    fn encoding(prepared: &Prepared, accept: &str) -> Option<String> {
        let request = OwnedRequest::new("GET", "/").field("Accept-Encoding", accept);
        let response = prepared.respond(&request.as_request(), Bytes::new());
        response.field("content-encoding").map(str::to_owned)
    }

    #[test]
    fn a_requested_coding_is_made() {
        let compressor = Compressor::start();
        let prepared = prepared();
        assert_eq!(encoding(&prepared, "gzip"), None);
        let weight = prepared.weight();
        let (done, added) = mpsc::channel();
        compressor.request_coding(&prepared, Coding::Gzip, move |bytes| {
            done.send(bytes).unwrap();
        });
        let added = added.recv_timeout(PATIENCE).unwrap();
        assert_eq!(prepared.weight(), weight + added);
        assert_eq!(encoding(&prepared, "gzip").as_deref(), Some("gzip"));
    }

    #[test]
    fn a_job_is_queued_once_and_may_come_again_later() {
        let (compressor, receiver) = Compressor::new();
        let prepared = prepared();
        let (done, calls) = mpsc::channel();
        let request = |coding| {
            let done = done.clone();
            compressor.request_coding(&prepared, coding, move |bytes| done.send(bytes).unwrap());
        };
        request(Coding::Gzip);
        request(Coding::Gzip);
        request(Coding::Brotli);
        assert_eq!(compressor.0.state.known().len(), 2);
        let state = Arc::clone(&compressor.0.state);
        let worker = std::thread::spawn(move || work(&receiver, &state));
        assert!(calls.recv_timeout(PATIENCE).unwrap() > 0);
        assert!(calls.recv_timeout(PATIENCE).unwrap() > 0);
        assert!(calls.try_recv().is_err(), "the second job was dropped");
        // The key may remain for a moment after `done`. The thread takes jobs in order, so a
        // third job shows when the key has been removed.
        request(Coding::Zstd);
        calls.recv_timeout(PATIENCE).unwrap();
        request(Coding::Gzip);
        assert_eq!(calls.recv_timeout(PATIENCE), Ok(0), "it was made before");
        drop(compressor);
        worker.join().unwrap();
    }

    #[test]
    fn a_full_queue_drops_the_job_and_takes_it_later() {
        let (compressor, receiver) = Compressor::new();
        let all: Vec<_> = (0..=QUEUE).map(|_| prepared()).collect();
        let (done, calls) = mpsc::channel();
        let request = |prepared| {
            let done = done.clone();
            compressor.request_coding(prepared, Coding::Zstd, move |_| done.send(()).unwrap());
        };
        all.iter().for_each(request);
        assert_eq!(compressor.0.state.known().len(), QUEUE);
        let state = Arc::clone(&compressor.0.state);
        let worker = std::thread::spawn(move || work(&receiver, &state));
        for _ in 0..QUEUE {
            calls.recv_timeout(PATIENCE).unwrap();
        }
        assert!(calls.try_recv().is_err());
        request(&all[QUEUE]);
        calls.recv_timeout(PATIENCE).unwrap();
        assert_eq!(encoding(&all[QUEUE], "zstd").as_deref(), Some("zstd"));
        drop(compressor);
        worker.join().unwrap();
    }

    #[test]
    fn a_panic_costs_one_job() {
        let compressor = Compressor::start();
        let (first, second) = (prepared(), prepared());
        compressor.request_coding(&first, Coding::Gzip, |_| {
            std::panic::resume_unwind(Box::new("a panic in `done`"));
        });
        let (done, calls) = mpsc::channel();
        compressor.request_coding(&second, Coding::Gzip, move |_| done.send(()).unwrap());
        calls.recv_timeout(PATIENCE).unwrap();
        assert_eq!(encoding(&second, "gzip").as_deref(), Some("gzip"));
    }

    #[test]
    fn a_dropped_response_is_not_compressed() {
        let (compressor, receiver) = Compressor::new();
        let (done, calls) = mpsc::channel::<usize>();
        compressor.request_coding(&prepared(), Coding::Gzip, move |bytes| {
            done.send(bytes).unwrap();
        });
        let state = Arc::clone(&compressor.0.state);
        let worker = std::thread::spawn(move || work(&receiver, &state));
        assert_eq!(
            calls.recv_timeout(PATIENCE),
            Err(mpsc::RecvTimeoutError::Disconnected)
        );
        drop(compressor);
        worker.join().unwrap();
    }

    #[test]
    fn the_thread_ends_with_the_last_clone() {
        let (compressor, receiver) = Compressor::new();
        let state = Arc::clone(&compressor.0.state);
        let (ended, end) = mpsc::channel::<()>();
        let worker = std::thread::spawn(move || {
            work(&receiver, &state);
            drop(ended);
        });
        let clone = compressor.clone();
        drop(compressor);
        let prepared = prepared();
        let (done, calls) = mpsc::channel();
        clone.request_coding(&prepared, Coding::Gzip, move |_| done.send(()).unwrap());
        calls.recv_timeout(PATIENCE).unwrap();
        drop(clone);
        assert_eq!(
            end.recv_timeout(PATIENCE),
            Err(mpsc::RecvTimeoutError::Disconnected)
        );
        worker.join().unwrap();
    }
}

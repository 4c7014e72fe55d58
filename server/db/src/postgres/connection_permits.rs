//! Turns at the primary, one for each connection of a thread: a job that reads on a replica lets go
//! of its own, and has another before all that wait if the replica comes to nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Turns at the primary: one for each connection.
pub(super) struct ConnectionPermits {
    permits: Arc<Semaphore>,
    /// How many are taken by jobs.
    running: Arc<AtomicUsize>,
    /// Jobs that want another permit: the thread has one in its hand while it waits for jobs.
    again: mpsc::UnboundedSender<PermitRequest>,
}

/// Channel to which the next permit is to go.
pub(super) type PermitRequest = oneshot::Sender<OwnedSemaphorePermit>;

/// The turn of a job, until it is dropped.
pub(super) struct ConnectionPermit {
    _permit: OwnedSemaphorePermit,
    _running: RunningJob,
}

impl ConnectionPermits {
    pub(super) fn new(
        connections: usize,
        running: Arc<AtomicUsize>,
    ) -> (Self, mpsc::UnboundedReceiver<PermitRequest>) {
        let (again, wanted) = mpsc::unbounded_channel();
        let turns = Self {
            permits: Arc::new(Semaphore::new(connections)),
            running,
            again,
        };
        (turns, wanted)
    }

    /// Another turn of a job that has let go of its first, before all jobs that wait.
    pub(super) async fn another(&self) -> Option<ConnectionPermit> {
        let (give, given) = oneshot::channel();
        // Once no more jobs are taken, permits are not handed over, and every free permit is
        // available.
        let _ = self.again.send(give);
        let permit = match given.await {
            Ok(permit) => permit,
            Err(_) => self.permit().await?,
        };
        Some(self.taken(permit))
    }

    /// Waits for a free connection, in the order of asking. Only a closed semaphore has none, and
    /// this one is never closed.
    pub(super) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }

    pub(super) fn taken(&self, permit: OwnedSemaphorePermit) -> ConnectionPermit {
        ConnectionPermit {
            _permit: permit,
            _running: RunningJob::new(&self.running),
        }
    }
}

/// A job that runs, until it is dropped.
struct RunningJob(Arc<AtomicUsize>);

impl RunningJob {
    fn new(running: &Arc<AtomicUsize>) -> Self {
        running.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(running))
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Job that a thread takes up with a free turn.
pub(super) enum NextJob<J> {
    /// A job that has begun wants another.
    Give(PermitRequest),
    /// A job begins.
    Begin(J),
    /// There are no more jobs, and there will be none.
    End,
}

/// Returns the next job. After `stop`, no new job is accepted; waiting jobs are still done.
/// *Counterexample: jobs come before the stop. Where there is always one more job, the stop never
/// comes.*
pub(super) async fn next<J>(
    wanted: &mut mpsc::UnboundedReceiver<PermitRequest>,
    stop: &Notify,
    jobs: &mut mpsc::Receiver<J>,
) -> NextJob<J> {
    let job = tokio::select! {
        biased;
        Some(again) = wanted.recv() => return NextJob::Give(again),
        () = stop.notified() => {
            jobs.close();
            jobs.recv().await
        }
        job = jobs.recv() => job,
    };
    job.map_or(NextJob::End, NextJob::Begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stop_comes_before_the_jobs_that_wait_and_another_turn_before_both() {
        let (turns, mut wanted) = ConnectionPermits::new(1, Arc::default());
        let (push, mut jobs) = mpsc::channel(4);
        let stop = Notify::new();
        for job in [1, 2] {
            push.send(job).await.unwrap();
        }
        stop.notify_one();
        let (give, _given) = oneshot::channel();
        assert!(turns.again.send(give).is_ok());
        assert!(matches!(
            next(&mut wanted, &stop, &mut jobs).await,
            NextJob::Give(_)
        ));
        assert!(!push.is_closed());
        for job in [1, 2] {
            let begins = next(&mut wanted, &stop, &mut jobs).await;
            assert!(matches!(begins, NextJob::Begin(taken) if taken == job));
            assert!(push.is_closed(), "no more are taken in");
        }
        assert!(matches!(
            next(&mut wanted, &stop, &mut jobs).await,
            NextJob::End
        ));
    }
}

//! Passwords are hashed by threads of their own.
//!
//! Argon2id is made to cost: tens of milliseconds of a processor and 19 MiB, each time. On a
//! worker's loop that would hold up every other request, so it happens on a few threads of low
//! priority, behind a short queue; past that the form is answered with 503.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use argon2::{
    Algorithm, Argon2, Block, Params, Version,
    password_hash::phc::{Output, ParamsString, PasswordHash, Salt},
};
use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The fewest characters of a password that is hashed (NIST SP 800-63B section 5.1.1.2).
pub(crate) const SHORTEST: usize = 8;
/// The most bytes.
pub(crate) const LONGEST: usize = 1_024;
/// The number of waiting hashes: at about twenty per second for each thread, the last one waits for
/// two seconds.
const QUEUE: usize = 32;
const MOST_THREADS: usize = 4;
/// Added to the threads' nice value, so that workers get the processor first.
const NICENESS: i32 = 5;
/// The largest memory in KiB and number of passes that a stored hash may require; a hash that
/// requires more was not made for a server.
const MOST_MEMORY: u32 = 1 << 20;
const MOST_PASSES: u32 = 64;

type HashJob = Box<dyn FnOnce(&mut HashMemory) + Send>;

/// The memory in which a thread hashes, one password after the other. Memory that is allocated for
/// each password anew stays with the allocator in a dozen pieces when it is freed.
#[derive(Default)]
struct HashMemory(Vec<Block>);

impl HashMemory {
    /// Hashes `password` into `output`.
    fn hash(
        &mut self,
        argon2: &Argon2<'_>,
        password: &str,
        salt: &[u8],
        output: &mut [u8],
    ) -> Option<()> {
        let needed = argon2.params().block_count();
        let missing = needed.saturating_sub(self.0.len());
        self.0.try_reserve_exact(missing).ok()?;
        self.0.resize(self.0.len() + missing, Block::new());
        let hashed = argon2.hash_password_into_with_memory(
            password.as_bytes(),
            salt,
            output,
            &mut self.0[..needed],
        );
        // A stored hash may require much more than ours; that is not kept.
        let usual = Params::default().block_count();
        if self.0.len() > usual {
            self.0.truncate(usual);
            self.0.shrink_to_fit();
        }
        hashed.ok()
    }
}

/// Why a password was neither hashed nor verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PasswordRefusal {
    /// Too many wait.
    Busy,
    /// The system has no memory, no random bytes or no threads to give.
    Failed,
}

/// The threads, which are started with the first password.
#[derive(Default)]
pub(crate) struct Passwords {
    queue: Mutex<Option<SyncSender<HashJob>>>,
    /// A hash that no password has, for accounts that are not there.
    stand_in: Arc<OnceLock<String>>,
}

impl Passwords {
    /// The hash to keep, in the PHC format: Argon2id with 19 MiB, two passes and one lane, as
    /// OWASP's cheat sheet has it.
    pub(crate) async fn hash(&self, password: String) -> Result<String, PasswordRefusal> {
        let hash = self.run(move |memory| hash(memory, &password)).await?;
        hash.ok_or(PasswordRefusal::Failed)
    }

    /// True if `known` is the hash of a password. Without a hash, or with an invalid one, the work
    /// is the same, so that the time does not reveal which accounts exist.
    pub(crate) async fn verify(
        &self,
        password: String,
        known: Option<Arc<str>>,
    ) -> Result<bool, PasswordRefusal> {
        let stand_in = Arc::clone(&self.stand_in);
        let verified =
            self.run(move |memory| verify(memory, &password, known.as_deref(), &stand_in));
        verified.await?.ok_or(PasswordRefusal::Failed)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut HashMemory) -> T + Send + 'static,
    ) -> Result<T, PasswordRefusal> {
        let (done, result) = oneshot::channel();
        let job = move |memory: &mut HashMemory| {
            // A caller that was dropped needs no result.
            if !done.is_closed() {
                let _ = done.send(work(memory));
            }
        };
        self.enqueue(Box::new(job))?;
        result.await.map_err(|_| PasswordRefusal::Failed)
    }

    fn enqueue(&self, job: HashJob) -> Result<(), PasswordRefusal> {
        let mut queue = self.queue.lock();
        if queue.is_none() {
            *queue = Some(start().ok_or(PasswordRefusal::Failed)?);
        }
        let sent = queue.as_ref().map(|queue| queue.try_send(job));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(PasswordRefusal::Busy),
        }
    }
}

/// Half of the processors, so that the others serve on.
fn start() -> Option<SyncSender<HashJob>> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let (queue, jobs) = sync_channel(QUEUE);
    let jobs = Arc::new(Mutex::new(jobs));
    let threads = (0..(processors / 2).clamp(1, MOST_THREADS)).filter(|number| {
        let jobs = Arc::clone(&jobs);
        thread::Builder::new()
            .name(format!("passwords-{number}"))
            .spawn(move || {
                let _ = rustix::process::nice(NICENESS);
                work(&jobs);
            })
            .is_ok()
    });
    (threads.count() > 0).then_some(queue)
}

/// Runs until the last sender is dropped.
fn work(jobs: &Mutex<Receiver<HashJob>>) {
    let mut memory = HashMemory::default();
    loop {
        let job = jobs.lock().recv();
        let Ok(job) = job else {
            return;
        };
        // The caller is notified, because the sender of its result is dropped.
        let _ = catch_unwind(AssertUnwindSafe(|| job(&mut memory)));
    }
}

fn hash(memory: &mut HashMemory, password: &str) -> Option<String> {
    let mut salt = [0; 16];
    SystemRandom::new().fill(&mut salt).ok()?;
    let argon2 = Argon2::default();
    let mut output = [0; Params::DEFAULT_OUTPUT_LEN];
    memory.hash(&argon2, password, &salt, &mut output)?;
    let hash = PasswordHash {
        algorithm: Algorithm::default().ident(),
        version: Some(Version::default().into()),
        params: ParamsString::try_from(argon2.params()).ok()?,
        salt: Some(Salt::new(&salt).ok()?),
        hash: Some(Output::new(&output).ok()?),
    };
    Some(hash.to_string())
}

/// True if the hash is that of a password; false also if it cannot be computed.
fn is_hash_of(memory: &mut HashMemory, hash: &PasswordHash, password: &str) -> bool {
    let mut computed = || {
        let algorithm = Algorithm::try_from(hash.algorithm.as_str()).ok()?;
        let version = match hash.version {
            Some(version) => Version::try_from(version).ok()?,
            None => Version::default(),
        };
        let argon2 = Argon2::new(algorithm, version, Params::try_from(hash).ok()?);
        let expected = hash.hash.as_ref()?;
        let mut output = [0; Output::MAX_LENGTH];
        let output = output.get_mut(..expected.len())?;
        memory.hash(&argon2, password, hash.salt.as_ref()?, output)?;
        // Outputs are compared in constant time.
        Some(Output::new(output).ok()? == *expected)
    };
    computed() == Some(true)
}

/// One verification, with or without a stored hash.
fn verify(
    memory: &mut HashMemory,
    password: &str,
    known: Option<&str>,
    stand_in: &OnceLock<String>,
) -> Option<bool> {
    let known = known.and_then(usable);
    let is_known = known.is_some();
    let hash = match known {
        Some(hash) => hash,
        None => PasswordHash::new(dummy_hash_of(memory, stand_in)?).ok()?,
    };
    let is_right = count(|| is_hash_of(memory, &hash, password));
    Some(is_right & is_known)
}

fn usable(text: &str) -> Option<PasswordHash> {
    let hash = PasswordHash::new(text).ok()?;
    let params = Params::try_from(&hash).ok()?;
    let is_argon2 = hash.algorithm.as_str().starts_with("argon2");
    let is_sane = params.m_cost() <= MOST_MEMORY && params.t_cost() <= MOST_PASSES;
    (is_argon2 && is_sane && hash.hash.is_some()).then_some(hash)
}

/// The hash of a random password that is not stored.
fn dummy_hash_of<'s>(memory: &mut HashMemory, stand_in: &'s OnceLock<String>) -> Option<&'s str> {
    if stand_in.get().is_none() {
        let mut random = [0; 32];
        SystemRandom::new().fill(&mut random).ok()?;
        let password: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = stand_in.set(hash(memory, &password)?);
    }
    stand_in.get().map(String::as_str)
}

#[cfg(not(test))]
fn count<T>(verification: impl FnOnce() -> T) -> T {
    verification()
}

#[cfg(test)]
use tests::count;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static COUNTED: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count<T>(verification: impl FnOnce() -> T) -> T {
        COUNTED.set(COUNTED.get() + 1);
        verification()
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(future)
    }

    #[test]
    fn the_right_password_and_no_other() {
        let passwords = Passwords::default();
        let known = block_on(passwords.hash("correct horse".to_owned())).unwrap();
        assert!(
            known.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{known}"
        );
        let verify = |password: &str, known: Option<&str>| {
            block_on(passwords.verify(password.to_owned(), known.map(Arc::from)))
        };
        assert_eq!(verify("correct horse", Some(&known)), Ok(true));
        assert_eq!(verify("correct horsf", Some(&known)), Ok(false));
        assert_eq!(verify("", Some(&known)), Ok(false));
        let again = block_on(passwords.hash("correct horse".to_owned())).unwrap();
        assert_ne!(known, again, "each has a salt of its own");
    }

    #[test]
    fn an_account_that_is_not_there_costs_the_same_work() {
        let stand_in = OnceLock::new();
        let memory = &mut HashMemory::default();
        let good = hash(memory, "secret words").unwrap();
        let huge = good.replace("m=19456", "m=4194304");
        let params = |hash: &str| Params::try_from(&PasswordHash::new(hash).unwrap()).unwrap();
        let own = dummy_hash_of(memory, &stand_in).unwrap();
        assert_eq!(params(own), params(&good), "the same memory and passes");
        for known in [
            Some(&*good),
            None,
            Some(""),
            Some("secret words"),
            Some("$2b$12$abcdefghijklmnopqrstuv"),
            Some(&huge),
            Some("$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ"),
        ] {
            let before = COUNTED.get();
            let expected = known == Some(&*good);
            assert_eq!(
                verify(memory, "secret words", known, &stand_in),
                Some(expected),
                "{known:?}"
            );
            assert_eq!(COUNTED.get() - before, 1, "{known:?}");
        }
    }

    #[test]
    fn a_hash_with_other_parameters_is_verified_and_its_memory_is_not_kept() {
        let memory = &mut HashMemory::default();
        let stand_in = OnceLock::new();
        let params = Params::new(32 << 10, 1, 4, Some(24)).unwrap();
        let argon2 = Argon2::new(Algorithm::Argon2i, Version::V0x10, params);
        let mut output = [0; 24];
        let salt = b"some salt of theirs";
        argon2
            .hash_password_into(b"pass word", salt, &mut output)
            .unwrap();
        let theirs = PasswordHash {
            algorithm: Algorithm::Argon2i.ident(),
            version: Some(Version::V0x10.into()),
            params: ParamsString::try_from(argon2.params()).unwrap(),
            salt: Some(Salt::new(salt).unwrap()),
            hash: Some(Output::new(&output).unwrap()),
        };
        let theirs = theirs.to_string();
        let mut verify = |password| verify(memory, password, Some(&theirs), &stand_in);
        assert_eq!(verify("pass word"), Some(true), "{theirs}");
        assert_eq!(verify("pass words"), Some(false));
        assert_eq!(memory.0.capacity(), Params::default().block_count());
        let first = memory.0.as_ptr();
        hash(memory, "another").unwrap();
        assert_eq!(memory.0.as_ptr(), first, "the same memory is used again");
    }

    #[test]
    fn past_the_queue_it_is_refused_and_a_panic_ends_no_thread() {
        let passwords = Passwords::default();
        let panicked = block_on(passwords.run(|_| panic!("a test's")));
        assert_eq!(panicked, Err::<(), _>(PasswordRefusal::Failed));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let mut refused = 0;
        for _ in 0..QUEUE + 2 * MOST_THREADS + 1 {
            let wait = Arc::clone(&wait);
            let job = Box::new(move |_: &mut HashMemory| {
                // Until the test lets all of them go.
                let _ = wait.lock().recv();
            });
            refused += usize::from(passwords.enqueue(job) == Err(PasswordRefusal::Busy));
        }
        assert!(refused > 0);
        drop(go);
        // Another that waits is taken as soon as there is room.
        let done = std::iter::repeat_with(|| block_on(passwords.run(|_| 1)));
        assert_eq!(done.flatten().next(), Some(1));
    }
}

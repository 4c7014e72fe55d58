//! The thread that keeps certificates fresh.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use instant_acme::{Account, ChallengeType};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use super::account;
use super::failure::AcmeFailure;
use super::http_client::AcmeHttpClient;
use super::lease::OrderLease;
use super::managed::ManagedCertificate;
use super::names::{checked_name, folder_of};
use super::order::{self, OrderFailure};
use super::renewal_info::ask_for_windows;
use super::shared_challenges::SharedChallenges;
use super::storage_faults::StorageFaults;
use super::{AcmeOptions, AcmeReport, CertificateStorage, RenewalCommand};
use crate::Error;
use crate::facts::CertificateName;
use crate::resolver::Certificates;

/// The longest sleep: the machine may have slept meanwhile, or its clock may have been set.
const LONGEST_SLEEP: Duration = Duration::from_secs(60 * 60);
/// The shortest sleep, so that a mistake does not make a loop.
const SHORTEST_SLEEP: Duration = Duration::from_millis(50);

/// Tries in a row where a failure says nothing of the name.
const MOST_TRIES: u32 = 4;

/// Challenges that are tried, in this order. The first needs port 443 only.
const KINDS: [(ChallengeType, &str); 2] = [
    (ChallengeType::TlsAlpn01, "by TLS-ALPN-01 (port 443)"),
    (ChallengeType::Http01, "by HTTP-01 (port 80)"),
];

/// The state of the thread.
pub(super) struct Renewer {
    options: AcmeOptions,
    storage: Arc<dyn CertificateStorage>,
    certificates: Arc<Certificates>,
    report: Box<dyn Fn(AcmeReport) + Send>,
    client: AcmeHttpClient,
    /// The name of a value in the storage.
    account_key: String,
    account: Option<Account>,
    challenges: SharedChallenges,
    managed: Vec<ManagedCertificate>,
    lease: Arc<OrderLease>,
    storage_faults: StorageFaults,
}

impl Renewer {
    pub(super) fn new(
        options: AcmeOptions,
        storage: Arc<dyn CertificateStorage>,
        certificates: Arc<Certificates>,
        report: Box<dyn Fn(AcmeReport) + Send>,
    ) -> Result<Self, Error> {
        let folder = folder_of(&options.directory)?;
        let client = AcmeHttpClient::new(options.trust.as_deref())?;
        let mut names: Vec<CertificateName> = Vec::new();
        for text in &options.names {
            let name = checked_name(text)?;
            // One name may be written in two ways, such as in two cases.
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let managed: Vec<_> = names
            .into_iter()
            .map(|name| ManagedCertificate::new(name, &folder))
            .collect();
        for managed in &managed {
            certificates.reserve(&managed.slot());
        }
        let lease = OrderLease::new(
            Arc::clone(&storage),
            format!("{folder}/lock"),
            options.timing.lease,
        );
        let lease = Arc::new(lease);
        Ok(Self {
            client,
            account_key: format!("{folder}/account.json"),
            account: None,
            challenges: SharedChallenges::new(
                Arc::clone(&storage),
                Arc::clone(&certificates),
                Arc::clone(&lease),
                format!("{folder}/challenges.json"),
            ),
            managed,
            lease,
            storage_faults: StorageFaults::default(),
            options,
            storage,
            certificates,
            report,
        })
    }

    /// Takes over what is stored. A restart ignores the pauses of earlier failures: the operator
    /// may have mended the cause.
    pub(super) fn read_storage(&mut self) {
        self.take_over();
        self.forget_delays();
    }

    /// Works until the channel of commands is closed.
    pub(super) async fn run(mut self, mut commands: UnboundedReceiver<RenewalCommand>) {
        loop {
            let mut is_asked = false;
            let is_closed = tokio::select! {
                biased;
                () = until_closed(&mut commands, &mut is_asked) => true,
                () = self.round() => false,
            };
            if is_closed {
                break;
            }
            if !is_asked {
                let command = tokio::select! {
                    command = commands.recv() => Some(command),
                    () = sleep(self.sleep_time(base_clock::wall())) => None,
                };
                match command {
                    Some(Some(RenewalCommand::CheckNow)) => is_asked = true,
                    Some(None) => break,
                    None => {}
                }
            }
            if is_asked {
                self.forget_delays();
            }
        }
        self.leave();
    }

    /// Looks at everything once.
    async fn round(&mut self) {
        self.take_over();
        self.ask_for_windows().await;
        // After a failed write, take and release the lease: this writes the list of challenges
        // again, and every value that is not saved.
        let is_due = self.next_due(base_clock::wall()).is_some();
        if !is_due && !self.storage_faults.are_of_changes() {
            return;
        }
        match self.lease.take() {
            Ok(true) => {
                // Another node may have renewed them before it freed the lock.
                self.take_over();
                self.renew_due().await;
                self.leave();
            }
            taken => self.note_write(taken.map(drop)),
        }
    }

    /// Asks for each certificate that is due, one after another. Ends without a word once another
    /// node holds the lease: that node asks for what is due.
    async fn renew_due(&mut self) {
        let lease = Arc::clone(&self.lease);
        while let Some(at) = self.next_due(base_clock::wall()) {
            let prolonged = lease.prolong();
            if !matches!(prolonged, Ok(true)) {
                self.note_write(prolonged.map(drop));
                return;
            }
            let ended = tokio::select! {
                biased;
                lost = lease.keep() => Err(lost),
                obtained = self.obtain(at) => Ok(obtained),
            };
            let withdrawn = self.challenges.withdraw();
            self.note_write(withdrawn);
            match ended {
                Ok(Ok(text)) => self.accept(at, text),
                Ok(Err(failure)) if lease.is_held() => self.fail(at, &failure),
                Ok(Err(_)) => return,
                Err(lost) => {
                    self.note_write(lost);
                    return;
                }
            }
        }
    }

    /// Asks for one certificate; again at once if the authority refuses something that has nothing
    /// to do with the name: a nonce (RFC 8555 section 6.5), or an account that it has lost.
    async fn obtain(&mut self, at: usize) -> Result<String, AcmeFailure> {
        // A pause that an earlier request was asked for says nothing of this one.
        self.client.take_retry_after();
        let mut tries = 1;
        loop {
            match self.try_kinds(at).await {
                Err(failure) if tries < MOST_TRIES && failure.is("badNonce") => {}
                Err(failure) if tries < MOST_TRIES && failure.is("accountDoesNotExist") => {
                    self.account = None;
                    let forgotten = self.storage.store(&self.account_key, b"");
                    self.note_write(forgotten);
                }
                done => return done,
            }
            tries += 1;
        }
    }

    /// Asks for one certificate, proven by one kind of challenge or else by the other.
    async fn try_kinds(&mut self, at: usize) -> Result<String, AcmeFailure> {
        let account = self.account().await?;
        let mut causes = Vec::new();
        let mut problem = None;
        for (kind, words) in &KINDS {
            let managed = &self.managed[at];
            let old = managed.served.as_ref().map(|served| served.facts());
            let (name, options) = (&managed.name, &self.options);
            let ordered =
                order::order(&account, name, options, old, kind, &mut self.challenges).await;
            match ordered {
                Ok(text) => return Ok(text),
                Err(OrderFailure::NotProven(failure)) => {
                    causes.push(format!("{words}: {}", failure.cause));
                    problem = failure.problem;
                }
                Err(OrderFailure::Other(failure)) => {
                    causes.push(failure.cause);
                    problem = failure.problem;
                    break;
                }
            }
        }
        let cause = causes.join("; ");
        Err(AcmeFailure { cause, problem })
    }

    async fn account(&mut self) -> Result<Account, AcmeFailure> {
        if let Some(account) = &self.account {
            return Ok(account.clone());
        }
        let storage = &*self.storage;
        let account = match account::stored(storage, &self.account_key, &self.client).await? {
            Some(account) => account,
            None => {
                let (directory, email) = (&self.options.directory, self.options.email.as_deref());
                account::create(storage, &self.account_key, &self.client, directory, email).await?
            }
        };
        self.account = Some(account.clone());
        Ok(account)
    }

    fn accept(&mut self, at: usize, text: String) {
        let managed = &mut self.managed[at];
        let name = managed.name.clone();
        let not_again_before = base_clock::wall() + self.options.timing.first_retry;
        let (storage, certificates) = (&*self.storage, &*self.certificates);
        match managed.accept(text, not_again_before, storage, certificates) {
            Ok(stored) => {
                let served = managed.served.as_ref();
                let not_after = served.map_or(SystemTime::UNIX_EPOCH, |s| s.facts().not_after);
                (self.report)(AcmeReport::Issued { name, not_after });
                self.note_write(stored);
            }
            Err(error) => self.fail(at, &AcmeFailure::new(error.to_string())),
        }
    }

    fn fail(&mut self, at: usize, failure: &AcmeFailure) {
        // The directory is read again at the next try: its URLs may have changed.
        self.account = None;
        let retry_after = self.client.take_retry_after();
        let now = base_clock::wall();
        let managed = &mut self.managed[at];
        let stored = managed.fail(now, retry_after, &self.options.timing, &*self.storage);
        let served = managed.served.as_ref();
        (self.report)(AcmeReport::Failed {
            name: managed.name.clone(),
            cause: failure.cause.clone(),
            retry_at: managed.ask_at(),
            not_after: served.map(|served| served.facts().not_after),
        });
        self.note_write(stored);
    }

    /// Asks the authority when the certificates should be renewed, where its last word is old.
    /// Meanwhile the challenges of other nodes are answered: an authority may take long.
    async fn ask_for_windows(&mut self) {
        let now = base_clock::wall();
        if !self.managed.iter().any(|managed| managed.wants_window(now)) {
            return;
        }
        let Self {
            storage, client, ..
        } = self;
        let (account, account_key) = (&mut self.account, &self.account_key);
        let (managed, longest) = (&mut self.managed, self.options.timing.renewal_info);
        let asking = async {
            if account.is_none() {
                // Only a node with the lock makes an account.
                let stored = account::stored(&**storage, account_key, client).await;
                *account = stored.ok().flatten();
            }
            ask_for_windows(managed, account.as_ref(), longest).await;
        };
        tokio::select! {
            biased;
            () = asking => {}
            () = self.challenges.keep_reading() => {}
        }
    }

    fn take_over(&mut self) {
        let now = base_clock::wall();
        let mut read = self.challenges.read();
        for managed in &mut self.managed {
            // A storage that does not answer is not asked for each value, which takes long.
            if read
                .as_ref()
                .is_err_and(|error| error.kind() != ErrorKind::InvalidData)
            {
                break;
            }
            read = read.and(managed.read(&*self.storage, &self.certificates));
        }
        for managed in &mut self.managed {
            managed.limit_waits(now, &self.options.timing);
        }
        self.report_change(|faults| faults.note_read(read));
    }

    fn forget_delays(&mut self) {
        for managed in &mut self.managed {
            managed.failure = managed.failure.without_own_delay(&self.options.timing);
        }
    }

    /// Takes the result of a change. A fault has not ended while a value is not saved.
    fn note_write(&mut self, result: io::Result<()>) {
        let is_unsaved = self.managed.iter().any(ManagedCertificate::is_unsaved);
        if result.is_ok() && is_unsaved {
            return;
        }
        self.report_change(|faults| faults.note_write(result));
    }

    /// Reports when the storage begins to fail, or to work again.
    fn report_change(&mut self, note: impl FnOnce(&mut StorageFaults) -> Option<AcmeReport>) {
        if let Some(change) = note(&mut self.storage_faults) {
            (self.report)(change);
        }
    }

    /// Frees the lease, if this node holds it, and answers no challenge of its own any more. Before
    /// that it writes what is not saved.
    fn leave(&mut self) {
        if self.lease.is_held() {
            let written = self.write_unsaved();
            let withdrawn = self.challenges.withdraw();
            self.note_write(written.and(withdrawn).and(self.lease.release()));
        }
    }

    fn write_unsaved(&mut self) -> io::Result<()> {
        let storage = &*self.storage;
        let mut written = Ok(());
        for managed in &mut self.managed {
            // A database that does not answer is not asked for each value, which takes long.
            if written
                .as_ref()
                .is_err_and(|error: &io::Error| error.kind() == ErrorKind::Other)
            {
                break;
            }
            written = written.and(managed.write_unsaved(storage));
        }
        written
    }

    fn next_due(&self, now: SystemTime) -> Option<usize> {
        self.managed
            .iter()
            .position(|managed| managed.ask_at() <= now)
    }

    /// How long there is nothing to do.
    fn sleep_time(&self, now: SystemTime) -> Duration {
        let until = |moment: SystemTime| moment.duration_since(now).unwrap_or_default();
        let of_one = |managed: &ManagedCertificate| {
            let window = managed
                .served
                .as_ref()
                .map_or(LONGEST_SLEEP, |_| until(managed.ask_window_at));
            // What is due and not done waits for the lock, what is not saved for the storage.
            let ask = until(managed.ask_at());
            let ask = if ask.is_zero() || managed.is_unsaved() {
                self.options.timing.lock_retry
            } else {
                ask
            };
            window.min(ask)
        };
        let times = self.managed.iter().map(of_one);
        let polled = self.storage.poll_interval().into_iter();
        let time = times.chain(polled).min().unwrap_or(LONGEST_SLEEP);
        time.clamp(SHORTEST_SLEEP, LONGEST_SLEEP)
    }
}

/// Returns when the channel is closed; notes what is asked before.
async fn until_closed(commands: &mut UnboundedReceiver<RenewalCommand>, is_asked: &mut bool) {
    while let Some(RenewalCommand::CheckNow) = commands.recv().await {
        *is_asked = true;
    }
}

//! A small database with several versions of its cells, and two kinds of feeds.
//!
//! A cell holds the number of the last commit that wrote it. A transaction begins (it gets an id),
//! is flushed (it gets its place in the order of commits), becomes visible, and is brought by the
//! feed; the last two happen in either order.

use std::collections::BTreeSet;

use millpond_store::{Feed, Tag};

pub(super) const CELLS: usize = 4;

/// For each cell the number of the last commit that wrote it; 0 before the first.
pub(super) type Cells = [u64; CELLS];

#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub(super) id: u64,
    /// One bit for each cell.
    pub(super) writes: u8,
    /// Its place in the order of commits, from 1; 0 while it runs.
    pub(super) commit: u64,
    pub(super) flushed_at: u64,
    pub(super) visible_at: Option<u64>,
    pub(super) applied: bool,
}

impl Transaction {
    pub(super) fn touches(&self, cell: usize) -> bool {
        self.writes >> cell & 1 == 1
    }

    /// The cells and the table in which they are: two in each.
    pub(super) fn tags(&self) -> Vec<Tag> {
        let cells = (0..CELLS).filter(|&cell| self.touches(cell));
        cells
            .flat_map(|cell| [cell_tag(cell), table_tag(cell)])
            .collect()
    }
}

pub(super) fn cell_tag(cell: usize) -> Tag {
    Tag::narrow((cell as u64 + 1) << 1)
}

pub(super) fn table_tag(cell: usize) -> Tag {
    Tag::broad((cell as u64 / 2 + 100) << 1)
}

/// All transactions, in the order in which they began.
#[derive(Default)]
pub(super) struct Database {
    pub(super) transactions: Vec<Transaction>,
    pub(super) commits: u64,
    /// The feed will bring no further change up to this commit.
    pub(super) brought: u64,
}

impl Database {
    pub(super) fn begin(&mut self, writes: u8) {
        let id = self.transactions.len() as u64 + 1;
        let (commit, flushed_at) = (0, 0);
        self.transactions.push(Transaction {
            id,
            writes,
            commit,
            flushed_at,
            visible_at: None,
            applied: false,
        });
    }

    /// The places of those for which `test` holds.
    pub(super) fn which(&self, test: impl Fn(&Transaction) -> bool) -> Vec<usize> {
        (0..self.transactions.len())
            .filter(|&at| test(&self.transactions[at]))
            .collect()
    }

    pub(super) fn unseen(&self) -> Vec<usize> {
        let mut unseen = self.which(|it| it.commit > 0 && it.visible_at.is_none());
        unseen.sort_by_key(|&at| self.transactions[at].commit);
        unseen
    }

    /// Flushes a running transaction. An earlier holder of a lock on one of its cells is visible by
    /// now, because locks are released only then.
    pub(super) fn flush(&mut self, at: usize, now: u64) {
        let writes = self.transactions[at].writes;
        for other in self.unseen() {
            if self.transactions[other].writes & writes != 0 {
                self.show(other, now);
            }
        }
        self.commits += 1;
        let it = &mut self.transactions[at];
        (it.commit, it.flushed_at) = (self.commits, now);
    }

    pub(super) fn show(&mut self, at: usize, now: u64) {
        self.transactions[at].visible_at = Some(now);
    }

    /// Returns the cells that a new snapshot shows.
    pub(super) fn read(&self) -> Cells {
        self.state(|it| it.visible_at.is_some())
    }

    /// The state after the first `commits` commits.
    pub(super) fn state_after(&self, commits: u64) -> Cells {
        self.state(|it| it.commit > 0 && it.commit <= commits)
    }

    fn state(&self, seen: impl Fn(&Transaction) -> bool) -> Cells {
        std::array::from_fn(|cell| {
            let writers = self
                .transactions
                .iter()
                .filter(|it| seen(it) && it.touches(cell));
            writers.map(|it| it.commit).max().unwrap_or(0)
        })
    }

    /// The latest time at which a heartbeat that returns now may have been sent: no earlier flush
    /// is still to be brought.
    pub(super) fn heard(&self, now: u64) -> u64 {
        let late = self
            .transactions
            .iter()
            .filter(|it| it.commit > self.brought);
        late.map(|it| it.flushed_at).min().unwrap_or(now)
    }
}

/// A feed as the model needs it.
pub(super) trait Source: Feed<Position = u64> {
    /// True if transactions become visible in the order of their commits.
    const IN_ORDER: bool;

    fn mark(transaction: &Transaction) -> Self::Mark;

    /// A snapshot taken now.
    fn snapshot(database: &Database) -> Self::Snapshot;
}

/// Commits have numbers, and a snapshot sees all up to one of them, as with SQLite.
pub(super) struct Ticking;

impl Feed for Ticking {
    type Mark = u64;
    type Snapshot = u64;
    type Position = u64;

    fn sees(low: &u64, mark: u64) -> bool {
        mark <= *low
    }

    fn snapshot_at(position: u64) -> u64 {
        position
    }
}

impl Source for Ticking {
    const IN_ORDER: bool = true;

    fn mark(transaction: &Transaction) -> u64 {
        transaction.commit
    }

    fn snapshot(database: &Database) -> u64 {
        database
            .unseen()
            .first()
            .map_or(database.commits, |&at| database.transactions[at].commit - 1)
    }
}

/// Transactions have ids in the order in which they began, and a snapshot lists the running ones,
/// as with PostgreSQL.
pub(super) struct Listing;

#[derive(Clone, Debug)]
pub(super) enum Listed {
    Snapshot {
        min: u64,
        max: u64,
        running: BTreeSet<u64>,
    },
    /// All changes that the feed had brought at a position.
    Brought(u64),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Xid {
    id: u64,
    commit: u64,
}

impl Feed for Listing {
    type Mark = Xid;
    type Snapshot = Listed;
    type Position = u64;

    fn sees(snapshot: &Listed, mark: Xid) -> bool {
        match snapshot {
            Listed::Snapshot { min, max, running } => {
                mark.id < *min || mark.id < *max && !running.contains(&mark.id)
            }
            Listed::Brought(commit) => mark.commit <= *commit,
        }
    }

    fn snapshot_at(position: u64) -> Listed {
        Listed::Brought(position)
    }
}

impl Source for Listing {
    const IN_ORDER: bool = false;

    fn mark(transaction: &Transaction) -> Xid {
        Xid {
            id: transaction.id,
            commit: transaction.commit,
        }
    }

    fn snapshot(database: &Database) -> Listed {
        let unseen = database.which(|it| it.visible_at.is_none());
        let running: BTreeSet<u64> = unseen
            .into_iter()
            .map(|at| database.transactions[at].id)
            .collect();
        let max = database.transactions.len() as u64 + 1;
        Listed::Snapshot {
            min: running.first().copied().unwrap_or(max),
            max,
            running,
        }
    }
}

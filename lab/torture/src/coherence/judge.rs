//! Compares one page with the promise.
//!
//! *Late*: the page shows a version below one that was acknowledged more than the bound before the
//! request was sent (or acknowledged by this node before the request, or by any node to this
//! visitor), or a row is not where it must be. *Mixed*: the values never were one state together,
//! or were rolled back.

use std::time::Duration;

use crate::coherence::log::Log;
use crate::coherence::page::Ask;
use crate::coherence::rules::{Rule, SHOWN};
use crate::coherence::schema::{ACCOUNTS, MONEY, PIECES, Thing, ThingKind};
use base_clock::Boottime;

/// One request and the circumstances of its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    /// Before the first byte of the request went out.
    pub(crate) sent: Boottime,
    /// The node that answered, and its `max_staleness`.
    pub(crate) node: usize,
    pub(crate) bound: Duration,
    /// This visitor's earlier write, through any node.
    pub(crate) own: Option<(Thing, u64)>,
}

/// Faults of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) late: Option<String>,
    pub(crate) mixed: Option<String>,
    /// At the time of the request, how long ago the oldest commit that the page does not show was
    /// acknowledged.
    pub(crate) unseen: Option<Duration>,
}

impl Verdict {
    /// True if the promise is broken.
    pub(crate) fn is_wrong(&self) -> bool {
        self.late.is_some() || self.mixed.is_some()
    }
}

/// Judges a page, given as [`Ask::read`] gives it.
pub(crate) fn judge(
    log: &Log,
    ask: &Ask,
    rows: &[Vec<Vec<u64>>],
    circumstances: Circumstances,
) -> Verdict {
    let mut judge = Judge {
        log,
        circumstances,
        before: circumstances.sent.minus(circumstances.bound),
        verdict: Verdict::default(),
    };
    judge.page(ask, rows);
    judge.verdict
}

struct Judge<'a> {
    log: &'a Log,
    circumstances: Circumstances,
    /// Changes acknowledged before this moment must be there.
    before: Boottime,
    verdict: Verdict,
}

impl Judge<'_> {
    fn page(&mut self, ask: &Ask, rows: &[Vec<Vec<u64>>]) {
        let first = rows[0].first().map_or(&[][..], Vec::as_slice);
        match ask {
            Ask::Account(id) => {
                self.must_equal("version and mirror", first[0], first[2]);
                self.must_equal("stamp and mirror", first[1], first[3]);
                self.must_not_be_undone(first[1]);
                self.version(Thing(ThingKind::Account, *id), first[0]);
            }
            Ask::Pair(id) => {
                self.must_equal("the versions of both queries", first[0], rows[1][0][0]);
                self.must_equal("the stamps of both queries", first[1], rows[1][0][1]);
                self.must_not_be_undone(first[1]);
                self.version(Thing(ThingKind::Account, *id), first[0]);
            }
            Ask::View(id) => {
                self.must_equal("version and mirror", first[0], first[1]);
                self.version(Thing(ThingKind::Account, *id), first[0]);
            }
            Ask::Label(_) => self.version(Thing(ThingKind::Label, 0), first[0]),
            Ask::Entries(id) => self.version(Thing(ThingKind::Entries, *id), first[0]),
            Ask::Total => {
                self.must_equal("accounts", first[0], u64::from(ACCOUNTS));
                self.must_equal("money", first[1], MONEY);
                self.must_equal("the sums of both tables", first[2], rows[1][0][0]);
                self.judge_total(first[2]);
            }
            Ask::Top => self.judge_top(&rows[0]),
            Ask::Some(ids) => self.judge_selection(*ids, &rows[0]),
            Ask::Place(kind, place) => self.place(*kind, place, &rows[0]),
            Ask::Scrap => self.judge_scrap(first),
            Ask::Record(id) => self.judge_record(*id, first),
            Ask::Releases(publisher) => self.judge_releases(*publisher, &rows[0]),
            Ask::Rules => {
                for (rule, version) in SHOWN.iter().zip(first) {
                    self.version(rule.thing(), *version);
                }
            }
            Ask::Secret => self.version(Rule::Right.thing(), first[0]),
        }
    }

    fn due(&self, thing: Thing) -> u64 {
        let Circumstances {
            node, sent, own, ..
        } = self.circumstances;
        let own = own.filter(|(written, _)| *written == thing);
        let due = self.log.due(thing, self.before, node, sent);
        due.max(own.map_or(0, |(_, version)| version))
    }

    fn late(&mut self, what: impl FnOnce() -> String) {
        self.verdict.late.get_or_insert_with(what);
    }

    fn mixed(&mut self, what: impl FnOnce() -> String) {
        self.verdict.mixed.get_or_insert_with(what);
    }

    fn must_equal(&mut self, what: &str, one: u64, other: u64) {
        if one != other {
            self.mixed(|| format!("{what}: {one} and {other}"));
        }
    }

    /// Forms have the stamp 0.
    fn must_not_be_undone(&mut self, stamp: u64) {
        if stamp != 0 && self.log.is_undone(stamp) {
            self.mixed(|| format!("write {stamp} was rolled back"));
        }
    }

    fn version(&mut self, thing: Thing, shown: u64) {
        let due = self.due(thing);
        if shown < due {
            self.late(|| format!("{thing}: version {shown}, {due} is due"));
        }
        let sent = self.circumstances.sent;
        if let Some(since) = self.log.unseen_since(thing, shown, sent) {
            let unseen = sent.since(since);
            let longest = self
                .verdict
                .unseen
                .map_or(unseen, |other| other.max(unseen));
            self.verdict.unseen = Some(longest);
        }
    }

    fn judge_total(&mut self, shown: u64) {
        let accounts = ThingKind::Account
            .ids()
            .map(|id| Thing(ThingKind::Account, id));
        let due: u64 = accounts.map(|account| self.due(account)).sum();
        if shown < due {
            self.late(|| format!("all accounts: versions {shown}, {due} are due"));
        }
    }

    /// Checks the order, and that no due row would stand before the last row.
    fn judge_top(&mut self, rows: &[Vec<u64>]) {
        if !rows.windows(2).all(|pair| pair[0][1] >= pair[1][1]) || rows.len() != 5 {
            self.mixed(|| format!("not the first five in order: {rows:?}"));
        }
        self.versions(ThingKind::Account, rows);
        let last = rows.last().map_or(0, |row| row[1]);
        for id in ThingKind::Account.ids() {
            let due = self.due(Thing(ThingKind::Account, id));
            if due > last && !rows.iter().any(|row| row[0] == u64::from(id)) {
                self.late(|| format!("account {id} with {due} is missing in {rows:?}"));
            }
        }
    }

    fn judge_selection(&mut self, mut ids: [u32; 3], rows: &[Vec<u64>]) {
        ids.sort_unstable();
        let mut ids = ids.to_vec();
        ids.dedup();
        if !rows
            .iter()
            .map(|row| row[0])
            .eq(ids.iter().map(|id| u64::from(*id)))
        {
            self.mixed(|| format!("not the accounts {ids:?}: {rows:?}"));
        }
        self.versions(ThingKind::Account, rows);
    }

    /// Each row has the version of the row that its key leads to, in every state.
    fn judge_record(&mut self, song: u32, row: &[u64]) {
        let [version, copied, album @ .., publisher, publisher_version] = row else {
            return;
        };
        let [
            album,
            album_version,
            album_copied,
            artist,
            artist_version,
            artist_copied,
        ] = *album
        else {
            return;
        };
        self.must_equal("song and album", *copied, album_version);
        self.must_equal("album and artist", album_copied, artist_version);
        self.must_equal("artist and publisher", artist_copied, *publisher_version);
        self.version(Thing(ThingKind::Song, song), *version);
        self.versions(ThingKind::Album, &[vec![album, album_version]]);
        self.versions(ThingKind::Artist, &[vec![artist, artist_version]]);
        let publisher = vec![*publisher, *publisher_version];
        self.versions(ThingKind::Publisher, &[publisher]);
    }

    /// An album is missing if it must be of an artist who must be with this publisher.
    fn judge_releases(&mut self, publisher: u32, rows: &[Vec<u64>]) {
        self.versions(ThingKind::Album, rows);
        for row in rows {
            self.must_equal("album and artist", row[2], row[4]);
            self.versions(ThingKind::Artist, &[row[3..].to_vec()]);
        }
        let must_be_at = |kind: ThingKind, id: u32, place: u32| {
            let thing = Thing(kind, id);
            self.log.must_be_at(thing, &place.to_string(), self.before)
        };
        let artists = ThingKind::Artist.ids();
        let artists = artists.filter(|artist| must_be_at(ThingKind::Artist, *artist, publisher));
        let missing = artists.flat_map(|artist| {
            let albums = ThingKind::Album.ids();
            albums.filter(move |album| must_be_at(ThingKind::Album, *album, artist))
        });
        let is_shown = |album: u32| rows.iter().any(|row| row[0] == u64::from(album));
        let missing = missing.filter(|album| !is_shown(*album)).min();
        if let Some(album) = missing {
            self.late(|| format!("album {album} is missing at {publisher}: {rows:?}"));
        }
    }

    fn versions(&mut self, kind: ThingKind, rows: &[Vec<u64>]) {
        for row in rows {
            // No writer writes a number that is not ours.
            let id = u32::try_from(row[0]).unwrap_or(u32::MAX);
            self.version(Thing(kind, id), row[1]);
        }
    }

    fn place(&mut self, kind: ThingKind, place: &str, rows: &[Vec<u64>]) {
        self.versions(kind, rows);
        for id in kind.ids() {
            let is_shown = rows.iter().any(|row| row[0] == u64::from(id));
            if !is_shown && self.log.must_be_at(Thing(kind, id), place, self.before) {
                self.late(|| format!("{kind:?} {id} is missing in {place}: {rows:?}"));
            }
        }
    }

    /// Emptied and filled again in each transaction: no reader may find the table empty.
    fn judge_scrap(&mut self, row: &[u64]) {
        let [pieces, oldest, newest] = row else {
            return;
        };
        self.must_equal("pieces of scrap", *pieces, u64::from(PIECES.unsigned_abs()));
        if *pieces == 0 {
            return;
        }
        self.must_equal("rounds of scrap", *oldest, *newest);
        self.version(Thing(ThingKind::Scrap, 0), *newest);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Circumstances, Verdict, judge};
    use crate::coherence::log::{Change, Log};
    use crate::coherence::page::Ask;
    use crate::coherence::schema::{Thing, ThingKind};
    use base_clock::Boottime;

    fn judged(log: &Log, ask: &Ask, body: &str) -> Verdict {
        let circumstances = Circumstances {
            sent: Boottime::now(),
            node: 0,
            bound: Duration::ZERO,
            own: None,
        };
        judge(log, ask, &ask.read(body).unwrap(), circumstances)
    }

    fn written(thing: Thing, version: u64, place: Option<&str>) -> Log {
        let (log, write) = noted(thing, version, place);
        log.acknowledged(write);
        log
    }

    /// A write that is under way.
    fn noted(thing: Thing, version: u64, place: Option<&str>) -> (Log, u64) {
        let log = Log::new();
        let write = log.begin();
        let place = place.map(str::to_owned);
        log.note(
            write,
            Change {
                thing,
                version,
                place,
            },
        );
        (log, write)
    }

    #[test]
    fn an_old_version_is_late_on_every_page_that_shows_it() {
        let log = written(Thing(ThingKind::Account, 1), 1, None);
        for (ask, old, new) in [
            (Ask::Account(1), "#\n0 0 0 0", "#\n1 1 1 1"),
            (Ask::View(1), "#\n0 0", "#\n1 1"),
            (Ask::Total, "#\n12 12000 0\n#\n0", "#\n12 12000 1\n#\n1"),
            (Ask::Some([1, 1, 1]), "#\n1 0", "#\n1 1"),
            (
                Ask::Top,
                "#\n1 0\n2 0\n3 0\n4 0\n5 0",
                "#\n1 1\n2 0\n3 0\n4 0\n5 0",
            ),
            (
                Ask::Top,
                "#\n2 0\n3 0\n4 0\n5 0\n6 0",
                "#\n1 1\n2 0\n3 0\n4 0\n5 0",
            ),
        ] {
            let verdict = judged(&log, &ask, old);
            assert!(
                verdict.late.is_some() && verdict.mixed.is_none(),
                "{verdict:?}"
            );
            assert_eq!(judged(&log, &ask, new), Verdict::default(), "{ask:?}");
        }
    }

    #[test]
    fn the_visitors_write_is_due_on_every_node() {
        let log = Log::new();
        let account = Thing(ThingKind::Account, 1);
        log.posted(1, account, 1, None);
        let judged = |own| {
            let circumstances = Circumstances {
                sent: Boottime::now(),
                node: 0,
                bound: Duration::from_secs(600),
                own,
            };
            let rows = Ask::View(1).read("#\n0 0").unwrap();
            judge(&log, &Ask::View(1), &rows, circumstances).late
        };
        assert_eq!(judged(None), None, "it is within the bound");
        assert_eq!(judged(Some((Thing(ThingKind::Account, 2), 1))), None);
        assert!(judged(Some((account, 1))).is_some());
    }

    #[test]
    fn a_row_that_has_moved_is_late_on_both_pages() {
        let log = written(Thing(ThingKind::Item, 1), 1, Some("2"));
        let shelf = |place: &str| Ask::Place(ThingKind::Item, place.to_owned());
        assert!(judged(&log, &shelf("2"), "#\n2 0\n5 0\n8 0").late.is_some());
        let good = judged(&log, &shelf("2"), "#\n1 1\n2 0\n5 0\n8 0");
        assert_eq!(good, Verdict::default());
        assert!(
            judged(&log, &shelf("1"), "#\n1 0\n4 0\n7 0\n10 0")
                .late
                .is_some()
        );
        let good = judged(&log, &shelf("1"), "#\n4 0\n7 0\n10 0");
        assert_eq!(good, Verdict::default());
    }

    #[test]
    fn what_is_old_behind_a_key_is_late() {
        let record = Ask::Record(1);
        for (thing, at) in [
            (Thing(ThingKind::Song, 1), [0, 0]),
            (Thing(ThingKind::Album, 2), [3, 1]),
            (Thing(ThingKind::Artist, 3), [6, 4]),
            (Thing(ThingKind::Publisher, 1), [9, 7]),
        ] {
            let log = written(thing, 1, None);
            let mut row = [0, 0, 2, 0, 0, 3, 0, 0, 1, 0];
            let body = |row: [u64; 10]| format!("#\n{}", row.map(|n| n.to_string()).join(" "));
            assert!(judged(&log, &record, &body(row)).late.is_some(), "{thing}");
            at.iter().for_each(|at| row[*at] = 1);
            let good = judged(&log, &record, &body(row));
            assert_eq!(good, Verdict::default(), "{thing}");
        }
    }

    #[test]
    fn a_moved_key_is_late_on_both_pages_behind_the_join() {
        // Artist 1 goes from publisher 2 to 3, with album 4.
        let log = written(Thing(ThingKind::Artist, 1), 1, Some("3"));
        let old = "#\n4 0 0 1 0\n3 0 0 4 0";
        let old = judged(&log, &Ask::Releases(2), old);
        assert!(old.late.is_some() && old.mixed.is_none(), "{old:?}");
        let without = judged(&log, &Ask::Releases(3), "#\n1 0 0 2 0\n5 0 0 2 0");
        assert!(without.late.is_some() && without.mixed.is_none());
        let with = judged(
            &log,
            &Ask::Releases(3),
            "#\n1 0 0 2 0\n4 0 1 1 1\n5 0 0 2 0",
        );
        assert_eq!(with, Verdict::default());
    }

    #[test]
    fn values_of_two_states_are_mixed() {
        let log = Log::new();
        for (ask, body) in [
            (Ask::Account(1), "#\n1 0 0 0"),
            (Ask::Account(1), "#\n0 1 0 0"),
            (Ask::View(1), "#\n1 0"),
            (Ask::Total, "#\n12 11999 0\n#\n0"),
            (Ask::Total, "#\n12 12000 3\n#\n2"),
            (Ask::Scrap, "#\n5 1 2"),
            (Ask::Scrap, "#\n0 0 0"),
            (Ask::Record(1), "#\n0 0 2 1 0 3 0 0 1 0"),
            (Ask::Record(1), "#\n0 0 2 0 0 3 1 0 1 0"),
            (Ask::Record(1), "#\n0 0 2 0 0 3 0 1 1 0"),
            (Ask::Releases(3), "#\n1 0 0 2 1\n5 0 0 2 0"),
        ] {
            let verdict = judged(&log, &ask, body);
            assert!(
                verdict.mixed.is_some() && verdict.late.is_none(),
                "{verdict:?}"
            );
        }
    }

    #[test]
    fn a_table_is_not_found_empty_by_the_truncation_that_made_it_so() {
        let (log, _) = noted(Thing(ThingKind::Scrap, 0), 1, None);
        assert!(judged(&log, &Ask::Scrap, "#\n0 0 0").mixed.is_some());
    }

    #[test]
    fn a_rolled_back_write_is_never_shown() {
        let log = Log::new();
        let write = log.begin();
        log.undone(write);
        let body = format!("#\n1 {write} 1 {write}");
        assert!(judged(&log, &Ask::Account(1), &body).mixed.is_some());
    }
}

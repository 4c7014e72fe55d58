//! Entries from a seed: the same seed gives the same people.

use crate::names;

/// The seed of the files in `data/`.
pub(crate) const SEED: u64 = 34;

/// Content of a generated entry, in the richest model. Numbers are indices into the lists of
/// `names.rs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Person {
    /// From 1.
    pub(crate) id: usize,
    pub(crate) first: &'static str,
    pub(crate) last: &'static str,
    /// The name in mailboxes.
    pub(crate) mailbox: String,
    pub(crate) birthday: String,
    pub(crate) street: String,
    pub(crate) city: usize,
    pub(crate) organisation: usize,
    pub(crate) title: &'static str,
    pub(crate) mobile: String,
    pub(crate) phone: String,
    pub(crate) groups: Vec<usize>,
    pub(crate) note: &'static str,
}

/// Address of an organisation.
pub(crate) struct Premises {
    pub(crate) street: String,
    pub(crate) city: usize,
}

/// People and the premises of the organisations that they work for.
pub(crate) struct Book {
    pub(crate) premises: Vec<Premises>,
    pub(crate) people: Vec<Person>,
}

/// A book of `count` people. A larger book of the same seed begins with the people of a smaller
/// one.
pub(crate) fn book(seed: u64, count: usize) -> Book {
    let mut random = SplitMix(seed);
    let premises = names::ORGANISATIONS.iter();
    let premises = premises
        .map(|_| Premises {
            street: street(&mut random),
            city: random.below(names::CITIES.len()),
        })
        .collect();
    let people = (1..=count).map(|id| person(&mut random, id)).collect();
    Book { premises, people }
}

fn person(random: &mut SplitMix, id: usize) -> Person {
    let first = random.word(names::FIRST);
    let last = random.word(names::LAST);
    let groups = names::GROUPS.len();
    let mut groups: Vec<usize> = (0..groups).filter(|_| random.below(5) == 0).collect();
    groups.truncate(3);
    Person {
        id,
        first,
        last,
        mailbox: format!("{}.{}", names::mailbox(first), names::mailbox(last)),
        birthday: format!(
            "{}-{:02}-{:02}",
            1940 + random.below(65),
            1 + random.below(12),
            1 + random.below(28)
        ),
        street: street(random),
        city: random.below(names::CITIES.len()),
        organisation: random.below(names::ORGANISATIONS.len()),
        title: random.pick(&names::TITLES),
        mobile: number(random),
        phone: number(random),
        groups,
        note: random.pick(&names::NOTES),
    }
}

fn street(random: &mut SplitMix) -> String {
    format!("{} {}", 1 + random.below(180), random.pick(&names::STREETS))
}

/// No country has the code 999.
fn number(random: &mut SplitMix) -> String {
    format!("+999 555 {:04}", random.below(10_000))
}

/// The generator SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
/// 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `end` - 1. Its slight bias towards small numbers does no harm here.
    fn below(&mut self, end: usize) -> usize {
        let wide = u128::from(self.next()) * (end as u128);
        (wide >> 64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn word(&mut self, from: &'static str) -> &'static str {
        self.pick(&from.split(' ').collect::<Vec<_>>())
    }
}

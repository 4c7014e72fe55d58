//! The first rows of an order as a dependency (coherence.md, rule 23).
//!
//! Of `ORDER BY c LIMIT n` only those rows count whose `c` is not behind that of the `n`th row, the
//! *last* one. A value has a place in the order, a number; what counts is the range of places up to
//! that of the last row. Such a range is a set of tags, each of all places that begin with the same
//! bits. A change touches the tags of all beginnings of its place. A range and a place in it have
//! exactly one of them in common, others none: the range is split at the powers of two, as a
//! segment tree splits it (de Berg and others, Computational Geometry, section 10.3).
//!
//! Two values may have the same place, as long as the order of places is never the opposite of that
//! of values: then more rows count, never fewer.

use std::hash::BuildHasher;

use foldhash::quality::FixedState;
use millpond_store::Tag;

/// The bits that tell null, numbers, texts and blobs apart.
const KIND_BITS: u32 = 2;

/// Place of a value in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OrderPlace {
    bits: u128,
    /// How many of the bits, from the highest, may differ within a kind.
    depth: u32,
}

impl OrderPlace {
    /// Not behind any value: that of a null, and of what may be any value.
    pub(crate) const FIRST: Self = Self {
        bits: 0,
        depth: u128::BITS,
    };

    /// Behind every value, or beside one.
    pub(crate) const LAST: Self = Self::FIRST.reversed();

    /// Of a number, in an order in which the null comes first. Integers that no double has are at
    /// the place of a double beside them.
    pub(crate) fn number(number: f64) -> Self {
        // -0.0 is 0.0.
        let bits = (number + 0.0).to_bits();
        let ascending = match bits >> 63 {
            0 => bits | 1 << 63,
            _ => !bits,
        };
        Self::of_kind(1, u128::from(ascending) << 64, 64)
    }

    /// Of a text that is compared by its bytes. Only its first bytes count.
    pub(crate) fn text(text: &[u8]) -> Self {
        Self::of_kind(2, beginning(text), u128::BITS - KIND_BITS)
    }

    pub(crate) fn blob(blob: &[u8]) -> Self {
        Self::of_kind(3, beginning(blob), u128::BITS - KIND_BITS)
    }

    const fn of_kind(kind: u128, value: u128, value_bits: u32) -> Self {
        Self {
            bits: kind << (u128::BITS - KIND_BITS) | value >> KIND_BITS,
            depth: KIND_BITS + value_bits,
        }
    }

    /// In the opposite order.
    const fn reversed(self) -> Self {
        Self {
            bits: !self.bits,
            ..self
        }
    }

    /// The first `depth` bits.
    const fn beginning(self, depth: u32) -> u128 {
        self.bits >> (u128::BITS - depth)
    }
}

/// The first bytes as a number.
fn beginning(bytes: &[u8]) -> u128 {
    let mut first = [0; 16];
    let length = bytes.len().min(first.len());
    first[..length].copy_from_slice(&bytes[..length]);
    u128::from_be_bytes(first)
}

/// The names of a table and a column by which rows are ordered, hashed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OrderHash {
    hash: u64,
    is_descending: bool,
}

impl OrderHash {
    /// `column` is the hash of the table, the column and what is read.
    pub(crate) const fn new(column: u64, is_descending: bool) -> Self {
        Self {
            hash: column,
            is_descending,
        }
    }

    /// The place in this order of what has the place `ascending` in the other.
    pub(crate) const fn place(self, ascending: OrderPlace) -> OrderPlace {
        match self.is_descending {
            true => ascending.reversed(),
            false => ascending,
        }
    }

    /// The tags that a change touches. `first` is the foremost place of the values, old and new.
    pub(crate) fn touched_by(self, first: OrderPlace) -> impl Iterator<Item = Tag> {
        (1..=first.depth).map(move |depth| self.tag(depth, first.beginning(depth)))
    }

    /// The tags of the places up to the last one; none if every place counts. The place of a null
    /// is no last one.
    pub(crate) fn up_to(self, last: OrderPlace) -> Option<Vec<Tag>> {
        let end = last.beginning(last.depth).checked_add(1)?;
        let ones = (0..last.depth).filter(|bit| end >> bit & 1 == 1);
        Some(
            ones.map(|bit| self.tag(last.depth - bit, (end >> bit) - 1))
                .collect(),
        )
    }

    fn tag(self, depth: u32, beginning: u128) -> Tag {
        let parts = (5_u8, self.hash, self.is_descending, depth, beginning);
        Tag::narrow(FixedState::with_seed(self.hash).hash_one(parts))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ascending, as SQLite orders them.
    fn values() -> Vec<OrderPlace> {
        let numbers = [
            f64::NEG_INFINITY,
            -1e300,
            -3.0,
            -0.5,
            0.0,
            1e-300,
            1.0,
            1.5,
            2.0,
            1_700_000_000.0,
            f64::INFINITY,
        ];
        let texts = [
            "",
            "2024-01-02 03:04",
            "2024-01-02 03:08",
            "2024-01-03",
            "é",
        ];
        let mut all: Vec<OrderPlace> = numbers.map(OrderPlace::number).into();
        all.extend(texts.map(|text| OrderPlace::text(text.as_bytes())));
        all.extend([&b"a"[..], b"\xff\xff"].map(OrderPlace::blob));
        all
    }

    fn meet(order: OrderHash, changed: OrderPlace, last: OrderPlace) -> bool {
        let Some(range) = order.up_to(order.place(last)) else {
            return true;
        };
        let touched = order.touched_by(changed);
        touched.filter(|tag| range.contains(tag)).count() == 1
    }

    #[test]
    fn a_change_meets_the_ranges_that_reach_its_place() {
        let all = values();
        assert!(all.is_sorted());
        let up = OrderHash::new(7, false);
        let down = OrderHash::new(7, true);
        for (i, &changed) in all.iter().enumerate() {
            for (j, &last) in all.iter().enumerate() {
                assert_eq!(meet(up, up.place(changed), last), i <= j, "{i} {j}");
                assert_eq!(meet(down, down.place(changed), last), i >= j, "{i} {j}");
            }
            // A null, and what is not known.
            assert!(meet(up, OrderPlace::FIRST, changed));
            assert!(meet(down, OrderPlace::FIRST, changed));
            assert!(!meet(down, down.place(OrderPlace::FIRST), changed));
        }
    }

    #[test]
    fn places_are_no_more_exact_than_their_values() {
        assert_eq!(OrderPlace::number(-0.0), OrderPlace::number(0.0));
        assert_eq!(
            OrderPlace::text(b"0123456789abcdefg"),
            OrderPlace::text(b"0123456789abcdefh")
        );
        assert_eq!(OrderPlace::text(b"a"), OrderPlace::text(b"a\0"));
    }

    #[test]
    fn a_range_has_few_tags() {
        let tags = |value: f64| {
            let order = OrderHash::new(7, true);
            order
                .up_to(order.place(OrderPlace::number(value)))
                .unwrap()
                .len()
        };
        let values = [1.0, 1_000.0, 1_000_000.0, 1_700_000_123.0];
        assert_eq!(values.map(tags), [3, 12, 17, 20]);
    }

    proptest! {
        #[test]
        fn numbers_are_in_their_order(a: i64, b: i64, last: i32, descending: bool) {
            let (low, high) = (a.min(b), a.max(b));
            prop_assert!(OrderPlace::number(low as f64) <= OrderPlace::number(high as f64));
            let order = OrderHash::new(7, descending);
            let changed = order.place(OrderPlace::number(a as f64));
            let edge = order.place(OrderPlace::number(f64::from(last)));
            prop_assert_eq!(
                meet(order, changed, OrderPlace::number(f64::from(last))),
                changed <= edge
            );
        }

        #[test]
        fn texts_are_in_their_order(a: Vec<u8>, b: Vec<u8>) {
            let (low, high) = (a.clone().min(b.clone()), a.max(b));
            prop_assert!(OrderPlace::text(&low) <= OrderPlace::text(&high));
        }
    }
}

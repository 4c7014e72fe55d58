//! The published algorithm in its plainest form: vectors that are searched from one end to the
//! other.

use std::collections::VecDeque;

/// An entry of the model.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) key: u64,
    pub(super) weight: usize,
    pub(super) visits: u8,
}

/// S3-FIFO with the store's parameters, for live entries of uniform cost.
#[derive(Debug)]
pub(super) struct Model {
    budget: usize,
    pub(super) small: VecDeque<Item>,
    pub(super) main: VecDeque<Item>,
    pub(super) ghosts: VecDeque<(u64, usize)>,
}

fn sum(queue: &VecDeque<Item>) -> usize {
    queue.iter().map(|item| item.weight).sum()
}

impl Model {
    pub(super) fn new(budget: usize) -> Self {
        Self {
            budget,
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghosts: VecDeque::new(),
        }
    }

    pub(super) fn used(&self) -> usize {
        sum(&self.small) + sum(&self.main)
    }

    pub(super) fn find(&mut self, key: u64) -> Option<&mut Item> {
        self.small
            .iter_mut()
            .chain(&mut self.main)
            .find(|item| item.key == key)
    }

    /// A request for `key`: true is a hit. A miss inserts the key; the evicted keys are appended to
    /// `out`.
    pub(super) fn access(&mut self, key: u64, weight: usize, out: &mut Vec<u64>) -> bool {
        if let Some(item) = self.find(key) {
            item.visits = (item.visits + 1).min(3);
            return true;
        }
        let remembered = self.ghosts.iter().position(|&(ghost, _)| ghost == key);
        if let Some(at) = remembered {
            self.ghosts.remove(at);
        }
        if weight > self.budget {
            out.push(key);
            return false;
        }
        self.make_room(weight, out);
        let queue = if remembered.is_some() {
            &mut self.main
        } else {
            &mut self.small
        };
        queue.push_back(Item {
            key,
            weight,
            visits: 0,
        });
        false
    }

    pub(super) fn remove(&mut self, key: u64) {
        self.small.retain(|item| item.key != key);
        self.main.retain(|item| item.key != key);
    }

    pub(super) fn reweigh(&mut self, key: u64, weight: usize, out: &mut Vec<u64>) {
        if weight > self.budget {
            self.remove(key);
            out.push(key);
        } else {
            self.find(key).expect("resident").weight = weight;
            self.make_room(0, out);
        }
    }

    fn make_room(&mut self, weight: usize, out: &mut Vec<u64>) {
        while self.used() + weight > self.budget {
            if sum(&self.main) > self.budget - self.budget / 2 || self.small.is_empty() {
                self.evict_main(out);
            } else {
                self.evict_small(out);
            }
        }
    }

    fn evict_small(&mut self, out: &mut Vec<u64>) {
        while let Some(item) = self.small.pop_front() {
            if item.visits >= 2 {
                self.main.push_back(Item { visits: 0, ..item });
                continue;
            }
            self.remember(&item);
            out.push(item.key);
            return;
        }
    }

    fn evict_main(&mut self, out: &mut Vec<u64>) {
        while let Some(item) = self.main.pop_front() {
            if item.visits == 0 {
                out.push(item.key);
                return;
            }
            self.main.push_back(Item {
                visits: item.visits - 1,
                ..item
            });
        }
    }

    fn remember(&mut self, item: &Item) {
        let limit = self.budget + self.budget / 2;
        let weight = item.weight.max(1);
        while self.ghosts.iter().map(|ghost| ghost.1).sum::<usize>() + weight > limit {
            self.ghosts.pop_front();
        }
        self.ghosts.push_back((item.key, weight));
    }
}

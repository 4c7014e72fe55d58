//! The policy against its model, and what it adds to the published algorithm.

use std::{cell::Cell, collections::HashMap, rc::Rc};

use proptest::prelude::*;

use super::{Handle, MAX_VISITS, OVERHEAD, Policy, Resident, ghost, model::Model};

#[derive(Debug)]
struct CachedPage {
    key: u64,
    weight: Cell<usize>,
    visits: Cell<u8>,
    cost: f32,
    dead: Cell<bool>,
    /// Every look at the count finds a new visit: hits that outrun the hand.
    restless: bool,
}

impl Resident for Rc<CachedPage> {
    fn weight(&self) -> usize {
        self.weight.get()
    }
    fn hash(&self) -> u64 {
        self.key
    }
    fn visits(&self) -> u8 {
        self.visits.get()
    }
    fn set_visits(&self, visits: u8) {
        assert!(visits <= MAX_VISITS);
        self.visits
            .set(if self.restless { MAX_VISITS } else { visits });
    }
    fn cost(&self) -> f32 {
        self.cost
    }
    fn is_dead(&self) -> bool {
        self.dead.get()
    }
}

/// A cache as the store makes it: an index beside the policy.
struct Cache {
    policy: Policy<Rc<CachedPage>>,
    index: HashMap<u64, (Handle, Rc<CachedPage>)>,
    out: Vec<Rc<CachedPage>>,
}

impl Cache {
    fn new(budget: usize) -> Self {
        Self {
            policy: Policy::new(budget),
            index: HashMap::new(),
            out: Vec::new(),
        }
    }

    fn put(&mut self, page: CachedPage) -> Vec<u64> {
        let page = Rc::new(page);
        let handle = self.policy.insert(page.clone());
        self.index.insert(page.key, (handle, page));
        self.evict()
    }

    fn evict(&mut self) -> Vec<u64> {
        self.policy.evict(&mut self.out);
        let gone: Vec<u64> = self.out.drain(..).map(|page| page.key).collect();
        for key in &gone {
            assert!(self.index.remove(key).is_some(), "{key} left twice");
        }
        self.check();
        gone
    }

    fn visit(&self, key: u64) -> bool {
        let Some((_, page)) = self.index.get(&key) else {
            return false;
        };
        page.visits.set((page.visits.get() + 1).min(MAX_VISITS));
        true
    }

    fn access(&mut self, key: u64, weight: usize) -> (bool, Vec<u64>) {
        if self.visit(key) {
            return (true, Vec::new());
        }
        (false, self.put(page(key, weight)))
    }

    fn remove(&mut self, key: u64) {
        if let Some((handle, _)) = self.index.remove(&key) {
            assert_eq!(self.policy.remove(handle).key, key);
        }
        self.check();
    }

    fn reweigh(&mut self, key: u64, weight: usize) -> Vec<u64> {
        let (handle, page) = &self.index[&key];
        let old = page.weight.replace(weight);
        self.policy.reweigh(*handle, old, weight);
        self.evict()
    }

    fn queue(&self, list: &super::List) -> Vec<(u64, u8)> {
        let page = |index| self.policy.seats[index].resident.as_ref().expect("taken");
        list.iter(&self.policy.seats)
            .map(|index| (page(index).key, page(index).visits.get()))
            .collect()
    }

    fn small(&self) -> Vec<(u64, u8)> {
        self.queue(&self.policy.small)
    }

    fn main(&self) -> Vec<(u64, u8)> {
        self.queue(&self.policy.main)
    }

    /// Checks the conditions that hold after every step.
    fn check(&self) {
        let policy = &self.policy;
        let total: usize = self.index.values().map(|(_, page)| page.weight.get()).sum();
        assert_eq!(policy.used(), total);
        assert!(policy.used() <= policy.budget);
        assert_eq!(policy.small.len() + policy.main.len(), self.index.len());
        let main: usize = self
            .main()
            .iter()
            .map(|(key, _)| self.index[key].1.weight.get())
            .sum();
        assert_eq!(policy.main_weight, main);
        assert!(policy.ghosts.weight() <= policy.budget + policy.budget / 2);
        assert!(policy.ghosts.len() <= policy.ghosts.weight());
    }
}

fn page(key: u64, weight: usize) -> CachedPage {
    CachedPage {
        key,
        weight: weight.into(),
        visits: 0.into(),
        cost: 1.0,
        dead: false.into(),
        restless: false,
    }
}

#[derive(Clone, Debug)]
enum PolicyStep {
    Access(u64, usize),
    Remove(u64),
    Reweigh(u64, usize),
}

/// Mostly requests for few keys, sometimes for many, as in a trace.
fn step(heaviest: usize) -> impl Strategy<Value = PolicyStep> {
    let key = prop_oneof![4 => 1..12u64, 2 => 1..40u64, 1 => 1..1000u64];
    prop_oneof![
        20 => (key.clone(), 1..=heaviest).prop_map(|(key, weight)| PolicyStep::Access(key, weight)),
        1 => key.clone().prop_map(PolicyStep::Remove),
        1 => (key, 0..=heaviest).prop_map(|(key, weight)| PolicyStep::Reweigh(key, weight)),
    ]
}

fn agree(budget: usize, steps: Vec<PolicyStep>) {
    let (mut cache, mut model) = (Cache::new(budget), Model::new(budget));
    for step in steps {
        let mut gone = Vec::new();
        match step {
            PolicyStep::Access(key, weight) => {
                let hit = model.access(key, weight, &mut gone);
                assert_eq!(cache.access(key, weight), (hit, gone));
            }
            PolicyStep::Remove(key) => {
                model.remove(key);
                cache.remove(key);
            }
            PolicyStep::Reweigh(key, weight) if model.find(key).is_some() => {
                model.reweigh(key, weight, &mut gone);
                assert_eq!(cache.reweigh(key, weight), gone);
            }
            PolicyStep::Reweigh(..) => {}
        }
        let model_queue =
            |queue: &std::collections::VecDeque<super::model::Item>| -> Vec<(u64, u8)> {
                queue.iter().map(|item| (item.key, item.visits)).collect()
            };
        assert_eq!(cache.small(), model_queue(&model.small));
        assert_eq!(cache.main(), model_queue(&model.main));
        assert_eq!(cache.policy.used(), model.used());
        let ghosts: Vec<u32> = model
            .ghosts
            .iter()
            .map(|ghost| ghost::fingerprint(ghost.0))
            .collect();
        assert_eq!(
            cache.policy.ghosts.fingerprints().collect::<Vec<_>>(),
            ghosts
        );
    }
}

/// The soak run asks for more.
fn config() -> ProptestConfig {
    let cases = std::env::var("MILLPOND_PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(256),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn unit_weights_are_the_published_algorithm(budget in 0..40usize, steps in prop::collection::vec(step(1), 0..400)) {
        agree(budget, steps);
    }

    #[test]
    fn other_weights_are_the_published_algorithm(budget in 0..200usize, steps in prop::collection::vec(step(60), 0..400)) {
        agree(budget, steps);
    }

    /// Costs and deaths change which entries leave, never the sums.
    #[test]
    fn sums_hold_for_all_entries(
        steps in prop::collection::vec((1..60u64, 0..50usize, prop_oneof![Just(1.0f32), Just(9.0), Just(0.1), Just(f32::NAN), Just(-1.0)], 0..8u8), 0..400),
    ) {
        let mut cache = Cache::new(300);
        for (key, weight, cost, whim) in steps {
            if !cache.visit(key) {
                cache.put(CachedPage { cost, restless: whim == 7, ..page(key, weight) });
            } else if whim == 0 {
                cache.index[&key].1.dead.set(true);
            } else if whim == 1 {
                cache.reweigh(key, weight * 8);
            } else if whim == 2 {
                cache.remove(key);
            }
        }
    }
}

#[test]
fn a_scan_does_not_wash_out_what_is_used() {
    let mut cache = Cache::new(100);
    for _ in 0..3 {
        (0..40).for_each(|key| drop(cache.access(key, 1)));
    }
    (1000..10_000).for_each(|key| drop(cache.access(key, 1)));
    assert!((0..40).all(|key| cache.visit(key)));
}

#[test]
fn a_key_that_returns_while_remembered_goes_to_main() {
    let mut cache = Cache::new(4);
    (1..=5).for_each(|key| drop(cache.access(key, 1)));
    assert!(!cache.index.contains_key(&1));
    cache.access(1, 1);
    assert_eq!(cache.main(), [(1, 0)]);
}

#[test]
fn an_expensive_entry_needs_one_visit_and_a_cheap_one_three() {
    for (cost, needed) in [
        (9.0, 1),
        (4.0, 1),
        (3.9, 2),
        (1.0, 2),
        (0.26, 2),
        (0.25, 3),
        (0.0, 3),
        (f32::NAN, 2),
    ] {
        for visits in 0..=MAX_VISITS {
            let mut cache = Cache::new(2);
            cache.put(CachedPage {
                cost,
                visits: visits.into(),
                ..page(1, 1)
            });
            cache.put(page(2, 1));
            cache.put(page(3, 1));
            assert_eq!(
                cache.index.contains_key(&1),
                visits >= needed,
                "cost {cost}, {visits} visits"
            );
        }
    }
}

#[test]
fn an_expensive_entry_gets_one_more_round_in_main() {
    let rounds = |cost| {
        let mut cache = Cache::new(8);
        cache.put(CachedPage {
            cost,
            visits: 3.into(),
            ..page(0, 1)
        });
        let mut key = 0;
        // Each newcomer is visited often enough for main, so the hand of main turns.
        while cache.index.contains_key(&0) {
            key += 1;
            cache.put(CachedPage {
                visits: 3.into(),
                ..page(key, 1)
            });
        }
        key
    };
    assert!(rounds(9.0) > rounds(1.0), "{} {}", rounds(9.0), rounds(1.0));
}

#[test]
fn a_dead_entry_leaves_at_once_but_its_key_is_remembered() {
    let mut cache = Cache::new(2);
    cache.put(CachedPage {
        visits: 3.into(),
        dead: true.into(),
        ..page(1, 1)
    });
    cache.put(page(2, 1));
    assert_eq!(cache.put(page(3, 1)), [1]);
    cache.access(1, 1);
    assert_eq!(cache.main(), [(1, 0)]);
    // In main: dead, visited or not.
    cache.visit(1);
    cache.index[&1].1.dead.set(true);
    cache.put(CachedPage {
        visits: 3.into(),
        ..page(4, 1)
    });
    cache.put(CachedPage {
        visits: 3.into(),
        ..page(5, 1)
    });
    cache.put(page(6, 1));
    assert!(!cache.index.contains_key(&1));
}

#[test]
fn what_is_heavier_than_the_budget_evicts_nothing_but_itself() {
    let mut cache = Cache::new(10);
    (1..=10).for_each(|key| drop(cache.access(key, 1)));
    assert_eq!(cache.access(11, 11), (false, vec![11]));
    assert_eq!(cache.reweigh(5, 11), [5]);
    assert_eq!(cache.reweigh(6, usize::MAX), [6]);
    assert_eq!(cache.index.len(), 8);
    assert_eq!(Cache::new(0).access(1, 1), (false, vec![1]));
}

#[test]
fn insertions_may_follow_each_other_without_an_eviction_between() {
    let mut cache = Cache::new(3);
    for key in 1..=6 {
        let page = Rc::new(page(key, 1));
        let handle = cache.policy.insert(page.clone());
        cache.index.insert(key, (handle, page));
    }
    assert_eq!(cache.evict(), [1, 2, 3]);
}

#[test]
fn eviction_ends_though_hits_outrun_it() {
    let mut cache = Cache::new(16);
    for key in 0..100 {
        cache.put(CachedPage {
            visits: 3.into(),
            restless: true,
            ..page(key, 1)
        });
    }
    assert_eq!(cache.index.len(), 16);
}

#[test]
fn ghosts_are_bounded_in_number_even_for_entries_without_weight() {
    let mut ghosts = ghost::Ghosts::new(10);
    for hash in 0..100 {
        ghosts.remember(hash, 0);
    }
    assert_eq!((ghosts.len(), ghosts.weight()), (10, 10));
    ghosts.remember(1000, 11);
    assert!(!ghosts.forget(1000) && ghosts.forget(99) && !ghosts.forget(99));
}

#[test]
fn an_entry_costs_the_policy_64_bytes() {
    assert_eq!(OVERHEAD, 24 + 40);
}

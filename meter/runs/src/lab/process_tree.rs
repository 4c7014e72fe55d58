//! The processes of a server: those of its group, and all that descend from it.

use std::collections::BTreeSet;
use std::fs;

/// One line of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessEntry {
    pid: u32,
    parent: u32,
    group: u32,
    /// True if the process has ended and only its exit status is left.
    is_zombie: bool,
}

/// The living processes of the group of `guard`, except `guard`, and all descendants of `first` (a
/// daemon may leave the group).
pub(super) fn family(guard: u32, first: u32) -> Vec<u32> {
    select(&table(), guard, first)
}

fn table() -> Vec<ProcessEntry> {
    let Ok(folder) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pid = |name: &std::ffi::OsStr| name.to_str()?.parse().ok();
    folder
        .filter_map(|entry| pid(&entry.ok()?.file_name()))
        // A process that ended since the folder was listed is left out.
        .filter_map(|pid: u32| entry(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?))
        .collect()
}

/// `PID (NAME) STATE PPID PGRP …`; a name may hold anything, also brackets.
fn entry(pid: u32, stat: &str) -> Option<ProcessEntry> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let state = words.next()?;
    Some(ProcessEntry {
        pid,
        parent: words.next()?.parse().ok()?,
        group: words.next()?.parse().ok()?,
        is_zombie: matches!(state, "Z" | "X"),
    })
}

fn select(table: &[ProcessEntry], guard: u32, first: u32) -> Vec<u32> {
    let mut family = BTreeSet::from([first]);
    loop {
        let before = family.len();
        let more = table
            .iter()
            .filter(|entry| entry.group == guard || family.contains(&entry.parent))
            .map(|entry| entry.pid)
            .collect::<Vec<_>>();
        family.extend(more);
        if family.len() == before {
            break;
        }
    }
    family.remove(&guard);
    let alive = |pid: &u32| {
        table
            .iter()
            .any(|entry| entry.pid == *pid && !entry.is_zombie)
    };
    family.into_iter().filter(alive).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_the_group_and_its_descendants() {
        let line = |pid, parent, group, state| {
            entry(pid, &format!("{pid} (a) b) {state} {parent} {group} 1 0")).unwrap()
        };
        let table = [
            line(9, 1, 9, 'S'),
            line(10, 1, 9, 'S'),
            line(11, 10, 9, 'R'),
            line(12, 11, 12, 'S'),
            line(13, 12, 13, 'S'),
            line(14, 10, 9, 'Z'),
            line(15, 1, 9, 'S'),
            line(20, 1, 20, 'S'),
        ];
        assert_eq!(select(&table, 9, 10), [10, 11, 12, 13, 15]);
        assert!(select(&table, 29, 30).is_empty());
        assert_eq!(entry(1, "garbage"), None);
    }

    #[test]
    fn this_process_is_in_its_own_family() {
        let own = std::process::id();
        assert!(family(0, own).contains(&own));
    }
}

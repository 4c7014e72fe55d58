//! What the kernel says of this process that spoils a measurement: time for which its cgroup's CPU quota stopped it, and
//! time for which its threads waited for a core.

use std::fs;
use std::path::{Path, PathBuf};

use crate::clock::Nanos;

/// Where to read it.
pub(crate) struct Own {
    /// `cpu.stat` of the own cgroup and of those above it: the quota of each holds.
    stats: Vec<PathBuf>,
}

/// What had added up at one moment; `None` where the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Time for which a quota kept ready threads of the cgroup from running, summed over cores; of several cgroups
    /// the largest.
    pub(crate) throttled: Option<Nanos>,
    /// Time for which the calling thread was ready and had no core.
    pub(crate) run_delay: Option<Nanos>,
}

impl Usage {
    /// What was added since `start`.
    pub(crate) fn since(self, start: Self) -> Self {
        let less = |now: Option<Nanos>, then: Option<Nanos>| Some(now?.saturating_sub(then?));
        Self {
            throttled: less(self.throttled, start.throttled),
            run_delay: less(self.run_delay, start.run_delay),
        }
    }
}

impl Own {
    /// Finds the cgroup of this process, of version 2 or the first.
    pub(crate) fn find() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let folders = folders(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"));
        let files = folders.iter().map(|folder| folder.join("cpu.stat"));
        Self {
            stats: files.filter(|file| file.exists()).collect(),
        }
    }

    /// For the calling thread.
    pub(crate) fn read(&self) -> Usage {
        let texts = self
            .stats
            .iter()
            .filter_map(|file| fs::read_to_string(file).ok());
        let schedstat = fs::read_to_string("/proc/thread-self/schedstat");
        Usage {
            throttled: texts.filter_map(|text| throttled(&text)).max(),
            run_delay: schedstat.ok().and_then(|text| run_delay(&text)),
        }
    }
}

/// The folders of the cgroup in which the CPU is controlled, and of those above it, as far as they are mounted.
fn folders(cgroup: &str, mountinfo: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in mountinfo.lines() {
        // proc_pid_mountinfo(5): root and mount point are the fourth and fifth field; type and options follow the dash.
        let Some((place, kind)) = line.split_once(" - ") else {
            continue;
        };
        let place: Vec<&str> = place.split(' ').collect();
        let [root, mount] = [place.get(3), place.get(4)].map(|field| field.copied().unwrap_or("/"));
        let mut kind = kind.split(' ');
        let (name, options) = (kind.next(), kind.nth(1).unwrap_or_default());
        let path = match name {
            Some("cgroup2") => path_of(cgroup, ""),
            Some("cgroup") if options.split(',').any(|option| option == "cpu") => {
                path_of(cgroup, "cpu")
            }
            _ => None,
        };
        let Some(path) = path else { continue };
        let below = path
            .strip_prefix(root.trim_end_matches('/'))
            .unwrap_or(path);
        let (mount, below) = (Path::new(mount), Path::new(below.trim_start_matches('/')));
        found.extend(below.ancestors().map(|part| mount.join(part)));
    }
    found
}

/// The path of the cgroup that has the controller, from `/proc/self/cgroup`: lines of `number:controllers:path`. Version 2
/// has one line, with the number 0 and no controllers.
fn path_of<'a>(cgroup: &'a str, controller: &str) -> Option<&'a str> {
    cgroup.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let has = controllers.split(',').any(|name| name == controller);
        (has && (number == "0") == controller.is_empty()).then_some(path)
    })
}

/// `throttled_usec` of version 2, `throttled_time` (nanoseconds) of the first.
fn throttled(stat: &str) -> Option<Nanos> {
    stat.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        let value: u64 = value.trim().parse().ok()?;
        match name {
            "throttled_usec" => Some(value.saturating_mul(1000)),
            "throttled_time" => Some(value),
            _ => None,
        }
    })
}

/// The second figure. The others are time on a core and the number of turns.
fn run_delay(schedstat: &str) -> Option<Nanos> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found_with_what_is_above() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n\
                      31 24 0:27 / /proc rw - proc proc rw\n";
        let found = folders("0::/user/one\n", mounts);
        let expected = [
            "/sys/fs/cgroup/user/one",
            "/sys/fs/cgroup/user",
            "/sys/fs/cgroup/",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
        let mounts = "33 24 0:28 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      34 24 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let found = folders("3:memory:/m\n2:cpu,cpuacct:/docker/abc/x\n0::/\n", mounts);
        let expected = [
            "/sys/fs/cgroup/cpu,cpuacct/x",
            "/sys/fs/cgroup/cpu,cpuacct/",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
        assert!(folders("", "").is_empty() && folders("x", "y - z").is_empty());
    }

    #[test]
    fn throttling_is_read_in_the_unit_of_its_name() {
        assert_eq!(
            throttled("usage_usec 7\nnr_throttled 2\nthrottled_usec 35\n"),
            Some(35_000)
        );
        assert_eq!(throttled("nr_periods 1\nthrottled_time 35\n"), Some(35));
        assert_eq!(throttled("usage_usec 7\n"), None, "the root of version 2");
        assert_eq!(run_delay("1 23 4\n"), Some(23));
        assert_eq!(run_delay(""), None);
    }

    #[test]
    fn what_is_not_known_stays_unknown() {
        let known = Usage {
            throttled: Some(5),
            run_delay: Some(9),
        };
        let unknown = Usage::default();
        let expected = Usage {
            throttled: Some(0),
            run_delay: Some(0),
        };
        assert_eq!(known.since(known), expected);
        assert_eq!(known.since(unknown), unknown);
    }
}

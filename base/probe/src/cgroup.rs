//! The CPU quota of a process's control group, version 1 or 2, with that of the groups around it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::model::Throttle;

/// Groups in which a process's quotas stand: its own and those above, of which each has quotas of
/// its own.
#[derive(Debug)]
pub struct Group {
    folders: Vec<PathBuf>,
}

impl Group {
    /// The groups that count the CPU time of the process `pid`.
    ///
    /// # Errors
    /// There is no such process, or no control group that counts CPU time is mounted here.
    pub fn of(pid: u32) -> io::Result<Self> {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let mut folders = folders(&groups, &mounts);
        folders.retain(|folder| folder.join("cpu.stat").exists());
        if folders.is_empty() {
            return Err(io::Error::other("no control group for CPU time is mounted"));
        }
        Ok(Self { folders })
    }

    /// The counters of each group that has some, the innermost first. The difference between two
    /// samples shows which group matters: earlier use says nothing.
    ///
    /// # Errors
    /// A group was removed, or no group counts anything.
    pub fn sample(&self) -> io::Result<Vec<Throttle>> {
        let mut all = Vec::new();
        for folder in &self.folders {
            let stat = fs::read_to_string(folder.join("cpu.stat"))?;
            if let Some(mut throttle) = throttle(&stat) {
                throttle.quota_cores = quota(folder);
                all.push(throttle);
            }
        }
        if all.is_empty() {
            return Err(io::Error::other("the control group has no quota to count"));
        }
        Ok(all)
    }
}

/// Cores that the quota of a group allows.
fn quota(folder: &Path) -> Option<f64> {
    let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
    let number = |text: &str| text.trim().parse::<f64>().ok();
    if let Some(text) = read("cpu.max") {
        let (quota, period) = text.trim().split_once(' ')?;
        return Some(number(quota)? / number(period)?);
    }
    let quota = number(&read("cpu.cfs_quota_us")?).filter(|quota| *quota > 0.0)?;
    Some(quota / number(&read("cpu.cfs_period_us")?)?)
}

/// The folders of the group that controls CPU time, and of the groups above it, as far as they are
/// mounted.
fn folders(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        // proc_pid_mountinfo(5): root and mount point are the fourth and fifth field; type and
        // options follow the dash.
        let Some((place, kind)) = line.split_once(" - ") else {
            continue;
        };
        let place: Vec<&str> = place.split(' ').collect();
        let [root, mount] = [place.get(3), place.get(4)].map(|field| field.copied().unwrap_or("/"));
        let mut kind = kind.split(' ');
        let (name, options) = (kind.next(), kind.nth(1).unwrap_or_default());
        let path = match name {
            Some("cgroup2") => path_of(groups, ""),
            Some("cgroup") if options.split(',').any(|option| option == "cpu") => {
                path_of(groups, "cpu")
            }
            _ => None,
        };
        let Some(path) = path.map(Path::new) else {
            continue;
        };
        // In a container the path may be a path of the host; then the mount is the group itself or
        // a group above it.
        let below = path.strip_prefix(root).or(path.strip_prefix("/"));
        let below = below.unwrap_or(path);
        found.extend(below.ancestors().map(|part| Path::new(mount).join(part)));
    }
    found
}

/// The path of the group that has the controller, from `/proc/PID/cgroup`: lines of
/// `number:controllers:path`. Version 2 has one line, with the number 0 and no controllers.
fn path_of<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let has = controllers.split(',').any(|name| name == controller);
        (has && (number == "0") == controller.is_empty()).then_some(path)
    })
}

/// `cpu.stat`: version 1 has `throttled_time` in nanoseconds, version 2 `throttled_usec`.
fn throttle(stat: &str) -> Option<Throttle> {
    let value = |key: &str| -> Option<u64> {
        stat.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?
            .trim()
            .parse()
            .ok()
    };
    Some(Throttle {
        quota_cores: None,
        periods: value("nr_periods")?,
        throttled: value("nr_throttled")?,
        throttled_us: value("throttled_usec")
            .or_else(|| value("throttled_time").map(|ns| ns / 1000))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_understood() {
        let v1 = throttle("nr_periods 10\nnr_throttled 4\nthrottled_time 5000\n").unwrap();
        let v2 =
            throttle("usage_usec 9\nnr_periods 10\nnr_throttled 4\nthrottled_usec 5\n").unwrap();
        assert_eq!(v1, v2);
        assert!(throttle("usage_usec 9\n").is_none());
    }

    #[test]
    fn a_group_is_found_where_it_is_mounted_with_those_above() {
        let found = |groups: &str, mounts: &str, expected: &[&str]| {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(folders(groups, mounts), expected);
        };
        found(
            "0::/user/one\n",
            "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n\
             31 24 0:27 / /proc rw - proc proc rw\n",
            &[
                "/sys/fs/cgroup/user/one",
                "/sys/fs/cgroup/user",
                "/sys/fs/cgroup/",
            ],
        );
        found(
            "3:memory:/m\n2:cpu,cpuacct:/docker/abc/x\n0::/\n",
            "33 24 0:28 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
             34 24 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            &[
                "/sys/fs/cgroup/cpu,cpuacct/x",
                "/sys/fs/cgroup/cpu,cpuacct/",
            ],
        );
        // Both versions beside each other.
        found(
            "2:cpuacct:/\n1:cpu:/a\n0::/\n",
            "32 31 0:29 / /cg/cpu rw,relatime - cgroup cgroup rw,cpu\n\
             41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n",
            &["/cg/cpu/a", "/cg/cpu/", "/cg/unified/"],
        );
        found("", "", &[]);
        found("x", "y - z", &[]);
    }
}

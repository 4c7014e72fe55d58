//! The CPU quota of a process's control group, version 1 or 2, with that of the groups around it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use procfs::process::Process;

use super::model::Throttle;

/// Where a process's quotas stand: its group and those above.
#[derive(Debug)]
pub(super) struct Group {
    folders: Vec<PathBuf>,
    is_v2: bool,
}

impl Group {
    /// The group of `process` that counts CPU time.
    ///
    /// # Errors
    /// No control group that limits CPU time is mounted here.
    pub(super) fn of(process: &Process) -> io::Result<Self> {
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", process.pid()))?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let v1 = path_in(&groups, |controllers| {
            controllers.split(',').any(|name| name == "cpu")
        })
        .zip(mounted(&mounts, "cgroup", Some("cpu")));
        let v2 = path_in(&groups, str::is_empty).zip(mounted(&mounts, "cgroup2", None));
        let (is_v2, (path, root)) = match (v1, v2) {
            (Some(v1), _) => (false, v1),
            (None, Some(v2)) => (true, v2),
            (None, None) => {
                return Err(io::Error::other("no control group for CPU time is mounted"));
            }
        };
        let below = path.trim_start_matches('/');
        let mut folders: Vec<PathBuf> = root
            .join(below)
            .ancestors()
            .take_while(|folder| folder.starts_with(&root))
            .filter(|folder| folder.join("cpu.stat").exists())
            .map(Path::to_path_buf)
            .collect();
        if folders.is_empty() {
            // In a container the path is one of the host; the group itself is mounted at the root.
            folders.push(root);
        }
        Ok(Self { folders, is_v2 })
    }

    /// The counters of each group that has some, the innermost first. Which of them matters is seen from what they have
    /// counted between two samples: what was used up before says nothing.
    ///
    /// # Errors
    /// A group has gone, or none counts anything.
    pub(super) fn sample(&self) -> io::Result<Vec<Throttle>> {
        let mut all = Vec::new();
        for folder in &self.folders {
            let stat = fs::read_to_string(folder.join("cpu.stat"))?;
            if let Some(mut throttle) = throttle(&stat) {
                throttle.quota_cores = self.quota(folder);
                all.push(throttle);
            }
        }
        if all.is_empty() {
            return Err(io::Error::other("the control group has no quota to count"));
        }
        Ok(all)
    }

    /// Cores that the quota allows.
    fn quota(&self, folder: &Path) -> Option<f64> {
        let number = |file: &str| -> Option<f64> {
            let text = fs::read_to_string(folder.join(file)).ok()?;
            text.trim().parse().ok()
        };
        if self.is_v2 {
            let text = fs::read_to_string(folder.join("cpu.max")).ok()?;
            let (quota, period) = text.trim().split_once(' ')?;
            return Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?);
        }
        let quota = number("cpu.cfs_quota_us").filter(|quota| *quota > 0.0)?;
        Some(quota / number("cpu.cfs_period_us")?)
    }
}

/// The path in `/proc/PID/cgroup` whose controllers are the wanted ones.
fn path_in(groups: &str, wanted: impl Fn(&str) -> bool) -> Option<String> {
    let mut parts = groups.lines().map(|line| line.splitn(3, ':'));
    parts.find_map(|mut parts| {
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        wanted(controllers).then(|| path.to_owned())
    })
}

/// Where a file system of this type, with this option, is mounted (`/proc/PID/mountinfo`, see proc(5)).
fn mounted(mounts: &str, kind: &str, option: Option<&str>) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut system = system.split(' ');
        let is_kind = system.next() == Some(kind);
        let options = system.nth(1).unwrap_or_default();
        let has_option = option.is_none_or(|option| options.split(',').any(|one| one == option));
        (is_kind && has_option).then(|| mount.split(' ').nth(4).map(PathBuf::from))?
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
    fn a_group_is_found_where_it_is_mounted() {
        let groups = "2:cpuacct:/\n1:cpu:/a/b\n0::/c\n";
        assert_eq!(path_in(groups, |name| name == "cpu"), Some("/a/b".into()));
        assert_eq!(path_in(groups, str::is_empty), Some("/c".into()));
        let mounts = "32 31 0:29 / /cg/cpu rw,relatime - cgroup cgroup rw,cpu\n\
                      41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            mounted(mounts, "cgroup", Some("cpu")),
            Some("/cg/cpu".into())
        );
        assert_eq!(mounted(mounts, "cgroup2", None), Some("/cg/unified".into()));
        assert_eq!(mounted(mounts, "cgroup", Some("memory")), None);
    }
}

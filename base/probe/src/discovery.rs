//! Finds the processes that listen on a port, and the children of processes.

use std::collections::{HashMap, HashSet};
use std::io;

use procfs::net::TcpState;
use procfs::process::{FDTarget, Process, all_processes};

/// Processes that were found, and why some may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listening {
    /// Their ids, lowest first.
    pub pids: Vec<i32>,
    /// Processes whose descriptors could not be looked at.
    pub denied: usize,
}

/// The processes that listen for TCP on `port`, in this network namespace: `/proc/net/tcp` has the
/// inodes of their sockets, `/proc/PID/fd` shows which process holds a socket.
///
/// # Errors
/// `/proc` cannot be read.
pub fn listening(port: u16) -> io::Result<Listening> {
    let mut entries = procfs::net::tcp().map_err(io::Error::other)?;
    // Without IPv6 there is no such file.
    entries.extend(procfs::net::tcp6().unwrap_or_default());
    let sockets: HashSet<u64> = entries
        .iter()
        .filter(|entry| entry.state == TcpState::Listen && entry.local_address.port() == port)
        .map(|entry| entry.inode)
        .collect();
    let mut found = Listening::default();
    if sockets.is_empty() {
        return Ok(found);
    }
    for process in all_processes().map_err(io::Error::other)?.flatten() {
        match process.fd() {
            Ok(descriptors) => {
                let holds = descriptors
                    .flatten()
                    .any(|descriptor| matches!(descriptor.target, FDTarget::Socket(inode) if sockets.contains(&inode)));
                if holds {
                    found.pids.push(process.pid);
                }
            }
            Err(procfs::ProcError::PermissionDenied(_)) => found.denied += 1,
            // It has ended meanwhile.
            Err(_) => {}
        }
    }
    found.pids.sort_unstable();
    Ok(found)
}

/// All processes below `pids`, children of children included, without `pids` themselves.
///
/// # Errors
/// `/proc` cannot be read.
pub fn children_of(pids: &[i32]) -> io::Result<Vec<i32>> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for process in all_processes().map_err(io::Error::other)?.flatten() {
        if let Ok(parent) = parent(&process) {
            children.entry(parent).or_default().push(process.pid);
        }
    }
    let mut seen: HashSet<i32> = pids.iter().copied().collect();
    let (mut next, mut below) = (pids.to_vec(), Vec::new());
    while let Some(pid) = next.pop() {
        for &child in children.get(&pid).map_or(&[][..], Vec::as_slice) {
            if seen.insert(child) {
                below.push(child);
                next.push(child);
            }
        }
    }
    below.sort_unstable();
    Ok(below)
}

fn parent(process: &Process) -> Result<i32, procfs::ProcError> {
    process.stat().map(|stat| stat.ppid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let me = std::process::id().cast_signed();
        assert!(listening(port).unwrap().pids.contains(&me));
        drop(listener);
        assert_eq!(listening(port).unwrap().pids, []);
    }

    #[test]
    fn a_child_is_found_below_its_parent() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let below = children_of(&[std::process::id().cast_signed()]).unwrap();
        assert!(below.contains(&child.id().cast_signed()), "{below:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}

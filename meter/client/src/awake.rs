//! Cores that stay awake while they have nothing to do.
//!
//! An idle core goes to sleep, and whoever wakes one of its threads pays for it: the core is interrupted, which on a virtual
//! machine the host has to be asked to do, for several microseconds. A core that looks again and again whether there is something
//! to do sees for itself. The kernel's idle loop does so on all cores while somebody holds `/dev/cpu_dma_latency` open and demands
//! 0 µs there (Linux, `Documentation/admin-guide/pm/cpuidle.rst`, "Power Management Quality of Service for CPUs"): it then chooses
//! only idle states that take no time to leave.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use crate::Error;

/// Whoever has this open takes part in what all demand.
const DEVICE: &str = "/dev/cpu_dma_latency";
/// What the first core's idle states are; all cores have the same.
const STATES: &str = "/sys/devices/system/cpu/cpu0/cpuidle";

/// Keeps the idle cores of this machine awake until it is dropped, or this process ends however it does.
#[derive(Debug)]
pub struct Awake {
    _demand: File,
}

impl Awake {
    /// `None` if it is not wanted.
    ///
    /// # Errors
    /// The kernel has no idle state in which cores stay awake, or does not let this process demand it.
    pub fn hold(wanted: bool) -> Result<Option<Self>, Error> {
        match wanted {
            true => demand(Path::new(DEVICE), Path::new(STATES)).map(Some),
            false => Ok(None),
        }
    }

    /// Whether it could be held now; demands nothing.
    pub fn can_be_held() -> Result<(), Error> {
        open(Path::new(DEVICE), Path::new(STATES)).map(drop)
    }
}

fn demand(device: &Path, states: &Path) -> Result<Awake, Error> {
    let mut file = open(device, states)?;
    let refused = |error: std::io::Error| cannot(&format!("{}: {error}", device.display()));
    file.write_all(&0_i32.to_ne_bytes()).map_err(refused)?;
    // It reads as what all who have it open demand together.
    let mut now = [0; 4];
    file.read_exact(&mut now).map_err(refused)?;
    match i32::from_ne_bytes(now) {
        0 => Ok(Awake { _demand: file }),
        other => {
            let device = device.display();
            Err(cannot(&format!("{device} was told 0 µs and says {other}")))
        }
    }
}

/// The device, if it would help.
fn open(device: &Path, states: &Path) -> Result<File, Error> {
    look_at(states)?;
    let opened = OpenOptions::new().read(true).write(true).open(device);
    opened.map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::PermissionDenied => "; run as root, or let them sleep",
            _ => "",
        };
        cannot(&format!("{}: {error}{hint}", device.display()))
    })
}

/// With a demand of 0 µs the kernel chooses among the states that are said to take no time to leave. One of them must poll, and no other may
/// be among them: a halt of which the firmware says no time has 0 µs as well.
fn look_at(states: &Path) -> Result<(), Error> {
    let read = |state: usize, what: &str| {
        let text = fs::read_to_string(states.join(format!("state{state}")).join(what)).ok()?;
        Some(text.trim().to_owned())
    };
    let name = read(0, "name").unwrap_or_default();
    // Its name on x86, and on POWER.
    if !["POLL", "snooze"].contains(&name.as_str()) {
        return Err(cannot(
            "the kernel has no idle state in which a core looks for work instead",
        ));
    }
    let halts_at_once = (1..)
        .map_while(|state| read(state, "latency"))
        .any(|latency| latency == "0");
    match halts_at_once {
        true => Err(cannot(
            "the kernel takes the time to leave one of its other idle states for none",
        )),
        false => Ok(()),
    }
}

fn cannot(why: &str) -> Error {
    Error::Plan(format!("idle cores cannot be kept awake here: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often this process has the device open.
    fn held() -> usize {
        let open = fs::read_dir("/proc/self/fd").unwrap();
        let files = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        files.filter(|file| file == Path::new(DEVICE)).count()
    }

    #[test]
    fn cores_are_kept_awake_for_as_long_as_it_is_held() {
        assert!(Awake::hold(false).unwrap().is_none());
        // A container, or somebody who is not root, has to be told so.
        match Awake::hold(true) {
            Ok(it) => {
                assert_eq!(held(), 1);
                drop(it);
                assert!(Awake::can_be_held().is_ok());
            }
            Err(error) => {
                let said = error.to_string();
                assert!(said.starts_with("idle cores cannot be kept"), "{said}");
                assert!(Awake::can_be_held().is_err());
            }
        }
        assert_eq!(held(), 0);
    }

    #[test]
    fn where_it_would_do_nothing_it_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str, text: &[u8]| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        let states = |set: &str, states: &[(&str, &str)]| {
            for (number, (name, latency)) in states.iter().enumerate() {
                at(&format!("{set}/state{number}/name"), name.as_bytes());
                at(&format!("{set}/state{number}/latency"), latency.as_bytes());
            }
            folder.path().join(set)
        };
        let polls = states("polls", &[("POLL\n", "0\n"), ("C1\n", "1\n")]);
        let nowhere = folder.path().join("nowhere");
        let refused = |device: &Path, states: &Path| {
            let error = demand(device, states).unwrap_err().to_string();
            error.replace("idle cores cannot be kept awake here: ", "")
        };
        let said = refused(&nowhere, &polls);
        assert!(said.contains("No such file") && !said.contains("root"));
        for none in [nowhere.clone(), states("arm", &[("WFI", "1")])] {
            assert!(refused(&nowhere, &none).starts_with("the kernel has no idle"));
        }
        let halts = states("halts", &[("POLL", "0"), ("C1", "0")]);
        assert!(refused(&nowhere, &halts).contains("for none"));
        // What is written is not what is read: here, as a file goes on behind what was written.
        let deaf = at("deaf", &[1; 8]);
        let said = refused(&deaf, &polls);
        assert!(said.ends_with("was told 0 µs and says 16843009"), "{said}");
    }
}

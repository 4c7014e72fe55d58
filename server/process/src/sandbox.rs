//! The sandbox: what the kernel lets this process and its threads do from now on. There is no way
//! back, and what the process starts is in it too.
//!
//! Files are held by Landlock: what is not named cannot be opened, made, renamed or removed.
//! Descriptors that are open already stay usable. System calls that no server needs are refused by
//! seccomp with EPERM. That list names what is forbidden: a list of what is allowed would end the
//! process when a new version of a library uses another call.

#![allow(unsafe_code, reason = "no crate in use has these system calls")]

use std::fs;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::PathBuf;

use libc::{c_int, c_long, sock_filter, sock_fprog};
use rustix::fs::{Mode, OFlags, open};

/// Files that the process may use, each with what is below it.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// Files and folders that may be read.
    pub read: Vec<PathBuf>,
    /// Files and folders that may also be changed.
    pub write: Vec<PathBuf>,
}

/// Enters the sandbox. What the kernel does not have is left out and returned by its name. To be
/// called while the process has one thread, and after
/// [`give_up_new_ones`](crate::privileges::give_up_new_ones).
///
/// # Errors
/// The kernel has a part of it and refuses.
pub fn enter(reach: &Reach) -> io::Result<Vec<&'static str>> {
    let mut missing = Vec::new();
    if !restrict_files(reach)? {
        missing.push("Landlock");
    }
    if !refuse_calls()? {
        missing.push("seccomp");
    }
    Ok(missing)
}

/// The rights over files that each version of Landlock knows; the bits of `linux/landlock.h`.
const RIGHTS: [u64; 6] = [0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff];
/// Reading a file, and listing a folder.
const READ: u64 = (1 << 2) | (1 << 3);
/// The rights that a rule for a single file may have.
const OF_FILES: u64 = EXECUTE | (1 << 1) | (1 << 2) | (1 << 14) | (1 << 15);
/// Starting a program is granted nowhere.
const EXECUTE: u64 = 1;
/// From this version on signals and unix sockets without a path, of other processes, can be
/// refused.
const SCOPES_SINCE: usize = 6;
const SCOPES: u64 = 0b11;
const VERSION: u32 = 1;
const RULE_PATH_BENEATH: c_int = 1;

#[repr(C)]
struct Ruleset {
    files: u64,
    network: u64,
    scopes: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    rights: u64,
    folder: c_int,
}

/// False if the kernel has no Landlock.
fn restrict_files(reach: &Reach) -> io::Result<bool> {
    let none = std::ptr::null::<Ruleset>();
    // SAFETY: with this flag the call takes no ruleset and returns a version.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
    // The first version refuses every link from folder to folder, which uploads need.
    let Ok(version @ 2..) = usize::try_from(version) else {
        return Ok(false);
    };
    let handled = RIGHTS[version.min(RIGHTS.len() - 1)];
    let ruleset = Ruleset {
        files: handled,
        network: 0,
        scopes: if version >= SCOPES_SINCE { SCOPES } else { 0 },
    };
    // SAFETY: the pointer and the size are those of the ruleset; an older kernel takes a longer one
    // whose rest is zero.
    let fd = unsafe {
        let size = size_of::<Ruleset>();
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const ruleset,
            size,
            0,
        )
    };
    let fd = c_int::try_from(checked(fd)?).map_err(io::Error::other)?;
    // SAFETY: the call has made the descriptor, and nothing else has it.
    let ruleset = unsafe { OwnedFd::from_raw_fd(fd) };
    let reads = reach.read.iter().map(|path| (path, READ));
    let writes = reach.write.iter().map(|path| (path, !EXECUTE));
    for (path, rights) in reads.chain(writes) {
        // What is not there needs no rule; a folder that is made later lies in one of those above.
        let Ok(beneath) = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else {
            continue;
        };
        let is_folder = fs::metadata(path).is_ok_and(|of| of.is_dir());
        let rule = PathBeneath {
            rights: rights & handled & if is_folder { u64::MAX } else { OF_FILES },
            folder: beneath.as_raw_fd(),
        };
        // SAFETY: the descriptors are open, and the rule is of the type that its number names.
        checked(unsafe {
            let (call, to) = (libc::SYS_landlock_add_rule, ruleset.as_raw_fd());
            libc::syscall(call, to, RULE_PATH_BENEATH, &raw const rule, 0)
        })?;
    }
    // SAFETY: the call takes an open descriptor.
    checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) })?;
    Ok(true)
}

fn checked(returned: c_long) -> io::Result<c_long> {
    match returned {
        0.. => Ok(returned),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The number of this machine's system calls (`linux/audit.h`), where the list below was looked at.
const MACHINE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};
/// The calls of x86-64 with short pointers have numbers from here on: the same calls a second time.
const SECOND_NUMBERS: u32 = 0x4000_0000;

/// Programs, other processes, mounts and roots, the kernel itself, clocks, and rings that make
/// calls past this list.
const REFUSED: [c_long; 53] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_personality,
    libc::SYS_lookup_dcookie,
    libc::SYS_fanotify_init,
];

/// The flags of `clone` that make namespaces.
const NAMESPACES: u32 = 0x7e02_0000;

/// False if the kernel has no seccomp, or the machine no list.
fn refuse_calls() -> io::Result<bool> {
    let Some(machine) = MACHINE else {
        return Ok(false);
    };
    let mut program = program(machine)?;
    let filter = sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the filter has as many instructions as it says, and the call copies them.
    let set = checked(unsafe {
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        libc::syscall(libc::SYS_seccomp, mode, 0, &raw const filter)
    });
    match set {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A program for the kernel (`linux/filter.h`): EPERM for what is refused and for calls by the
/// numbers of another machine, else the call.
fn program(machine: u32) -> io::Result<Vec<sock_filter>> {
    let of = |code: u32, k: u32, jt: u8, jf: u8| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = |at: u32| of(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at, 0, 0);
    let end = |action: u32| of(libc::BPF_RET, action, 0, 0);
    let refuse = end(libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs());
    let (is, is_from) = (libc::BPF_JMP | libc::BPF_JEQ, libc::BPF_JMP | libc::BPF_JGE);
    let number_of_machine = mem::offset_of!(libc::seccomp_data, arch) as u32;
    let number_of_call = mem::offset_of!(libc::seccomp_data, nr) as u32;
    let mut program = vec![
        load(number_of_machine),
        of(is, machine, 1, 0),
        refuse,
        load(number_of_call),
        of(is_from, SECOND_NUMBERS, 0, 1),
        refuse,
    ];
    for call in REFUSED {
        let call = u32::try_from(call).map_err(io::Error::other)?;
        program.extend([of(is, call, 0, 1), refuse]);
    }
    let allow = end(libc::SECCOMP_RET_ALLOW);
    let argument = |number: usize| {
        // The lower half, on machines that keep it first.
        let size = size_of::<u64>();
        load((mem::offset_of!(libc::seccomp_data, args) + number * size) as u32)
    };
    let has = libc::BPF_JMP | libc::BPF_JSET;
    let of_call = |call: c_long| u32::try_from(call).map_err(io::Error::other);
    // A thread, and no namespace of its own. The newer call has its flags in memory, and the
    // library takes the older one where there is no newer.
    program.extend([
        of(is, of_call(libc::SYS_clone3)?, 0, 1),
        end(libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
        of(is, of_call(libc::SYS_clone)?, 0, 4),
        argument(0),
        of(has, NAMESPACES, 0, 1),
        refuse,
        allow,
    ]);
    // Typing into the terminal that the server was started on.
    program.extend([
        of(is, of_call(libc::SYS_ioctl)?, 0, 5),
        argument(1),
        of(is, libc::TIOCSTI as u32, 1, 0),
        of(is, libc::TIOCLINUX as u32, 0, 1),
        refuse,
        allow,
    ]);
    program.push(allow);
    Ok(program)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::path::Path;
    use std::process::Command;

    use super::{Reach, enter};
    use crate::privileges::give_up_new_ones;

    /// Has the folder for the part of the test that enters the sandbox, in a process of its own.
    const INSIDE: &str = "MILLPOND_TEST_SANDBOX";

    #[test]
    fn what_is_not_named_is_out_of_reach() {
        if let Some(folder) = std::env::var_os(INSIDE) {
            return inside(Path::new(&folder));
        }
        let dir = tempfile::tempdir().unwrap();
        for name in ["read", "write", "other"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("file"), name).unwrap();
        }
        let me = std::env::current_exe().unwrap();
        let output = Command::new(me)
            .args([
                "--exact",
                "sandbox::tests::what_is_not_named_is_out_of_reach",
            ])
            .env(INSIDE, dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn inside(folder: &Path) {
        let path = |name: &str| folder.join(name);
        let reach = Reach {
            read: vec![path("read"), path("is-missing")],
            write: vec![path("write"), path("other/file")],
        };
        give_up_new_ones().unwrap();
        let missing = enter(&reach).unwrap();
        let denied = |error: std::io::Error| assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        if !missing.contains(&"Landlock") {
            assert_eq!(fs::read(path("read/file")).unwrap(), b"read");
            denied(fs::write(path("read/file"), "").unwrap_err());
            fs::write(path("write/new"), "").unwrap();
            fs::rename(path("write/new"), path("write/file")).unwrap();
            fs::write(path("other/file"), "changed").unwrap();
            denied(fs::write(path("other/new"), "").unwrap_err());
            denied(fs::read("/etc/passwd").unwrap_err());
        }
        if !missing.contains(&"seccomp") {
            denied(Command::new("/bin/true").spawn().unwrap_err());
            let parent = rustix::process::getppid().unwrap();
            // SAFETY: the call fails, and would else only attach.
            let traced =
                unsafe { libc::ptrace(libc::PTRACE_ATTACH, parent.as_raw_nonzero().get(), 0, 0) };
            assert_eq!(
                (traced, std::io::Error::last_os_error().raw_os_error()),
                (-1, Some(libc::EPERM))
            );
        }
    }
}

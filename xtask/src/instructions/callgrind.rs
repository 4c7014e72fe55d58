//! One run of a program under `valgrind --tool=callgrind`, and what the count depends on.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

/// Only what happens inside this function of `lab/instructions` is counted.
const WITHIN: &str = "*counted_instructions*";

/// glibc has several `memcpy` and picks one by the processor. Valgrind shows every program the same
/// Haswell where the real one has AVX2; the choice is made by hand all the same, so that a newer
/// glibc chooses alike.
const TUNABLES: &str = "glibc.cpu.hwcaps=-AVX2,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM";

/// An installed valgrind.
pub(super) struct Valgrind {
    version: String,
}

impl Valgrind {
    /// Asks it for its version; an `Err` says why it cannot be used.
    pub(super) fn find() -> Result<Self, String> {
        if !has_vectors() {
            return Err("the budgets are of x86-64 with AVX2, and so are the counts".to_owned());
        }
        let output = Command::new("valgrind").arg("--version").output();
        match output {
            Ok(output) if output.status.success() => Ok(Self {
                version: String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            }),
            Ok(output) => Err(format!("valgrind --version: {}", output.status)),
            Err(_) => Err("valgrind is not installed (apt-get install valgrind)".to_owned()),
        }
    }

    /// How many instructions `binary run CASE TIMES` executes where they count. Callgrind's own
    /// file is left at `out`.
    pub(super) fn count(
        &self,
        binary: &Path,
        case: &str,
        times: u32,
        out: &Path,
    ) -> Result<u64, String> {
        let times = times.to_string();
        let output = Command::new("valgrind")
            .args(["--quiet", "--tool=callgrind", "--collect-atstart=no"])
            .arg(format!("--toggle-collect={WITHIN}"))
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(binary)
            .args(["run", case, &times])
            .env("GLIBC_TUNABLES", TUNABLES)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", self.version))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!(
                "{case} under {}: {}\n{said}",
                self.version, output.status
            ));
        }
        let text =
            fs::read_to_string(out).map_err(|error| format!("{}: {error}", out.display()))?;
        match total(&text) {
            Some(0) | None => Err(format!(
                "{case}: callgrind has counted nothing in {WITHIN}; is the function still called so, and not inlined?"
            )),
            Some(total) => Ok(total),
        }
    }
}

/// The last line that sums up a file of callgrind's.
fn total(text: &str) -> Option<u64> {
    let total = |line: &str| line.strip_prefix("totals: ")?.trim().parse().ok();
    text.lines().rev().find_map(total)
}

/// The kind of processor, as far as it decides what code is run.
pub(super) fn processor() -> String {
    let vectors = if has_vectors() { " with AVX2" } else { "" };
    format!("{}{vectors}", std::env::consts::ARCH)
}

#[cfg(target_arch = "x86_64")]
fn has_vectors() -> bool {
    std::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_vectors() -> bool {
    false
}

/// Names the tools that the counts depend on: the compiler, the C library, valgrind.
pub(super) fn tools(valgrind: &Valgrind) -> String {
    let words = |program: &str| -> Vec<String> {
        let output = Command::new(program).arg("--version").output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let text = text.unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect()
    };
    let rustc = words("rustc").into_iter().nth(1).unwrap_or_default();
    let libc = words("ldd").pop().unwrap_or_default();
    format!("rustc {rustc}, glibc {libc}, {}", valgrind.version)
}

#[cfg(test)]
mod tests {
    use super::{processor, total};

    #[test]
    fn the_total_is_the_last() {
        let text = "events: Ir\nsummary: 12\n\nfn=(1)\n1 5\ntotals: 1234\n";
        assert_eq!(total(text), Some(1234));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn the_processor_is_named() {
        assert!(processor().starts_with(std::env::consts::ARCH));
    }
}

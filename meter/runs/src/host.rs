//! The machine on which the client runs. Its name is private and not stored.

use serde::{Deserialize, Serialize};

/// Facts that are needed to compare a figure with another machine's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The processor's model, empty if the kernel does not say.
    pub cpu: String,
    /// Cores that the client may use.
    pub cores: usize,
    /// The kernel and its release.
    pub kernel: String,
    /// The architecture, such as `x86_64`.
    pub machine: String,
}

impl Host {
    /// This machine.
    pub fn here() -> Self {
        let uname = rustix::system::uname();
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            cpu: model(&cpuinfo).unwrap_or_default(),
            cores: millrace_client::limits::cores(),
            kernel: format!(
                "{} {}",
                uname.sysname().to_string_lossy(),
                uname.release().to_string_lossy()
            ),
            machine: uname.machine().to_string_lossy().into_owned(),
        }
    }
}

fn model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_found_where_the_kernel_gives_it() {
        assert_eq!(
            model("processor\t: 0\nmodel name\t: Some CPU\n"),
            Some("Some CPU".into())
        );
        assert_eq!(model("processor\t: 0\n"), None);
    }
}

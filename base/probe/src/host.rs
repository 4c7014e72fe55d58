//! The machine as a whole: cores, pressure, memory, disks.

use std::io;

use procfs::{Current as _, CurrentSI as _, KernelStats, Meminfo};

use super::missing::Missing;
use super::model::{Core, Disk, Memory, Pressure, Sample};

/// Bytes of a sector in `/proc/diskstats`, for every size of the disk's own sectors.
const SECTOR: u64 = 512;

/// Fills in what concerns the whole machine.
pub(super) fn sample(sample: &mut Sample, missing: &mut Missing) {
    sample.cores = cores(missing);
    sample.pressure = Pressure {
        cpu_us: pressure("cpu", missing),
        io_us: pressure("io", missing),
        memory_us: pressure("memory", missing),
    };
    sample.memory = missing
        .or_note("memory", Meminfo::current())
        .and_then(|info| {
            Some(Memory {
                total: info.mem_total,
                available: info.mem_available?,
            })
        });
    sample.disks = disks(missing);
}

fn cores(missing: &mut Missing) -> Vec<Core> {
    let Some(stats) = missing.or_note("cores", KernelStats::current()) else {
        return Vec::new();
    };
    let core = |time: &procfs::CpuTime| Core {
        user: time.user + time.nice,
        system: time.system,
        softirq: time.softirq.unwrap_or_default(),
        irq: time.irq.unwrap_or_default(),
        steal: time.steal.unwrap_or_default(),
        idle: time.idle,
        iowait: time.iowait.unwrap_or_default(),
    };
    stats.cpu_time.iter().map(core).collect()
}

/// The total of the line `some`. The `procfs` crate needs a second line, which older kernels do not
/// give for the CPU.
fn pressure(resource: &str, missing: &mut Missing) -> Option<u64> {
    let read = std::fs::read_to_string(format!("/proc/pressure/{resource}"))
        .and_then(|text| some_total(&text).ok_or_else(|| io::Error::other("is not understood")));
    missing.or_note(&format!("pressure.{resource}"), read)
}

fn some_total(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Disks that are no part of another one, and have done anything at all.
fn disks(missing: &mut Missing) -> Vec<Disk> {
    let Some(all) = missing.or_note("disks", procfs::diskstats()) else {
        return Vec::new();
    };
    let whole = |name: &str| {
        let virtual_one = ["loop", "ram", "zram", "dm-", "md"];
        let is_disk = std::path::Path::new("/sys/block").join(name).exists();
        is_disk && !virtual_one.iter().any(|prefix| name.starts_with(prefix))
    };
    all.into_iter()
        .filter(|disk| disk.reads + disk.writes > 0 && whole(&disk.name))
        .map(|disk| Disk {
            reads: disk.reads,
            writes: disk.writes,
            flushes: disk.flushes.unwrap_or_default(),
            read_bytes: disk.sectors_read * SECTOR,
            written_bytes: disk.sectors_written * SECTOR,
            busy_ms: disk.time_in_progress,
            name: disk.name,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::some_total;

    #[test]
    fn pressure_is_read_with_and_without_a_second_line() {
        let one = "some avg10=0.00 avg60=0.12 avg300=0.01 total=4711\n";
        assert_eq!(some_total(one), Some(4711));
        assert_eq!(
            some_total(&format!("{one}full avg10=0 total=9\n")),
            Some(4711)
        );
        assert_eq!(some_total("full avg10=0 total=9\n"), None);
        assert_eq!(some_total("some total=many\n"), None);
    }
}

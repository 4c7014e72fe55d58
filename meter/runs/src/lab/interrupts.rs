//! How often some cores were interrupted by others, from `/proc/interrupts`.
//!
//! Whoever wakes a thread of an idle core interrupts that core, unless it is still on its way to sleep and will see for itself
//! (Linux, `kernel/sched/core.c`, `call_function_single_prep_ipi`). A virtual machine asks its host to do it, which takes whoever
//! wakes several microseconds: more than the rest of the wake-up.

use std::collections::BTreeSet;
use std::fs;

/// What the kernel calls them, on x86 as on ARM.
const KINDS: [&str; 2] = ["Rescheduling interrupts", "Function call interrupts"];

/// Such interrupts of `cores` since the machine started; `None` for no cores, and where the kernel does not tell.
pub(super) fn taken(cores: &[usize]) -> Option<u64> {
    read(&fs::read_to_string("/proc/interrupts").ok()?, cores)
}

fn read(text: &str, cores: &[usize]) -> Option<u64> {
    let mut lines = text.lines();
    let online: Vec<&str> = lines.next()?.split_whitespace().collect();
    // Each once, however often it is named.
    let cores: BTreeSet<usize> = cores.iter().copied().collect();
    let columns: Option<Vec<usize>> = cores
        .iter()
        .map(|core| online.iter().position(|name| *name == format!("CPU{core}")))
        .collect();
    let columns = columns.filter(|columns| !columns.is_empty())?;
    let mut sum = None;
    for line in lines.filter(|line| KINDS.iter().any(|kind| line.ends_with(kind))) {
        // The name of the line comes before its counts.
        let counts: Vec<&str> = line.split_whitespace().skip(1).collect();
        for &column in &columns {
            let count: u64 = counts.get(column)?.parse().ok()?;
            *sum.get_or_insert(0) += count;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "           CPU0       CPU2       \n \
        24:          1          7  IO-APIC   5-edge      ACPI:Ged\n\
        RES:         10         20   Rescheduling interrupts\n\
        CAL:        300        400   Function call interrupts\n\
        TLB:          5          6   TLB shootdowns\n\
        ERR:          0\n";

    #[test]
    fn the_cores_that_are_asked_for_are_counted_by_their_names() {
        assert_eq!(read(TEXT, &[0]), Some(310));
        assert_eq!(read(TEXT, &[2]), Some(420));
        assert_eq!(read(TEXT, &[2, 0]), Some(730));
        assert_eq!(read(TEXT, &[0, 0]), Some(310));
        let arm = "   CPU0  CPU1\nIPI0:   1   2       Rescheduling interrupts\nIPI1:  30  40       Function call interrupts\n";
        assert_eq!(read(arm, &[1]), Some(42));
    }

    #[test]
    fn what_is_not_there_is_not_zero() {
        assert_eq!(read(TEXT, &[]), None);
        assert_eq!(read(TEXT, &[1]), None, "a core that is offline");
        assert_eq!(read("", &[0]), None);
        assert_eq!(read("  CPU0\n 24:  1  IO-APIC\n", &[0]), None);
        assert_eq!(
            read("  CPU0\nRES: x  Rescheduling interrupts\n", &[0]),
            None
        );
    }
}

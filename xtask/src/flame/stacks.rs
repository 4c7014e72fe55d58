//! Samples of stacks as `perf script` prints them, and the tree that they make.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
};

/// A function, with all samples in which it was called from those above it.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Samples in it and in what it called.
    samples: u64,
    called: BTreeMap<Frame, Self>,
}

/// A function on a stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Frame {
    pub(super) name: String,
    /// True if it is the kernel's.
    pub(super) is_kernel: bool,
}

impl Tree {
    /// The samples of threads with this name, in what `perf script --fields comm,ip,sym,dso` has
    /// printed: for each sample the thread's name, then a line for each function, the innermost
    /// first, then an empty line.
    pub(super) fn of_thread(script: &str, thread: &str) -> Self {
        let mut tree = Self::default();
        for sample in script.split("\n\n") {
            let mut lines = sample.lines().skip_while(|line| line.trim().is_empty());
            if lines.next().map(str::trim) != Some(thread) {
                continue;
            }
            let mut stack: Vec<Frame> = lines.filter_map(frame).collect();
            stack.reverse();
            tree.add(stack);
        }
        tree
    }

    fn add(&mut self, stack: Vec<Frame>) {
        self.samples += 1;
        let mut tree = self;
        for frame in stack {
            tree = tree.called.entry(frame).or_default();
            tree.samples += 1;
        }
    }

    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    /// Iterates over the functions that were called from here.
    pub(super) fn called(&self) -> impl Iterator<Item = (&Frame, &Self)> {
        self.called.iter()
    }

    /// Samples in the function itself.
    fn own(&self) -> u64 {
        let called: u64 = self.called.values().map(Self::samples).sum();
        self.samples - called
    }

    /// The functions with the most samples in themselves: per cent in themselves, and on the stack
    /// at all.
    pub(super) fn table(&self, rows: usize) -> String {
        let mut sums = HashMap::new();
        let mut stack = Vec::new();
        self.sum(&mut stack, &mut sums);
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by(|(a, left), (b, right)| (right, *a).cmp(&(left, *b)));
        let percent = |part: u64| part as f64 * 100.0 / self.samples.max(1) as f64;
        let mut text = String::from("  self  total  function\n");
        for (frame, (own, total)) in sums.into_iter().take(rows) {
            let mark = if frame.is_kernel { " [kernel]" } else { "" };
            let _ = writeln!(
                text,
                "{:5.1}% {:5.1}%  {}{mark}",
                percent(own),
                percent(total),
                frame.name
            );
        }
        text
    }

    fn sum<'a>(&'a self, stack: &mut Vec<&'a Frame>, sums: &mut HashMap<&'a Frame, (u64, u64)>) {
        for (frame, tree) in &self.called {
            let sum = sums.entry(frame).or_default();
            sum.0 += tree.own();
            // A function that calls itself is on the stack once.
            if !stack.contains(&frame) {
                sum.1 += tree.samples;
            }
            stack.push(frame);
            tree.sum(stack, sums);
            stack.pop();
        }
    }
}

/// Names that perf gives to memory of a process that is of no file.
const NO_FILE: [&str; 5] = ["[unknown]", "[vdso]", "[heap]", "[stack]", "[anon]"];

/// A line such as `    ffffffff81a0 tcp_sendmsg ([kernel.kallsyms])`.
fn frame(line: &str) -> Option<Frame> {
    let (_, rest) = line.trim_start().split_once(' ')?;
    let (name, module) = rest.rsplit_once(" (")?;
    let module = module.trim_end().trim_end_matches(')');
    let name = match name.trim() {
        "[unknown]" | "" => module,
        name => name,
    };
    Some(Frame {
        name: readable(name),
        // Its modules stand in brackets too; so do parts of a process that no file holds.
        is_kernel: module.starts_with('[') && !NO_FILE.contains(&module),
    })
}

/// Without what the compiler adds to tell functions of one name apart.
fn readable(name: &str) -> String {
    let (path, hash) = name.rsplit_once("::h").unwrap_or((name, ""));
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { path } else { name }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::Tree;

    const SCRIPT: &str = "\
worker-0 \n\t    7f01 send::hdeadbeefdeadbeef (/x/millpond)\n\t    7f02 run (/x/millpond)\n\n\
worker-0 \n\tffffff01 tcp_sendmsg ([kernel.kallsyms])\n\t    7f01 send (/x/millpond)\n\t    7f02 run (/x/millpond)\n\n\
other \n\t    7f02 idle (/x/millpond)\n\n\
worker-0 \n\t    7f09 [unknown] (/usr/lib/libc.so.6)\n\n";

    #[test]
    fn samples_become_a_tree() {
        let tree = Tree::of_thread(SCRIPT, "worker-0");
        assert_eq!(tree.samples(), 3);
        let tops: Vec<_> = tree
            .called()
            .map(|(frame, below)| (frame.name.as_str(), below.samples()))
            .collect();
        assert_eq!(tops, [("/usr/lib/libc.so.6", 1), ("run", 2)]);
        let (_, run) = tree.called().nth(1).expect("run");
        let (send, below) = run.called().next().expect("send");
        assert_eq!(
            (send.name.as_str(), below.samples(), below.own()),
            ("send", 2, 1)
        );
        let (kernel, _) = below.called().next().expect("the kernel");
        assert!(kernel.is_kernel && !send.is_kernel);
    }

    #[test]
    fn the_table_counts_a_function_once_on_each_stack() {
        let script = "w \n\t1 f (/x)\n\t2 f (/x)\n\n";
        let table = Tree::of_thread(script, "w").table(5);
        assert!(table.contains("100.0% 100.0%  f\n"), "{table}");
    }
}

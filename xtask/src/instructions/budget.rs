//! The budgets in the repository, and what is said of counts that differ from them.

use std::fmt::Write as _;

use toml::{Table, Value};

/// Percentage by which a count may be above its budget. Two runs of one binary differ by less than
/// a tenth of it: what varies is how tables are seeded and how often a timer comes.
const TOLERANCE: u64 = 2;
/// Percentage by which a count may be above its budget where another compiler, C library or
/// valgrind has counted: they move code by a few per cent without any change of the code.
const OTHER_TOOLS: u64 = 10;

/// Counts, and what they were made with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Budgets {
    pub(super) processor: String,
    pub(super) tools: String,
    pub(super) counts: Vec<Count>,
}

/// Instructions of user space for one operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) case: String,
    pub(super) instructions: u64,
}

impl Budgets {
    /// From the text of the file.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let table: Table = text
            .parse()
            .map_err(|error: toml::de::Error| error.to_string())?;
        let word = |key: &str| {
            let value = table.get(key).and_then(Value::as_str);
            value
                .map(str::to_owned)
                .ok_or_else(|| format!("{key} is missing"))
        };
        let budgets = table.get("instructions").and_then(Value::as_table);
        let budgets = budgets.ok_or("the table [instructions] is missing")?;
        let counts = budgets.iter().map(|(case, count)| {
            let count = count
                .as_integer()
                .and_then(|count| u64::try_from(count).ok());
            let instructions = count.ok_or_else(|| format!("{case} is no count"))?;
            Ok(Count {
                case: case.clone(),
                instructions,
            })
        });
        Ok(Self {
            processor: word("processor")?,
            tools: word("tools")?,
            counts: counts.collect::<Result<_, String>>()?,
        })
    }

    /// The text of the file.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "# Instructions of user space that each step of a hit may take; `cargo xtask instructions` holds them against what\n\
             # callgrind counts, and `cargo xtask instructions --accept` writes this file. What the cases are:\n\
             # `cargo run --release -p lab-instructions -- list`.\n\
             processor = \"{}\"\ntools = \"{}\"\n\n[instructions]\n",
            self.processor, self.tools
        );
        for Count { case, instructions } in &self.counts {
            let _ = writeln!(text, "{case} = {instructions}");
        }
        text
    }

    /// Takes over what was counted again. The first count may have been too low as well, if its few
    /// repetitions were the disturbed ones; so the new count stands for the old.
    pub(super) fn replace(&mut self, again: &Self) {
        for count in &mut self.counts {
            count.instructions = again.of(&count.case).unwrap_or(count.instructions);
        }
    }

    fn of(&self, case: &str) -> Option<u64> {
        let mut found = self.counts.iter().filter(|count| count.case == case);
        found.next().map(|count| count.instructions)
    }

    /// A table of both, and the cases that need a decision.
    pub(super) fn compare(&self, counted: &Self) -> (String, Vec<String>) {
        let alike = self.tools == counted.tools;
        let tolerance = if alike { TOLERANCE } else { OTHER_TOOLS };
        let mut text = format!("{:20} {:>9} {:>9} {:>8}\n", "", "budget", "now", "");
        let mut passed = Vec::new();
        let mut less = false;
        for Count { case, instructions } in &counted.counts {
            let Some(budget) = self.of(case) else {
                let _ = writeln!(text, "{case:20} {:>9} {instructions:>9}    new", "none");
                passed.push(case.clone());
                continue;
            };
            let change = (*instructions as f64 / budget.max(1) as f64 - 1.0) * 100.0;
            let mark = if instructions * 100 > budget * (100 + tolerance) {
                passed.push(case.clone());
                "  TOO MANY"
            } else if instructions * 100 < budget * (100 - tolerance) {
                less = true;
                "  less"
            } else {
                ""
            };
            let _ = writeln!(
                text,
                "{case:20} {budget:>9} {instructions:>9} {change:>+7.1} %{mark}"
            );
        }
        for gone in self
            .counts
            .iter()
            .filter(|old| counted.of(&old.case).is_none())
        {
            let _ = writeln!(
                text,
                "{:20} {:>9} {:>9}    gone",
                gone.case, gone.instructions, "none"
            );
            passed.push(gone.case.clone());
        }
        let _ = writeln!(text, "allowed: {tolerance} % more");
        if !alike {
            let _ = writeln!(
                text,
                "the budgets are of {}; this is {}",
                self.tools, counted.tools
            );
        }
        if less {
            text += "what became less is kept by `cargo xtask instructions --accept`\n";
        }
        (text, passed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Budgets, Count};

    fn budgets(tools: &str, counts: &[(&str, u64)]) -> Budgets {
        let count = |(case, instructions): &(&str, u64)| Count {
            case: (*case).to_owned(),
            instructions: *instructions,
        };
        Budgets {
            processor: "x86_64 with AVX2".to_owned(),
            tools: tools.to_owned(),
            counts: counts.iter().map(count).collect(),
        }
    }

    fn passed(tools: &str, now: &[(&str, u64)]) -> Vec<String> {
        let before = budgets("rustc 1", &[("parse", 1000), ("hit", 100)]);
        before.compare(&budgets(tools, now)).1
    }

    #[test]
    fn the_file_is_read_as_it_is_written() {
        let budgets = budgets("rustc 1, glibc 2", &[("parse-wrk", 1000), ("hit", 0)]);
        let mut read = Budgets::read(&budgets.text()).expect("a table");
        read.counts
            .sort_by_key(|count| std::cmp::Reverse(count.instructions));
        assert_eq!(read, budgets);
        for text in [
            "",
            "processor = 'a'\ntools = 'b'",
            "processor = 'a'\ntools = 'b'\n[instructions]\na = -1",
            "=",
        ] {
            assert!(Budgets::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn two_per_cent_more_are_allowed() {
        assert!(passed("rustc 1", &[("parse", 1020), ("hit", 102)]).is_empty());
        assert_eq!(
            passed("rustc 1", &[("parse", 1021), ("hit", 90)]),
            ["parse"]
        );
    }

    #[test]
    fn other_tools_may_count_otherwise() {
        assert!(passed("rustc 2", &[("parse", 1100), ("hit", 100)]).is_empty());
        assert_eq!(
            passed("rustc 2", &[("parse", 1101), ("hit", 100)]),
            ["parse"]
        );
    }

    #[test]
    fn cases_do_not_come_and_go_unseen() {
        assert_eq!(passed("rustc 1", &[("parse", 1000)]), ["hit"]);
        assert_eq!(
            passed("rustc 1", &[("parse", 1000), ("hit", 100), ("more", 1)]),
            ["more"]
        );
    }

    #[test]
    fn what_is_counted_again_stands_for_the_first_count() {
        let mut counted = budgets("rustc 1", &[("parse", 1000), ("hit", 103)]);
        counted.replace(&budgets("rustc 1", &[("hit", 100)]));
        assert_eq!(
            counted.counts,
            budgets("", &[("parse", 1000), ("hit", 100)]).counts
        );
    }

    #[test]
    fn the_table_says_both_figures() {
        let before = budgets("rustc 1", &[("parse", 1000)]);
        let (table, _) = before.compare(&budgets("rustc 1", &[("parse", 1500)]));
        assert!(
            table.contains("     1000      1500   +50.0 %  TOO MANY"),
            "{table}"
        );
    }
}

//! `cargo xtask soak adversary`: for how long, with which choices, and with which feed.

use std::{env, time::SystemTime};

use crate::{
    programs,
    step::{Step, run_all},
};

/// How long it fights (30 s in CI).
const SECONDS: u64 = 60 * 60;
/// Pages that it must have checked at least in an hour: a million.
const READS_AN_HOUR: u64 = 1_000_000;

/// How the nodes may learn of changes: on PostgreSQL as the configuration has it, or on an SQLite
/// file, without triggers or with them. The first is that of CI.
const FEEDS: [&str; 4] = ["logical", "triggers", "sqlite", "sqlite-triggers"];

/// A fight that is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Adversary {
    seconds: u64,
    seed: u64,
    feed: &'static str,
}

impl Adversary {
    /// Reads `--minutes N`, `--seconds N`, `--seed N` and `--feed KIND`, the last of a kind counts.
    /// Without a seed that of the environment is taken, or the time of day.
    pub(crate) fn read(options: &[&str]) -> Result<Self, String> {
        let mut adversary = Self {
            seconds: SECONDS,
            seed: seed()?,
            feed: FEEDS[0],
        };
        for pair in options.chunks(2) {
            let [name, value] = pair else {
                return Err(format!(
                    "{}: there are --minutes N, --seconds N, --seed N and --feed KIND, each with its value behind it",
                    pair[0]
                ));
            };
            match *name {
                "--minutes" => adversary.seconds = above_zero(name, value)?.saturating_mul(60),
                "--seconds" => adversary.seconds = above_zero(name, value)?,
                "--seed" => adversary.seed = whole(name, value)?,
                "--feed" => {
                    let known = FEEDS.into_iter().find(|feed| feed == value);
                    let unknown = || format!("--feed {value}: there are {}", FEEDS.join(", "));
                    adversary.feed = known.ok_or_else(unknown)?;
                }
                _ => {
                    return Err(format!(
                        "{name} is not understood; there are --minutes, --seconds, --seed and --feed"
                    ));
                }
            }
        }
        Ok(adversary)
    }

    /// Fights.
    pub(crate) fn run(&self) -> bool {
        let Self {
            seconds,
            seed,
            feed,
        } = self;
        println!("{seconds} s; --seed {seed} --feed {feed} makes the same choices again");
        let test = match feed.starts_with("sqlite") {
            true => "no_fault_on_sqlite_makes_a_page_late_or_mixed",
            false => "no_fault_makes_a_page_late_or_mixed",
        };
        let arguments = format!(
            "test --release --target-dir target/soak --package millpond --test it adversary::{test} -- --exact --nocapture"
        );
        let step = Step::cargo("adversary", &arguments)
            .with("MILLPOND_ADVERSARY_SECONDS", seconds.to_string())
            .with("MILLPOND_ADVERSARY_READS", self.least_reads().to_string())
            .with("MILLPOND_ADVERSARY_SEED", seed.to_string())
            .with("MILLPOND_ADVERSARY_FEED", (*feed).to_owned());
        run_all(&[Step::ours("programs", programs::provide), step])
    }

    fn least_reads(&self) -> u64 {
        self.seconds.saturating_mul(READS_AN_HOUR) / SECONDS
    }
}

fn seed() -> Result<u64, String> {
    const SEED: &str = "MILLPOND_ADVERSARY_SEED";
    match env::var(SEED) {
        Ok(text) => whole(SEED, &text),
        Err(_) => {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            Ok(now.map_or(1, |now| now.as_secs()))
        }
    }
}

fn whole(name: &str, value: &str) -> Result<u64, String> {
    value
        .parse()
        .map_err(|_| format!("{name} {value}: it wants a whole number"))
}

fn above_zero(name: &str, value: &str) -> Result<u64, String> {
    match whole(name, value)? {
        0 => Err(format!("{name} 0: it wants a whole number above 0")),
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::Adversary;

    #[test]
    fn a_fight_is_as_long_as_it_is_asked_for() {
        let read = |text: &str| Adversary::read(&text.split(' ').collect::<Vec<_>>());
        let three = read("--minutes 3 --seed 9").unwrap();
        assert_eq!((three.seconds, three.seed), (180, 9));
        assert_eq!(three.least_reads(), 50_000);
        assert_eq!(read("--seconds 40").unwrap().seconds, 40);
        assert_eq!(read("--feed triggers").unwrap().feed, "triggers");
        assert_eq!(read("--feed sqlite").unwrap().feed, "sqlite");
        let plain = Adversary::read(&[]).unwrap();
        assert_eq!((plain.seconds, plain.feed), (3600, "logical"));
        for wrong in [
            "--minutes 0",
            "--seconds x",
            "--seed",
            "--hours 1",
            "--feed x",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}

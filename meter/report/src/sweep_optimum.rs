//! The optimal levels of a sweep: the best balance of throughput and response time, and the level
//! at which an objective begins to fail.

use millrace_runs::{Attained, By, Edge, Power, Sweep};
use millrace_stats::Met;

use crate::Figure;
use crate::measured::none;
use crate::number::{micros, plain, rate};
use crate::sweep::{at, plain_level};

/// "Best balance of throughput and response time: at 16 connections, with 10.2 k/s and a mean
/// response time of 1.57 ms; …".
pub(crate) fn power(sweep: &Sweep, found: &Power) -> String {
    format!(
        "Best balance of throughput and response time: at {}, with {} and a mean response time of {}; {}",
        at(sweep, found.level),
        rate(found.rate),
        micros(found.mean_us),
        doubt(found)
    )
}

/// Describes the level, for a report.
pub(crate) fn place(sweep: &Sweep, found: &Power) -> String {
    format!(
        "{}, where throughput over response time is highest; {}",
        unit(sweep, ""),
        doubt(found)
    )
}

/// How surely, and whether the ladder ends there.
fn doubt(found: &Power) -> String {
    let doubt = match found.range {
        Some(range) if range.low == range.high => {
            "no other level may be the best (95\u{a0}%)".to_owned()
        }
        Some(range) => format!(
            "levels from {} to {} cannot be told apart (95\u{a0}%)",
            plain_level(range.low),
            plain_level(range.high)
        ),
        None => "fewer than three climbs give no interval".to_owned(),
    };
    match found.edge {
        Some(Edge::Lowest) => {
            format!("{doubt}; at the edge of the ladder, lower levels may have more")
        }
        Some(Edge::Highest) => {
            format!("{doubt}; at the edge of the ladder, higher levels may have more")
        }
        None => doubt,
    }
}

/// Up to which level the objective holds, and where it ceases to.
pub(crate) fn objective(sweep: &Sweep, attained: &Attained) -> Vec<String> {
    let objective = attained.objective;
    let Some(highest) = attained.highest else {
        return vec![format!("Objective {objective}: met at no level")];
    };
    let missed = |level: f64| {
        let mut below = attained.levels.iter();
        below.any(|below| below.level < level && below.met != Met::Yes)
    };
    let but = match missed(highest) {
        true => ", but not at every level below",
        false => "",
    };
    let met = format!(
        "Objective {objective}: met up to {}{but}",
        at(sweep, highest)
    );
    let crossing = match &attained.crossing {
        Some(crossing) => format!(
            "It ceases to hold at about {}: between {} with {} and {} with {}, by the logarithm of the time",
            unit(sweep, &plain(crossing.level)),
            plain_level(crossing.from),
            micros(crossing.from_us),
            plain_level(crossing.to),
            micros(crossing.to_us)
        ),
        None if attained.crossing_refused.is_empty() => return vec![met],
        None => format!(
            "Where it ceases to hold is not known: {}",
            attained.crossing_refused
        ),
    };
    vec![met, crossing]
}

/// Returns the figures of the objective for a report.
pub(crate) fn figures(sweep: &Sweep, attained: &Attained) -> Vec<Figure> {
    let level = attained.highest.map_or_else(none, plain_level);
    let note = match attained.highest {
        None => "at no level".to_owned(),
        Some(_) => unit(sweep, ""),
    };
    let label = format!("highest level with {}", attained.objective);
    let mut figures = vec![Figure::new(label, level).with_note(note)];
    if let Some(crossing) = &attained.crossing {
        let note = format!(
            "{}, between {} and {}",
            unit(sweep, ""),
            plain_level(crossing.from),
            plain_level(crossing.to)
        );
        figures.push(Figure::new("ceases to hold at about", plain(crossing.level)).with_note(note));
    }
    figures
}

/// A number of what levels are; nothing before it gives the name alone.
fn unit(sweep: &Sweep, number: &str) -> String {
    let unit = match sweep.by {
        By::Rate if sweep.sessions => "sessions a second",
        By::Rate => "requests a second",
        By::Connections => "connections",
    };
    format!("{number} {unit}").trim_start().to_owned()
}

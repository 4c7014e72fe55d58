//! What is said about the client beside a run: its verdict's reasons, notes and calibration.

use millrace_runs::Run;
use millrace_stats::Verdict;

use crate::measured::sentence;
use crate::number::{bytes, micros, rate};

/// The reasons of the verdict and the notes, a line each for a terminal.
pub(crate) fn remarks(run: &Run) -> impl Iterator<Item = String> {
    let reasons = run
        .reasons
        .iter()
        .map(|reason| format!("{}: {reason}", run.verdict));
    let notes = run.notes.iter().map(|note| format!("note: {note}"));
    reasons.chain(notes)
}

/// Returns the reasons of the verdict and the notes as sentences.
pub(crate) fn sentences(run: &Run) -> Vec<String> {
    let mut all: Vec<String> = run.reasons.iter().map(|reason| sentence(reason)).collect();
    if run.verdict == Verdict::Valid {
        all.push(
            "Every request is accounted for, and every check of the figures passed.".to_owned(),
        );
    }
    all.extend(run.notes.iter().map(|note| sentence(note)));
    all
}

/// Makes the row of the conditions with the capacity of the client by itself.
pub(crate) fn row(run: &Run) -> Option<[String; 2]> {
    let known = run.calibration?;
    let ceiling = if known.lower_bound {
        "at least "
    } else {
        "up to "
    };
    Some([
        "the client itself".to_owned(),
        format!(
            "{ceiling}{}, median {} for one request at a time, {} of CPU per request, with answers of {}{}",
            rate(known.ceiling_per_s),
            micros(known.floor_us),
            micros(known.cpu_us_per_request),
            bytes(known.response_bytes as f64),
            if known.same_core {
                ", on the same cores as the null server"
            } else {
                ""
            }
        ),
    ])
}

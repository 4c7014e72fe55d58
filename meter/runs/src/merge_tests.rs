//! Merged runs are the run of the merged samples.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::RampDown;
use crate::conclude::{Measured, conclude};
use base_clock::{MS, SECOND};
use millrace_client::classes::ClassTimes;
use millrace_client::driver::Sent;
use millrace_client::engine::{Harvest, ThreadUsage};
use millrace_client::outcome::FailureKind;
use millrace_client::recorder::{Live, Pending, Recorder};
use millrace_client::response::CompleteResponse;
use millrace_client::tickets::Times;
use millrace_client::{Plan, Schedule, Stop, Workload};
use millrace_stats::series::Series;

const START: u64 = SECOND;
const LENGTH: u64 = 2 * SECOND;
const BEGAN: u64 = 1_700_000_000_000_000;
const MERGING: &str = "millrace report --merge a.json b.json";

/// One request: when it was due, how late it was sent, how long it took, and how it ended.
#[derive(Clone, Copy, Debug)]
struct Sample {
    due: u64,
    lag: u64,
    took: u64,
    end: u8,
}

/// Two classes of one request each.
const CLASSES: &str =
    "[[class]]\nname = 'a'\ntarget = '/a'\n[[class]]\nname = 'b'\ntarget = '/b'\n";

fn plan(rate: f64) -> Plan {
    let base = Plan::new("http://h/");
    let workload = Workload::parse(CLASSES, Path::new("plan.toml"), &base).unwrap();
    base.with(|plan| {
        plan.request.workload = Some(Arc::new(workload));
        plan.load.connections = 3;
        plan.load.threads = 1;
        plan.length.stop = Stop::Duration(std::time::Duration::from_nanos(LENGTH));
        plan.load.schedule = Some(Schedule::constant(rate));
    })
}

/// The run that measured `samples`, with a start at `BEGAN`.
fn run_of(samples: &[Sample]) -> Run {
    let mut recorder = Recorder::new(START, START + LENGTH, Some(LENGTH), true);
    let class = || ClassTimes::new(Series::of_class(2, Some(LENGTH), true));
    recorder.classes = vec![class(), class()];
    let live = Live::default();
    for sample in samples {
        let due = START + sample.due;
        let request = Pending {
            index: 0,
            class: u16::from(sample.end % 2),
            measured: true,
            due,
            free_at: due,
            sent_at: due + sample.lag,
            pause: 0,
        };
        let now = request.sent_at + sample.took;
        recorder.issued += 1;
        recorder.made(&request);
        let answer = |status| CompleteResponse {
            status,
            reusable: true,
            bytes: 100,
        };
        match sample.end {
            0 => recorder.failed(&request, FailureKind::Timeout, Some("slow"), now, &live),
            1 => recorder.answered(
                &request,
                &answer(500),
                Err((FailureKind::of_status(500), None)),
                now,
                &live,
            ),
            _ => recorder.answered(&request, &answer(200), Ok(()), now, &live),
        }
    }
    recorder.connected(MS);
    let harvest = Harvest {
        recorder,
        established: 3,
        never: 0,
        conforming: None,
        in_flight: 0,
        cpu: MS,
        used: ThreadUsage::default(),
        depth: 1,
        times: Times {
            start: START,
            end: START + LENGTH,
            last: START + LENGTH,
        },
        stopped_at: START + LENGTH,
    };
    let run = conclude(Measured {
        plan: &plan(samples.len() as f64 / 2.0),
        sent: Sent {
            streams: None,
            harvests: vec![harvest],
            auto: None,
        },
        stopped: false,
        postgres: None,
        probed: None,
    });
    Run {
        started_unix_us: BEGAN,
        ..run
    }
}

fn sample() -> impl Strategy<Value = Sample> {
    (0..LENGTH, 0..5 * MS, 1..SECOND, 0u8..12).prop_map(|(due, lag, took, end)| Sample {
        due,
        lag,
        took,
        end,
    })
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Samples dealt out at random to several generators at the same time.
    #[test]
    fn merged_runs_equal_the_run_of_the_merged_samples(
        dealt in prop::collection::vec((sample(), 0usize..4), 1..200),
    ) {
        let all: Vec<Sample> = dealt.iter().map(|(sample, _)| *sample).collect();
        let whole = run_of(&all);
        let parts: Vec<Run> = (0..4)
            .map(|part| {
                let mine = dealt.iter().filter(|(_, to)| *to == part);
                let mut run = run_of(&mine.map(|(sample, _)| *sample).collect::<Vec<_>>());
                // Generators never start in the same microsecond; two runs without a sample are not
                // the same run.
                run.started_unix_us += part as u64;
                run
            })
            .collect();
        let merged = Run::merge(&parts, MERGING).unwrap();
        let connects = Histograms { connect: None, ..merged.histograms.clone() };
        prop_assert_eq!(connects, Histograms { connect: None, ..whole.histograms.clone() });
        prop_assert_eq!(merged.histograms.connect.as_ref().map(|hdr| hdr.samples()), Some(4));
        for (one, other) in [
            (merged.latency_us.response, whole.latency_us.response),
            (merged.latency_us.service, whole.latency_us.service),
            (merged.latency_us.send_lag, whole.latency_us.send_lag),
            (merged.latency_us.lateness, whole.latency_us.lateness),
        ] {
            prop_assert_eq!(one, other);
        }
        prop_assert_eq!(&merged.percentiles, &whole.percentiles);
        prop_assert_eq!(&merged.histogram, &whole.histogram);
        prop_assert_eq!(merged.accounting, whole.accounting);
        prop_assert_eq!(&merged.errors, &whole.errors);
        prop_assert_eq!(merged.bytes, whole.bytes);
        prop_assert_eq!(&merged.series.points, &whole.series.points);
        prop_assert_eq!(&merged.series.histograms, &whole.series.histograms);
        prop_assert_eq!(&merged.series.service, &whole.series.service);
        prop_assert_eq!(&merged.series.send_lag, &whole.series.send_lag);
        prop_assert_eq!(&merged.classes, &whole.classes);
        // The clocks differ by three microseconds in two seconds.
        let close = |one: f64, other: f64| (one - other).abs() <= 1e-5 * other.max(1.0);
        prop_assert!(close(merged.achieved_rate, whole.achieved_rate));
        prop_assert!(close(merged.offered_rate.unwrap(), whole.offered_rate.unwrap()));
        prop_assert_eq!(merged.connections.asked, 12);
    }
}

fn some(count: u64) -> Run {
    let sample = |n| Sample {
        due: n * LENGTH / count,
        lag: 1000 * n,
        took: MS + n,
        end: 8 + (n % 2) as u8,
    };
    run_of(&(0..count).map(sample).collect::<Vec<_>>())
}

/// Returns the run as if it had started this many seconds later.
fn later(run: &Run, seconds: f64) -> Run {
    Run {
        started_unix_us: run.started_unix_us + (seconds * 1e6) as u64,
        ..run.clone()
    }
}

#[test]
fn repeats_one_after_the_other_are_averaged() {
    let one = some(500);
    let merged = Run::merge(
        &[later(&one, 60.0), one.clone(), later(&one, 10.0)],
        MERGING,
    )
    .unwrap();
    assert!(near(merged.duration_s, 6.0));
    assert!(near(merged.achieved_rate, one.achieved_rate));
    assert_eq!(merged.offered_rate, Some(250.0));
    assert_eq!(merged.connections.asked, 3);
    assert_eq!(merged.requests, 1500);
    assert_eq!(merged.merged_from.len(), 3);
    assert_eq!(merged.started_unix_us, BEGAN);
    let counts = merged.series.points.iter().map(|point| point.requests);
    assert_eq!(counts.sum::<u64>(), 1500);
    assert!(merged.series.points.len() <= millrace_stats::series::MOST + 1);
    let last = merged.series.points.last().unwrap();
    assert!(last.at_s < 6.5, "pauses between repeats are left out");
    // A merged run can be merged again.
    let again = Run::merge(&[merged, later(&one, 100.0)], MERGING).unwrap();
    assert_eq!((again.requests, again.merged_from.len()), (2000, 4));
}

#[test]
fn generators_that_hardly_overlap_are_suspect() {
    let (one, other) = (some(500), later(&some(400), 1.0));
    let merged = Run::merge(&[one, other], MERGING).unwrap();
    assert!(near(merged.duration_s, 3.0));
    assert!(near(merged.achieved_rate, 300.0));
    assert_ne!(merged.verdict, Verdict::Valid);
    assert!(
        merged
            .reasons
            .iter()
            .any(|reason| reason.contains("at the same time for 33 %"))
    );
}

#[test]
fn the_worst_verdict_is_kept_and_reasons_name_their_run() {
    let one = some(500);
    let broken = Run {
        verdict: Verdict::Invalid,
        reasons: vec!["the client lost count".to_owned()],
        ..later(&one, 30.0)
    };
    let merged = Run::merge(&[one, broken], MERGING).unwrap();
    assert_eq!(merged.verdict, Verdict::Invalid);
    assert_eq!(merged.reasons[0], "run 2: the client lost count");
}

#[test]
fn runs_of_different_things_are_not_merged() {
    let one = some(500);
    let refused = |other: Run, word: &str| {
        let error = Run::merge(&[one.clone(), other], MERGING)
            .unwrap_err()
            .to_string();
        assert!(error.contains(word), "{error}");
    };
    let with = |change: &dyn Fn(&mut Run)| {
        let mut other = later(&one, 30.0);
        change(&mut other);
        other
    };
    refused(
        with(&|run| run.url = "http://other/".into()),
        "http://other/",
    );
    refused(with(&|run| run.kind = Loop::Closed), "open and closed");
    refused(with(&|run| run.warmup_s = 7.0), "warm-ups 0 s and 7 s");
    refused(
        with(&|run| {
            run.ramp_down = Some(RampDown {
                length_s: 2.0,
                requests: 9,
            });
        }),
        "ramp-downs 0 s and 2 s",
    );
    refused(with(&|run| run.connections.depth = 4), "depths 1 and 4");
    refused(
        with(&|run| run.client.spin = true),
        "clients that sleep and that spin",
    );
    refused(
        with(&|run| run.offered_rate = Some(900.0)),
        "rates of 250 and 900",
    );
    refused(with(&|run| run.connections.asked = 90), "of 3 and 90");
    refused(
        with(&|run| run.histograms = Histograms::default()),
        "histograms",
    );
    refused(
        with(&|run| run.started_unix_us = 0),
        "time at which it began",
    );
    refused(with(&|run| run.accounting.good = 7), "7 good answers");
    refused(with(&|run| run.duration_s = f64::NAN), "run 2");
    refused(one.clone(), "the same run");
    assert_eq!(Run::merge(&[], MERGING), Err(MergeError::Nothing));
    let merged = Run::merge(std::slice::from_ref(&one), MERGING);
    let command = MERGING.to_owned();
    assert_eq!(merged, Ok(Run { command, ..one }));
}

#[test]
fn merged_clients_that_spin_add_up_their_spinning() {
    let spun = |seconds, spun_us| {
        let mut run = later(&some(50), seconds);
        (run.client.spin, run.client.spun_us) = (true, Some(spun_us));
        run
    };
    let merged = Run::merge(&[spun(0.0, 7), spun(9.0, 5)], MERGING).unwrap();
    assert!(merged.client.spin);
    assert_eq!(merged.client.spun_us, Some(12));
}

#[test]
fn invented_counts_cause_no_overflow() {
    let huge = |seconds| {
        let mut run = later(&some(50), seconds);
        run.bytes = u64::MAX;
        run.accounting.issued = u64::MAX;
        run.errors.by_kind.insert("reset".into(), u64::MAX);
        run
    };
    let merged = Run::merge(&[huge(0.0), huge(9.0)], MERGING).unwrap();
    assert_eq!(
        (merged.bytes, merged.errors.count("reset")),
        (u64::MAX, u64::MAX)
    );
}

/// The run as an older version wrote it, with one histogram per interval and without errors and
/// send lags of classes.
fn of_old(run: &Run) -> Run {
    let mut json = serde_json::to_value(run).unwrap();
    let mut without = |place: &str, names: &[&str]| {
        let object = json.pointer_mut(place).unwrap().as_object_mut().unwrap();
        names.iter().for_each(|name| drop(object.remove(*name)));
    };
    without("/series", &["service", "send_lag"]);
    without(
        "/classes/0",
        &["errors", "send_lag", "send_lag_us", "series"],
    );
    let added = ["service_p50_us", "service_p99_us", "send_lag_p99_us"];
    without("/series/points/0", &added);
    serde_json::from_value(json).unwrap()
}

#[test]
fn figures_missing_in_older_results_are_not_made_up() {
    let (new, old) = (some(500), of_old(&later(&some(400), 10.0)));
    assert_eq!(old.classes[0].good, new.classes[0].good - 50);
    let both = [new, old];
    assert!(both[0].classes[0].send_lag.is_some() && !both[0].series.service.is_empty());
    let rates = both.map(|run| Run {
        offered_rate: Some(250.0),
        ..run
    });
    let merged = Run::merge(&rates, MERGING).unwrap();
    assert_eq!(merged.classes[0].response_us.unwrap().count, 450);
    assert_eq!(merged.classes[0].send_lag, None);
    assert_eq!(merged.classes[0].errors, Errors::default());
    assert_eq!(merged.classes[0].series, Timeline::default());
    assert!(merged.classes[1].send_lag.is_some() && !merged.classes[1].series.points.is_empty());
    let samples = |times: &[Option<millrace_stats::Hdr>]| {
        times
            .iter()
            .flatten()
            .map(millrace_stats::Hdr::samples)
            .sum::<u64>()
    };
    assert_eq!(samples(&merged.series.histograms), 900);
    assert!(merged.series.service.is_empty() && merged.series.send_lag.is_empty());
}

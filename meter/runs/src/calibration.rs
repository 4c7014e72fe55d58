//! The client's own limits: the same plan against the null server, before the run.
//!
//! The highest rate against a server that does almost nothing is the client's ceiling. The time of
//! one request at a time is its floor. From this machine no subject can show a higher rate or a
//! shorter time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{Run, run};
use millrace_client::Pace;
use millrace_client::null::head_length;
use millrace_client::url::Url;
use millrace_client::{
    Error, LengthPlan, LoadPlan, NullPlan, NullServer, Order, Plan, RequestPlan, RunConditions,
    Stop, TargetPlan, limits,
};
use millrace_stats::verdict::withdraw_ceiling;
use millrace_stats::{Calibration, Verdict};

/// URLs of a list that are requested to learn the size of the responses.
const ASKED: u64 = 16;
/// The largest response of the null server, for any size of the subject's responses.
const LARGEST: u64 = 64 << 20;
/// Number of requests instead of a time, if connections are renewed often: a time could use up the
/// source ports.
const RENEWED: u64 = 5_000;
/// Requests on one connection below which it is renewed often.
const OFTEN: u64 = 100;
/// Share of a core from which a client thread counts as the limit.
const BUSY: f64 = 0.9;

/// Measures for about `length` what the client itself adds to the results of `plan`. Requests each
/// of the first sixteen URLs from the subject once, for the size of its responses. `None` if it
/// gave none, or if `stop` was set.
///
/// The null server speaks HTTP/1.1 without TLS. For an encrypted subject the ceiling is therefore
/// higher and the floor lower than what can be reached.
///
/// # Errors
/// The plan cannot be carried out, or this process may not have the descriptors and threads of
/// client and server together.
pub fn calibrate(
    plan: &Plan,
    length: Duration,
    stop: &AtomicBool,
) -> Result<Option<Calibration>, Error> {
    let url = plan.check()?;
    let Some(response_bytes) = size_of_answers(plan, stop)? else {
        return Ok(None);
    };
    // Each connection has two ends in this process.
    limits::descriptors(2 * plan.load.connections)?;
    let (server, same_core) = server(&plan.load, response_bytes)?;
    let shape = null_plan(plan, &url, &server.url())?;
    let floor = shape.clone().with(|floor| {
        floor.load.connections = 1;
        floor.load.depth = 1;
        floor.load.threads = 1;
        floor.length.stop = length_of(&plan.request, length / 4);
    });
    let ceiling = shape.with(|ceiling| {
        ceiling.length.warmup = length / 10;
        ceiling.length.stop = length_of(&plan.request, length * 2 / 3);
    });
    let (floor, ceiling) = (run(&floor, None, stop)?, run(&ceiling, None, stop)?);
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    Ok(conclude(
        &floor,
        &ceiling,
        response_bytes,
        same_core,
        limits::is_local(&url.host),
    ))
}

/// Withdraws the doubt about the client's ceiling from the verdicts on `runs`, if one of them shows
/// by its rate that the client can do more. Each run is its rate, its verdict and its reasons.
pub(crate) fn withdraw_surpassed<'a>(
    known: Option<Calibration>,
    runs: impl Iterator<Item = (f64, &'a mut Verdict, &'a mut Vec<String>)>,
) {
    let runs: Vec<_> = runs.collect();
    let is_surpassed =
        known.is_some_and(|known| runs.iter().any(|(rate, ..)| known.is_surpassed(*rate)));
    if is_surpassed {
        for (_, verdict, reasons) in runs {
            withdraw_ceiling(verdict, reasons);
        }
    }
}

fn conclude(
    floor: &Run,
    ceiling: &Run,
    response_bytes: u64,
    same_core: bool,
    is_local: bool,
) -> Option<Calibration> {
    let service = floor.latency_us.service?;
    Some(Calibration {
        ceiling_per_s: ceiling.achieved_rate,
        floor_us: service.p50.unwrap_or(service.mean),
        cpu_us_per_request: ceiling.client.cpu_us_per_request?,
        response_bytes,
        same_core,
        // A subject on this machine uses the cores too.
        lower_bound: if same_core {
            !is_local
        } else {
            ceiling.client.busiest_thread < BUSY
        },
    })
}

/// The mean size of a response of the subject.
fn size_of_answers(plan: &Plan, stop: &AtomicBool) -> Result<Option<u64>, Error> {
    let probe = Plan {
        target: plan.target.clone(),
        request: RequestPlan {
            order: Order::Sequence,
            per_connection: None,
            ..plan.request.clone()
        },
        load: LoadPlan {
            threads: 1,
            cores: plan.load.cores.clone(),
            ..LoadPlan::default()
        },
        length: LengthPlan {
            stop: Stop::Requests(1),
            ..LengthPlan::default()
        },
        conditions: RunConditions::default(),
    };
    let first = run(&probe, None, stop)?;
    let more = plan.request.urls.get(1..).unwrap_or_default();
    let count = (more.len() as u64).min(ASKED - 1);
    // A server without a response costs one timeout, not sixteen.
    if count == 0 || first.requests == 0 {
        return Ok(first.bytes.checked_div(first.requests));
    }
    let others = probe.with(|plan| {
        plan.request.urls = more.to_vec();
        plan.length.stop = Stop::Requests(count);
    });
    let others = run(&others, None, stop)?;
    Ok((first.bytes + others.bytes).checked_div(first.requests + others.requests))
}

/// A null server with responses of that size, on cores that the client does not use, if there are
/// any. The flag says that there are none.
fn server(load: &LoadPlan, response_bytes: u64) -> Result<(NullServer, bool), Error> {
    let allowed = limits::cores_of(None);
    let threads = load.thread_count();
    let left: Vec<usize> = match &load.cores {
        Some(cores) => allowed
            .iter()
            .copied()
            .filter(|core| !cores.contains(core))
            .collect(),
        None => Vec::new(),
    };
    let same_core = match load.cores {
        Some(_) => left.is_empty(),
        None => allowed.len() < 2 * threads,
    };
    let bytes = response_bytes.min(LARGEST) as usize;
    let server = NullServer::start(&NullPlan {
        body: bytes.saturating_sub(head_length(bytes)),
        threads: if left.is_empty() {
            threads
        } else {
            threads.min(left.len())
        },
        cores: left,
        ..NullPlan::default()
    })?;
    Ok((server, same_core))
}

/// Plans the requests on as many connections to another server, at full speed.
fn null_plan(plan: &Plan, url: &Url, to: &str) -> Result<Plan, Error> {
    let mut headers = plan.request.headers.clone();
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        headers.push(("Host".to_owned(), url.authority.clone()));
    }
    let targets = plan.request.urls.iter().map(|text| url.join(text));
    let urls = targets.collect::<Result<_, _>>()?;
    let to = format!("{}{}", to.trim_end_matches('/'), url.target);
    Ok(Plan {
        target: TargetPlan::new(to),
        request: RequestPlan {
            urls,
            headers,
            expect: Vec::new(),
            expect_body: None,
            expect_sha256: None,
            workload: None,
            ..plan.request.clone()
        },
        load: LoadPlan {
            schedule: None,
            pace: Pace::AtOnce,
            session: None,
            ..plan.load.clone()
        },
        length: LengthPlan::default(),
        conditions: RunConditions::default(),
    })
}

fn length_of(request: &RequestPlan, length: Duration) -> Stop {
    let is_renewed_often = request.per_connection.is_some_and(|number| number < OFTEN);
    if request.keep_alive && !is_renewed_often {
        Stop::Duration(length.max(Duration::from_millis(1)))
    } else {
        Stop::Requests(RENEWED)
    }
}

//! What a run costs the server: run times of its processes, and the activity of its cores.

use std::collections::BTreeMap;

use toml::Spanned;

use super::cores::{CoreReadings, CoreSets, CoreWork, PerSide};
use super::measure::LevelRun;
use super::outcome::LabMoment;
use super::run_time::ServerTimes;
use super::server::RunningServer;

/// Resources that the server used during some work.
pub(super) struct Cost {
    /// Nanoseconds of run time of the server and of those behind it that count as its own.
    pub(super) cpu: Option<u64>,
    /// Time between the readings.
    pub(super) seconds: f64,
    /// Nanoseconds of run time of each server, if there are others behind this one.
    pub(super) each: BTreeMap<String, u64>,
    /// The most resident memory that was seen, if a graph shows it.
    pub(super) memory: Option<u64>,
    /// The run over time, if it is drawn.
    pub(super) over_time: Vec<LabMoment>,
    /// Activity of the server's and the client's cores.
    pub(super) cores: PerSide<CoreWork>,
    /// How busy the cores were in the middle of the run, if it was long enough.
    pub(super) within: PerSide<f64>,
}

impl Cost {
    pub(super) fn cpu_us(&self, requests: u64) -> Option<f64> {
        self.cpu
            .filter(|_| requests > 0)
            .map(|nanos| nanos as f64 / 1000.0 / requests as f64)
    }

    /// How many cores a run time took.
    pub(super) fn cores(&self, nanos: u64) -> Option<f64> {
        (self.seconds > 0.0).then(|| nanos as f64 / 1e9 / self.seconds)
    }

    /// How many cores each server used.
    pub(super) fn cores_of(&self) -> BTreeMap<String, f64> {
        let each = self.each.iter();
        each.filter_map(|(name, nanos)| Some((name.clone(), self.cores(*nanos)?)))
            .collect()
    }
}

/// Runs `work` and returns its cost to the server.
pub(super) fn with_cost<T>(level_run: &LevelRun<'_, '_>, work: impl FnOnce() -> T) -> (T, Cost) {
    let sides = sides(level_run);
    let ticks = sides.ticks();
    let before = readings(level_run);
    let began = base_clock::now();
    let done = work();
    let seconds = base_clock::since(began).as_secs_f64();
    let (after, ticks_after) = (readings(level_run), sides.ticks());
    let spent = spent(level_run, &before, &after);
    let has_others = spent.len() > 1;
    let counted = spent.iter().filter(|one| one.is_counted);
    let cost = Cost {
        cpu: counted.map(|one| one.nanos).sum(),
        seconds,
        each: spent
            .iter()
            .filter(|_| has_others)
            .filter_map(|one| Some((one.name.clone(), one.nanos?)))
            .collect(),
        memory: None,
        over_time: Vec::new(),
        cores: ticks_after.since(ticks),
        within: CoreReadings::default().shares(),
    };
    (done, cost)
}

/// The cores of the server and of the client. The client's only if no server may be on them,
/// because otherwise their activity would be the server's too.
pub(super) fn sides<'a>(level_run: &'a LevelRun<'_, '_>) -> CoreSets<'a> {
    let workload = level_run.work_folder.experiment.workload.get_ref();
    let client = workload.cores.as_ref().map(Spanned::get_ref);
    let client = client.map_or(&[] as &[usize], Vec::as_slice);
    let beside = level_run.beside.iter().map(|running| &running.record);
    let mut servers = [&level_run.subject.record].into_iter().chain(beside);
    let is_apart =
        |cores: &[usize]| !cores.is_empty() && cores.iter().all(|core| !client.contains(core));
    CoreSets {
        server: &level_run.subject.record.cores,
        client: match servers.all(|server| is_apart(&server.cores)) {
            true => client,
            false => &[],
        },
    }
}

/// Run times of the server and of each server behind it.
fn readings(level_run: &LevelRun<'_, '_>) -> Vec<ServerTimes> {
    let take = |running: &RunningServer<'_>| ServerTimes::take(|| running.pids());
    all_servers(level_run).map(take).collect()
}

/// Time that one server used.
struct SpentTime {
    name: String,
    /// True if it counts as the measured server's own.
    is_counted: bool,
    nanos: Option<u64>,
}

fn spent(
    level_run: &LevelRun<'_, '_>,
    before: &[ServerTimes],
    after: &[ServerTimes],
) -> Vec<SpentTime> {
    let readings = before.iter().zip(after);
    let one = |(running, (before, after)): (&RunningServer<'_>, (&ServerTimes, &ServerTimes))| {
        SpentTime {
            name: running.record.name.clone(),
            is_counted: running.spec.counted,
            nanos: after.since(before),
        }
    };
    all_servers(level_run).zip(readings).map(one).collect()
}

/// The measured server, and those behind it.
pub(super) fn all_servers<'a, 'b>(
    level_run: &'a LevelRun<'_, 'b>,
) -> impl Iterator<Item = &'a RunningServer<'b>> {
    std::iter::once(&*level_run.subject).chain(&*level_run.beside)
}

/// The processes of the server and of the servers behind it that count as its own.
pub(super) fn pids(level_run: &LevelRun<'_, '_>) -> Vec<u32> {
    all_servers(level_run)
        .filter(|running| running.spec.counted)
        .flat_map(RunningServer::pids)
        .collect()
}

//! The size from which `sendfile` is cheaper than a write from memory: the default of
//! `static.sendfile_from`.
//!
//! One site of files of one size each, served three times on core 0: from copies in memory, from
//! copies in files by `sendfile`, and from disk (an `fstat` and `sendfile`). They are driven in
//! turn, forwards and backwards (ABBA).

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    Result,
    arguments::{Arguments, publish},
    cpu,
    drive::Generator,
    hit_ratio,
    server::{self, BenchServer},
    spread::SampleSpread,
};

/// The sizes in KiB.
const SIZES: [usize; 9] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
/// The ways, and the settings that choose them for all sizes.
const WAYS: [(&str, &str); 3] = [
    ("memory", "in_memory = \"8MiB\"\nsendfile_from = \"1GiB\"\n"),
    ("sendfile", "in_memory = \"8MiB\"\nsendfile_from = 0\n"),
    ("disk", "in_memory = 0\n"),
];

struct SendfileOptions {
    connections: usize,
    seconds: u32,
    blocks: usize,
}

/// Microseconds of server CPU per request of one size, by way.
struct SendfileRow {
    kib: usize,
    costs: [SampleSpread; WAYS.len()],
}

impl SendfileRow {
    /// Returns the cost of sendfile as a multiple of a write from memory.
    fn ratio(&self) -> f64 {
        self.costs[1].median() / self.costs[0].median()
    }
}

pub(crate) fn run(mut arguments: Arguments) -> Result<bool> {
    let millpond: Option<PathBuf> = arguments.option("--millpond")?;
    let millpond = millpond.unwrap_or_else(|| "target/release/millpond".into());
    let options = SendfileOptions {
        connections: arguments.option("--connections")?.unwrap_or(32),
        seconds: arguments.option("--seconds")?.unwrap_or(1).max(1),
        blocks: arguments.option("--blocks")?.unwrap_or(3).max(1),
    };
    let only: Option<usize> = arguments.option("--kib")?;
    let json: Option<String> = arguments.option("--json")?;
    arguments.end()?;

    let folder = hit_ratio::target().join("sendfile");
    let sizes: Vec<usize> = only.map_or(SIZES.to_vec(), |kib| vec![kib]);
    let mut servers = Vec::new();
    for (name, settings) in WAYS {
        let site = make_site(&folder.join(name), settings, &sizes)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        servers.push(server::millpond(&millpond, &site, "", true)?);
    }
    let generator = Generator::Millpond(millpond);
    let rows: Vec<SendfileRow> = sizes
        .iter()
        .map(|&kib| measure(&generator, &servers, kib, &options))
        .collect::<Result<_>>()?;
    publish(
        &table(&rows, &options),
        &as_json(&rows, &options),
        json.as_deref(),
    )?;
    Ok(true)
}

/// A site with a file of each size. No compressor can shorten the content, and no file extension
/// says that it is text.
fn make_site(folder: &Path, settings: &str, sizes: &[usize]) -> std::io::Result<PathBuf> {
    for part in ["pages", "static"] {
        fs::create_dir_all(folder.join(part))?;
    }
    fs::write(folder.join("pages/index.html"), "front\n")?;
    fs::write(
        folder.join("millpond.toml"),
        format!("[static]\n{settings}"),
    )?;
    for &kib in sizes {
        let file = folder.join(format!("static/{kib}.bin"));
        fs::write(file, vec![b'x'; kib << 10])?;
    }
    Ok(folder.to_owned())
}

fn measure(
    generator: &Generator,
    servers: &[BenchServer],
    kib: usize,
    options: &SendfileOptions,
) -> Result<SendfileRow> {
    eprintln!("{kib} KiB");
    let urls: Vec<String> = servers
        .iter()
        .map(|server| format!("{}/{kib}.bin", server.url))
        .collect();
    let mut costs: [Vec<f64>; WAYS.len()] = Default::default();
    for block in 0..=options.blocks {
        for way in (0..WAYS.len()).chain((0..WAYS.len()).rev()) {
            let before = cpu::run_time(servers[way].pid())?;
            let requests = generator.run(&urls[way], options.connections, options.seconds)?;
            let spent = cpu::run_time(servers[way].pid())?.saturating_sub(before);
            // The first block warms up.
            if block > 0 {
                costs[way].push(spent.as_secs_f64() * 1e6 / requests as f64);
            }
        }
    }
    let [memory, sendfile, disk] = costs.map(SampleSpread::new);
    memory
        .zip(sendfile)
        .zip(disk)
        .map(|((memory, sendfile), disk)| SendfileRow {
            kib,
            costs: [memory, sendfile, disk],
        })
        .ok_or_else(|| "no block was run".to_owned())
}

/// The smallest size from which `sendfile` never costs more, in KiB.
fn threshold(rows: &[SendfileRow]) -> Option<usize> {
    let cheaper = rows.iter().rev().take_while(|row| row.ratio() <= 1.0);
    cheaper.last().map(|row| row.kib)
}

fn table(rows: &[SendfileRow], options: &SendfileOptions) -> String {
    let mut text = format!(
        "server CPU per request, µs, median (min–max); {} keep-alive connections, {} blocks of 2 × {} s\n{:>8}",
        options.connections, options.blocks, options.seconds, "KiB"
    );
    for (name, _) in WAYS {
        let _ = write!(text, " {name:>24}");
    }
    let _ = writeln!(text, " {:>16}", "sendfile/memory");
    for row in rows {
        let _ = write!(text, "{:>8}", row.kib);
        for cost in &row.costs {
            let (min, max) = (cost.min(), cost.max());
            let cell = format!("{:.2} ({min:.2}–{max:.2})", cost.median());
            let _ = write!(text, " {cell:>24}");
        }
        let _ = writeln!(text, " {:>16.2}", row.ratio());
    }
    let verdict = match threshold(rows) {
        Some(kib) => format!("from {kib} KiB on sendfile never costs more than memory"),
        None => "sendfile costs more than memory at the largest of these sizes".to_owned(),
    };
    let _ = writeln!(text, "{verdict}");
    text
}

fn as_json(rows: &[SendfileRow], options: &SendfileOptions) -> Value {
    let spread = |spread: &SampleSpread| json!({ "min": spread.min(), "median": spread.median(), "max": spread.max() });
    let findings: Vec<Value> = rows
        .iter()
        .map(|row| {
            let costs = WAYS.iter().zip(&row.costs);
            let costs: serde_json::Map<String, Value> = costs
                .map(|((name, _), cost)| ((*name).to_owned(), spread(cost)))
                .collect();
            json!({ "kib": row.kib, "cpu_us_per_request": costs, "sendfile_over_memory": row.ratio() })
        })
        .collect();
    json!({
        "connections": options.connections,
        "run_s": options.seconds,
        "blocks": options.blocks,
        "sizes": findings,
        "sendfile_from_kib": threshold(rows),
    })
}

#[cfg(test)]
mod tests {
    use super::{SendfileRow, table, threshold};
    use crate::spread::SampleSpread;

    fn row(kib: usize, memory: f64, sendfile: f64) -> SendfileRow {
        let costs =
            [memory, sendfile, sendfile].map(|cost| SampleSpread::new(vec![cost]).expect("one"));
        SendfileRow { kib, costs }
    }

    #[test]
    fn the_threshold_is_where_sendfile_stays_cheaper() {
        let rows = [
            row(16, 3.0, 2.0),
            row(32, 5.0, 6.0),
            row(64, 9.0, 9.0),
            row(128, 20.0, 12.0),
        ];
        assert_eq!(threshold(&rows), Some(64));
        assert_eq!(threshold(&rows[..2]), None);
        let options = super::SendfileOptions {
            connections: 1,
            seconds: 1,
            blocks: 1,
        };
        assert!(
            table(&rows, &options)
                .ends_with("from 64 KiB on sendfile never costs more than memory\n")
        );
    }
}

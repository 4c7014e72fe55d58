//! The layers of the large crates: what a module imports stands in its own layer or below.

use super::{
    Offence,
    files::File,
    imports::{Crate, Import},
};

/// The files of a circle of imports that goes through several folders.
const MOST_IN_CIRCLE: usize = 3;

/// Each large crate with its layers, from the lowest. A layer is a list of modules; what is named
/// nowhere is of the layer of the module above it. A new line here is a change of the architecture.
#[rustfmt::skip]
const LAYERS: [(&str, &[&str]); 6] = [
    ("server/http", &[
        "client date event latency limits listen mapped_file path prefetch proxy_header status syntax transport validity",
        "body_source body_file budget client_counts peer progress request request_counts worker_group",
        "response streamed accept",
        "h1 request_budgets",
        "h2 prepared",
        "compressor conn",
        "worker parts",
    ]),
    ("server/db", &[
        "advice block_on column_set feed health migration order position queue random requirement seen_writes sql value violated",
        "error",
        "foreign_key written_schema named_constraints data_file file_set file_target stored_rows query bind written",
        "precision::values precision::model",
        "precision",
        "sqlite::admission sqlite::clockwatch sqlite::documents sqlite::failure sqlite::file sqlite::log sqlite::log_file sqlite::options sqlite::passed_positions sqlite::preupdate sqlite::recorder sqlite::run sqlite::tags sqlite::ticks",
        "sqlite::catalog sqlite::hint sqlite::interest sqlite::migrate",
        "sqlite::collector sqlite::triggers",
        "sqlite::analysis",
        "sqlite::catalog::load sqlite::statement",
        "sqlite",
        "postgres::catalog::types postgres::families postgres::liveness postgres::order postgres::tags postgres::types postgres::sql postgres::wake postgres::feed::reader",
        "postgres::feed_progress postgres::interest postgres::pending_writes postgres::replay postgres::link",
        "postgres::server_error postgres::failure postgres::options postgres::shape postgres::tls postgres::session",
        "postgres::feed::pgoutput postgres::feed::relations postgres::feed::touched postgres::feed::triggers::function postgres::feed::triggers::objects",
        "postgres::catalog",
        "postgres::analysis postgres::feed",
        "postgres::context postgres::prepare postgres::run postgres::wire postgres::files postgres::read_snapshot",
        "postgres::backoff postgres::connect postgres::pool postgres::migrate postgres::rehearsal postgres::statement postgres::read postgres::write",
        "postgres::replica",
        "postgres::requirements",
        "postgres",
        "database",
    ]),
    ("meter/runs", &[
        "host postgres",
        "figures",
        "run",
        "probe objective visits calibration merge",
        "conclude",
        "measure ladder limited compare::cpu",
        "sweep capacity compare diagnose",
        "lab::fault lab::placeholders lab::spec_values lab::figure lab::outcome lab::study_record",
        "lab::source lab::spec lab::cores lab::idle lab::memory lab::output lab::process_tree",
        "lab::blocks lab::client_options lab::progress lab::run_time lab::sampled",
        "lab::limit lab::findings",
        "lab::experiment lab::check lab::check_addresses lab::check_ladder lab::check_limits lab::check_other lab::check_spin lab::check_workload lab::programs lab::requests",
        "lab",
    ]),
    ("server/site-format", &[
        "duration file_name file_type suggest problem secret_names parameter_names slug decimal",
        "time_zone today locale",
        "param_value params text_format value_rules write_method",
        "access rules",
        "config",
        "script dialect folder route",
    ]),
    ("server/site-compile", &[
        "object page_params page_type",
        "filters markup form_tags",
        "page refusal error_pages",
        "template",
        "compile",
        "lint robots",
    ]),
    ("server/site", &[
        "inotify labels log site_options timed",
        "statics",
        "session",
        "form uploads",
        "dev::report dev::scope dev::excerpt dev::state",
        "core answer::cached answer::visitor live::board live::change live::stream live::script service::addresses service::listing service::see_other",
        "dev::failures dev::refusals dev::suggestion",
        "service::methods form::json form::body service::admission",
        "answer ahead",
        "live",
        "form::submit form::sign form::write_answer form::refused form::refused_page form::refused_redirect",
        "service",
        "data watch",
        "opening check backup",
        "site explain purge",
        "dev hosts",
    ]),
];

/// Imports that run up, modules without a layer, and circles through several folders.
pub(super) fn check(files: &[File]) -> Vec<Offence> {
    let crates = LAYERS.iter();
    crates
        .flat_map(|(folder, layers)| {
            let read = Crate::read(files, folder);
            let imports = read.imports();
            let mut offences = upward(&read, &imports, layers);
            offences.extend(circles(&read, &imports));
            offences
        })
        .collect()
}

/// The layer of a module; none of one that no layer names.
fn layer(layers: &[&str], name: &str) -> Option<usize> {
    let mut name = name;
    loop {
        let is_named = |layer: &&str| layer.split(' ').any(|module| module == name);
        if let Some(at) = layers.iter().position(is_named) {
            return Some(at);
        }
        (name, _) = name.rsplit_once("::")?;
    }
}

fn upward(read: &Crate, imports: &[Import], layers: &[&str]) -> Vec<Offence> {
    // The root of a crate uses all of it.
    let layer_of = |file: usize| match read.name(file) {
        name if name.is_empty() => Some(layers.len()),
        name => layer(layers, &name),
    };
    let unknown = (0..read.len()).filter(|file| layer_of(*file).is_none());
    let unknown = unknown.map(|file| Offence {
        file: read.path(file).to_owned(),
        line: 0,
        what: "has no layer; name its module in xtask/src/tidy/layers.rs".to_owned(),
    });
    let up = imports
        .iter()
        .filter(|import| layer_of(import.to) > layer_of(import.from));
    let up = up.map(|import| Offence {
        file: read.path(import.from).to_owned(),
        line: import.line,
        what: format!(
            "uses {}, of a layer above its own (xtask/src/tidy/layers.rs): move down what both need",
            read.path(import.to).display()
        ),
    });
    unknown.chain(up).collect()
}

/// Circles of more than a few files that do not stay in one folder: who reads one of them has to
/// read them all.
fn circles(read: &Crate, imports: &[Import]) -> Vec<Offence> {
    let mut below = vec![Vec::new(); read.len()];
    for import in imports {
        below[import.from].push(import.to);
    }
    let reached: Vec<Vec<bool>> = (0..read.len())
        .map(|from| reachable(&below, from))
        .collect();
    let mut is_known = vec![false; read.len()];
    let mut offences = Vec::new();
    for first in 0..read.len() {
        if is_known[first] {
            continue;
        }
        let circle =
            (first..read.len()).filter(|other| reached[first][*other] && reached[*other][first]);
        let circle: Vec<usize> = circle.collect();
        circle.iter().for_each(|file| is_known[*file] = true);
        let mut folders: Vec<_> = circle.iter().map(|file| read.folder(*file)).collect();
        folders.dedup();
        if circle.len() > MOST_IN_CIRCLE && folders.len() > 1 {
            let names: Vec<String> = circle.iter().map(|file| read.name(*file)).collect();
            offences.push(Offence {
                file: read.path(first).to_owned(),
                line: 0,
                what: format!(
                    "is in a circle of imports through several folders; turn one of them: {}",
                    names.join(", ")
                ),
            });
        }
    }
    offences
}

fn reachable(below: &[Vec<usize>], from: usize) -> Vec<bool> {
    let mut is_reached = vec![false; below.len()];
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for next in &below[file] {
            if !std::mem::replace(&mut is_reached[*next], true) {
                open.push(*next);
            }
        }
    }
    is_reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.into(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn an_import_that_runs_up_and_a_circle_through_folders_are_offences() {
        let files = [
            file("x/src/lib.rs", "mod low;\nmod high;\nmod new;"),
            file("x/src/low.rs", "\nuse crate::high::a;"),
            file("x/src/new.rs", ""),
            file("x/src/high/mod.rs", "pub mod a; pub mod b; pub mod c;"),
            file("x/src/high/a.rs", "use super::b::B;"),
            file("x/src/high/b.rs", "use super::c::C;"),
            file("x/src/high/c.rs", "use crate::low::X;"),
        ];
        let read = Crate::read(&files, "x");
        let imports = read.imports();
        let up = upward(&read, &imports, &["low", "high"]);
        let places: Vec<String> = up
            .iter()
            .map(|it| format!("{}:{}", it.file.display(), it.line))
            .collect();
        assert_eq!(places, ["x/src/new.rs:0", "x/src/low.rs:2"]);
        assert_eq!(circles(&read, &imports).len(), 1);
    }
}

//! `--awake`, which some machines do not allow: then it is refused before anything is measured.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{fail, new_site, run, serve, text, write};

/// What the command has measured; `None` if it said that cores cannot be kept awake here.
fn measured(dir: &Path, args: &[&str]) -> Option<Value> {
    let output = run(dir, &[args, &["--json", "it.json"]].concat());
    let said = text(&output.stdout) + &text(&output.stderr);
    if output.status.success() {
        let json = fs::read(dir.join("it.json")).unwrap();
        return Some(serde_json::from_slice(&json).unwrap());
    }
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("error: idle cores cannot be kept awake"),
        "{said}"
    );
    assert!(!dir.join("it.json").exists(), "{said}");
    None
}

#[test]
fn a_run_a_comparison_and_an_experiment_keep_idle_cores_awake() {
    let dir = new_site();
    write(dir.path(), "static/a.txt", "a text\n");
    let server = serve(dir.path());
    let url = format!("http://{}/a.txt", server.address());
    let load = ["load", &url, "--awake", "-n", "50", "--warmup", "5ms"];
    let load = measured(dir.path(), &load);
    // All commands are refused, or none.
    let can = load.is_some();
    if let Some(load) = load {
        assert_eq!(load["client"]["awake"], true);
        fs::remove_file(dir.path().join("it.json")).unwrap();
    }
    let (a, b) = (format!("a={url}"), format!("b={url}"));
    let compare = format!("compare {a} {b} --awake --blocks 3 --duration 30ms --warmup 5ms");
    let compare = measured(dir.path(), &compare.split(' ').collect::<Vec<_>>());
    assert_eq!(compare.is_some(), can);
    if let Some(compare) = compare {
        assert_eq!(compare["awake"], true);
    }
    // It does so before the servers start, the first of which looks at it.
    let said = dir.path().join("said");
    let text = format!(
        "title = 'Awake'\nrepeats = 1\n[workload]\npath = '/a.txt'\nawake = true\nwarmup = '5ms'\nduration = '50ms'\n\
         [[server]]\nname = 'it'\nstart = ['sh', '-c', 'ls -l /proc/$PPID/fd | grep -c cpu_dma_latency > {}; exec {{millpond}} serve \
         {{here}} --listen 127.0.0.1:{{port}} --workers 1']\n",
        said.display()
    );
    write(dir.path(), "it.toml", &text);
    let _ = fs::remove_file(dir.path().join("it.json"));
    let lab = measured(dir.path(), &["lab", "run", "it.toml"]);
    assert_eq!(lab.is_some(), can);
    match lab {
        Some(lab) => {
            assert_eq!(lab["awake"], true);
            assert_eq!(fs::read_to_string(said).unwrap().trim(), "1");
        }
        None => {
            let (status, said) = fail(dir.path(), &["lab", "check", "it.toml"]);
            assert_eq!(status, 1);
            assert!(said.contains("cannot be kept awake"), "{said}");
        }
    }
}

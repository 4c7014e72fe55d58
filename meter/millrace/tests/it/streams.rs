//! `millrace load` with streams of events beside the load.

use crate::support::{fail, json, new_site, run, serve, text, write};

#[test]
fn each_stream_has_an_event_after_each_write() {
    let site = new_site();
    let live = "-- live\n-- name: notes :many\nselect id, title from note;\n";
    write(site.path(), "pages/live.sql", live);
    let form = "-- param: title text\n-- name: note :exec\ninsert into note (title, body) values (:title, 'x');\n-- redirect: /\n";
    write(site.path(), "pages/add.post.sql", form);
    let server = serve(site.path());
    let url = format!("http://{}", server.address());
    let plan = format!(
        "url = '{url}/'\n[[class]]\nname = 'reader'\ntarget = '/live'\nthink = '10ms'\n\
         [streams]\ncount = 20\nrate = 10\ntarget = '/.millpond/live?page=/live'\n\
         [streams.write]\ntarget = '/add'\nbody = 'title=x'\n\
         headers = {{ Content-Type = 'application/x-www-form-urlencoded', Origin = '{url}' }}\n"
    );
    write(site.path(), "plan.toml", &plan);
    let arguments = [
        "load",
        "--plan",
        "plan.toml",
        "--duration",
        "2s",
        "--json",
        "run.json",
    ];
    let output = run(site.path(), &arguments);
    let said = text(&output.stdout);
    assert!(
        said.contains("20 of 20 opened, 0 ended, 0 events missed"),
        "{said}"
    );
    let streams = &json(&site.path().join("run.json"))["streams"];
    let writes = streams["writes"].as_u64().unwrap();
    assert!(writes > 0, "{streams}");
    assert_eq!(streams["failed_writes"], 0, "{streams}");
    assert_eq!(streams["event_us"]["count"], 20 * writes, "{streams}");
    for (old, new, expected) in [
        ("count = 20", "count = 0", "0 is not from 1 to"),
        ("rate = 10", "rate = 0", "nothing to tell"),
        (
            "target = '/add'",
            "target = 'add'",
            "a target begins with /",
        ),
    ] {
        write(site.path(), "plan.toml", &plan.replace(old, new));
        let (status, said) = fail(site.path(), &["load", "--plan", "plan.toml"]);
        assert!(status == 1 && said.contains(expected), "{said}");
    }
}

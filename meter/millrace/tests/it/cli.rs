//! Mistakes, each with its place and a way out.

use crate::support::{fail, millrace, run, text};

#[test]
fn help_lists_the_commands_that_exist() {
    let here = tempfile::tempdir().unwrap();
    let output = run(here.path(), &["--help"]);
    assert!(output.status.success());
    let help = text(&output.stdout);
    let commands = lab_testkit::commands_in_help(&help);
    assert_eq!(
        commands,
        [
            "load", "sweep", "capacity", "compare", "report", "lab", "null", "help"
        ]
    );
    for command in commands.iter().filter(|command| **command != "help") {
        let output = run(here.path(), &[command, "--help"]);
        assert!(output.status.success(), "{command}");
    }
}

#[test]
fn the_short_help_of_a_measuring_command_is_a_page_and_the_long_one_has_headings() {
    let here = tempfile::tempdir().unwrap();
    let help = |command: &str, flag: &str| text(&run(here.path(), &[command, flag]).stdout);
    for command in ["load", "sweep", "capacity", "compare"] {
        let (short, long) = (help(command, "-h"), help(command, "--help"));
        assert!(short.lines().count() <= 64, "{command}:\n{short}");
        for heading in [
            "Options:",
            "Request:",
            "Server and TLS:",
            "Client:",
            "Output:",
        ] {
            assert!(long.contains(&format!("\n{heading}\n")), "{command}");
        }
        // An option of one heading does not hide under another.
        let output = long.split("\nOutput:\n").nth(1).unwrap();
        assert!(output.contains("--json") && !output.contains("--depth"));
        assert!(long.contains("--depth") && !short.contains("--depth"));
        let client = long.split("\nClient:\n").nth(1).unwrap();
        assert!(client.contains("--spin") && !short.contains("--spin"));
    }
    let load = help("load", "--help");
    for heading in ["Loop:", "Workload:", "What is measured beside it:"] {
        assert!(load.contains(&format!("\n{heading}\n")), "{heading}");
    }
}

#[test]
fn an_option_that_wants_a_number_says_what_one_looks_like() {
    let here = tempfile::tempdir().unwrap();
    let url = "http://127.0.0.1:1/";
    for (args, said) in [
        (&["load", url, "-c", "four"][..], "a whole number is needed"),
        (&["load", url, "--rate", "1k"], "without a unit"),
        (&["load", url, "--expect", "2xx"], "from 100 to 999"),
        (
            &["capacity", url, "--objective", "99% < 5ms", "--to", "x"],
            "without a unit",
        ),
        (&["sweep", url], "--rates <LEVELS>|--connections <LEVELS>"),
        (&["null", "--listen", "x"], "such as 127.0.0.1:8090"),
        (
            &["null", "--listen", "8091"],
            "did you mean 127.0.0.1:8091?",
        ),
    ] {
        let output = run(here.path(), args);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(error.contains(said), "{args:?}: {error}");
    }
}

#[test]
fn a_misspelt_command_or_flag_is_a_usage_error_with_a_suggestion() {
    let here = tempfile::tempdir().unwrap();
    for (args, near) in [
        (&["laod"][..], "'load'"),
        (&["null", "--lisen", "x"], "'--listen'"),
        (&["load"], "<URL>"),
        (
            &["load", "http://127.0.0.1/", "--duration", "5"],
            "--duration",
        ),
        (&["load", "http://127.0.0.1/", "-H", "x"], "Name: value"),
    ] {
        let (status, said) = fail(here.path(), args);
        assert_eq!(status, 2, "{args:?}: {said}");
        assert!(said.contains(near), "{args:?}: {said}");
    }
}

#[test]
fn nobody_who_listens_to_the_message_is_no_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let here = tempfile::tempdir().unwrap();
    let mut command = millrace(&["report", "nowhere"]);
    let status = command.current_dir(here.path()).stderr(writer).status();
    assert_eq!(status.unwrap().code(), Some(1));
}

//! `addressbook serve` serves the address book; `addressbook data` makes its files.

use std::path::PathBuf;
use std::process::ExitCode;

use lab_addressbook::{FILES, MAX_STALENESS, make_missing, serve};
use millpond::ServerSettings;

const USAGE: &str = "usage: addressbook serve [--data FOLDER] [--listen ADDRESS:PORT]
       addressbook data FOLDER

serve  serves the files in FOLDER (default: data), which it makes if they are missing, on
       ADDRESS:PORT (default: 127.0.0.1:8080)
data   makes the files that are missing in FOLDER";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["data", folder] => make_missing(folder.as_ref())
            .map(|()| println!("{folder} has {} files", FILES.len()))
            .map_err(Into::into),
        ["serve", ref options @ ..] => match parse(options) {
            Some((data, listen)) => run(&data, &listen),
            None => return usage(),
        },
        _ => return usage(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("addressbook: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

/// The folder and the address.
fn parse(options: &[&str]) -> Option<(PathBuf, String)> {
    let (mut data, mut listen) = ("data", "127.0.0.1:8080");
    for option in options.chunks(2) {
        match option {
            ["--data", folder] => data = folder,
            ["--listen", address] => listen = address,
            _ => return None,
        }
    }
    Some((data.into(), listen.to_owned()))
}

fn run(data: &std::path::Path, listen: &str) -> Result<(), Box<dyn std::error::Error>> {
    let book = serve(data, MAX_STALENESS, ServerSettings::new().listen(listen))?;
    println!("{}", book.server.url());
    book.server.run_until_signal()?;
    Ok(())
}

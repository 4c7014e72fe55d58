//! `addressbook data FOLDER` makes the XML files.

use std::path::Path;
use std::process::ExitCode;

use example_addressbook::{FILES, make_missing};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ["data", folder] = words[..] else {
        eprintln!("usage: addressbook data FOLDER");
        return ExitCode::from(2);
    };
    if let Err(error) = make_missing(Path::new(folder)) {
        eprintln!("{folder}: {error}");
        return ExitCode::FAILURE;
    }
    println!("{folder} has {} files", FILES.len());
    ExitCode::SUCCESS
}

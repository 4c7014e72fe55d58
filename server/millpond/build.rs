//! Puts the files of `examples/articles` into the program, for `millpond demo`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../../examples/articles");
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?;
        let _ = writeln!(
            table,
            "    ({:?}, include_bytes!({:?})),",
            name.to_string_lossy(),
            file.to_string_lossy()
        );
    }
    table.push_str("]\n");
    fs::write(Path::new(&variable("OUT_DIR")?).join("articles.rs"), table)
}

/// Every file below `folder` but databases and logs, which serving the example leaves there.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    // Told for each folder: it covers files that come and go.
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            collect(&path, files)?;
        } else if !(name.starts_with('.') || name.contains(".db") || name.ends_with(".log")) {
            files.push(path);
        }
    }
    Ok(())
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}

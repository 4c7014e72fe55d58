//! `cargo xtask release`: the two programs as they are shipped, each with its debug information in
//! a file of its own.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{root, step::Step};

/// Builds both programs and takes them apart.
pub(crate) fn run() -> Result<(), String> {
    Step::cargo("release", "build --locked --release").run()?;
    for name in ["millpond", "millrace"] {
        let program = root().join("target/release").join(name);
        let debug = split(&program)?;
        for file in [program, debug] {
            let bytes = fs::metadata(&file).map_or(0, |metadata| metadata.len());
            println!("{}: {:.1} MB", file.display(), bytes as f64 / 1e6);
        }
    }
    Ok(())
}

/// Moves the symbols and lines of a program into a file beside it, `NAME.debug`. The program names
/// that file, so debuggers, `perf` and the backtraces of a panic find it in the same folder.
fn split(program: &Path) -> Result<PathBuf, String> {
    let debug = program.with_extension("debug");
    let stripped = program.with_extension("stripped");
    let [program_path, debug_path, stripped_path] =
        [program, &debug, &stripped].map(Path::as_os_str);
    let flag = OsStr::new;
    objcopy(&[
        flag("--only-keep-debug"),
        flag("--compress-debug-sections"),
        program_path,
        debug_path,
    ])?;
    let mut link = flag("--add-gnu-debuglink=").to_owned();
    link.push(debug_path);
    objcopy(&[flag("--strip-all"), &link, program_path, stripped_path])?;
    // Cargo's own copy, a hard link, stays whole.
    fs::rename(&stripped, program).map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(debug)
}

/// `objcopy` comes with the linker that the C compiler uses.
fn objcopy(arguments: &[&OsStr]) -> Result<(), String> {
    match Command::new("objcopy").args(arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("objcopy {arguments:?}: {status}")),
        Err(error) => Err(format!(
            "objcopy does not start: {error}; it is in the package binutils"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::split;
    use std::{env, fs, process::Command};

    #[test]
    fn a_program_without_its_symbols_runs_and_names_the_file_that_has_them() {
        let folder = env::temp_dir().join(format!("xtask-release-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let program = folder.join("program");
        let size = fs::copy(env::current_exe().unwrap(), &program).unwrap();
        let debug = split(&program).unwrap();
        let text = fs::read(&program).unwrap();
        // Put together here, as the program has the texts of this test too.
        let has = |name: [&str; 2]| {
            let name = name.concat().into_bytes();
            text.windows(name.len()).any(|part| part == name)
        };
        assert!(has(["program", ".debug\0"]) && !has([".debug", "_line\0"]));
        assert!((text.len() as u64) < size && debug.exists());
        let listed = Command::new(&program).arg("--list").output().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(listed.status.success(), "{listed:?}");
    }
}

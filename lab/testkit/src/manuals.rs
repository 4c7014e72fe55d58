//! Man pages and completions of a program, from its own flags.

use std::fs;
use std::path::Path;

use clap::Command;
use clap_complete::{Shell, generate_to};

/// Names the folder that the pages and completions are for; `cargo xtask package` sets it.
const FOLDER: &str = "MILLPOND_MANUALS";

/// Writes the man pages of a program and its commands into `man/`, and completions for bash, zsh
/// and fish into `completions/`, and checks that every command and flag is in both.
///
/// # Panics
/// A command or flag is missing, or a file cannot be written.
pub fn write_manuals(mut command: Command) {
    let made = crate::fast_dir();
    let given = std::env::var_os(FOLDER);
    let folder = given.as_deref().map_or(made.path(), Path::new);
    let (pages, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&pages).unwrap();
    fs::create_dir_all(&completions).unwrap();
    clap_mangen::generate_to(command.clone(), &pages).unwrap();
    let name = command.get_name().to_owned();
    let scripts = [Shell::Bash, Shell::Zsh, Shell::Fish].map(|shell| {
        let path = generate_to(shell, &mut command, &name, &completions).unwrap();
        fs::read_to_string(path).unwrap()
    });
    command.build();
    for command in command
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
    {
        let page = pages.join(format!("{name}-{}.1", command.get_name()));
        let page = fs::read_to_string(page).unwrap().replace('\\', "");
        let arguments = command.get_arguments();
        let shown = arguments.filter(|argument| !argument.is_hide_set());
        for flag in shown.filter_map(clap::Arg::get_long) {
            assert!(page.contains(&format!("--{flag}")), "{flag}: {page}");
            assert!(scripts.iter().all(|script| script.contains(flag)), "{flag}");
        }
    }
}

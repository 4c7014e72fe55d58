//! Ends the build with a sentence where SQLite is compiled without its preupdate hook, which the
//! change feed needs. Without this the linker would say it, for each program, in its own words.

const FLAG: &str = "SQLITE_ENABLE_PREUPDATE_HOOK";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LIBSQLITE3_FLAGS");
    let flags = std::env::var("LIBSQLITE3_FLAGS").unwrap_or_default();
    if !flags.split_whitespace().any(is_flag) {
        println!(
            "cargo::error=SQLite must be compiled with its preupdate hook: write \
             LIBSQLITE3_FLAGS = \"{FLAG}\" under [env] in .cargo/config.toml beside your Cargo.toml"
        );
    }
}

/// True if a word of the flags is this one, as `libsqlite3-sys` reads them.
fn is_flag(word: &str) -> bool {
    let word = word.strip_prefix("-D").unwrap_or(word);
    let rest = word.strip_prefix(FLAG);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

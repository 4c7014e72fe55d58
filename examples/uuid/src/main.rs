//! `example-uuid [ADDRESS]`: serves UUIDs until a signal.

fn main() -> std::process::ExitCode {
    millpond::ServerSettings::new().run(example_uuid::routes())
}

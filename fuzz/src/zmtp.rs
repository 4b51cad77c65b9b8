//! Target `zmtp`: however a ZMTP stream is cut, the guard passes the same bytes of it, never more
//! than it was given, and no frame above the limit.
//!
//! The input writes a stream of sound frames, of frames with false claims, and of noise, and
//! chooses its cuts. Not here: the reaction of the ZeroMQ socket.

use adapm_transport::testing::ZmtpGuard;
use adapm_verify::arb::Choices;

/// Bytes of messages that may pass at first, and later.
const LIMITS: [u64; 2] = [300, 100_000];

/// Maximum bytes of an introduction: a name, a socket type, and their framing.
const NAME_BYTES_MAX: usize = 1 << 10;

/// Maximum number of frames in one input.
const FRAMES_MAX: usize = 16;

/// Passes the stream that `bytes` choose. Returns true if a frame has passed.
pub fn zmtp(bytes: &[u8]) -> bool {
    let mut choices = Choices::from_bytes(bytes);
    let piece = choices.below(256) as usize;
    let mut stream = Vec::new();
    if choices.below(8) != 7 {
        stream.resize(64, 0);
        stream[0] = 0xff;
    }
    for _ in 0..FRAMES_MAX {
        if choices.is_exhausted() {
            break;
        }
        frame(&mut stream, &mut choices);
    }
    let (whole, reason) = pass(&stream, usize::MAX);
    let (pieces, again) = pass(&stream, 1 + piece);
    assert_eq!(again, reason, "another cut, another verdict");
    if reason.is_none() {
        assert_eq!(pieces, whole, "another cut, and other bytes pass");
    }
    pieces > 64
}

/// Appends a frame, or bytes that resemble one.
fn frame(stream: &mut Vec<u8>, choices: &mut Choices<'_>) {
    let (more, long, command) = (1, 2, 4);
    let flags = [0, more, long, command, more | long, command | long, 8, more | command]
        [choices.below(8) as usize];
    let body: Vec<u8> = match choices.below(4) {
        0 => b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\x03abc".to_vec(),
        1 => (0..choices.below(64)).map(|_| choices.below(256) as u8).collect(),
        2 => vec![7; choices.below(1 << 12) as usize],
        _ => Vec::new(),
    };
    let claim = if choices.below(8) == 7 { choices.number() } else { body.len() as u64 };
    stream.push(flags);
    match flags & long {
        0 => stream.push(claim as u8),
        _ => stream.extend(claim.to_be_bytes()),
    }
    stream.extend(body);
}

/// Returns how many bytes pass if they come in pieces, and why there are no more.
fn pass(stream: &[u8], piece: usize) -> (usize, Option<String>) {
    let mut guard = ZmtpGuard::default();
    let (mut passed, mut given, mut limit) = (0, 0, 0);
    while given < stream.len() || passed < given {
        let before = (passed, given);
        given = stream.len().min(given.saturating_add(piece));
        let (bytes, is_held) = match guard.pass(&stream[passed..given], LIMITS[limit]) {
            Ok(verdict) => verdict,
            Err(reason) => return (passed, Some(reason)),
        };
        assert!(bytes <= given - passed, "more passes than was given");
        passed += bytes;
        let (introduced, name) = guard.introduction();
        assert!(introduced || name.is_none(), "a name without an introduction");
        assert!(name.is_none_or(|name| name.len() <= NAME_BYTES_MAX), "a name without bound");
        if is_held && limit == 0 {
            limit = 1;
        } else if (passed, given) == before {
            break;
        }
    }
    (passed, None)
}

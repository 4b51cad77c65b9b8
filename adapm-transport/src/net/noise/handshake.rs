//! Both sides of the Noise handshake.

use core::fmt;

use snow::{Builder, HandshakeState};

use super::channel::Channel;
use super::link::LinkSecret;
use super::primitives::Primitives;
use crate::net::hello::Token;
use crate::net::packet::PROTOCOL_VERSION;

/// Fresh random bytes, from which the key of a connection is derived; never used twice.
pub type Entropy = [u8; 32];

/// The dialing side, which waits for the answer.
pub struct Initiator(Box<HandshakeState>);

/// The outcome of a handshake: the other side knows the token, and no third party can interfere.
#[derive(Debug)]
pub struct Secured {
    /// Seals and opens all that follows.
    pub channel: Channel,
    /// Hash of the whole handshake, unique to it.
    pub hash: [u8; 32],
    /// The secret of a link that begins with this connection.
    pub link: LinkSecret,
}

impl Initiator {
    /// Starts a handshake. Returns its first message too.
    #[must_use]
    pub fn start(token: &Token, entropy: Entropy) -> (Self, Vec<u8>) {
        let mut state = state(token, entropy, true);
        let mut message = vec![0; MESSAGE_BYTES];
        let written =
            state.write_message(&[], &mut message).expect("the pattern's first message fits");
        debug_assert_eq!(written, MESSAGE_BYTES);
        (Self(Box::new(state)), message)
    }

    /// Handles the answer. Returns `None` unless its sender knows the token.
    #[must_use]
    pub fn finish(mut self, answer: &[u8]) -> Option<Secured> {
        self.0.read_message(answer, &mut []).ok()?;
        Some(secured(*self.0))
    }
}

impl fmt::Debug for Initiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Initiator(..)")
    }
}

/// Answers the first message of a handshake. Returns `None` unless its sender knows the token.
#[must_use]
pub fn respond(token: &Token, first: &[u8], entropy: Entropy) -> Option<(Vec<u8>, Secured)> {
    let mut state = state(token, entropy, false);
    state.read_message(first, &mut []).ok()?;
    let mut answer = vec![0; MESSAGE_BYTES];
    state.write_message(&[], &mut answer).ok()?;
    Some((answer, secured(state)))
}

fn state(token: &Token, entropy: Entropy, is_initiator: bool) -> HandshakeState {
    let psk = token.key(&[b"adapm psk ", &[PROTOCOL_VERSION]]);
    let prologue = [b"adapm link ".as_slice(), &[PROTOCOL_VERSION]].concat();
    let params = PATTERN.parse().expect("a pattern of Noise");
    let builder = Builder::with_resolver(params, Box::new(Primitives(entropy)));
    let builder = builder.prologue(&prologue).and_then(|builder| builder.psk(0, &psk));
    let built = builder.and_then(|builder| {
        if is_initiator { builder.build_initiator() } else { builder.build_responder() }
    });
    built.expect("the pattern needs a key of the token, and has it")
}

fn secured(mut state: HandshakeState) -> Secured {
    let hash = state.get_handshake_hash().try_into().expect("SHA-256 has 32 bytes");
    let is_initiator = state.is_initiator();
    let (forth, back) = state.dangerously_get_raw_split();
    let link = LinkSecret::new(&hash, &forth, &back);
    let channel =
        if is_initiator { Channel::sealed(&forth, &back) } else { Channel::sealed(&back, &forth) };
    Secured { channel, hash, link }
}

pub(super) const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
/// A key and a tag.
const MESSAGE_BYTES: usize = 48;

//! The shared secret of a cluster, from which the keys of its connections are derived.
//!
//! Not here: files and environment variables that hold it, and the proof of knowing it
//! ([`crate::net::noise`]).

use core::fmt;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use hmac::Mac;

use crate::net::noise::hmac;

/// A secret known to all nodes of a cluster; never printed.
#[derive(Clone)]
pub struct Token(Arc<[u8]>);

/// Bytes too weak for a token: an eavesdropper could guess them from a recorded handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeakToken {
    /// Fewer than [`Token::BYTES_MIN`], or more than [`Token::BYTES_MAX`].
    #[error("a token of {bytes} bytes: {}", needed())]
    Length {
        /// The number of bytes.
        bytes: usize,
    },
    /// Fewer than [`Token::DIFFERENT_MIN`] different ones.
    #[error("a token of {different} different bytes: {}", needed())]
    Repeats {
        /// The number of different ones.
        different: usize,
    },
}

impl Token {
    /// Minimum bytes of a token.
    pub const BYTES_MIN: usize = 32;
    /// Maximum bytes of a token.
    pub const BYTES_MAX: usize = 1024;

    /// Minimum number of different bytes of a token. Random 32 hexadecimal digits miss it once in
    /// 28 million times.
    pub const DIFFERENT_MIN: usize = 8;

    /// Creates a token of these bytes.
    ///
    /// # Errors
    /// If there are fewer than 32 or more than 1,024, or fewer than 8 different ones.
    pub fn new(bytes: &[u8]) -> Result<Self, WeakToken> {
        if !(Self::BYTES_MIN..=Self::BYTES_MAX).contains(&bytes.len()) {
            return Err(WeakToken::Length { bytes: bytes.len() });
        }
        let different = bytes.iter().collect::<BTreeSet<_>>().len();
        if different < Self::DIFFERENT_MIN {
            return Err(WeakToken::Repeats { different });
        }
        Ok(Self(bytes.into()))
    }

    /// Returns fresh random text for an unguessable token: 32 bytes as 64 hexadecimal digits.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn fresh_text() -> io::Result<String> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Derives a key for the purpose in `label`, which does not reveal the token.
    pub(in crate::net) fn key(&self, label: &[&[u8]]) -> [u8; 32] {
        hmac(&self.0, label).finalize().into_bytes().into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

fn needed() -> String {
    format!("it needs {} to {} bytes, all of them random", Token::BYTES_MIN, Token::BYTES_MAX)
}

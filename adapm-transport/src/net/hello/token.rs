//! The shared secret of a cluster, and the proof of knowing it.
//!
//! A token proves who may join; it does not encrypt. Not here: files and environment variables that hold it.

use core::fmt;
use std::collections::BTreeSet;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A secret that all nodes of a cluster know; never printed.
#[derive(Clone)]
pub struct Token(Arc<[u8]>);

/// Bytes that are no token, as they could be guessed by whoever has recorded a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeakToken {
    /// Fewer than [`Token::BYTES_MIN`], or more than [`Token::BYTES_MAX`].
    Length {
        /// Their number.
        bytes: usize,
    },
    /// Fewer than [`Token::DIFFERENT_MIN`] different ones.
    Repeats {
        /// The number of different ones.
        different: usize,
    },
}

/// Proof of knowing a token: an HMAC-SHA256.
pub type Mark = [u8; 32];

impl Token {
    /// Fewest bytes of a token.
    pub const BYTES_MIN: usize = 32;
    /// Most bytes of a token.
    pub const BYTES_MAX: usize = 1024;

    /// Fewest different bytes of a token. Of 32 random hexadecimal digits fewer are different once in 28 million times.
    pub const DIFFERENT_MIN: usize = 8;

    /// A token of these bytes.
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

    /// What whoever knows the token can say about `parts`, and nobody else.
    pub(super) fn mark(&self, parts: [&[u8]; 3]) -> Mark {
        self.mac(parts).finalize().into_bytes().into()
    }

    /// Whether `mark` is that of `parts`, in a time that tells nothing.
    pub(super) fn knows(&self, parts: [&[u8]; 3], mark: &Mark) -> bool {
        self.mac(parts).verify_slice(mark).is_ok()
    }

    fn mac(&self, parts: [&[u8]; 3]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        for part in parts {
            // Lengths keep two different lists of parts from looking the same.
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl fmt::Display for WeakToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { bytes } => write!(f, "a token of {bytes} bytes")?,
            Self::Repeats { different } => write!(f, "a token of {different} different bytes")?,
        }
        let (least, most) = (Token::BYTES_MIN, Token::BYTES_MAX);
        write!(f, ": it needs {least} to {most} bytes, all of them random")
    }
}

impl core::error::Error for WeakToken {}

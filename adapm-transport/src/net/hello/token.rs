//! The shared secret of a cluster, of which the keys of its connections are made.
//!
//! Not here: files and environment variables that hold it, and what proves to know it
//! ([`crate::net::noise`]).

use core::fmt;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use hmac::Mac;

use crate::net::noise::hmac;

/// A secret that all nodes of a cluster know; never printed.
#[derive(Clone)]
pub struct Token(Arc<[u8]>);

/// Bytes that are no token, as they could be guessed by whoever has recorded a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeakToken {
    /// Fewer than [`Token::BYTES_MIN`], or more than [`Token::BYTES_MAX`].
    #[error("a token of {bytes} bytes: {}", needed())]
    Length {
        /// Their number.
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
    /// Fewest bytes of a token.
    pub const BYTES_MIN: usize = 32;
    /// Most bytes of a token.
    pub const BYTES_MAX: usize = 1024;

    /// Fewest different bytes of a token. Of 32 random hexadecimal digits fewer are different once
    /// in 28 million times.
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

    /// Text of which a token that nobody can guess is made: 32 random bytes as 64 hexadecimal
    /// digits.
    ///
    /// # Errors
    /// If the system has no random bytes to give.
    pub fn fresh_text() -> io::Result<String> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// A key for the purpose that `label` names, of which the token cannot be found.
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

//! Addresses of endpoints, with the kind of their pipes: `tcp://10.0.0.7:4157`,
//! `unix:///run/adapm/n0`.
//!
//! Addresses are numbers, not names: resolving a name can block for long, so readers of user input
//! resolve it before.

use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;
use std::path::PathBuf;

use adapm_core::error::OneLine;

/// The kind of pipes that carry the packets of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// TCP, served by the thread that uses the endpoint.
    #[default]
    Tcp,
    /// TCP, served by tasks of tokio.
    Tokio,
    /// ZeroMQ.
    Zmq,
    /// Unix sockets, served by the thread that uses the endpoint.
    Unix,
}

/// The address at which an endpoint is dialed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// `tcp://ip:port`
    Tcp(SocketAddr),
    /// `tokio://ip:port`; the same bytes as over TCP.
    Tokio(SocketAddr),
    /// `zmq://ip:port`
    Zmq(SocketAddr),
    /// `unix:///path`
    Unix(PathBuf),
}

/// The error of a text that is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no address: write it like tcp://10.0.0.7:4157 or unix:///path", OneLine(given))]
pub struct AddressError {
    /// The text.
    pub given: String,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Tcp, Self::Tokio, Self::Zmq, Self::Unix];

    /// Returns the kinds of this build.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kind| match kind {
            Self::Tcp | Self::Unix => true,
            Self::Tokio => cfg!(feature = "tokio"),
            Self::Zmq => cfg!(feature = "zmq"),
        })
    }

    /// Returns the scheme of its addresses.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tokio => "tokio",
            Self::Zmq => "zmq",
            Self::Unix => "unix",
        }
    }
}

impl Address {
    /// Returns the kind of its pipes.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Tcp(_) => Kind::Tcp,
            Self::Tokio(_) => Kind::Tokio,
            Self::Zmq(_) => Kind::Zmq,
            Self::Unix(_) => Kind::Unix,
        }
    }

    /// Returns its network address, if it is in a network.
    #[must_use]
    pub const fn socket(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(socket) | Self::Tokio(socket) | Self::Zmq(socket) => Some(*socket),
            Self::Unix(_) => None,
        }
    }

    /// Returns the address of `kind` at a network address; `None` for kinds without one.
    #[must_use]
    pub const fn at(kind: Kind, socket: SocketAddr) -> Option<Self> {
        match kind {
            Kind::Tcp => Some(Self::Tcp(socket)),
            Kind::Tokio => Some(Self::Tokio(socket)),
            Kind::Zmq => Some(Self::Zmq(socket)),
            Kind::Unix => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme())
    }
}

impl FromStr for Kind {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let found = Self::ALL.into_iter().find(|kind| kind.scheme() == text);
        found.ok_or_else(|| AddressError { given: text.to_owned() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(socket) | Self::Tokio(socket) | Self::Zmq(socket) => {
                write!(f, "{}://{socket}", self.kind())
            }
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let parse = || {
            let (scheme, rest) = text.split_once("://")?;
            match scheme.parse().ok()? {
                Kind::Unix if rest.is_empty() => None,
                Kind::Unix => Some(Self::Unix(PathBuf::from(rest))),
                kind => Self::at(kind, rest.parse().ok()?),
            }
        };
        parse().ok_or_else(|| AddressError { given: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in
            ["tcp://10.0.0.7:4157", "tokio://[::1]:1", "zmq://127.0.0.1:65535", "unix:///a b/c"]
        {
            let address: Address = text.parse().expect("an address");
            assert_eq!(
                (address.to_string(), address.kind().scheme()),
                (text.to_owned(), &text[..text.find(':').expect("a scheme")])
            );
        }
    }

    #[test]
    fn what_is_no_address_is_named() {
        for text in [
            "",
            "tcp://",
            "tcp://host:1",
            "tcp://1.2.3.4",
            "udp://1.2.3.4:5",
            "unix://",
            "1.2.3.4:5",
        ] {
            let error = text.parse::<Address>().expect_err("not an address");
            assert!(error.to_string().starts_with(&format!("`{text}` is no address")));
        }
        let error = "tcp://\n".parse::<Address>().expect_err("not an address");
        assert!(
            error.to_string().starts_with("`tcp://\\n` is no address"),
            "a text of others stays in one line"
        );
    }
}

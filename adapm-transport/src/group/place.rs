//! Addresses to listen at and to advertise, and the file in which node 0 publishes its address,
//! with a secret for the run.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process;

use super::error::GroupError;
use crate::net::Token;

/// Checks that the text has the form `host:port`.
pub(super) fn check(text: &str) -> Result<(), GroupError> {
    match text.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() && !host.is_empty() => Ok(()),
        _ => Err(GroupError::Address {
            given: text.to_owned(),
            reason: "write it as host:port, with a port in 1..=65535".to_owned(),
        }),
    }
}

/// Resolves `host:port` to network addresses, those to try first in front. Can block for long if
/// the host is a name.
pub(super) fn resolve(text: &str) -> Result<Vec<SocketAddr>, GroupError> {
    check(text)?;
    let unusable = |reason: String| GroupError::Address { given: text.to_owned(), reason };
    let found = text
        .to_socket_addrs()
        .map_err(|error| unusable(format!("the host is unknown ({error})")))?;
    let mut addresses = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    // Other machines reach no loopback address, and most networks carry IPv4.
    addresses.sort_by_key(|address| (address.ip().is_loopback(), address.is_ipv6()));
    if addresses.is_empty() {
        Err(unusable("the host has no address".to_owned()))
    } else {
        Ok(addresses)
    }
}

/// Returns the port of `host:port`.
pub(super) fn port_of(text: &str) -> Result<u16, GroupError> {
    check(text)?;
    Ok(text.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or_default())
}

/// Returns true if the host in `host:port` is a name, which may resolve differently later or on
/// another machine.
pub(super) fn is_named(text: &str) -> bool {
    let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
    host != "localhost" && host.trim_matches(['[', ']']).parse::<IpAddr>().is_err()
}

/// Returns true if connections are accepted there; tries for at most half a second.
pub(super) fn answers(address: SocketAddr) -> bool {
    let connected = TcpStream::connect_timeout(&address, Duration::from_millis(500));
    // TCP may connect a port without a listener to itself, by chance.
    connected.is_ok_and(|stream| stream.local_addr().is_ok_and(|local| local != address))
}

/// Resolves a host name or address without port; a port is ignored.
pub(super) fn resolve_host(text: &str) -> Result<IpAddr, GroupError> {
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(ip);
    }
    let with_port =
        if text.rsplit_once(':').is_some() { text.to_owned() } else { format!("{text}:0") };
    resolve(&with_port).map(|addresses| addresses[0].ip()).map_err(|error| match error {
        GroupError::Address { reason, .. } => {
            GroupError::Address { given: text.to_owned(), reason }
        }
        other => other,
    })
}

/// Returns the address of this machine towards `there`; nothing is sent.
pub(super) fn towards(there: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr =
        if there.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { [0_u16; 8].into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(there)?;
    Ok(socket.local_addr()?.ip())
}

/// Returns the address for others to dial: `told` if given, else the listening address, else this
/// machine's address.
pub(super) fn advertised(
    told: Option<&str>,
    listens: IpAddr,
    reached_at: Option<IpAddr>,
) -> Result<IpAddr, GroupError> {
    if let Some(text) = told {
        return resolve_host(text);
    }
    if !listens.is_unspecified() {
        return Ok(listens);
    }
    if let Some(ip) = reached_at.filter(|ip| !ip.is_unspecified()) {
        return Ok(ip);
    }
    towards(SocketAddr::from((ELSEWHERE, 9))).map_err(|error| GroupError::Address {
        given: listens.to_string(),
        reason: format!(
            "no address of this machine was found to tell others ({error}): give --advertise"
        ),
    })
}

/// The file in which node 0 publishes its address; removed when it is dropped, if it is unchanged.
pub(super) struct RendezvousFile {
    path: PathBuf,
    text: String,
}

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The address of node 0.
    pub(super) address: SocketAddr,
    /// The secret of a run whose nodes were given none: every reader of the file belongs to it.
    pub(super) secret: Option<Secret>,
}

/// A secret for one run; never printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(String);

impl Secret {
    pub(super) fn fresh() -> io::Result<Self> {
        Token::fresh_text().map(Self)
    }

    fn of(text: &str) -> Option<Self> {
        Token::new(text.as_bytes()).ok().map(|_| Self(text.to_owned()))
    }

    pub(super) fn token(&self) -> Option<Token> {
        Token::new(self.0.as_bytes()).ok()
    }
}

impl Place {
    /// Parses the text of a file; `None` if it is something else.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let address = words.next()?.parse().ok()?;
        let secret = words.next().map(Secret::of);
        match (secret, words.next()) {
            (None, _) => Some(Self { address, secret: None }),
            (Some(Some(secret)), None) => Some(Self { address, secret: Some(secret) }),
            _ => None,
        }
    }
}

impl RendezvousFile {
    /// Removes the file of an earlier run. A file with any other content than an address was not
    /// meant to be removed.
    pub(super) fn clear(path: &Path) -> Result<(), GroupError> {
        let reason = "it holds something else than a meeting: give another file, or remove it";
        let foreign = || GroupError::File { path: path.to_owned(), reason: reason.to_owned() };
        match fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() || metadata.len() > TEXT_BYTES_MAX => {
                return Err(foreign());
            }
            Ok(_) => {
                let bytes = fs::read(path).map_err(|error| unusable(path, "read", &error))?;
                let is_own = bytes.is_empty()
                    || str::from_utf8(&bytes).is_ok_and(|text| Place::of(text).is_some());
                is_own.then_some(()).ok_or_else(foreign)?;
            }
            // A dangling link is removed as well.
            Err(_) => {}
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(unusable(path, "removed", &error))
            }
            _ => Ok(()),
        }
    }

    /// Writes the file atomically, readable by this user alone.
    pub(super) fn write(path: &Path, place: &Place) -> Result<Self, GroupError> {
        let Place { address, secret } = place;
        let secret = secret.as_ref().map_or(String::new(), |Secret(text)| format!("{text}\n"));
        let text = format!("{address}\n{secret}");
        let mut name = path.file_name().unwrap_or_default().to_owned();
        // The name is unguessable, so no link can have been planted under it, and an existing file
        // is not opened.
        name.push(format!(
            ".{}-{:016x}",
            process::id(),
            RandomState::new().build_hasher().finish()
        ));
        let part = path.with_file_name(name);
        let mode = if secret.is_empty() { 0o644 } else { 0o600 };
        let written = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&part)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&part, path));
        match written {
            Ok(()) => Ok(Self { path: path.to_owned(), text }),
            Err(error) => {
                let _ = fs::remove_file(&part);
                Err(unusable(path, "written", &error))
            }
        }
    }

    /// Reads the file; `None` if it does not exist yet.
    pub(super) fn read(path: &Path) -> Result<Option<Place>, GroupError> {
        let file = match fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(path, "read", &error)),
        };
        let unusable = |error: io::Error| unusable(path, "read", &error);
        let metadata = file.metadata().map_err(unusable)?;
        let mut text = String::new();
        file.take(TEXT_BYTES_MAX).read_to_string(&mut text).map_err(unusable)?;
        let failed =
            |reason: &str| GroupError::File { path: path.to_owned(), reason: reason.to_owned() };
        let place = Place::of(&text)
            .ok_or_else(|| failed("it holds no address: remove it and start all nodes again"))?;
        let is_private =
            metadata.mode() & 0o077 == 0 && metadata.uid() == rustix::process::geteuid().as_raw();
        if place.secret.is_some() && !is_private {
            return Err(failed(
                "it holds a secret, and is not this user's alone: remove it and start all nodes again",
            ));
        }
        Ok(Some(place))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Drop for RendezvousFile {
    fn drop(&mut self) {
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn unusable(path: &Path, verb: &str, error: &io::Error) -> GroupError {
    GroupError::File { path: path.to_owned(), reason: format!("it cannot be {verb} ({error})") }
}

/// Longer than any address and its line end.
const TEXT_BYTES_MAX: u64 = 256;

/// A reserved address (RFC 5737), used to find the route out of this machine.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_no_address_is_named_with_the_reason() {
        for text in ["", "host", "host:", ":4157", "host:port", "host:70000", "1.2.3.4"] {
            let error = resolve(text).expect_err("no host and port");
            assert!(error.to_string().starts_with(&format!("`{text}` cannot be used")), "{error}");
        }
        let unknown = resolve("nobody.invalid:4157").expect_err("reserved for unknown hosts");
        assert!(unknown.to_string().contains("the host is unknown"), "{unknown}");
        assert_eq!(resolve("127.0.0.1:4157"), Ok(vec![SocketAddr::from(([127, 0, 0, 1], 4157))]));
        assert_eq!((port_of("ann:4157"), port_of("[::1]:80")), (Ok(4157), Ok(80)));
        assert!(
            is_named("ann:4157")
                && !is_named("localhost:1")
                && !is_named("[::1]:1")
                && !is_named("10.0.0.1:1")
        );
        assert_eq!(resolve_host("[::1]"), Ok(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])));
        assert_eq!(resolve_host("127.0.0.1:80"), Ok(IpAddr::from([127, 0, 0, 1])));
    }

    #[test]
    fn the_file_says_where_node_0_is_and_is_removed_after_it() {
        let folder = std::env::temp_dir().join(format!("adapm-place-{}", process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("rendezvous");
        assert_eq!(RendezvousFile::read(&path), Ok(None));
        let address = SocketAddr::from(([127, 0, 0, 1], 4157));
        let mut place = Place { address, secret: None };
        for secret in [None, Some(Secret::fresh().expect("random bytes"))] {
            place.secret = secret;
            let file = RendezvousFile::write(&path, &place).expect("a folder to write to");
            assert_eq!(RendezvousFile::read(&path), Ok(Some(place.clone())));
            drop(file);
            assert_eq!(RendezvousFile::read(&path), Ok(None));
        }

        let file = RendezvousFile::write(&path, &place).expect("a folder to write to");
        fs::write(&path, "somebody else\n").expect("a file");
        drop(file);
        let error = RendezvousFile::read(&path).expect_err("no address");
        assert!(
            error.to_string().ends_with("it holds no address: remove it and start all nodes again")
        );
        for text in ["somebody else\n".to_owned(), "1.2.3.4:5\n".repeat(100)] {
            fs::write(&path, &text).expect("a file");
            let error = RendezvousFile::clear(&path).expect_err("it is of somebody else");
            assert!(
                error.to_string().contains("it holds something else than a meeting"),
                "{error}"
            );
            assert_eq!(fs::read_to_string(&path).expect("it is still there"), text);
        }
        assert!(RendezvousFile::clear(&folder).is_err(), "a folder");
        for text in ["", "127.0.0.1:4157\n", "[::1]:80"] {
            fs::write(&path, text).expect("a file");
            RendezvousFile::clear(&path).expect("of an earlier run");
            assert!(!path.exists());
        }
        RendezvousFile::clear(&path).expect("nothing to clear");
        let nowhere = RendezvousFile::write(&folder.join("none/rendezvous"), &place)
            .err()
            .expect("no folder");
        assert!(nowhere.to_string().contains("it cannot be written"), "{nowhere}");
        fs::remove_dir_all(&folder).expect("the folder is there");
    }

    #[test]
    fn a_secret_is_for_this_user_alone_and_no_two_are_alike() {
        let folder = std::env::temp_dir().join(format!("adapm-secret-{}", process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("rendezvous");
        let fresh = || Secret::fresh().expect("random bytes");
        let secret = fresh();
        assert!(secret != fresh() && secret.0.len() == 64 && format!("{secret:?}") == "Secret(..)");
        let place = Place {
            address: SocketAddr::from(([127, 0, 0, 1], 4157)),
            secret: Some(secret.clone()),
        };
        let file = RendezvousFile::write(&path, &place).expect("a folder to write to");
        assert_eq!(fs::metadata(&path).expect("it is there").mode() & 0o777, 0o600);
        for mode in [0o640, 0o604, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
            let error = RendezvousFile::read(&path).expect_err("others may know it").to_string();
            assert!(error.contains("it holds a secret, and is not this user's alone"), "{error}");
            assert!(!error.contains(&secret.0), "{error}");
        }
        drop(file);
        fs::remove_dir_all(&folder).expect("the folder is there");
    }

    #[test]
    fn a_file_holds_an_address_and_a_secret_at_most() {
        let secret = "0123456789abcdef".repeat(4);
        let says = |text: &str| Place::of(text).map(|place| place.secret.is_some());
        assert_eq!(says("1.2.3.4:5\n"), Some(false));
        assert_eq!(says(&format!("[::1]:5\n{secret}\n")), Some(true));
        for text in ["", "host:5\n", "1.2.3.4\n", "1.2.3.4:5\nshort\n", "1.2.3.4:5 6.7.8.9:5\n"] {
            assert_eq!(says(text), None, "{text}");
        }
        assert_eq!(says(&format!("1.2.3.4:5\n{secret}\nmore\n")), None);
    }
}

//! The hosts of `--hosts`: what ssh is told, and how the nodes meet at the first.

use std::net::Ipv6Addr;

use adapm_transport::group::launcher::join_host;

use crate::launch::error::LaunchError;

/// One host, as it was given: `HOST`, `USER@HOST`, or with an IPv6 address, with or without brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    user: Option<String>,
    /// Without brackets.
    name: String,
}

/// Reads the hosts. The others meet at the first, so its name must mean the same to all.
///
/// # Errors
/// Names that ssh would take for flags, that are none, or that mean another host on each host.
pub(super) fn read(hosts: &[String]) -> Result<Vec<Host>, LaunchError> {
    let read: Vec<Host> = hosts.iter().map(|host| Host::read(host)).collect::<Result<_, _>>()?;
    if let (Some(first), Some(given)) = (read.first(), hosts.first()) {
        if first.name.contains('%') {
            return Err(LaunchError::Zone(given.clone()));
        }
        if first.is_local() && !read.iter().all(Host::is_local) {
            return Err(LaunchError::LoopbackHost(given.clone()));
        }
    }
    Ok(read)
}

impl Host {
    fn read(text: &str) -> Result<Self, LaunchError> {
        let (user, name) = match text.rsplit_once('@') {
            Some((user, name)) => (Some(user.to_owned()), name),
            None => (None, text),
        };
        let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '[' | ']');
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_address = |name: &str| name.split('%').next().is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok());
        if bare.is_empty() || text.starts_with('-') || bare.contains(odd) {
            return Err(LaunchError::Host(text.to_owned()));
        }
        if (bare.contains(':') || bare != name) && !is_address(bare) {
            return Err(LaunchError::HostColon(text.to_owned()));
        }
        Ok(Self { user, name: bare.to_owned() })
    }

    /// What ssh takes: addresses without brackets.
    pub(super) fn destination(&self) -> String {
        self.user.as_ref().map_or_else(|| self.name.clone(), |user| format!("{user}@{}", self.name))
    }

    /// Where nodes meet at `port` of this host.
    pub(super) fn meeting(&self, port: u16) -> String {
        join_host(&self.name, port)
    }

    fn is_local(&self) -> bool {
        matches!(self.name.as_str(), "localhost" | "127.0.0.1" | "::1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(host: &str) -> (String, String) {
        let host = Host::read(host).expect("a host");
        (host.destination(), host.meeting(4157))
    }

    #[test]
    fn addresses_have_brackets_where_a_port_follows_and_nowhere_else() {
        let pair = |ssh: &str, meeting: &str| (ssh.to_owned(), meeting.to_owned());
        assert_eq!(told("ann"), pair("ann", "ann:4157"));
        assert_eq!(told("me@ann"), pair("me@ann", "ann:4157"));
        assert_eq!(told("10.0.0.1"), pair("10.0.0.1", "10.0.0.1:4157"));
        for given in ["fd88::1", "[fd88::1]"] {
            assert_eq!(told(given), pair("fd88::1", "[fd88::1]:4157"));
            assert_eq!(told(&format!("me@{given}")), pair("me@fd88::1", "[fd88::1]:4157"));
        }
        // Beyond the first host an address of one link will do.
        assert_eq!(told("fe80::1%eth0").0, "fe80::1%eth0");
    }

    #[test]
    fn what_is_no_host_is_told_with_what_to_give() {
        let text = |hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            read(&hosts).expect_err("no host").to_string()
        };
        for odd in ["", "-oProxyCommand=x", "a b", "me@", "[]", "a/b"] {
            assert!(text(&[odd, "bob"]).contains("no name of a host"), "{odd}: {}", text(&[odd, "bob"]));
        }
        assert!(text(&["ann:22"]).contains("[fd00::1]"), "{}", text(&["ann:22"]));
        assert!(text(&["[ann]"]).contains("[fd00::1]"));
        assert!(text(&["fe80::1%eth0", "bob"]).contains("zone"), "{}", text(&["fe80::1%eth0", "bob"]));
        assert!(text(&["[::1]", "bob"]).contains("the name by which the other hosts reach the first"));
        assert!(read(&["[::1]".to_owned(), "localhost".to_owned()]).is_ok(), "one host, twice");
    }
}

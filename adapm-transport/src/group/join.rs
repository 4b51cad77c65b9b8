//! Joining: the address to listen at, the address of node 0, and the wait for all others.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::io;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use adapm_core::NodeId;
use adapm_core::link::LinkConfig;
use adapm_core::transport::{CloseReason, Loss};

use super::collective::ROOT;
use super::config::{GroupConfig, Rendezvous};
use super::error::GroupError;
use super::handle::Handle;
use super::membership::{JoinFault, Membership};
use super::mesh::NetMesh;
use super::place::{self, Place, RendezvousFile, Secret};
use crate::error::PeerLoss;
use crate::net::{Kind, Net, NetConfig, NetError, Token};
use crate::threads;

/// A callback that shows the membership: on every change, and once a second.
pub(super) type Watch<'a> = &'a mut dyn FnMut(&Membership);

/// A process that has joined.
pub(super) struct Joined {
    pub(super) handle: Handle,
    /// The address at which this process listens.
    pub(super) listens: IpAddr,
    /// The address for others to dial.
    pub(super) advertise: IpAddr,
    /// Kept as long as the group.
    pub(super) file: Option<RendezvousFile>,
    /// The token that was given, or found in the rendezvous file.
    pub(super) token: Option<Token>,
}

/// One attempt to join.
pub(super) struct Attempt<'a> {
    config: &'a GroupConfig,
    /// The token that was given, or that of the rendezvous file.
    token: Option<Token>,
    watch: Watch<'a>,
    membership: Membership,
    began: Instant,
    /// The last second since the beginning in which a fault was shown.
    shown_second: Option<u64>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(config: &'a GroupConfig, watch: Watch<'a>) -> Result<Self, GroupError> {
        let (node, nodes) = (config.node, config.nodes);
        if node.index() >= nodes || nodes > usize::from(u16::MAX) {
            return Err(GroupError::NodeOutOfRange { node, nodes });
        }
        let membership = Membership::new(node, nodes, config.rendezvous.to_string());
        let token = config.token.clone();
        Ok(Self { config, token, watch, membership, began: Instant::now(), shown_second: None })
    }

    pub(super) fn run(mut self) -> Result<Joined, GroupError> {
        let joined = if self.config.node == ROOT {
            self.host()
        } else {
            // There may be a wait for a file or a name before there is anything to see.
            (self.watch)(&self.membership);
            self.visit()
        }?;
        joined.handle.collect("join", true, &[])?;
        Ok(joined)
    }

    /// Opens the rendezvous, on node 0.
    fn host(&mut self) -> Result<Joined, GroupError> {
        let config = self.config;
        let secret = if config.finds_token() {
            let secret =
                Secret::fresh().map_err(|error| NetError::System { error: error.into() })?;
            self.token = secret.token();
            Some(secret)
        } else {
            None
        };
        let (net, listens, advertise) = self.open_meeting()?;
        let port = net.address().socket().map_or(0, |socket| socket.port());
        let file = match &config.rendezvous {
            Rendezvous::Address(_) => None,
            Rendezvous::File(path) | Rendezvous::JobFile(path) => {
                let place = Place { address: SocketAddr::new(advertise, port), secret };
                Some(RendezvousFile::write(path, &place)?)
            }
        };
        let hint = match &config.rendezvous {
            Rendezvous::Address(text) if listens.is_loopback() && place::is_named(text) => {
                Some(format!(
                    "`{text}` means {listens} here, which no other machine reaches: give node n0 --bind with an address that the \
                 others reach"
                ))
            }
            _ => None,
        };
        let handle = Handle::start(
            NetMesh::new(net, advertise),
            self.membership.clone(),
            config.dead_after / 5,
        )?;
        self.wait(&handle, &mut Way { hint, ..Way::default() })?;
        Ok(Joined { handle, listens, advertise, file, token: self.token.clone() })
    }

    /// Listens at the rendezvous: at an address of the name that this machine has, once there is
    /// one.
    fn open_meeting(&mut self) -> Result<(Net, IpAddr, IpAddr), GroupError> {
        let config = self.config;
        let advertise = config.advertise.as_deref();
        let told = config.bind.as_deref().map(place::resolve_host).transpose()?;
        let (text, port) = match (&config.rendezvous, told) {
            (Rendezvous::File(path) | Rendezvous::JobFile(path), told) => {
                RendezvousFile::clear(path)?;
                let listens = told.unwrap_or([127, 0, 0, 1].into());
                let advertise = place::advertised(advertise, listens, None)?;
                return Ok((self.listen(SocketAddr::new(listens, 0))?, listens, advertise));
            }
            (Rendezvous::Address(text), Some(listens)) if !listens.is_unspecified() => {
                let net = self.listen(SocketAddr::new(listens, place::port_of(text)?))?;
                return Ok((net, listens, place::advertised(advertise, listens, None)?));
            }
            (Rendezvous::Address(text), _) => (text, place::port_of(text)?),
        };
        let mut names = Names::of(text)?;
        loop {
            let mut last = None;
            for meeting in self.next_addresses(&mut names)? {
                let bind = SocketAddr::new(told.unwrap_or(meeting.ip()), port);
                match self.listen(bind) {
                    Ok(net) => {
                        let advertise =
                            place::advertised(advertise, bind.ip(), Some(meeting.ip()))?;
                        return Ok((net, bind.ip(), advertise));
                    }
                    Err(error) if self.may_change(&error, text) => last = last.or(Some(error)),
                    Err(error) => return Err(error.into()),
                }
            }
            if let Some(error) = last {
                if self.is_late() {
                    return Err(error.into());
                }
                self.show_trouble(None, error.to_string());
                thread::sleep(LOOK);
            }
        }
    }

    /// Returns true if a failed listen may succeed later: a name may resolve to another address
    /// then, and a connection of a joining process may occupy the port for a moment.
    fn may_change(&self, error: &NetError, text: &str) -> bool {
        let NetError::Bind { error, .. } = error else { return false };
        match error.kind() {
            io::ErrorKind::AddrNotAvailable => place::is_named(text),
            io::ErrorKind::AddrInUse => self.began.elapsed() < IN_USE_PATIENCE,
            _ => false,
        }
    }

    /// Finds node 0 and registers with it, on every other node.
    fn visit(&mut self) -> Result<Joined, GroupError> {
        let config = self.config;
        loop {
            let (mut way, from) = match &config.rendezvous {
                Rendezvous::Address(text) => self.find_way(text)?,
                Rendezvous::File(path) | Rendezvous::JobFile(path) => {
                    let (meeting, secret) = self.await_file(path)?;
                    if let Some(secret) = &secret {
                        self.token = secret.token();
                    }
                    let given = meeting.to_string();
                    let from = place::towards(meeting)
                        .map_err(|error| GroupError::Address { given, reason: no_way(&error) })?;
                    (Way { meeting: vec![meeting], secret, ..Way::default() }, from)
                }
            };
            let listens = config.bind.as_deref().map_or(Ok(from), place::resolve_host)?;
            let advertise = place::advertised(config.advertise.as_deref(), listens, Some(from))?;
            let mut net = self.listen(SocketAddr::new(listens, 0))?;
            while net.address().socket().is_some_and(|own| way.meeting.contains(&own)) {
                // The system gave this node the very port at which node 0 is to listen.
                net = self.listen(SocketAddr::new(listens, 0))?;
            }
            let handle = Handle::start(
                NetMesh::new(net, advertise),
                self.membership.clone(),
                config.dead_after / 5,
            )?;
            handle.meet(way.meeting.clone());
            if self.wait(&handle, &mut way)? == Waited::Joined {
                return Ok(Joined {
                    handle,
                    listens,
                    advertise,
                    file: None,
                    token: self.token.clone(),
                });
            }
        }
    }

    /// Opens the control endpoint, at `bind`.
    fn listen(&self, bind: SocketAddr) -> Result<Net, NetError> {
        let mut settings = settings(self.config, CONTROL_CHANNEL, Kind::Tcp, bind.to_string());
        settings.token.clone_from(&self.token);
        Net::listen(settings)
    }

    /// Returns the addresses of node 0 (the first that answers if they are reached by different
    /// ways) and this machine's address towards it.
    fn find_way(&mut self, text: &str) -> Result<(Way, IpAddr), GroupError> {
        let mut names = Names::of(text)?;
        loop {
            let mut meeting = self.next_addresses(&mut names)?;
            let ways = meeting.iter().map(|address| (*address, place::towards(*address)));
            let (mut open, mut last) = (Vec::new(), None);
            for (address, from) in ways {
                match from {
                    Ok(from) => open.push((address, from)),
                    Err(error) => last = Some(no_way(&error)),
                }
            }
            let is_one = open.windows(2).all(|two| two[0].1 == two[1].1);
            let found =
                if is_one { open.first() } else { open.iter().find(|way| place::answers(way.0)) };
            if let Some(&(address, from)) = found {
                meeting.sort_by_key(|other| *other != address);
                let is_here = place::is_named(text)
                    && meeting.iter().all(|address| address.ip().is_loopback());
                let hint = is_here.then(|| {
                    format!("`{text}` means {} here, which is this machine itself", address.ip())
                });
                let names = Some(names);
                return Ok((Way { meeting, names, hint, ..Way::default() }, from));
            }
            let reason = last.unwrap_or_else(|| "no answer".to_owned());
            if self.is_late() {
                return Err(self.unreached(ROOT, &meeting, reason));
            }
            self.show_trouble(Some(ROOT), reason);
            thread::sleep(LOOK);
        }
    }

    /// Returns the present addresses of a name, once it has some; its machine may come up later.
    fn next_addresses(&mut self, names: &mut Names) -> Result<Vec<SocketAddr>, GroupError> {
        let mut last =
            GroupError::Address { given: names.text.clone(), reason: "no answer".to_owned() };
        loop {
            let wait = if names.known.is_empty() { LOOK } else { Duration::ZERO };
            match names.found.recv_timeout(wait) {
                Ok(Ok(addresses)) => names.known = addresses,
                Ok(Err(error)) => last = error,
                Err(_) => {}
            }
            if !names.known.is_empty() {
                return Ok(names.known.clone());
            }
            if self.is_late() {
                return Err(last);
            }
            let node = (self.config.node != ROOT).then_some(ROOT);
            self.show_trouble(node, last.to_string());
        }
    }

    /// Waits for node 0 to write its address into the file, and the secret if this node was given
    /// none.
    fn await_file(&mut self, path: &Path) -> Result<(SocketAddr, Option<Secret>), GroupError> {
        loop {
            let reason = match (RendezvousFile::read(path)?, self.config.finds_token()) {
                (Some(Place { address, secret: Some(secret) }), true) => {
                    return Ok((address, Some(secret)));
                }
                (Some(Place { address, .. }), false) => return Ok((address, None)),
                (None, _) => "node n0 has not written it so far",
                // This file may be of an earlier run, and node 0 about to write another one.
                (Some(_), true) => {
                    "it holds no secret: node n0 was given one, or --insecure; give this node the same"
                }
            };
            if self.is_late() {
                return Err(GroupError::Unreached {
                    node: ROOT,
                    address: self.membership.rendezvous.clone(),
                    waited: self.config.join_timeout,
                    reason: reason.to_owned(),
                });
            }
            self.show_trouble(Some(ROOT), format!("rendezvous file {}: {reason}", path.display()));
            thread::sleep(LOOK);
        }
    }

    /// Waits until all nodes are there; `way` is the address at which this node has dialed node 0.
    fn wait(&mut self, handle: &Handle, way: &mut Way) -> Result<Waited, GroupError> {
        let mut shown = Instant::now();
        loop {
            let state = handle.shared.wait_at_most(LOOK);
            let (joined, failure) = (state.joined, state.refusal());
            let mut membership = state.membership.clone();
            drop(state);
            let is_waiting = !joined && self.began.elapsed() >= SHOW_EVERY;
            if let Some(hint) = way.hint.clone().filter(|_| is_waiting && self.config.node == ROOT)
            {
                membership.fault =
                    membership.fault.or(Some(JoinFault { node: None, reason: hint }));
            }
            let is_news = membership != self.membership;
            self.membership = membership;
            if is_news || shown.elapsed() >= SHOW_EVERY {
                shown = Instant::now();
                (self.watch)(&self.membership);
            }
            match (failure, joined) {
                (Some(failure), _) => return Err(failure),
                (None, true) => return Ok(Waited::Joined),
                (None, false) if self.is_late() => return Err(self.give_up(handle, way)),
                (None, false) => {}
            }
            if self.membership.members[ROOT.index()].is_none()
                && self.look_again(handle, way) == Some(Waited::Apart)
            {
                return Ok(Waited::Apart);
            }
        }
    }

    /// Looks for node 0 again: the file may have been an earlier run's, or the name may resolve
    /// differently.
    fn look_again(&self, handle: &Handle, way: &mut Way) -> Option<Waited> {
        let found = match (&self.config.rendezvous, &way.names) {
            (Rendezvous::File(path) | Rendezvous::JobFile(path), _) if !way.meeting.is_empty() => {
                let place = RendezvousFile::read(path).ok()??;
                if self.config.finds_token() && place.secret != way.secret {
                    return Some(Waited::Apart);
                }
                vec![place.address]
            }
            (Rendezvous::Address(_), Some(names)) => names.found.try_recv().ok()?.ok()?,
            _ => return None,
        };
        if found.iter().any(|address| !way.meeting.contains(address)) {
            way.meeting.clone_from(&found);
            handle.meet(found);
        }
        None
    }

    /// Ends the attempt, and reports to the others which nodes are missing.
    fn give_up(&self, handle: &Handle, way: &Way) -> GroupError {
        let waited = self.config.join_timeout;
        let apart = handle.shared.lock().apart.unwrap_or(ROOT);
        let reason = || {
            let known = self.membership.fault.as_ref().map(|fault| fault.reason.clone());
            let reason = known.unwrap_or_else(|| "no answer".to_owned());
            way.hint.as_ref().map_or(reason.clone(), |hint| format!("{reason}; {hint}"))
        };
        let missing = self.membership.missing();
        let error = if !way.meeting.is_empty() && self.membership.members[ROOT.index()].is_none() {
            self.unreached(ROOT, &way.meeting, reason())
        } else if missing.is_empty() {
            let address =
                self.membership.members[apart.index()].as_ref().map(|member| member.address);
            // All nodes that have joined blame the same node.
            handle.report(PeerLoss { node: apart, address, loss: Loss::Silent(waited) });
            match handle.failure() {
                Some(error) if error.lost().is_none_or(|loss| loss.node != apart) => error,
                _ => self.unreached(apart, address.as_slice(), reason()),
            }
        } else {
            handle.shared.ask(|state| state.give_up = Some((missing.clone(), waited)));
            let (joined, rendezvous) =
                (self.membership.joined(), self.membership.rendezvous.clone());
            GroupError::Missing { joined, missing, waited, rendezvous, hint: way.hint.clone() }
        };
        // Nodes that learn of this end must not blame this node for another's.
        handle.leave(match error {
            GroupError::Unreached { node, .. } => CloseReason::Lost(node),
            _ => CloseReason::Failed,
        });
        error
    }

    fn unreached(&self, node: NodeId, addresses: &[SocketAddr], reason: String) -> GroupError {
        let address = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        GroupError::Unreached { node, address, waited: self.config.join_timeout, reason }
    }

    fn is_late(&self) -> bool {
        self.began.elapsed() >= self.config.join_timeout
    }

    fn show_trouble(&mut self, node: Option<NodeId>, reason: String) {
        let fault = JoinFault { node, reason };
        let second = self.began.elapsed().as_secs();
        let seen = (self.membership.fault.replace(fault), self.shown_second.replace(second));
        if seen.0 != self.membership.fault || seen.1 != Some(second) {
            (self.watch)(&self.membership);
        }
    }
}

/// Returns the settings of an endpoint of this process.
pub(super) fn settings(config: &GroupConfig, channel: u16, kind: Kind, bind: String) -> NetConfig {
    let mut net = NetConfig::new(config.node, config.nodes);
    net.channel = channel;
    net.cluster = config.cluster;
    net.token.clone_from(&config.token);
    net.kind = kind;
    net.bind = bind;
    net.insecure = config.insecure;
    net.link = LinkConfig::with_dead_after(config.dead_after);
    net
}

/// The outcome of the wait for all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// All nodes are there.
    Joined,
    /// The content of the rendezvous file is of an earlier run: node 0 has another secret by now.
    Apart,
}

/// The way to node 0.
#[derive(Default)]
struct Way {
    /// The addresses to dial.
    meeting: Vec<SocketAddr>,
    /// The secret that node 0 has left there.
    secret: Option<Secret>,
    /// The resolver of the name.
    names: Option<Names>,
    /// A likely reason if it fails.
    hint: Option<String>,
}

/// The addresses of a host, resolved repeatedly by a thread of its own, as that can block for long;
/// the thread ends with the receiver.
struct Names {
    text: String,
    found: Receiver<Result<Vec<SocketAddr>, GroupError>>,
    /// The last known addresses.
    known: Vec<SocketAddr>,
}

impl Names {
    fn of(text: &str) -> Result<Self, GroupError> {
        place::check(text)?;
        let (found, receiver) = mpsc::sync_channel(1);
        let name = text.to_owned();
        let resolve = move || {
            while found.send(place::resolve(&name)).is_ok() {
                thread::sleep(RESOLVE_EVERY);
            }
        };
        threads::spawn("adapm resolve", resolve).map_err(GroupError::Thread)?;
        Ok(Self { text: text.to_owned(), found: receiver, known: Vec::new() })
    }
}

fn no_way(error: &io::Error) -> String {
    format!("it cannot be reached from here ({error}): check the network, or give --bind")
}

/// The channel of control endpoints.
const CONTROL_CHANNEL: u16 = u16::MAX;

/// Interval at which a name is resolved.
const RESOLVE_EVERY: Duration = Duration::from_secs(1);

/// Longest time for which the port may be in use when node 0 starts.
const IN_USE_PATIENCE: Duration = Duration::from_secs(2);

/// Interval of polling for changes without a notification.
const LOOK: Duration = Duration::from_millis(50);

/// Maximum interval between two displays of the membership.
const SHOW_EVERY: Duration = Duration::from_millis(500);

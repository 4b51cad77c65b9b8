//! How a process joins: where it listens, where node 0 is, and waiting until all are there.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use adapm_core::NodeId;
use adapm_core::link::LinkConfig;
use adapm_core::transport::Farewell;

use super::collective::ROOT;
use super::config::{GroupConfig, Rendezvous};
use super::error::GroupError;
use super::handle::Handle;
use super::net_mesh::NetMesh;
use super::place::{self, RendezvousFile};
use super::roster::Roster;
use crate::net::{Kind, Net, NetConfig};

/// Shows who has joined: on every change, and once a second.
pub(super) type Watch<'a> = &'a mut dyn FnMut(&Roster);

/// A process that has joined.
pub(super) struct Joined {
    pub(super) handle: Handle,
    /// Where this process listens.
    pub(super) listens: IpAddr,
    /// What others are told to dial.
    pub(super) advertise: IpAddr,
    /// Kept as long as the group.
    pub(super) file: Option<RendezvousFile>,
}

/// One attempt to join.
pub(super) struct Attempt<'a> {
    config: &'a GroupConfig,
    watch: Watch<'a>,
    roster: Roster,
    began: Instant,
    /// The second since the beginning in which trouble was last shown.
    shown_second: Option<u64>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(config: &'a GroupConfig, watch: Watch<'a>) -> Result<Self, GroupError> {
        let (node, nodes) = (config.node, config.nodes);
        if node.index() >= nodes || nodes > usize::from(u16::MAX) {
            return Err(GroupError::NodeOutOfRange { node, nodes });
        }
        let rendezvous = config.rendezvous.to_string();
        let roster =
            Roster { node, members: vec![None; nodes], rendezvous, refused: Vec::new(), trouble: None };
        Ok(Self { config, watch, roster, began: Instant::now(), shown_second: None })
    }

    pub(super) fn run(mut self) -> Result<Joined, GroupError> {
        let joined = if self.config.node == ROOT {
            self.host()
        } else {
            // It may have to wait for a file or a name before there is anything to see.
            (self.watch)(&self.roster);
            self.visit()
        }?;
        joined.handle.collect("join", true, &[])?;
        Ok(joined)
    }

    /// Node 0 opens the place where all meet.
    fn host(&mut self) -> Result<Joined, GroupError> {
        let config = self.config;
        let told = config.bind.as_deref().map(place::resolve_host).transpose()?;
        let (bind, reached_at) = match &config.rendezvous {
            Rendezvous::Address(text) => {
                let meeting = place::resolve(text)?;
                (SocketAddr::new(told.unwrap_or(meeting.ip()), meeting.port()), Some(meeting.ip()))
            }
            Rendezvous::File(path) => {
                RendezvousFile::clear(path)?;
                (SocketAddr::new(told.unwrap_or([127, 0, 0, 1].into()), 0), None)
            }
        };
        let listens = bind.ip();
        let advertise = place::advertised(config.advertise.as_deref(), listens, reached_at)?;
        let net = self.open(bind)?;
        let port = net.address().socket().map_or(0, |socket| socket.port());
        let file = match &config.rendezvous {
            Rendezvous::Address(_) => None,
            Rendezvous::File(path) => Some(RendezvousFile::write(path, SocketAddr::new(advertise, port))?),
        };
        let handle = Handle::start(NetMesh::new(net, advertise), self.roster.clone())?;
        self.wait(&handle, None)?;
        Ok(Joined { handle, listens, advertise, file })
    }

    /// Every other node finds node 0 and tells it where it is.
    fn visit(&mut self) -> Result<Joined, GroupError> {
        let config = self.config;
        let meeting = match &config.rendezvous {
            Rendezvous::Address(text) => self.await_host(text)?,
            Rendezvous::File(path) => self.await_file(path)?,
        };
        let listens = match &config.bind {
            Some(text) => place::resolve_host(text)?,
            None => place::towards(meeting).map_err(|error| GroupError::Address {
                given: meeting.to_string(),
                reason: format!(
                    "it cannot be reached from here ({error}): check the network, or give --bind"
                ),
            })?,
        };
        let advertise =
            place::advertised(config.advertise.as_deref(), listens, place::towards(meeting).ok())?;
        let net = self.open(SocketAddr::new(listens, 0))?;
        let handle = Handle::start(NetMesh::new(net, advertise), self.roster.clone())?;
        handle.meet(meeting);
        self.wait(&handle, Some(meeting))?;
        Ok(Joined { handle, listens, advertise, file: None })
    }

    fn open(&self, bind: SocketAddr) -> Result<Net, GroupError> {
        let net = Net::listen(settings(self.config, CONTROL_CHANNEL, Kind::Tcp, bind.to_string()));
        net.map_err(|error| GroupError::Network { message: error.to_string() })
    }

    /// The address of node 0's host; names are asked for until they are known, as its machine may come up later.
    fn await_host(&mut self, text: &str) -> Result<SocketAddr, GroupError> {
        place::check(text)?;
        let found = look_up(text);
        let mut last = GroupError::Address { given: text.to_owned(), reason: "no answer".to_owned() };
        loop {
            match found.recv_timeout(LOOK) {
                Ok(Ok(address)) => return Ok(address),
                Ok(Err(error)) => last = error,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(last),
            }
            self.show_trouble(last.to_string());
            if self.is_late() {
                return Err(last);
            }
        }
    }

    fn await_file(&mut self, path: &Path) -> Result<SocketAddr, GroupError> {
        loop {
            if let Some(address) = RendezvousFile::read(path)? {
                return Ok(address);
            }
            let reason = "node n0 has not written it so far".to_owned();
            if self.is_late() {
                let waited = self.config.join_timeout;
                return Err(GroupError::Unreached {
                    node: ROOT,
                    address: self.roster.rendezvous.clone(),
                    waited,
                    reason,
                });
            }
            self.show_trouble(format!("rendezvous file {}: {reason}", path.display()));
            thread::sleep(LOOK);
        }
    }

    /// Waits until all are there; `meeting` is where this node has dialed node 0.
    fn wait(&mut self, handle: &Handle, mut meeting: Option<SocketAddr>) -> Result<(), GroupError> {
        let mut shown = Instant::now();
        loop {
            let state = handle.shared.wait_at_most(LOOK);
            let (joined, failure) = (state.joined, state.refusal());
            let is_news = state.roster != self.roster;
            if is_news {
                self.roster = state.roster.clone();
            }
            drop(state);
            if is_news || shown.elapsed() >= SHOW_EVERY {
                shown = Instant::now();
                (self.watch)(&self.roster);
            }
            match (failure, joined) {
                (Some(failure), _) => return Err(failure),
                (None, true) => return Ok(()),
                (None, false) if self.is_late() => return Err(self.give_up(handle, meeting)),
                (None, false) => {}
            }
            if self.roster.members[ROOT.index()].is_none()
                && let (Some(known), Rendezvous::File(path)) = (meeting, &self.config.rendezvous)
                && let Ok(Some(address)) = RendezvousFile::read(path)
                && address != known
            {
                // The file was an earlier run's.
                meeting = Some(address);
                handle.meet(address);
            }
        }
    }

    /// Ends the attempt: the others hear who is missing.
    fn give_up(&self, handle: &Handle, meeting: Option<SocketAddr>) -> GroupError {
        let waited = self.config.join_timeout;
        let unreached = |node: NodeId, address: String| GroupError::Unreached {
            node,
            address,
            waited,
            reason: self.roster.trouble.clone().unwrap_or_else(|| "no answer".to_owned()),
        };
        let missing = self.roster.missing();
        let error = match (meeting, &self.roster.members[ROOT.index()]) {
            (Some(address), None) => unreached(ROOT, address.to_string()),
            _ if missing.is_empty() => {
                let apart = handle.shared.lock().apart.unwrap_or(ROOT);
                let member = self.roster.members[apart.index()].as_ref();
                unreached(apart, member.map_or_else(String::new, |member| member.address.to_string()))
            }
            _ => {
                handle.shared.ask(|state| state.give_up = Some((missing.clone(), waited)));
                let (joined, rendezvous) = (self.roster.joined(), self.roster.rendezvous.clone());
                GroupError::Missing { joined, missing, waited, rendezvous }
            }
        };
        handle.leave(Farewell::Failed);
        error
    }

    fn is_late(&self) -> bool {
        self.began.elapsed() >= self.config.join_timeout
    }

    fn show_trouble(&mut self, trouble: String) {
        let second = self.began.elapsed().as_secs();
        let seen = (self.roster.trouble.replace(trouble), self.shown_second.replace(second));
        if seen.0 != self.roster.trouble || seen.1 != Some(second) {
            (self.watch)(&self.roster);
        }
    }
}

/// The settings of an endpoint of this process.
pub(super) fn settings(config: &GroupConfig, channel: u16, kind: Kind, bind: String) -> NetConfig {
    let mut net = NetConfig::new(config.node, config.nodes);
    net.channel = channel;
    net.cluster = config.cluster;
    net.token.clone_from(&config.token);
    net.kind = kind;
    net.bind = bind;
    net.insecure = config.insecure;
    net.link = LinkConfig::dead_after(config.dead_after);
    net
}

/// Asks for the address of a host by a thread of its own, as that can take long: again and again until it is known or nobody
/// listens.
fn look_up(text: &str) -> Receiver<Result<SocketAddr, GroupError>> {
    let (found, receiver) = mpsc::sync_channel(1);
    let text = text.to_owned();
    let thread = thread::Builder::new().name("adapm resolve".to_owned());
    // Without a thread the receiver is told at once that nothing will come.
    let _ = thread.spawn(move || {
        loop {
            let address = place::resolve(&text);
            let is_done = address.is_ok();
            if found.send(address).is_err() || is_done {
                return;
            }
            thread::sleep(SHOW_EVERY);
        }
    });
    receiver
}

/// The channel of control endpoints.
const CONTROL_CHANNEL: u16 = u16::MAX;

/// How often something is looked at that nobody tells.
const LOOK: Duration = Duration::from_millis(50);

/// How often the roster is shown at least.
const SHOW_EVERY: Duration = Duration::from_millis(500);

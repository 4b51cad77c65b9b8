//! A cluster of several processes: agreement on settings before the start, and the endpoints
//! between the processes.
//!
//! ```text
//!   settings ──all_gather──> the same on all, or an error that names the node
//!   listen, one endpoint a channel ──all_gather──> addresses ──> connect
//!   main copies exist ──all_gather──> links are due ──all_gather──> the cluster starts
//! ```
//!
//! A process that cannot go on takes part in the next exchange all the same and sends its reason,
//! so that no process waits for it.
//!
//! Not here: how processes find each other ([`adapm_transport::group`]).

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use adapm_core::transport::{CloseReason, Frame, Loss, Received, Transport, Way};
use adapm_core::{ChannelId, NodeId};
use adapm_transport::group::{Group, GroupError, LossWatch};
use adapm_transport::net::{Address, LinkFault, Net, NetStats, PeerState};

use super::{ProcessGroup, Terms};
use crate::Notice;
use crate::error::{BuildError, RunError};
use crate::failure::{Failure, LossFn};
use crate::link::{Endpoint, WakeFn};
use crate::sync::{Mutex, lock};

/// A [`Group`] that was joined through a rendezvous, with the links of the cluster between its
/// processes.
pub(crate) struct JoinedGroup {
    group: Arc<Group>,
    /// Deadline for all links, once it counts.
    until: Arc<OnceLock<Instant>>,
    /// By channel.
    link_stats: Vec<Arc<Mutex<NetStats>>>,
    /// Kept alive here, as the group does not own it.
    watch: Option<Arc<LossWatch>>,
}

impl JoinedGroup {
    pub(crate) fn new(group: &Arc<Group>) -> Self {
        Self {
            group: Arc::clone(group),
            until: Arc::default(),
            link_stats: Vec::new(),
            watch: None,
        }
    }
}

impl ProcessGroup for JoinedGroup {
    fn node(&self) -> NodeId {
        self.group.node()
    }

    fn nodes(&self) -> usize {
        self.group.nodes()
    }

    fn on_this_host(&self) -> usize {
        self.group.membership().on_this_host()
    }

    fn run(&self) -> u64 {
        self.group.run()
    }

    fn dead_after(&self) -> Duration {
        self.group.dead_after()
    }

    fn agree(
        &self,
        terms: Result<Terms, BuildError>,
        told: Option<usize>,
        fitting: usize,
    ) -> Result<usize, BuildError> {
        let wish = told.map_or(format!("fitting {fitting}"), |channels| format!("told {channels}"));
        agree(&self.group, terms, &wish)
    }

    fn open(
        &mut self,
        channels: usize,
        layout_digest: u64,
    ) -> Result<Vec<Box<dyn Endpoint>>, BuildError> {
        let nets = open(&self.group, channels, layout_digest)?;
        let members = self.group.membership();
        let infos: Arc<[_]> =
            members.members().map(|(_, member)| member.map(|member| member.address)).collect();
        self.link_stats = nets.iter().map(|_| Arc::default()).collect();
        let linked = |(net, stats): (Net, &Arc<Mutex<NetStats>>)| {
            Box::new(Linked {
                net,
                infos: Arc::clone(&infos),
                until: Arc::clone(&self.until),
                time: self.group.join_timeout(),
                given_up: Vec::new(),
                is_linked: false,
                stats: Arc::clone(stats),
            }) as Box<dyn Endpoint>
        };
        Ok(nets.into_iter().zip(&self.link_stats).map(linked).collect())
    }

    fn reporter(&self) -> LossFn {
        let group = Arc::downgrade(&self.group);
        Box::new(move |loss| {
            if let Some(group) = group.upgrade() {
                group.report(loss);
            }
        })
    }

    fn watch(&mut self, failure: &Arc<Failure>) {
        let failure = Arc::clone(failure);
        let watch: Arc<LossWatch> = Arc::new(move |loss| failure.lose(loss));
        self.group.on_loss(&watch);
        self.watch = Some(watch);
        self.group.begin_use();
    }

    fn meet(&self, label: &str, own: Result<(), BuildError>) -> Result<(), BuildError> {
        let met = exchange(&self.group, label, own.map(|()| String::new())).map(drop);
        self.until.get_or_init(|| Instant::now() + self.group.join_timeout());
        met
    }

    fn link_stats(&self) -> Vec<NetStats> {
        self.link_stats.iter().map(|stats| *lock(stats)).collect()
    }

    fn finish(&self) {
        self.group.end_use();
    }
}

/// Agrees on the number of channels, for which this process has a `wish`, and checks that all other
/// settings are equal.
fn agree(group: &Group, terms: Result<Terms, BuildError>, wish: &str) -> Result<usize, BuildError> {
    let text = |terms: &Terms| {
        let lines =
            terms.iter().map(|(name, value)| format!("{name}: {}", value.replace('\n', " ")));
        std::iter::once(wish.to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
    };
    let texts =
        exchange(group, "settings of a cluster", terms.as_ref().map(text).map_err(Clone::clone))?;
    let own: Vec<&str> = texts[group.node().index()].lines().collect();
    let (mut told, mut fitting) = (None, 1);
    for (node, text) in (0..).map(NodeId).zip(&texts) {
        let lines: Vec<&str> = text.lines().collect();
        let wish = lines.first().and_then(|wish| wish.split_once(' '));
        let wish = wish.and_then(|(by, channels)| Some((by, channels.parse::<usize>().ok()?)));
        match wish {
            Some(("told", channels)) => match told {
                Some((other, before)) if before != channels => {
                    return Err(channels_differ(group.node(), (other, before), (node, channels)));
                }
                _ => told = Some((node, channels)),
            },
            Some((_, channels)) => fitting = fitting.max(channels),
            None => {
                return Err(BuildError::Process {
                    node,
                    message: "it sent no settings".to_owned(),
                });
            }
        }
        let pairs = own.iter().zip(&lines).skip(1);
        if let Some((ours, theirs)) = pairs.into_iter().find(|(ours, theirs)| ours != theirs) {
            return Err(BuildError::Differs {
                node,
                ours: (*ours).to_owned(),
                theirs: (*theirs).to_owned(),
            });
        }
    }
    Ok(told.map_or(fitting, |(_, channels)| channels))
}

/// Opens this process's endpoints and connects them with those of the others.
fn open(group: &Group, channels: usize, layout_digest: u64) -> Result<Vec<Net>, BuildError> {
    let ids = (0..channels)
        .map(|index| u16::try_from(index).expect("the number of channels was checked"));
    let opened: Result<Vec<Net>, BuildError> = ids
        .map(|channel| {
            let failed = |error| BuildError::Listen { channel: ChannelId(channel), error };
            group.listen(channel, layout_digest).map_err(failed)
        })
        .collect();
    let text = |nets: &Vec<Net>| {
        let addresses = nets.iter().map(|net| group.address_of(net).to_string());
        addresses.collect::<Vec<_>>().join("\n")
    };
    let texts =
        exchange(group, "addresses of a cluster", opened.as_ref().map(text).map_err(Clone::clone))?;
    let mut nets = opened?;
    for (channel, net) in nets.iter_mut().enumerate() {
        let mut addresses = Vec::with_capacity(texts.len());
        for (node, text) in (0..).map(NodeId).zip(&texts) {
            let line = text.lines().nth(channel).unwrap_or_default();
            let address = line.parse::<Address>();
            addresses.push(Some(address.map_err(|error| {
                let message = format!("channel {channel}: {error}");
                BuildError::Process { node, message }
            })?));
        }
        net.connect(&addresses);
    }
    Ok(nets)
}

/// An endpoint to nodes in other processes.
struct Linked {
    net: Net,
    /// Addresses of the control endpoints, for peers that have no address here.
    infos: Arc<[Option<SocketAddr>]>,
    /// Deadline for all links, once it counts, and the time allowed for them.
    until: Arc<OnceLock<Instant>>,
    time: Duration,
    /// Peers that could not be linked with in time.
    given_up: Vec<NodeId>,
    /// Links to all peers have existed at once: from here on the endpoint reports their fate.
    is_linked: bool,
    /// Traffic of the net, for other threads.
    stats: Arc<Mutex<NetStats>>,
}

impl Linked {
    /// Returns a peer without a link so far.
    fn apart(&self) -> Option<NodeId> {
        let is_apart = |state| matches!(state, PeerState::Missing | PeerState::Connecting);
        let mut apart = self.net.peers().filter(|peer| is_apart(peer.state)).map(|peer| peer.node);
        apart.find(|node| !self.given_up.contains(node))
    }

    fn publish(&self) {
        *lock(&self.stats) = self.net.stats();
    }
}

impl Endpoint for Linked {
    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<bool, String> {
        Endpoint::send(&mut self.net, to, frame)
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, String> {
        if !self.is_linked {
            let apart = self.apart();
            self.is_linked = apart.is_none();
            if let Some(error) = apart.and_then(|node| self.net.own_trouble(node)) {
                return Err(error.to_string());
            }
            let is_late = self.until.get().is_some_and(|until| Instant::now() >= *until);
            if let Some(node) = apart.filter(|_| is_late) {
                self.given_up.push(node);
                return Ok(Received::Lost(node, Loss::Silent(self.time)));
            }
        }
        self.publish();
        // Woken at intervals, so that published link statistics are never old.
        let wait = wait.map_or(LOOK, |wait| wait.min(LOOK));
        Endpoint::recv(&mut self.net, Some(wait), frame)
    }

    fn wake_fn(&self) -> WakeFn {
        Endpoint::wake_fn(&self.net)
    }

    fn leave(&mut self, close_reason: CloseReason) {
        Transport::leave(&mut self.net, close_reason);
        self.publish();
    }

    fn address(&self, node: NodeId) -> Option<SocketAddr> {
        let info = || self.infos.get(node.index()).copied().flatten();
        Transport::address(&self.net, node).or_else(info)
    }

    fn way(&self, node: NodeId) -> Way {
        Transport::way(&self.net, node)
    }

    fn is_connected(&self) -> bool {
        self.apart().is_none()
    }

    fn poll_notice(&mut self) -> Option<Notice> {
        // Rejected strangers are reported by the group, where processes meet.
        std::iter::from_fn(|| self.net.poll_notice()).find_map(|notice| match notice.fault {
            LinkFault::Stuck(node, stall) => {
                Some(Notice::LinkStuck { node, address: notice.remote, stall })
            }
            _ => None,
        })
    }
}

/// Exchanges texts, or the reason why a process cannot go on: then all end with that reason.
///
/// A process that has lost another reports the reason of one that cannot go on, as the other is
/// lost because of it; if there is none, all end with the group's verdict.
fn exchange(
    group: &Group,
    label: &str,
    own: Result<String, BuildError>,
) -> Result<Vec<String>, BuildError> {
    let is_loss = |error: &BuildError| {
        matches!(
            error,
            BuildError::Group(GroupError::PeerLost(_)) | BuildError::Run(RunError::PeerLost { .. })
        )
    };
    let bytes = match &own {
        Ok(text) => format!("{GOOD}{text}"),
        Err(error) if is_loss(error) => format!("{APART}{error}"),
        Err(error) => format!("{BAD}{error}"),
    };
    let all = group.all_gather_for(label, bytes.as_bytes());
    let texts = all.as_ref().map_or(Vec::new(), |all| {
        all.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    });
    let told = |mark: char| {
        let found = (0..)
            .map(NodeId)
            .zip(&texts)
            .find_map(|(node, text)| Some((node, text.strip_prefix(mark)?)));
        found.map(|(node, message)| BuildError::Process { node, message: message.to_owned() })
    };
    match own {
        Err(error) if is_loss(&error) => return Err(told(BAD).unwrap_or(error)),
        // Any other error of this process is reported as it is.
        own => own?,
    };
    all?;
    let verdict = |told| group.failure().map_or(told, BuildError::Group);
    match told(BAD).or_else(|| told(APART).map(verdict)) {
        Some(error) => Err(error),
        None => Ok(texts
            .iter()
            .map(|text| text.strip_prefix(GOOD).unwrap_or(text).to_owned())
            .collect()),
    }
}

/// Names a node that is not this one, if both are known.
fn channels_differ(own: NodeId, first: (NodeId, usize), second: (NodeId, usize)) -> BuildError {
    let (ours, theirs) = if second.0 == own { (second, first) } else { (first, second) };
    let text = |channels: usize| format!("channels: {channels}");
    BuildError::Differs { node: theirs.0, ours: text(ours.1), theirs: text(theirs.1) }
}

impl From<GroupError> for BuildError {
    fn from(error: GroupError) -> Self {
        Self::Group(error)
    }
}

const GOOD: char = '+';
const BAD: char = '-';
/// Marks a lost node.
const APART: char = '~';

/// The longest sleep of a channel thread whose node has peers in other processes.
const LOOK: Duration = Duration::from_secs(1);

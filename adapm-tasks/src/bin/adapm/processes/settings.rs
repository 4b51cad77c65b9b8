//! From flags and variables to what a process needs to join others. Flags first, then `ADAPM_*`.

use std::time::Duration;

use adapm_core::NodeId;
use adapm_transport::group::{GroupConfig, Rendezvous};
use adapm_transport::net::{ClusterId, Kind, Token};

use crate::args::{ProcessArgs, seconds, transports};
use crate::launch::DEAD_AFTER;
use crate::launcher::{Environment, LauncherError, Meeting, Member};

/// The time after which a node counts as lost.
pub(super) fn dead_after(
    args: &ProcessArgs,
    environment: &Environment<'_>,
) -> Result<Duration, LauncherError> {
    match (args.dead_after, environment.text("ADAPM_DEAD_AFTER")) {
        (Some(flag), _) => Ok(flag),
        (None, None) => Ok(DEAD_AFTER),
        (None, Some(value)) => {
            seconds(&value).map_err(|_| LauncherError::NotSeconds { name: "ADAPM_DEAD_AFTER", value })
        }
    }
}

/// What carries frames.
pub(super) fn kind(args: &ProcessArgs, environment: &Environment<'_>) -> Result<Kind, LauncherError> {
    match (args.transport, environment.text("ADAPM_TRANSPORT")) {
        (Some(kind), _) => Ok(kind),
        (None, None) => Ok(Kind::default()),
        (None, Some(value)) => {
            let known = transports().find(|kind| kind.scheme() == value);
            known.ok_or(LauncherError::Transport { value })
        }
    }
}

/// All that a group wants to know.
pub(super) fn group(
    args: &ProcessArgs,
    environment: &Environment<'_>,
    member: &Member,
    token: Option<Token>,
) -> Result<GroupConfig, LauncherError> {
    let rendezvous = match &member.rendezvous.value {
        Meeting::Address(address) => Rendezvous::Address(address.clone()),
        Meeting::File(path) | Meeting::JobFile(path) => Rendezvous::File(path.clone()),
    };
    // A place has fewer nodes than there are ids.
    let node = NodeId(u16::try_from(member.node.value).unwrap_or(u16::MAX));
    let mut config = GroupConfig::new(node, member.nodes.value, rendezvous);
    config.cluster = ClusterId(member.job.as_deref().map_or(0, digest));
    config.kind = kind(args, environment)?;
    config.bind.clone_from(&args.bind);
    config.advertise.clone_from(&args.advertise);
    config.insecure = args.insecure;
    config.dead_after = dead_after(args, environment)?;
    if let Some(join_timeout) = args.join_timeout {
        config.join_timeout = join_timeout;
    }
    config.token = token;
    Ok(config)
}

/// A number for a name, the same everywhere (FNV-1a): it keeps runs apart, and nothing else.
fn digest(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

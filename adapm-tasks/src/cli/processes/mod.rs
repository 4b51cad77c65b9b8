//! The other processes of a run: whether there are any, how this one joins them, and how it leaves.
//!
//! [`watch`] shows who has joined. Where the processes are, and the meeting itself, is
//! [`adapm_transport::group`]'s.

mod watch;

use std::process;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use adapm_core::transport::CloseReason;
use adapm_transport::group::launcher::{self, Environment, Flags, Placement};
use adapm_transport::group::{self, Group, GroupConfig, GroupError, Membership, Rendezvous};

use crate::cli::args::ProcessArgs;
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;
use crate::cli::launch::error::LaunchError;
use crate::cli::launched;
use crate::cli::output::Output;
use crate::cli::processes::watch::{Peer, View, Watch};
use crate::cli::secret;
use crate::cli::terminal::Stream;
use crate::run::{Observer, Run};

/// The processes of a run.
pub(crate) enum Processes {
    /// All nodes are in this one.
    Alone,
    /// Each node is one of them.
    Among(Company),
}

/// The others, joined.
#[derive(Clone)]
pub(crate) struct Company {
    pub(crate) group: Arc<Group>,
    pub(crate) config: GroupConfig,
}

/// Finds the other processes, if there are any, does `work` with them, and takes leave of them as
/// it ended. What several processes cannot do, `check` refuses before they meet.
pub(crate) fn with(
    args: &ProcessArgs,
    nodes: Option<usize>,
    interrupt: &Interrupt,
    check: impl FnOnce() -> Result<(), Failure>,
    work: impl FnOnce(&Processes) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if let Some(launched) = launched::nodes() {
        // The launcher knows the flags of this program only.
        if args.node.is_some() || args.rendezvous.is_some() {
            return Err(LaunchError::Placed.into());
        }
        if let Some(own) = nodes.filter(|own| *own != launched) {
            return Err(LaunchError::OtherNodes { own, nodes: launched }.into());
        }
    }
    let (environment, flags) = (Environment::of_process(), flags(args, nodes));
    let placement = launcher::place(&flags, &environment)?;
    // Before the launcher is followed: a secret may come as the first line that it writes.
    let token = secret::find(args.token_file.as_deref(), &environment)?;
    launched::follow(interrupt).map_err(Failure::Signals)?;
    let Placement::Among(position) = placement else { return work(&Processes::Alone) };
    check()?;

    let mut config = configured(args, position.config(&flags, &environment)?);
    config.token = token;
    interrupt.place(position.node.value, position.nodes.value, config.dead_after);
    let heading =
        watch::heading(&position, config.kind.scheme(), config.is_sealed(), Stream::Stderr.width());
    let mut watch = Watch::new(position.node.value, heading);
    let group = Group::join(config.clone(), &mut |membership| {
        watch.look(&view(membership));
        if let Some(code) = interrupt.exit_code() {
            // Nothing has begun: there is nothing to drain, and no other process to notify.
            process::exit(code.into());
        }
    });
    let group = group.map_err(|error| {
        let failure = Failure::Group(error);
        // A wrong setting is no news of who is missing.
        if failure.is_loss() {
            watch.give_up();
        }
        failure
    });
    let group = Arc::new(group?);
    group.on_stop(interrupt.stop_flag());
    let company = Company { group, config };
    let result = work(&Processes::Among(company.clone()));
    company.leave(result, interrupt)
}

/// Returns true if there are no other processes.
pub(crate) fn is_alone(args: &ProcessArgs, nodes: Option<usize>) -> bool {
    let placement = launcher::place(&flags(args, nodes), &Environment::of_process());
    matches!(placement, Ok(Placement::Alone))
}

fn flags(args: &ProcessArgs, nodes: Option<usize>) -> Flags {
    Flags {
        node: args.node,
        nodes,
        rendezvous: args.rendezvous.clone(),
        kind: args.transport,
        dead_after: args.dead_after,
    }
}

/// Adds the flags to a configuration of the group.
fn configured(args: &ProcessArgs, mut config: GroupConfig) -> GroupConfig {
    config.bind.clone_from(&args.bind);
    config.advertise.clone_from(&args.advertise);
    config.insecure = args.insecure;
    if let Some(join_timeout) = args.join_timeout {
        config.join_timeout = join_timeout;
    }
    // The launcher's own folder, which would stay if the launcher were killed.
    if let Rendezvous::File(path) = &config.rendezvous
        && launched::is_launched()
    {
        config.rendezvous = Rendezvous::JobFile(path.clone());
    }
    config
}

impl Processes {
    /// Returns the output of this process: silent if node 0 is another one.
    pub(crate) fn output(&self, json: bool) -> Output {
        if self.is_first() { Output::new(json) } else { Output::new(json).silent() }
    }

    /// Returns true if this process is the one, or the first, that prints and writes results.
    pub(crate) fn is_first(&self) -> bool {
        match self {
            Self::Alone => true,
            Self::Among(company) => company.group.node().index() == 0,
        }
    }

    /// Returns the number of nodes: as asked for, all in this process, or as many as there are
    /// processes.
    pub(crate) fn nodes(&self, asked: Option<usize>) -> usize {
        match self {
            Self::Alone => asked.unwrap_or(1),
            Self::Among(company) => company.group.nodes(),
        }
    }

    /// Returns the transport between processes; `None` if there is only one.
    pub(crate) fn transport(&self) -> Option<&'static str> {
        self.company().map(|company| company.config.kind.scheme())
    }

    /// Returns a run of these processes.
    pub(crate) fn run<'a, F>(
        &'a self,
        observer: &'a dyn Observer<F>,
        stop: &'a AtomicBool,
    ) -> Run<'a, F> {
        let run = self.company().map_or_else(Run::alone, |company| Run::in_group(&company.group));
        run.observed_by(observer).stopped_by(stop)
    }

    /// Returns the others, if there are any.
    pub(crate) fn company(&self) -> Option<&Company> {
        match self {
            Self::Alone => None,
            Self::Among(company) => Some(company),
        }
    }
}

impl Company {
    /// Leaves, and returns how the run ended for this process: by the reason that ended it for all,
    /// if there is one.
    fn leave(&self, result: Result<(), Failure>, interrupt: &Interrupt) -> Result<(), Failure> {
        let failure = self.group.failure();
        let stopped = interrupt.exit_code().or_else(|| self.group.stop_code().map(stop_exit_code));
        let result = outcome(result, failure, stopped);
        let reason = match &result {
            Ok(()) | Err(Failure::Interrupted(_) | Failure::Stdout(_)) => CloseReason::Finished,
            // Others may learn of this end before they learn its reason.
            Err(error) => error.culprit().map_or(CloseReason::Failed, CloseReason::Lost),
        };
        self.group.leave(reason);
        result
    }
}

/// Returns how a run ended that ended with `result` and `failure` of the group, or was stopped.
fn outcome(
    result: Result<(), Failure>,
    failure: Option<GroupError>,
    stopped: Option<u8>,
) -> Result<(), Failure> {
    match (result, failure) {
        // The error of an operation names the lost node as the group does, but with less about
        // where it was. A node that has told why it cannot go on is the reason for the ends of
        // others, which the group may have noticed since.
        (Err(error), Some(failure)) if error.is_loss() && error.culprit().is_none() => {
            Err(Failure::Group(failure))
        }
        (Ok(()), _) => stopped.map_or(Ok(()), |code| Err(Failure::Interrupted(code))),
        (result, _) => result,
    }
}

/// Returns the exit code of a process that another one asked to stop: that one's, or that of a
/// SIGTERM if it gave none.
fn stop_exit_code(code: u8) -> u8 {
    if code > 128 { code } else { 128 + 15 }
}

/// Returns the view of a membership to show.
fn view(membership: &Membership) -> View<'_> {
    let peer = |member: &group::Member| Peer {
        address: member.address,
        host: member.host.clone(),
        pid: member.pid,
        rtt: member.rtt,
    };
    View {
        peers: membership.members().map(|(_, member)| member.map(peer)).collect(),
        fault: membership.fault(),
        refused: membership.refused(),
        refusals: membership.refusals(),
    }
}

#[cfg(test)]
mod tests {
    use adapm_core::NodeId;
    use adapm_core::transport::Loss;
    use adapm_runtime::BuildError;
    use adapm_transport::error::PeerLoss;

    use super::*;
    use crate::run::TaskError;

    fn lost(node: u16, loss: Loss) -> GroupError {
        GroupError::PeerLost(PeerLoss { node: NodeId(node), address: None, loss })
    }

    #[test]
    fn a_node_that_has_told_why_it_ends_is_named_also_once_others_have_ended() {
        let message = "too many open files".to_owned();
        let told: [TaskError; 2] = [
            TaskError::Elsewhere { node: NodeId(0), reason: message.clone() },
            TaskError::Build(BuildError::Process { node: NodeId(0), message }),
        ];
        for error in told {
            let expected = error.to_string();
            let seen = lost(1, Loss::Reported(NodeId(0)));
            let ended = outcome(Err(Failure::Task(error)), Some(seen), None);
            assert_eq!(ended.expect_err("n0 has failed").to_string(), expected);
        }
    }

    #[test]
    fn an_error_by_a_loss_gives_way_to_what_the_group_knows_and_no_other_error_does() {
        let known = lost(2, Loss::Failed);
        let own = Failure::Task(TaskError::Group(lost(2, Loss::Reported(NodeId(0)))));
        let ended = outcome(Err(own), Some(known.clone()), None).expect_err("n2 is lost");
        assert_eq!(ended.to_string(), known.to_string());
        let ended = outcome(Err(Failure::NothingAsked), Some(known.clone()), None);
        assert!(matches!(ended, Err(Failure::NothingAsked)), "{ended:?}");
        // A run that was over before the loss has not failed.
        assert!(outcome(Ok(()), Some(known), None).is_ok());
        assert!(matches!(outcome(Ok(()), None, Some(130)), Err(Failure::Interrupted(130))));
    }
}

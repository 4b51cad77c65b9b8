//! From the start of all processes to the end of the last: signals passed on, failures followed by
//! an end for all.
//!
//! | stage | begins | until |
//! |---|---|---|
//! | running | at the start | a process fails; after a signal: the dead time and a second, since one printed something |
//! | grace | then | the dead time and a second: the others notice, name it and end by themselves |
//! | asked | then: SIGTERM to all | 2 s |
//! | forced | then, or 2 s after a second Ctrl-C: SIGKILL to all | all have ended |

use std::io::{self, Write as _};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use adapm_transport::threads;

use crate::cli::interrupt;
use crate::cli::launch::error::{End, Ending};
use crate::cli::launch::node::Node;
use crate::cli::launch::relay::Relays;
use crate::cli::launched;

/// Signals to this process, from before the first child is started.
pub(super) struct Watch {
    signals: Receiver<i32>,
}

impl Watch {
    /// Takes over the signals that end a run, SIGUSR1 and SIGCHLD.
    pub(super) fn install() -> io::Result<Self> {
        let mut signals =
            Signals::new(interrupt::ending_signals().iter().chain(&[SIGUSR1, SIGCHLD]))?;
        let (sender, receiver) = mpsc::channel();
        if launched::is_compared() {
            let sender = sender.clone();
            let follow = move || {
                while launched::read_line().is_some() {}
                // The comparison is gone, and nobody waits for this.
                let _ = sender.send(SIGHUP);
            };
            threads::spawn("comparison", follow).map_err(io::Error::other)?;
        }
        let follow = move || {
            // Bounded: signals of one kind that are not yet taken count as one.
            let _ = signals.forever().try_for_each(|signal| sender.send(signal));
        };
        threads::spawn("signals", follow).map_err(io::Error::other)?;
        Ok(Self { signals: receiver })
    }
}

impl Watch {
    /// Waits between two starts; returns the signal that ends the wait and the run.
    pub(super) fn wait(&self, pause: Duration) -> Option<u8> {
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.signals.recv_timeout(left) {
                Ok(signal @ (SIGINT | SIGTERM | SIGHUP)) => return u8::try_from(signal).ok(),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

/// The ends of all processes.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The reason of a bad end.
    pub(super) ending: Option<Ending>,
    /// The first signal that this process got.
    pub(super) interrupted: Option<u8>,
}

/// The measures taken against processes that live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    Grace,
    Asked,
    Forced,
}

/// Waits for the end of all `nodes`, and brings it about if one fails.
pub(super) fn supervise(
    nodes: &mut [Node],
    watch: &Watch,
    dead_after: Duration,
    relays: &Relays,
) -> Outcome {
    let (ends, signals) = (Vec::new(), Vec::new());
    let (stage, deadline) = (Stage::Running, None);
    let mut run =
        Run { nodes, dead_after, stage, deadline, ends, signals, stop_passed_on: false, life: 0 };
    loop {
        run.look();
        run.look_whether_it_ends(relays.life());
        if run.nodes.iter().all(Node::has_ended) {
            return run.outcome();
        }
        let now = Instant::now();
        let wait =
            run.deadline.map_or(LOOK_AGAIN, |deadline| deadline.saturating_duration_since(now));
        match watch.signals.recv_timeout(wait.min(LOOK_AGAIN)) {
            Ok(signal @ (SIGINT | SIGTERM | SIGHUP)) => run.pass_on(signal),
            Ok(SIGUSR1) => run.tell_state(),
            Ok(_) | Err(_) if run.deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                run.advance()
            }
            Ok(_) | Err(_) => {}
        }
    }
}

struct Run<'a> {
    nodes: &'a mut [Node],
    dead_after: Duration,
    stage: Stage,
    deadline: Option<Instant>,
    /// Processes that ended by themselves, in the order in which that was seen.
    ends: Vec<(usize, End)>,
    /// Signals of this process, all but children's.
    signals: Vec<i32>,
    /// A process was stopped from outside, and the others were asked to follow.
    stop_passed_on: bool,
    /// The last value of [`Relays::life`].
    life: u64,
}

impl Run<'_> {
    /// Notes which processes have ended.
    fn look(&mut self) {
        let by_themselves = matches!(self.stage, Stage::Running | Stage::Grace);
        let mut stopped = false;
        for (number, node) in self.nodes.iter_mut().enumerate() {
            let Some(status) = node.poll_end() else { continue };
            let end = End::of(status);
            if by_themselves {
                self.ends.push((number, end));
            }
            stopped |= end.is_stop();
            if end.is_failure() && self.stage == Stage::Running {
                self.stage = Stage::Grace;
                self.deadline = Some(Instant::now() + self.dead_after + SECOND);
            }
        }
        // It has notified the others if it could; those that have not yet met it wait for it. Those
        // that know must not take it for a second signal, which would end them before they have
        // saved what they have.
        if stopped && !self.stop_passed_on {
            self.stop_passed_on = true;
            self.nodes.iter_mut().for_each(|node| node.ask(Signal::TERM));
        }
    }

    /// After the first signal: all have the dead time to end in good order, counted from the last
    /// that one of them said. They tell what they do, and end by themselves if it comes to nothing;
    /// one that cannot is ended.
    fn look_whether_it_ends(&mut self, life: u64) {
        let is_asked = !self.signals.is_empty() && self.stage == Stage::Running;
        if is_asked && (self.deadline.is_none() || life != self.life) {
            self.deadline = Some(Instant::now() + self.dead_after + SECOND);
        }
        self.life = life;
    }

    /// Says which processes run, and asks them to say what they do.
    fn tell_state(&mut self) {
        let state = |(number, node): (usize, &Node)| match node.status() {
            Some(status) => format!("n{number} ended with {status}"),
            None => format!("n{number} is process {}", node.process()),
        };
        let states: Vec<String> = self.nodes.iter().enumerate().map(state).collect();
        let _ = writeln!(io::stderr(), "state: {}", states.join(", "));
        self.nodes.iter_mut().for_each(|node| node.ask(Signal::USR1));
    }

    fn advance(&mut self) {
        (self.stage, self.deadline) = match self.stage {
            Stage::Running | Stage::Grace => {
                self.nodes.iter_mut().for_each(|node| node.signal(Signal::TERM));
                (Stage::Asked, Some(Instant::now() + 2 * SECOND))
            }
            Stage::Asked | Stage::Forced => {
                self.nodes.iter_mut().for_each(Node::kill);
                (Stage::Forced, None)
            }
        };
    }

    /// Gives a signal to all processes: the first asks for an end in good order, the second for one
    /// at once.
    fn pass_on(&mut self, signal: i32) {
        let named = if signal == SIGINT { Signal::INT } else { Signal::TERM };
        self.nodes.iter_mut().for_each(|node| node.signal(named));
        self.signals.push(signal);
        if self.signals.len() == 2 && self.stage != Stage::Forced {
            self.stage = Stage::Asked;
            self.deadline = Some(Instant::now() + 2 * SECOND);
        }
    }

    fn outcome(self) -> Outcome {
        let forced = matches!(self.stage, Stage::Asked | Stage::Forced);
        let first = self.signals.first().and_then(|signal| u8::try_from(*signal).ok());
        Outcome { ending: Ending::of(&self.ends, forced), interrupted: first }
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// A signal reports the end of a child; should that get lost, it is seen within this time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

//! From the start of all processes to the end of the last: signals passed on, failures followed by an end for all.
//!
//! | stage | begins | until |
//! |---|---|---|
//! | running | at the start | a process fails |
//! | grace | then | the dead time and a second: the others notice, name it and end by themselves |
//! | asked | then: SIGTERM to all | 2 s |
//! | forced | then, or 2 s after a second Ctrl-C: SIGKILL to all | all have ended |

use std::io;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use adapm_transport::threads;

use crate::launch::ending::{End, Ending};
use crate::launch::node::Node;

/// Signals to this process, from before the first child is started.
pub(super) struct Watch {
    signals: Receiver<i32>,
}

impl Watch {
    /// Takes over SIGINT, SIGTERM and SIGCHLD.
    pub(super) fn install() -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGCHLD])?;
        let (sender, receiver) = mpsc::channel();
        let follow = move || {
            // Bounded: signals of one kind that are not yet taken count as one.
            let _ = signals.forever().try_for_each(|signal| sender.send(signal));
        };
        threads::spawn("signals", follow).map_err(io::Error::other)?;
        Ok(Self { signals: receiver })
    }
}

/// How all processes ended.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The reason of a bad end.
    pub(super) ending: Option<Ending>,
    /// The first signal that this process got.
    pub(super) interrupted: Option<u8>,
}

/// What is done about processes that live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    Grace,
    Asked,
    Forced,
}

/// Waits for the end of all `nodes`, and brings it about if one fails.
pub(super) fn supervise(nodes: &mut [Node], watch: &Watch, dead_after: Duration) -> Outcome {
    let (ends, signals) = (Vec::new(), Vec::new());
    let mut run = Run { nodes, stage: Stage::Running, deadline: None, ends, signals, stop_passed_on: false };
    loop {
        run.look(dead_after);
        if run.nodes.iter().all(Node::has_ended) {
            return run.outcome();
        }
        let now = Instant::now();
        let wait = run.deadline.map_or(LOOK_AGAIN, |deadline| deadline.saturating_duration_since(now));
        match watch.signals.recv_timeout(wait.min(LOOK_AGAIN)) {
            Ok(signal @ (SIGINT | SIGTERM)) => run.pass_on(signal),
            Ok(_) | Err(_) if run.deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                run.advance()
            }
            Ok(_) | Err(_) => {}
        }
    }
}

struct Run<'a> {
    nodes: &'a mut [Node],
    stage: Stage,
    deadline: Option<Instant>,
    /// Processes that ended by themselves, in the order in which that was seen.
    ends: Vec<(usize, End)>,
    /// Signals of this process, all but children's.
    signals: Vec<i32>,
    /// A process was stopped by somebody else, and the others were asked to follow.
    stop_passed_on: bool,
}

impl Run<'_> {
    /// Notes which processes have ended.
    fn look(&mut self, dead_after: Duration) {
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
                self.deadline = Some(Instant::now() + dead_after + SECOND);
            }
        }
        // It told the others if it could; those that have not yet met it wait for it. Those that know must not take it for a second
        // signal, which would end them before they have saved what they have.
        if stopped && !self.stop_passed_on {
            self.stop_passed_on = true;
            self.nodes.iter_mut().for_each(|node| node.ask(Signal::TERM));
        }
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

    /// Gives a signal to all processes: the first asks for an end in good order, the second for one at once.
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

/// An end of a child is told by a signal; should that get lost, it is seen within this time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

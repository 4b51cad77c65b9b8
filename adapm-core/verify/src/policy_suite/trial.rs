//! Runs a claim beside a thread that watches it, and reports a failure in one line, with the
//! command that repeats it. A policy that is stuck in one claim ends the other claims of its suite:
//! they would find the same, each after the same time.

use core::any::Any;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::watched::Log;
use crate::environment::number;
use crate::network::Pairs;
use crate::random::{self, STEPS};
use crate::setup::Setup;

/// The extent of a claim's trial, and the test's name.
#[derive(Clone, Debug)]
pub struct Trial {
    package: &'static str,
    /// Path of the test without the crate.
    test: String,
    seeds: u64,
    /// The only seed to run.
    seed: Option<u64>,
    patience: Duration,
}

impl Trial {
    /// Creates the trial for the test at this path, crate first, of this package.
    ///
    /// # Panics
    /// If `ADAPM_SEEDS`, `ADAPM_SEED` or `ADAPM_PATIENCE` is not a number.
    #[must_use]
    pub fn new(package: &'static str, test: &str) -> Self {
        let (_, test) = test.split_once("::").unwrap_or(("", test));
        let seeds = number("ADAPM_SEEDS").unwrap_or(SEEDS);
        Self {
            package,
            test: test.to_string(),
            seeds,
            seed: number("ADAPM_SEED"),
            patience: number("ADAPM_PATIENCE")
                .map_or(PATIENCE, |seconds| Duration::from_secs(seconds.max(1))),
        }
    }

    /// Sets the number of schedules instead of 200.
    #[must_use]
    pub fn with_seeds(mut self, seeds: u64) -> Self {
        self.seeds = seeds;
        self
    }

    /// Sets the time for one call of the policy instead of half a minute.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Runs the schedules of all seeds, each in the cluster that `setup` makes of it.
    pub(super) fn run(&self, setup: impl Fn(u64, &Arc<Log>) -> Setup + Send + 'static) {
        let (seeds, only) = (self.seeds, self.seed);
        self.watch(move |log| {
            let mut pairs = Pairs::default();
            for seed in only.map_or(0..seeds, |seed| seed..seed + 1) {
                log.seed.store(seed, Ordering::SeqCst);
                let cluster = setup(seed, log);
                let result = match only {
                    Some(_) => random::tell(cluster, seed, STEPS, |line| eprintln!("{line}")),
                    None => random::run(cluster, seed, STEPS, &mut pairs),
                };
                result.map_err(|violation| {
                    format!("{violation}; that is adapm's fault, not the policy's")
                })?;
            }
            let schedules = if only.is_some() { 1 } else { seeds };
            eprintln!("{schedules} schedules of {STEPS} steps; {}", log.summary());
            Ok(())
        });
    }

    /// Runs `claim` in a thread of its own, as long as calls of the policy return.
    pub(super) fn watch(
        &self,
        claim: impl FnOnce(&Arc<Log>) -> Result<(), String> + Send + 'static,
    ) {
        let log = Arc::new(Log::default());
        let (tell, told) = mpsc::channel();
        if let Err(verdict) = self.listen(&tell) {
            panic!("not tried, as another claim has found: {verdict}");
        }
        let noted = Arc::clone(&log);
        thread::spawn(move || {
            let outcome = panic::catch_unwind(AssertUnwindSafe(|| claim(&noted)));
            let fault = match outcome {
                Ok(Ok(())) => None,
                Ok(Err(fault)) => Some(fault),
                Err(payload) => Some(panicked(&noted, &*payload)),
            };
            // No receiver is left if the patience was over.
            tell.send(Word::Ended(fault)).ok();
        });
        let mut seen = (None, Instant::now());
        loop {
            match told.recv_timeout(self.patience / 4) {
                Ok(Word::Ended(None)) => return,
                Ok(Word::Ended(Some(fault))) => panic!("{}", self.verdict(&log, &fault)),
                Ok(Word::Stuck(verdict)) => {
                    panic!("not tried to its end, as another claim has found: {verdict}")
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("{}", self.verdict(&log, "the trial ended without a word"))
                }
                Err(RecvTimeoutError::Timeout) => {
                    let current = log.current();
                    if current.is_none() || current != seen.0 {
                        seen = (current, Instant::now());
                    } else if seen.1.elapsed() >= self.patience
                        && let Some((_, call)) = current
                    {
                        self.give_up(&log, &call);
                    }
                }
            }
        }
    }

    /// Fails this claim, and all others of the suite.
    fn give_up(&self, log: &Log, call: &str) -> ! {
        let fault = format!("the policy has not returned from {call} for {:?}", self.patience);
        let verdict = self.verdict(log, &fault);
        let mut suites = SUITES.lock().unwrap_or_else(PoisonError::into_inner);
        let suite = suites.entry(self.suite()).or_default();
        suite.stuck.get_or_insert_with(|| verdict.clone());
        for listener in suite.listeners.drain(..) {
            // Most have ended.
            listener.send(Word::Stuck(verdict.clone())).ok();
        }
        drop(suites);
        panic!("{verdict}");
    }

    /// Registers `listener`, which is told if the policy gets stuck in another claim of the suite.
    ///
    /// # Errors
    /// The verdict, if it already has.
    fn listen(&self, listener: &Sender<Word>) -> Result<(), String> {
        let mut suites = SUITES.lock().unwrap_or_else(PoisonError::into_inner);
        let suite = suites.entry(self.suite()).or_default();
        suite.stuck.clone().map_or(Ok(()), Err)?;
        suite.listeners.push(listener.clone());
        Ok(())
    }

    /// Returns the package and the module of the test.
    fn suite(&self) -> (&'static str, String) {
        let module = self.test.rsplit_once("::").map_or("", |(module, _)| module);
        (self.package, module.to_owned())
    }

    fn verdict(&self, log: &Log, fault: &str) -> String {
        let Self { package, test, .. } = self;
        let seed = log.seed.load(Ordering::SeqCst);
        format!(
            "seed {seed}: {fault}\n  again: ADAPM_SEED={seed} cargo test -p {package} {test} -- --exact --nocapture"
        )
    }
}

/// A message to the watcher of a claim.
enum Word {
    /// The claim has ended, perhaps with a fault.
    Ended(Option<String>),
    /// The policy is stuck in another claim of the suite; its verdict.
    Stuck(String),
}

/// The state that the claims of one suite share.
#[derive(Default)]
struct Suite {
    /// The verdict on a policy that did not return.
    stuck: Option<String>,
    listeners: Vec<Sender<Word>>,
}

/// The suites of this process, whose claims the test runner runs in threads.
static SUITES: Mutex<BTreeMap<(&'static str, String), Suite>> = Mutex::new(BTreeMap::new());

/// Returns the description of a panic; it is the policy's if a call was in progress.
fn panicked(log: &Log, payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
    match log.current() {
        Some((_, call)) => format!("the policy panicked in {call}: {text}"),
        None => format!("a panic outside of the policy: {text}"),
    }
}

/// Default number of schedules of a claim.
const SEEDS: u64 = 200;
/// Time after which one call of a policy counts as endless.
const PATIENCE: Duration = Duration::from_secs(30);

//! Runs a rule beside a thread that watches it, and reports which rule is broken and by what.

use core::any::Any;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use adapm_core::transport::Transport;

use super::watched::{Log, Watched};
use crate::silence::patience;

/// Runs `rule` over networks under watch: the body of the tests of [`crate::transport_suite!`].
///
/// # Panics
/// If the rule is broken; the message names the rule and what broke it.
pub fn check<T: Transport + 'static>(
    name: &str,
    network: impl Fn(usize) -> Vec<T> + Send + 'static,
    rule: impl FnOnce(&dyn Fn(usize) -> Vec<Watched<T>>) + Send + 'static,
) {
    let logs = Logs::default();
    let (finished, result) = mpsc::channel();
    let noted = logs.clone();
    let run = move || {
        let network = |nodes| {
            let (ends, log) = Watched::wrap(network(nodes), nodes);
            noted.note(log);
            ends
        };
        let run = AssertUnwindSafe(|| rule(&network));
        let _ = finished.send(panic::catch_unwind(run).map_err(text_of));
    };
    // A thread of its own: a call that does not return must not hold up the test.
    let thread = thread::Builder::new().name(name.to_string());
    thread.spawn(run).expect("the system has room for one more thread");
    if let Err(text) = logs.wait(&result) {
        panic!("the rule `{name}` is broken: {text}");
    }
}

/// The logs of the networks of a rule.
#[derive(Clone, Default)]
struct Logs(Arc<Mutex<Vec<Arc<Log>>>>);

impl Logs {
    /// Adds a network, and forgets those that are gone.
    fn note(&self, log: Arc<Log>) {
        let mut logs = self.lock();
        logs.retain(|log| Arc::strong_count(log) > 1 || log.fault().is_some());
        logs.push(log);
    }

    /// Waits for the rule to end, for a fault, or as long as something moves.
    fn wait(&self, result: &mpsc::Receiver<Result<(), String>>) -> Result<(), String> {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            match result.recv_timeout(LOOK_EVERY) {
                // The first fault may have led to others.
                Ok(Err(text)) => return Err(self.fault().unwrap_or(text)),
                Ok(Ok(())) => return self.fault().map_or(Ok(()), Err),
                Err(RecvTimeoutError::Disconnected) => unreachable!("the thread always reports"),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(fault) = self.fault() {
                return Err(fault);
            }
            let activity =
                self.lock().iter().map(|log| log.activity.load(Ordering::Relaxed)).sum::<u64>();
            if activity != last {
                (last, since) = (activity, Instant::now());
            }
            // Rules have waits of their own, whose messages explain more.
            if since.elapsed() > patience() + patience() / 4 {
                let states: Vec<_> = self.lock().iter().map(|log| log.state()).collect();
                return Err(format!("nothing moves any more: {}", states.join("; ")));
            }
        }
    }

    fn fault(&self) -> Option<String> {
        self.lock().iter().find_map(|log| log.fault())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Log>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the text of a panic.
fn text_of(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_string()))
        .unwrap_or_else(|| String::from("a panic without a text"))
}

/// Time between two checks of the calls in progress.
const LOOK_EVERY: Duration = Duration::from_millis(20);

//! Mistakes planted in engines and in link sessions are found by simulated clusters: proof that a
//! green run means something.
//!
//! A bug of the protocol runs with only the checker of the invariant that it breaks; a run that
//! never ends breaks the sixth. Other effects (a failed assertion) do not count. A bug of a session
//! counts whenever a run fails: links have no checkers besides their promises.

use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::thread;

use adapm_verify::LinkBug;
use adapm_verify::sim::Failure;
use adapm_verify::sim::checked::{Conditions, Finding, Run};
use adapm_verify::{Bug, Checks};

/// Number of runs after which a bug counts as not found.
const SEEDS_MAX: u64 = 500;

const NOBODY_LIES: &str = "no node of a simulated cluster lies";
const NOTHING_MOVES: &str = "workers of a simulated cluster signal nothing while they copy";

/// Bugs that other suites find, and the reasons that this one does not.
const OUT_OF_REACH: [(Bug, &str); 16] = [
    (Bug::IgnoreSyncMark, "what workers change reaches the engine before the next request does"),
    (Bug::TickBeforeDirty, "what workers change reaches the engine before the next request does"),
    (
        Bug::WaitForLaterChanges,
        "workers of a simulated cluster pause, and no response is full then",
    ),
    (
        Bug::DeafToAnswers,
        "hardly any round leaves a request without an answer at six looks in a row",
    ),
    (Bug::CountAbsence, "nobody is stopped for six looks, as its peers would give it up"),
    (Bug::TellOneLoss, "one node is lost at most"),
    (Bug::FreezeAtOnce, NOTHING_MOVES),
    (Bug::AskWhileFrozen, NOTHING_MOVES),
    (Bug::LagOwn, "it costs messages and breaks no invariant"),
    (Bug::WaitForTwice, "it costs time and breaks no invariant"),
    (Bug::BelieveAnyForward, NOBODY_LIES),
    (Bug::BelieveAnyGrant, NOBODY_LIES),
    (Bug::BelieveAnyRetry, NOBODY_LIES),
    (Bug::BelieveAnyAnswer, NOBODY_LIES),
    (Bug::BelieveAnyResidence, NOBODY_LIES),
    (Bug::HeedLost, "links deliver nothing of a peer that they have given up"),
];

/// The same of links.
const LINKS_OUT_OF_REACH: [(LinkBug, &str); 2] = [
    (LinkBug::IgnoreStall, "a pipe on which data stalls is replaced before its peer is given up"),
    (LinkBug::KeepStalledPipe, "no pipe of a simulated cluster swallows what is written to it"),
];

#[test]
fn every_planted_bug_within_reach_is_found_in_simulated_clusters() {
    show(&format!("{:22} {:>9}  {:>5}  what it said\n", "planted bug", "invariant", "seeds"));
    let (mut found, mut missed) = (0, Vec::new());
    let is_near = |bug: &Bug| OUT_OF_REACH.iter().all(|(far, _)| far != bug);
    let engines = Bug::ALL.into_iter().filter(is_near);
    let rows: Vec<_> = thread::scope(|scope| {
        let of_engines = engines.map(|bug| {
            (bug.to_string(), bug.invariant().to_string(), scope.spawn(move || find(bug)))
        });
        let is_near = |bug: &LinkBug| LINKS_OUT_OF_REACH.iter().all(|(far, _)| far != bug);
        let of_links = LinkBug::ALL.into_iter().filter(is_near).map(|bug| {
            (bug.to_string(), String::from("link"), scope.spawn(move || find_in_links(bug)))
        });
        // All are started before the first is waited for.
        let begun: Vec<_> = of_engines.chain(of_links).collect();
        begun
            .into_iter()
            .map(|(bug, breaks, search)| (bug, breaks, search.join().expect("a search ends")))
            .collect()
    });
    for (bug, breaks, detection) in rows {
        let Some((seeds, what)) = detection else {
            missed.push(bug);
            continue;
        };
        found += 1;
        show(&format!("{bug:22} {breaks:>9}  {seeds:>5}  {what}\n"));
    }
    let engines =
        OUT_OF_REACH.map(|(bug, why)| (bug.to_string(), bug.invariant().to_string(), why));
    let links = LINKS_OUT_OF_REACH.map(|(bug, why)| (bug.to_string(), String::from("link"), why));
    for (bug, breaks, reason) in engines.into_iter().chain(links) {
        show(&format!("{bug:22} {breaks:>9}      -  {reason}\n"));
    }
    let all = Bug::ALL.len() + LinkBug::ALL.len();
    show(&format!("{found} of {all} planted bugs found by the simulator\n"));
    assert_eq!(missed, Vec::<String>::new(), "bugs that the simulator does not find");
}

/// Prints past the capture of the test runner: the table must be visible in every run.
fn show(line: &str) {
    std::io::stdout().write_all(line.as_bytes()).expect("standard output takes the table");
}

#[test]
fn a_planted_bug_is_hidden_from_a_checker_that_is_off() {
    for bug in Bug::ALL {
        let hidden = (0..5).all(|seed| detect(seed, bug, Checks::NONE).is_none());
        assert!(hidden, "{bug} is found without a checker");
    }
}

/// Returns the number of runs that it takes to find the bug, and the finding.
fn find(bug: Bug) -> Option<(u64, String)> {
    let checks = Checks::only(bug.invariant());
    (0..SEEDS_MAX).find_map(|seed| Some((seed + 1, detect(seed, bug, checks)?)))
}

fn detect(seed: u64, bug: Bug, checks: Checks) -> Option<String> {
    let run = match bug {
        Bug::IgnoreIdle | Bug::BlameUnasked => Run::under(seed, Conditions::Mute),
        bug if bug.needs_loss() => Run::with_loss(seed),
        _ => Run::new(seed),
    };
    match quietly(&run.with_bug(bug, checks))? {
        Failure::Violation(Finding::Invariant(violation))
            if checks.contains(violation.invariant) =>
        {
            Some(violation.what)
        }
        // Invariant 6: every operation completes.
        Failure::Stuck(what) if checks.contains(6) => Some(brief(&what)),
        _ => None,
    }
}

fn find_in_links(bug: LinkBug) -> Option<(u64, String)> {
    (0..SEEDS_MAX).find_map(|seed| Some((seed + 1, brief(&detect_in_links(seed, bug)?))))
}

/// Returns the failure with the bug, if there is none without it.
fn detect_in_links(seed: u64, bug: LinkBug) -> Option<String> {
    let with_bug = |conditions| {
        let mut run = Run::under(seed, conditions);
        run.link_bug = Some(bug);
        quietly(&run)
    };
    for conditions in [Conditions::Any, Conditions::SlowLinks] {
        if let Some(failure) = with_bug(conditions) {
            return Some(failure.to_string());
        }
    }
    // Over a dead link it is a failure that no peer is given up.
    let is_loss =
        |failure: &Failure<Finding>| matches!(failure, Failure::Violation(Finding::GivenUp { .. }));
    let is_right =
        quietly(&Run::under(seed, Conditions::DeadLink)).is_some_and(|failure| is_loss(&failure));
    match with_bug(Conditions::DeadLink) {
        None if is_right => Some(String::from("nobody is given up over a dead link")),
        Some(failure) if is_right && !is_loss(&failure) => Some(failure.to_string()),
        _ => None,
    }
}

fn brief(what: &str) -> String {
    what.chars().take(100).collect()
}

/// Returns the failure of the run, if there is one; a panic does not count.
fn quietly(run: &Run) -> Option<Failure<Finding>> {
    hush_panics();
    panic::catch_unwind(AssertUnwindSafe(|| run.run())).ok()?.err()
}

/// Silences panics: an engine with a bug sometimes fails its own assertions.
fn hush_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let of_this_test =
                info.location().is_some_and(|at| at.file().ends_with("sim_planted.rs"));
            if of_this_test {
                loud(info);
            }
        }));
    });
}

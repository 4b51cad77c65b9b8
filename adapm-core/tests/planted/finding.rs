//! The number of random schedules after which each planted bug is found, and a table of them.

use std::fmt::Write;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::thread;

use adapm_core::policy::System;
use adapm_verify::lies::{self, Lie};
use adapm_verify::link::random::Met;
use adapm_verify::link::{self, Broken, Claim, mesh};
use adapm_verify::network::Pairs;
use adapm_verify::random::{self, STEPS};
use adapm_verify::{Bug, Checks, DatagramBug, LinkBug, Violation};

/// Number of schedules after which a bug counts as not found.
const SEEDS_MAX: u64 = 3_000;

/// The text for a bug that costs messages and breaks no invariant: only stories can see it.
const COSTS: &str = "costs";

/// The suites' findings on one bug.
pub(crate) struct Row {
    pub(crate) bug: String,
    /// A description of the mistake.
    pub(crate) mistake: &'static str,
    /// Its place.
    pub(crate) place: String,
    /// The invariant or claim that it breaks.
    pub(crate) breaks: String,
    /// The kind of random schedules.
    pub(crate) suite: &'static str,
    /// The number of schedules that it took to find it; `None` if it was not found.
    pub(crate) seeds: Option<u64>,
    /// The checker's text.
    pub(crate) says: String,
    /// Story tests that fail with it.
    pub(crate) stories: Vec<String>,
}

/// Runs each bug of the protocol until the remaining checkers find it.
pub(crate) fn protocol_rows(bugs: &[Bug], checks: impl Fn(Bug) -> Checks + Sync) -> Vec<Row> {
    let row = |bug: Bug| {
        let checks = checks(bug);
        let seeds_max = if bug.invariant() == 0 { 0 } else { SEEDS_MAX };
        let found = (0..seeds_max).find_map(|seed| Some((seed, detect(seed, Some(bug), checks)?)));
        let (seeds, says) = found
            .map_or((None, String::new()), |(seed, violation)| (Some(seed + 1), violation.what));
        Row {
            bug: bug.to_string(),
            mistake: bug.mistake(),
            place: bug.place().to_string(),
            breaks: match bug.invariant() {
                0 => String::from(COSTS),
                invariant => invariant.to_string(),
            },
            suite: if bug.invariant() == 0 {
                "stories"
            } else if bug.needs_ticks() {
                "properties, ticks"
            } else if bug.invariant() == 12 {
                "lies"
            } else if bug.needs_loss() {
                "properties, losses"
            } else {
                "properties"
            },
            seeds,
            says,
            stories: Vec::new(),
        }
    };
    each_in_a_thread(bugs, row)
}

/// Runs each bug of the link session until a schedule breaks its claim.
pub(crate) fn link_rows() -> Vec<Row> {
    let row = |bug: LinkBug| {
        let found = (0..SEEDS_MAX).find_map(|seed| Some((seed, detect_in_link(seed, bug)?)));
        let (seeds, says) =
            found.map_or((None, String::new()), |(seed, broken)| (Some(seed + 1), broken.what));
        Row {
            bug: bug.to_string(),
            mistake: bug.mistake(),
            place: String::from("link session"),
            breaks: format!("{:?}", Claim::broken_by(bug)),
            suite: "link",
            seeds,
            says,
            stories: Vec::new(),
        }
    };
    each_in_a_thread(&LinkBug::ALL, row)
}

/// Runs each bug of links over datagrams until a mesh breaks its claim. No story has datagrams.
pub(crate) fn datagram_rows() -> Vec<Row> {
    let row = |bug: DatagramBug| {
        let found = (0..SEEDS_MAX).find_map(|seed| Some((seed, detect_in_mesh(seed, bug)?)));
        let (seeds, says) =
            found.map_or((None, String::new()), |(seed, broken)| (Some(seed + 1), broken.what));
        Row {
            bug: bug.to_string(),
            mistake: bug.mistake(),
            place: String::from("datagrams"),
            breaks: format!("{:?}", Claim::broken_by_datagrams(bug)),
            suite: "links",
            seeds,
            says,
            stories: Vec::new(),
        }
    };
    each_in_a_thread(&DatagramBug::ALL, row)
}

/// Returns the rows in the order of their bugs.
fn each_in_a_thread<B: Copy + Send + Sync>(bugs: &[B], row: impl Fn(B) -> Row + Sync) -> Vec<Row> {
    let row = &row;
    thread::scope(|scope| {
        let begun: Vec<_> = bugs.iter().map(|&bug| scope.spawn(move || row(bug))).collect();
        begun.into_iter().map(|search| search.join().expect("a search ends")).collect()
    })
}

/// Returns the line with the counts; as an error, with the bugs that were not found.
pub(crate) fn verdict(rows: &[Row]) -> Result<String, String> {
    let is_found =
        |row: &&Row| row.seeds.is_some() || (row.breaks == COSTS && !row.stories.is_empty());
    let missing: Vec<&str> =
        rows.iter().filter(|row| !is_found(row)).map(|row| &*row.bug).collect();
    let line = format!("{} of {} planted bugs found", rows.len() - missing.len(), rows.len());
    if missing.is_empty() { Ok(line) } else { Err(format!("{line}: not {}", missing.join(", "))) }
}

/// Returns the table, with the line with the counts at its end.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut table = format!(
        "{:20} {:12} {:18} {:>5} {:>7}  what it said\n",
        "planted bug", "breaks", "suite", "seeds", "stories"
    );
    for Row { bug, breaks, suite, seeds, says, stories, .. } in rows {
        let seeds = seeds.map_or_else(|| String::from("-"), |seeds| seeds.to_string());
        let says: String = says.chars().take(SAYS_MAX).collect();
        writeln!(table, "{bug:20} {breaks:12} {suite:18} {seeds:>5} {:>7}  {says}", stories.len())
            .expect("a string takes all");
    }
    let (Ok(line) | Err(line)) = verdict(rows);
    table + &format!("median of the seeds: {}\n{line}\n", crate::median(rows))
}

/// Returns the finding of the checkers in `checks` on the schedule of `seed`, if there is one.
pub(crate) fn detect(seed: u64, bug: Option<Bug>, checks: Checks) -> Option<Violation> {
    hush_panics();
    if checks.contains(12) {
        let lie =
            bug.and_then(Lie::believed_by).unwrap_or(Lie::ALL[seed as usize % Lie::ALL.len()]);
        let system = System::ALL[seed as usize % System::ALL.len()];
        let run = || lies::run(system, seed, Some(lie), bug, checks);
        return panic::catch_unwind(AssertUnwindSafe(run)).ok()?.err();
    }
    let loss = bug.map_or(seed % 2 == 1, Bug::needs_loss);
    let ticks = bug.map_or(seed % 3 == 2, Bug::needs_ticks);
    let mut setup = match (loss, ticks) {
        (false, false) => random::setup(seed),
        (false, true) => random::setup_with_ticks(seed),
        (true, false) => random::setup_with_losses(seed),
        (true, true) => random::setup_with_ticks_and_losses(seed),
    };
    (setup.bug, setup.checks, setup.codec) = (bug, checks, false);
    let run = || random::run(setup, seed, STEPS, &mut Pairs::default());
    let violation = panic::catch_unwind(AssertUnwindSafe(run)).ok()?.err()?;
    checks.has(violation.check).then_some(violation)
}

/// Returns the first broken claim in the schedule of `seed`, if it is that of the bug.
fn detect_in_link(seed: u64, bug: LinkBug) -> Option<Broken> {
    let broken = link::random::run(seed, STEPS, Some(bug), &mut Met::default()).err()?;
    (broken.claim == Claim::broken_by(bug)).then_some(broken)
}

/// Returns the first broken claim in the mesh of `seed`, if it is that of the bug.
fn detect_in_mesh(seed: u64, bug: DatagramBug) -> Option<Broken> {
    let broken = mesh::run(seed, Some(bug)).err()?;
    (broken.claim == Claim::broken_by_datagrams(bug)).then_some(broken)
}

/// Silences panics: an engine with a bug sometimes fails its own assertions.
fn hush_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let of_an_engine = info.location().is_some_and(|at| at.file().contains("src/"));
            if !of_an_engine {
                loud(info);
            }
        }));
    });
}

/// Number of characters of a finding that fit a line.
const SAYS_MAX: usize = 120;

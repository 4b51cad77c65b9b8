//! A planted mistake, to see a target find something: `ADAPM_FUZZ_BUG=SkipStale` names one of the
//! protocol ([`adapm_verify::Bug`]), with which `cluster` runs, or one of the link session, with
//! which `link` runs.

use std::env;
use std::fmt::Debug;
use std::sync::OnceLock;

use adapm_verify::Bug;
use adapm_verify::LinkBug;

/// The variable that names the mistake.
const VARIABLE: &str = "ADAPM_FUZZ_BUG";

/// Returns the mistake in the protocol, if one is requested.
pub(crate) fn protocol() -> Option<Bug> {
    static PLANTED: OnceLock<Option<Bug>> = OnceLock::new();
    *PLANTED.get_or_init(|| named(&Bug::ALL))
}

/// Returns the mistake in the link session, if one is requested.
pub(crate) fn session() -> Option<LinkBug> {
    static PLANTED: OnceLock<Option<LinkBug>> = OnceLock::new();
    *PLANTED.get_or_init(|| named(&LinkBug::ALL))
}

fn named<B: Copy + Debug>(bugs: &[B]) -> Option<B> {
    let name = env::var(VARIABLE).ok()?;
    let is_any = |bug: &dyn Debug| format!("{bug:?}") == name;
    let known =
        Bug::ALL.iter().any(|bug| is_any(bug)) || LinkBug::ALL.iter().any(|bug| is_any(bug));
    assert!(known, "{VARIABLE}={name} is no bug; those of the protocol are {:?}", Bug::ALL);
    bugs.iter().copied().find(|bug| is_any(bug))
}

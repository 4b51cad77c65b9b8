//! What flags and variables say of the links between processes. Flags first, then `ADAPM_*`.

use core::time::Duration;

use super::environment::Environment;
use super::error::{LauncherError, SECONDS_WANTED};
use crate::net::Kind;

/// Returns the time after which a node counts as lost, if anybody says.
pub(super) fn dead_after(
    flag: Option<Duration>,
    environment: &Environment<'_>,
) -> Result<Option<Duration>, LauncherError> {
    match (flag, environment.text("ADAPM_DEAD_AFTER")) {
        (None, Some(value)) => {
            let time = seconds(&value);
            time.map(Some).map_err(|_| LauncherError::NotSeconds { name: "ADAPM_DEAD_AFTER", value })
        }
        (flag, _) => Ok(flag),
    }
}

/// Returns what carries frames.
pub(super) fn kind(flag: Option<Kind>, environment: &Environment<'_>) -> Result<Kind, LauncherError> {
    match (flag, environment.text("ADAPM_TRANSPORT")) {
        (Some(kind), _) => Ok(kind),
        (None, None) => Ok(Kind::default()),
        (None, Some(value)) => {
            let known = Kind::available().find(|kind| kind.scheme() == value);
            known.ok_or(LauncherError::Transport { value })
        }
    }
}

/// Reads a time that a person can mean: at least a millisecond, at most a day. What is less would
/// be none at all once it is counted in nanoseconds.
///
/// # Errors
/// What to give instead.
pub fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (SECONDS_MIN..=SECONDS_MAX).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or(SECONDS_WANTED)
}

/// Returns a number for a name, the same everywhere (FNV-1a): it keeps runs apart, and nothing
/// else.
pub(super) fn digest(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

const SECONDS_MIN: f64 = 0.001;
const SECONDS_MAX: f64 = 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_too_short_to_count_is_refused_like_none_and_like_what_is_no_time() {
        for text in
            ["1e-300", "1e-10", "0", "-0", "-1", "0.000999", "86400.1", "1e300", "inf", "nan", "", "5s"]
        {
            assert_eq!(seconds(text), Err(SECONDS_WANTED), "{text}");
        }
        for (text, millis) in [("0.001", 1), ("5", 5_000), ("1e2", 100_000), ("86400", 86_400_000)] {
            assert_eq!(seconds(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }
}

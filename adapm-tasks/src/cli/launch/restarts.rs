//! Starting all processes again after a failure, from the last checkpoint.
//!
//! A failure that comes a second time, of the same node and in the same words, without a checkpoint
//! in between, would come again: it ends the run. So does one of what was asked for (exit code 2).

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use adapm_runtime::checkpoint::Checkpoint;
use adapm_transport::net::Token;

use crate::cli::args::run_of;
use crate::cli::launch::error::{End, Ending, LaunchError};
use crate::run::checkpoints::CHECKPOINTS;

/// How often all are started again, and after what.
#[derive(Debug)]
pub(super) struct Restarts {
    most: u32,
    done: u32,
    /// Since the last checkpoint.
    in_vain: u32,
    /// By which a start knows the folder of an earlier one.
    name: String,
    /// The folder of the run.
    folder: PathBuf,
    /// The last failure that no signal has caused, and the checkpoint before it.
    last: Option<(usize, End, String)>,
    checkpoint: Option<String>,
}

impl Restarts {
    /// Returns those of a command.
    ///
    /// # Errors
    ///
    /// A command that has no checkpoints.
    pub(super) fn of(most: u32, words: &[OsString]) -> Result<Self, LaunchError> {
        let folder = [OUT, OUT_LOCAL, RESUME].iter().find_map(|flag| value_of(words, flag));
        let is_training = words.first().is_some_and(|word| word == "train");
        let folder = match folder.filter(|_| is_training) {
            None if most > 0 => return Err(LaunchError::NoFolder),
            folder => {
                folder.map(|folder| run_of(Path::new(&folder)).to_owned()).unwrap_or_default()
            }
        };
        let name = String::new();
        let mut restarts =
            Self { most, done: 0, in_vain: 0, name, folder, last: None, checkpoint: None };
        restarts.checkpoint = restarts.latest();
        Ok(restarts)
    }

    /// Returns the same with a name.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub(super) fn named(self) -> io::Result<Self> {
        Ok(Self { name: Token::fresh_text()?, ..self })
    }

    /// Returns the name, if anything is to be started again.
    pub(super) fn launch(&self) -> Option<&str> {
        (self.most > 0).then_some(&*self.name)
    }

    /// Returns how long to wait before all are started again, after a failure and the last line of
    /// its node; `None` if they are not.
    pub(super) fn after(&mut self, ending: &Ending, line: String) -> Option<Duration> {
        if self.done == self.most || ending.end() == End::Failed(INPUT) {
            return None;
        }
        let latest = self.latest();
        let has_moved = latest != self.checkpoint;
        let by_signal = matches!(ending.end(), End::Killed(_) | End::LostOthers);
        let failure = (ending.node(), ending.end(), line);
        if !by_signal && !has_moved && self.last.as_ref() == Some(&failure) {
            let why = "the same failure again, and no checkpoint between";
            let _ = writeln!(io::stderr(), "launch: {why}: not started again");
            return None;
        }
        self.last = (!by_signal).then_some(failure);
        self.checkpoint = latest;
        self.done += 1;
        self.in_vain = if has_moved { 0 } else { self.in_vain + 1 };
        Some(PAUSE * 2_u32.pow(self.in_vain.min(6)))
    }

    /// Says what is done.
    pub(super) fn tell(&self, ending: &Ending, pause: Duration) {
        let (done, most, seconds) = (self.done, self.most, pause.as_secs());
        let _ = writeln!(
            io::stderr(),
            "launch: {ending}; start {done} of {most} in {seconds} s, from the last checkpoint if there is one"
        );
    }

    fn latest(&self) -> Option<String> {
        let found = Checkpoint::latest(&self.folder.join(CHECKPOINTS)).ok().flatten();
        found.map(|found| found.name().to_owned())
    }
}

/// Returns the value of a flag, the last one if there are several.
fn value_of(words: &[OsString], flag: &str) -> Option<OsString> {
    let mut found = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if text == flag {
            found = words.next().cloned();
        } else if let Some(value) = text.strip_prefix(flag).and_then(|rest| rest.strip_prefix('='))
        {
            found = Some(value.into());
        }
    }
    found
}

const OUT: &str = "--out";
const OUT_LOCAL: &str = "--out-local";
const RESUME: &str = "--resume";
/// The exit code of what was asked for and cannot be.
const INPUT: u8 = 2;
/// Before a start; twice as long after each that has come to no checkpoint.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::fs;

    use adapm_core::Key;
    use adapm_runtime::checkpoint::{Keeps, Owner, Part, Place, Save, Writer};
    use adapm_runtime::tables::{Table, Tables};

    use super::*;

    /// Writes a checkpoint of one key.
    fn save(folder: &Path) {
        let folder = folder.join(CHECKPOINTS);
        let _owner = Owner::take(&folder).expect("nobody holds it");
        let writer = Writer::new(&folder, Place { part: 0, parts: 1, workers: 1 });
        let tables = Tables::new([Table::new("a", 1, 1)]).expect("legal");
        let (name, needs, program) = ("step-1".to_owned(), Vec::new(), "{}".to_owned());
        let save = Save { name, tables, needs, program, keeps: Keeps::Latest, is_awaited: true };
        writer.submit(0, &save, Part::new([Key(0)], vec![1.0]));
        writer.wait();
    }

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn what_has_no_checkpoints_is_not_started_again() {
        for text in ["train kge", "eval kge --out r", "check-net"] {
            assert!(matches!(Restarts::of(1, &words(text)), Err(LaunchError::NoFolder)), "{text}");
            assert!(Restarts::of(0, &words(text)).is_ok());
        }
        for text in [
            "train kge --out r",
            "train kge --out=r",
            "train --resume r",
            "train kge --out-local=r",
        ] {
            assert_eq!(Restarts::of(1, &words(text)).expect("has one").folder, PathBuf::from("r"));
        }
    }

    #[test]
    fn a_failure_that_comes_again_ends_the_run_and_a_signal_never_does() {
        let folder = std::env::temp_dir().join(format!("adapm-restarts-{}", std::process::id()));
        let command = format!("train kge --out {}", folder.display());
        let of = || Restarts::of(9, &words(&command)).expect("has one");
        let ending = |end| Ending::of(&[(1, end)], false).expect("it failed");
        let failed = ending(End::Failed(1));
        let after = |restarts: &mut Restarts, line: &str| {
            restarts.after(&failed, line.to_owned()).map(|pause| pause.as_secs())
        };
        let mut restarts = of();
        assert_eq!(after(&mut restarts, "error: a"), Some(2));
        assert_eq!(after(&mut restarts, "error: b"), Some(4), "another failure");
        assert_eq!(after(&mut restarts, "error: b"), None);
        let mut restarts = of();
        assert_eq!(after(&mut restarts, "error: a"), Some(2));
        save(&folder);
        assert_eq!(after(&mut restarts, "error: a"), Some(1), "a checkpoint is between");
        assert_eq!(after(&mut restarts, "error: a"), None);
        let mut restarts = of();
        for _ in 0..9 {
            let killed = ending(End::Killed(9));
            assert!(restarts.after(&killed, String::new()).is_some());
        }
        assert_eq!(after(&mut restarts, "error: a"), None, "as often as was asked for");
        let refused = ending(End::Failed(INPUT));
        assert_eq!(of().after(&refused, String::new()), None, "asked for what cannot be");
        fs::remove_dir_all(folder).expect("can be removed");
    }
}

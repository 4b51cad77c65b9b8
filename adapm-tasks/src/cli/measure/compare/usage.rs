//! What a running process uses, as `/proc` tells: memory, and the processor time of its channels.

use std::fs;
use std::path::Path;

/// The most that was seen of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// The most memory that it has had, where the system tells.
    pub(crate) peak_bytes: Option<u64>,
    /// Processor time of its channel threads, and of all that it did, in units of the system's
    /// clock: up to the last look at which there were channels.
    channels: u64,
    all: u64,
    looks: u32,
}

impl Usage {
    /// Looks at a running process; at its threads, which costs more, once in ten times.
    pub(crate) fn look_at(&mut self, process: u32) {
        self.peak_bytes = peak_of(process).or(self.peak_bytes);
        if self.looks.is_multiple_of(10) {
            self.look_at_threads(process);
        }
        self.looks = self.looks.wrapping_add(1);
    }

    fn look_at_threads(&mut self, process: u32) {
        let folder = format!("/proc/{process}");
        let Ok(threads) = fs::read_dir(Path::new(&folder).join("task")) else { return };
        let channels = threads.flatten().filter_map(|thread| {
            let is_channel =
                is_channel(fs::read_to_string(thread.path().join("comm")).ok()?.trim());
            if is_channel {
                ticks(&fs::read_to_string(thread.path().join("stat")).ok()?)
            } else {
                None
            }
        });
        let channels: u64 = channels.sum();
        let all = fs::read_to_string(format!("{folder}/stat")).ok();
        // Channels end before their process.
        if channels >= self.channels
            && let Some(all) = all.and_then(|stat| ticks(&stat))
        {
            (self.channels, self.all) = (channels, all);
        }
    }

    /// Returns the share of the processor time that channels had; `None` if nothing was seen.
    pub(crate) fn channel_share(&self) -> Option<f64> {
        (self.all > 0).then(|| self.channels as f64 / self.all as f64)
    }
}

/// Returns true for the name of a thread that runs a channel: `adapm n0 c1`.
fn is_channel(name: &str) -> bool {
    let is_number = |word: Option<&str>, letter| {
        let digits = word.and_then(|word| word.strip_prefix(letter));
        digits.is_some_and(|digits| digits.parse::<u32>().is_ok())
    };
    let mut words = name.split(' ');
    words.next() == Some("adapm") && is_number(words.next(), 'n') && is_number(words.next(), 'c')
}

/// Returns the processor time that a file `stat` tells, of user and system.
fn ticks(stat: &str) -> Option<u64> {
    // The name, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

/// Returns the most memory that a running process has had, where the system tells.
fn peak_of(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_known_by_their_names() {
        assert!(["adapm n0 c0", "adapm n12 c3"].into_iter().all(is_channel));
        assert!(
            !["adapm n0 w0", "adapm loader 1", "adapm", "signals", "x n0 c0"]
                .into_iter()
                .any(is_channel)
        );
    }

    #[test]
    fn times_are_behind_the_name() {
        let stat = "7 (a) b c) S 1 2 3 4 5 6 7 8 9 10 31 11 0 0 20";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("7 (a) S 1"), None);
        let mut usage = Usage::default();
        assert_eq!(usage.channel_share(), None);
        (usage.channels, usage.all) = (1, 4);
        assert_eq!(usage.channel_share(), Some(0.25));
    }

    #[test]
    fn this_process_uses_something() {
        let mut usage = Usage::default();
        usage.look_at(std::process::id());
        if cfg!(target_os = "linux") {
            assert!(usage.peak_bytes.is_some_and(|bytes| bytes > 0));
        }
    }
}

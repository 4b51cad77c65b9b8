//! What the host tells of this process and of its memory, where it has the files of Linux (proc(5)).

use std::fs;

/// Bytes that can be taken without pushing others out.
pub(super) fn memory_available() -> Option<usize> {
    field("/proc/meminfo", "MemAvailable:")
}

/// Bytes of memory that this process has.
pub(super) fn memory_resident() -> Option<usize> {
    field("/proc/self/status", "VmRSS:")
}

/// Seconds of processors that this process has had so far, to a hundredth.
pub(super) fn processor_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may hold anything; then come `utime` and `stime` as numbers 14 and 15.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u32>);
    let ticks = fields.next()?.ok()? + fields.next()?.ok()?;
    Some(f64::from(ticks) / TICKS_PER_SECOND)
}

/// A size in a file of lines `name: number kB`, in bytes.
fn field(path: &str, name: &str) -> Option<usize> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: usize = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Of the times that Linux tells, whatever its own clock does.
const TICKS_PER_SECOND: f64 = 100.0;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn the_host_tells() {
        let (all, own) = (memory_available(), memory_resident());
        assert!(
            own.is_some_and(|own| own > 100_000) && all.is_some_and(|all| all > 1_000_000),
            "{own:?} {all:?}"
        );
        let before = processor_seconds().expect("there is a file");
        while processor_seconds().expect("there is a file") < before + 0.02 {}
    }
}

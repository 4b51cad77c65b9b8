//! One case: a process of its own, with a bound on its time and on the growth of its memory.

use std::env;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use adapm_verify::silence::patience;
use libtest_mimic::{Arguments, Trial};

/// Defines the cases of a module, listed in `CASES`.
macro_rules! cases {
    ($($(#[$note:meta])* fn $name:ident() $body:block)*) => {
        pub(crate) const CASES: &[crate::case::Case] =
            &[$((concat!(module_path!(), "::", stringify!($name)), $name)),*];
        $($(#[$note])* fn $name() $body)*
    };
}

/// A case by its path within this binary.
pub(crate) type Case = (&'static str, fn());

/// Default number of cases that run at a time: they mostly wait, so cores are not the limit.
const AT_A_TIME: usize = 8;

/// Runs the cases selected by the usual arguments of Rust tests; never returns.
pub(crate) fn run_all(cases: &[Case]) -> ! {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    let trial = |&(path, body): &Case| {
        // As in the standard harness, a test is named by its path within the crate.
        let name = path.split_once("::").expect("a case lies in a crate").1;
        Trial::test(name, move || {
            run(name, body);
            Ok(())
        })
    };
    libtest_mimic::run(&arguments, cases.iter().map(trial).collect()).exit()
}

/// Runs `body` in another process of this binary, or here if this is that process.
fn run(name: &str, body: fn()) {
    if env::var(CASE).is_ok_and(|case| case == name) {
        return body();
    }
    // A thousand connections need more descriptors than some systems allow by default.
    let mut child = Command::new("sh")
        .args([
            "-c",
            "ulimit -n 4096 2>/dev/null; exec \"$0\" --exact \"$1\" --nocapture --test-threads=1",
        ])
        .arg(env::current_exe().expect("this is a program"))
        .arg(name)
        .env(CASE, name)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a program can start itself");
    let (sender, receiver) = mpsc::channel();
    let streams: [Box<dyn Read + Send>; 2] = [
        Box::new(child.stdout.take().expect("it is a pipe")),
        Box::new(child.stderr.take().expect("it is a pipe")),
    ];
    for mut stream in streams {
        let sender = sender.clone();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stream.read_to_end(&mut bytes);
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    let texts: Vec<String> = (0..2).map_while(|_| receiver.recv_timeout(patience()).ok()).collect();
    let hangs = texts.len() < 2;
    if hangs {
        let _ = child.kill();
    }
    let status = child.wait().expect("a child can be waited for");
    let said = texts.concat();
    assert!(!hangs, "{name} hangs");
    assert!(status.success() && said.contains("1 passed"), "{name}: {status}\n{said}");
}

/// The peak memory of this process since this was created, in bytes; `None` where the system does
/// not tell.
#[derive(Debug)]
pub(crate) struct Memory(Option<u64>);

impl Memory {
    pub(crate) fn mark() -> Self {
        // Resets the peak; where that fails, the peak so far is the mark.
        let _ = fs::write("/proc/self/clear_refs", "5");
        Self(peak_bytes())
    }

    /// Checks that the peak has grown by at most [`GROWTH_MAX`] since the mark.
    pub(crate) fn assert_bounded(&self) {
        let (Some(before), Some(after)) = (self.0, peak_bytes()) else {
            return println!("memory: this system does not tell");
        };
        let growth = after.saturating_sub(before);
        println!("memory: {} KiB more than {} KiB", growth >> 10, before >> 10);
        assert!(growth <= GROWTH_MAX, "memory has grown by {} KiB", growth >> 10);
    }
}

fn peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Maximum cost of a hostile peer, in bytes.
pub(crate) const GROWTH_MAX: u64 = 8 << 20;

const CASE: &str = "ADAPM_HOSTILE_CASE";

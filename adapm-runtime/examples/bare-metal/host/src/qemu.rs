//! Building the firmware, and the emulated board that runs it: its serial line is the standard
//! input and output of QEMU.

use std::env;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{self, Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A running board; killed when dropped.
pub(crate) struct Board {
    child: Arc<Mutex<Child>>,
    serial: Option<(ChildStdout, ChildStdin)>,
}

/// A guard that ends the program when its time is over, unless it is dropped before.
pub(crate) struct Watchdog(
    #[expect(dead_code, reason = "the thread sees it being dropped")] Sender<()>,
);

/// Builds the firmware in this workspace. Returns its path.
pub(crate) fn build_firmware() -> Result<PathBuf, String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--package", "bare-metal-firmware", "--target", TARGET]);
    let status = cargo.current_dir(workspace).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(_) => {
            return Err(format!(
                "the firmware was not built: is the target there (rustup target add {TARGET})?"
            ));
        }
        Err(error) => return Err(format!("cannot run cargo: {error}")),
    }
    // This program is in `target/<profile>`.
    let program = env::current_exe()
        .map_err(|error| format!("cannot find this program's folder: {error}"))?;
    let target = program.ancestors().nth(2).ok_or("this program lies in no target folder")?;
    Ok(target.join(TARGET).join("release").join("bare-metal-firmware"))
}

impl Board {
    /// Starts QEMU with `firmware`.
    pub(crate) fn start(firmware: &Path) -> Result<Self, String> {
        if !firmware.is_file() {
            return Err(format!(
                "{}: no such file; without a path the firmware is built",
                firmware.display()
            ));
        }
        let mut qemu = Command::new(QEMU);
        qemu.args([
            "-machine",
            "mps2-an386",
            "-cpu",
            "cortex-m4",
            "-display",
            "none",
            "-monitor",
            "none",
        ]);
        qemu.args([
            "-serial",
            "stdio",
            "-semihosting-config",
            "enable=on,target=native",
            "-kernel",
        ]);
        let spawned = qemu.arg(firmware).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                format!("{QEMU} is not installed: on Debian, apt-get install {QEMU}")
            }
            _ => format!("cannot start {QEMU}: {error}"),
        })?;
        let serial = child.stdout.take().zip(child.stdin.take());
        Ok(Self { child: Arc::new(Mutex::new(child)), serial })
    }

    /// Takes the two directions of the board's serial line; once.
    pub(crate) fn take_serial(&mut self) -> (ChildStdout, ChildStdin) {
        self.serial.take().expect("the line has one end")
    }

    /// Ends board and program with a message after `within`.
    pub(crate) fn watchdog(&self, within: Duration) -> Watchdog {
        let (alive, ended) = mpsc::channel();
        let child = Arc::clone(&self.child);
        thread::spawn(move || {
            if ended.recv_timeout(within) == Err(RecvTimeoutError::Timeout) {
                lock(&child).kill().ok();
                eprintln!("error: not done within {} s: see --within", within.as_secs());
                process::exit(1);
            }
        });
        Watchdog(alive)
    }

    /// Waits until the firmware has ended by itself; an error if it does not, or if it failed.
    pub(crate) fn wait(&mut self, within: Duration) -> Result<(), String> {
        let until = Instant::now() + within;
        loop {
            match lock(&self.child).try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("the board ended with {status}")),
                Ok(None) if Instant::now() < until => {}
                Ok(None) => {
                    return Err(format!("the board still runs after {} s", within.as_secs()));
                }
                Err(error) => return Err(format!("cannot wait for {QEMU}: {error}")),
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let mut child = lock(&self.child);
        child.kill().ok();
        child.wait().ok();
    }
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

const QEMU: &str = "qemu-system-arm";
const TARGET: &str = "thumbv7em-none-eabihf";

//! Builds the firmware, starts a Cortex-M4 in QEMU with it, forms a cluster with the node that runs
//! there, and counts. `cargo run` in this folder; exit code 0 if every sum is exact.

#![forbid(unsafe_code)]

mod qemu;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bare_metal_host::count::count;
use bare_metal_host::noise::Noise;
use bare_metal_host::serial::Serial;
use serial_node::task;

/// The options of the user.
struct Wishes {
    /// A firmware that is built already.
    firmware: Option<PathBuf>,
    /// One byte of this many is spoilt, in each direction; 0: none.
    noise: u64,
    /// Time limit of the whole run.
    within: Duration,
}

fn main() -> ExitCode {
    match wishes().and_then(|wishes| wishes.map_or(Ok(()), run)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(wishes: Wishes) -> Result<(), String> {
    let firmware = wishes.firmware.map_or_else(qemu::build_firmware, Ok)?;
    let mut board = qemu::Board::start(&firmware)?;
    // Even after a hang, the user gets a message and an exit code.
    let watchdog = board.watchdog(wishes.within);
    let pipes = board.take_serial();
    let noise = Noise::new(wishes.noise);
    let counted = count(Serial::new(pipes, task::terms(), DEAD_AFTER, noise));
    let ended = board.wait(Duration::from_secs(5));
    drop(watchdog);
    let summary = counted.map_err(|error| match &ended {
        Err(board) => format!("{error} ({board})"),
        Ok(()) => error,
    })?;
    println!("{summary}");
    summary.check()?;
    ended?;
    println!("node 0 on this host, node 1 on a Cortex-M4 in QEMU: both ended in order");
    Ok(())
}

/// Parses the options; `None` if help was requested and shown.
fn wishes() -> Result<Option<Wishes>, String> {
    let mut wishes = Wishes { firmware: None, noise: 2_000, within: Duration::from_secs(120) };
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().ok_or(format!("{argument} needs a number: see --help"))?;
            value.parse::<u64>().map_err(|_| format!("{argument} {value}: use a whole number"))
        };
        match argument.as_str() {
            "--noise" => wishes.noise = number()?,
            "--within" => wishes.within = Duration::from_secs(number()?),
            "--help" | "-h" => {
                println!("{HELP}");
                return Ok(None);
            }
            other if other.starts_with('-') => {
                return Err(format!("no option {other}: see --help"));
            }
            path => wishes.firmware = Some(PathBuf::from(path)),
        }
    }
    Ok(Some(wishes))
}

const HELP: &str = "Counts together with a microcontroller in QEMU.

Usage: cargo run [-- [--noise BYTES] [--within SECONDS] [FIRMWARE]]

  --noise BYTES     spoil one byte of so many, in each direction; 0: none [default: 2000]
  --within SECONDS  give up after so long [default: 120]
  FIRMWARE          an ELF file that is built already [default: built by cargo]";

/// Silence after which an end of the line gives the other up.
const DEAD_AFTER: Duration = Duration::from_secs(20);

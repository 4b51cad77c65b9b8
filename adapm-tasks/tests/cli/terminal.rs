//! The binary on a terminal of its own: the bytes that it writes, and the screen at the end.
#![cfg(unix)]

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::num::NonZeroU16;
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use adapm_verify::silence::Silence;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The terminal after a run.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) code: Option<i32>,
    /// All bytes, with control codes.
    pub(crate) raw: String,
    /// The lines of the screen in the end, without blanks at their ends.
    pub(crate) lines: Vec<String>,
    /// The lines that were too long for the screen and went on in the next one.
    pub(crate) too_long: Vec<String>,
}

/// Runs `command` to its end on a terminal with `columns` columns.
pub(crate) fn on_terminal(command: &mut Command, columns: u16) -> Seen {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("it is ours");
    let name =
        ptsname(&master, Vec::new()).expect("it has a name").into_string().expect("in ASCII");
    let open = || OpenOptions::new().read(true).write(true).open(&name).expect("it can be opened");
    let slave = open();
    tcsetwinsize(&slave, Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })
        .expect("resizes");
    command.env_remove("COLUMNS").stdin(open()).stdout(open()).stderr(open());
    if !command.get_envs().any(|(name, _)| name == "TERM") {
        command.env("TERM", "xterm-256color");
    }
    let mut child = command.spawn().expect("the binary starts");
    // The terminal ends once no process can write to it.
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    drop(slave);
    let Some(bytes) = read(File::from(master)) else {
        child.kill().expect("a hanging child can be ended");
        panic!("the binary hangs");
    };
    let code = child.wait().expect("a child can be waited for").code();
    let mut screen = vt100::Parser::new(ROWS, NonZeroU16::new(columns).expect("is not 0"), 0);
    screen.process(&bytes);
    let screen = screen.screen();
    let mut lines: Vec<String> =
        screen.rows(0, columns).map(|line| line.trim_end().to_owned()).collect();
    let too_long = (0..).zip(&lines).filter(|(row, _)| screen.row_wrapped(*row));
    let too_long = too_long.map(|(_, line)| line.clone()).collect();
    while lines.pop_if(|line| line.is_empty()).is_some() {}
    Seen { code, raw: String::from_utf8_lossy(&bytes).into_owned(), lines, too_long }
}

/// Returns all bytes up to the end; `None` if nothing comes for too long.
fn read(mut master: File) -> Option<Vec<u8>> {
    let (sender, pieces) = mpsc::channel();
    thread::spawn(move || {
        let mut piece = [0; 4_096];
        // On Linux the end of a terminal is an error, not an empty read.
        while let Ok(len @ 1..) = master.read(&mut piece) {
            if sender.send(piece[..len].to_vec()).is_err() {
                return;
            }
        }
    });
    let (mut silence, mut bytes) = (Silence::new(), Vec::new());
    loop {
        match pieces.recv_timeout(silence.left(bytes.len())?) {
            Ok(piece) => bytes.extend(piece),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Some(bytes),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Rows of the emulated screen: so many that no line scrolls off.
const ROWS: NonZeroU16 = NonZeroU16::new(2_000).expect("is not 0");

//! One process: how it is started here or on another host, asked to stop, and ended; and what all
//! share: a secret, and a folder.
//!
//! It runs in a group of its own, so that a Ctrl-C of the terminal reaches it once, through the
//! launcher. Its stdin is a pipe whose other end only the launcher holds: when that goes away for
//! whatever reason, the process learns it and ends.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use adapm_transport::net::Token;
use rustix::process::{Pid, Signal};

/// A process to start, and the way to its host.
#[derive(Debug)]
pub(super) struct Start<'a> {
    pub(super) host: Option<&'a str>,
    pub(super) program: &'a OsStr,
    pub(super) words: &'a [OsString],
    pub(super) variables: Vec<(&'static str, OsString)>,
    pub(super) secret: &'a Secret,
}

/// A process that was started.
#[derive(Debug)]
pub(super) struct Node {
    child: Child,
    /// Kept open as long as the process is to run.
    stdin: Option<ChildStdin>,
    remote: bool,
    ended: Option<ExitStatus>,
}

impl Node {
    /// Starts a process and hands it the secret.
    pub(super) fn start(start: &Start<'_>) -> io::Result<Self> {
        let mut command = match start.host {
            None => here(start),
            Some(host) => there(start, host),
        };
        command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        let mut node = Self { child, stdin, remote: start.host.is_some(), ended: None };
        if node.remote {
            node.say(start.secret.text());
        }
        Ok(node)
    }

    /// Takes the pipes of the process's output, once.
    pub(super) fn output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// Checks whether the process has ended; reports that once.
    pub(super) fn poll_end(&mut self) -> Option<ExitStatus> {
        if self.ended.is_some() {
            return None;
        }
        // Only a process that is not ours cannot be asked.
        self.ended = self.child.try_wait().ok().flatten();
        self.ended
    }

    /// Returns true if the process has been seen to end.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns the exit status of the process, if it was seen to end.
    pub(super) fn status(&self) -> Option<ExitStatus> {
        self.ended
    }

    /// Returns the number of the process, or of that which reaches it on another host.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Passes a signal on. On another host the process reads it from its stdin, as ssh carries no
    /// signals.
    pub(super) fn signal(&mut self, signal: Signal) {
        match self.running() {
            Some(_) if self.remote => self.ask(signal),
            // It may have ended since.
            Some(group) => drop(rustix::process::kill_process_group(group, signal)),
            None => {}
        }
    }

    /// Asks for what a first signal asks for, and never for more.
    pub(super) fn ask(&mut self, signal: Signal) {
        if !self.has_ended() {
            self.say(&format!("signal {}", signal.as_raw()));
        }
    }

    /// Ends the process at once. On another host it ends by itself for want of a launcher.
    pub(super) fn kill(&mut self) {
        self.stdin = None;
        if let Some(group) = self.running() {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }

    /// Returns the group of a process whose number cannot have gone to another, as it was not
    /// waited for.
    fn running(&self) -> Option<Pid> {
        (!self.has_ended()).then(|| Pid::from_child(&self.child))
    }

    /// A line for the process; one that has ended does not read it.
    fn say(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(format!("{line}\n").as_bytes());
        }
    }
}

/// A process that the launcher gave up on must not run on.
impl Drop for Node {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

/// Returns a copy of this program.
fn here(start: &Start<'_>) -> Command {
    let mut command = Command::new(start.program);
    command.args(start.words).envs(start.variables.iter().map(|(name, value)| (name, value)));
    command.env("ADAPM_TOKEN", start.secret.text()).env_remove("ADAPM_TOKEN_FILE");
    command
}

/// Returns a program on another host. The secret is on no command line, where all users could read
/// it.
fn there(start: &Start<'_>, host: &str) -> Command {
    let ssh =
        std::env::var_os("ADAPM_SSH").filter(|ssh| !ssh.is_empty()).unwrap_or_else(|| "ssh".into());
    let mut parts =
        ssh.as_bytes().split(|byte| byte.is_ascii_whitespace()).filter(|part| !part.is_empty());
    let mut command = Command::new(OsStr::from_bytes(parts.next().unwrap_or(b"ssh")));
    command.args(parts.map(OsStr::from_bytes));
    command.args(["-T", "-o", "BatchMode=yes", "--", host]);
    command.arg(OsString::from_vec(remote_line(start)));
    command
}

/// Builds the line for the shell of the other host: in the same folder, if it is there too, so that
/// relative names mean the same.
fn remote_line(start: &Start<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    if let Ok(folder) = std::env::current_dir() {
        line.extend_from_slice(b"cd ");
        line.extend(quoted(folder.as_os_str()));
        line.extend_from_slice(b" 2>/dev/null; ");
    }
    line.extend_from_slice(b"exec env ADAPM_TOKEN_STDIN=1");
    for (name, value) in &start.variables {
        line.extend_from_slice(format!(" {name}=").as_bytes());
        line.extend(quoted(value));
    }
    for word in [start.program].into_iter().chain(start.words.iter().map(OsString::as_os_str)) {
        line.push(b' ');
        line.extend(quoted(word));
    }
    line
}

/// Returns a word as a POSIX shell reads it back.
fn quoted(word: &OsStr) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(byte);
    let bytes = word.as_bytes();
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return bytes.to_vec();
    }
    let mut quoted = vec![b'\''];
    for byte in bytes {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// A secret as text; never printed.
pub(super) struct Secret(String);

impl Secret {
    /// 32 random bytes in hexadecimal.
    pub(super) fn fresh() -> io::Result<Self> {
        Token::fresh_text().map(Self)
    }

    /// Returns a secret that was given.
    pub(super) fn of(text: String) -> Self {
        Self(text)
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A folder that only this user can enter; removed with all that is in it.
#[derive(Debug)]
pub(super) struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// Makes one among the temporary files.
    pub(super) fn new() -> io::Result<Self> {
        let mut name = Token::fresh_text()?;
        name.truncate(16);
        let path = std::env::temp_dir().join(format!("adapm-{name}"));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // What is left is a small file among temporary ones.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn words_survive_a_shell() {
        let words =
            ["a", "", "a b", "it's", "$HOME", "x;y", "`id`", "\\", "\"", "*", "-n", "a\nb", "é"];
        let line: Vec<Vec<u8>> = words.iter().map(|word| quoted(OsStr::new(word))).collect();
        let script = format!("printf '%s\\0' {}", String::from_utf8_lossy(&line.join(&b' ')));
        let output = Command::new("sh").args(["-c", &script]).output().expect("sh runs");
        let read = String::from_utf8(output.stdout).expect("text");
        assert_eq!(read.split_terminator('\0').collect::<Vec<_>>(), words);
    }

    #[test]
    fn no_command_line_holds_the_secret() {
        let secret = Secret::fresh().expect("the system gives random bytes");
        let variables = vec![("ADAPM_NODE", OsString::from("1"))];
        let words = [OsString::from("train"), OsString::from("kge")];
        let start = Start {
            host: Some("ann"),
            program: OsStr::new("adapm"),
            words: &words,
            variables,
            secret: &secret,
        };
        let line = String::from_utf8(remote_line(&start)).expect("text");
        assert!(
            line.ends_with("; exec env ADAPM_TOKEN_STDIN=1 ADAPM_NODE=1 adapm train kge"),
            "{line}"
        );
        assert!(!line.contains(secret.text()), "{line}");
    }

    #[test]
    fn a_private_folder_is_private_and_goes_away() {
        let folder = PrivateFolder::new().expect("a folder can be made");
        let path = folder.path().to_owned();
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::write(path.join("rendezvous"), "x").expect("it can be written to");
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn no_two_secrets_are_alike_and_none_is_shown() {
        let (one, two) =
            (Secret::fresh().expect("random bytes"), Secret::fresh().expect("random bytes"));
        assert_ne!(one.text(), two.text());
        assert_eq!(one.text().len(), 64);
        assert!(!format!("{one:?}").contains(one.text()));
    }
}

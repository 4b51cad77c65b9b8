//! Runs the binary, with a bound on how long it may take, and folders for its files.

use std::env;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use adapm_verify::silence::Silence;

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Returns the binary, not yet started, without the variables of the tests' environment.
pub(crate) fn adapm(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_adapm"));
    command.args(args).env_clear();
    command.envs(KEPT.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    // What is looked for is not broken between words.
    command.env("COLUMNS", "1000");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs to the end. Panics if nothing more is printed for too long.
pub(crate) fn run(args: &[&str]) -> Ran {
    finish(adapm(args).spawn().expect("the binary starts"))
}

/// Waits for the end of a run and collects what is left of its output.
pub(crate) fn finish(mut child: Child) -> Ran {
    // What is printed to either is a sign of life for both.
    let heard = Arc::default();
    let stdout = child.stdout.take().map(|stream| Collected::of(stream, &heard));
    let stderr = child.stderr.take().map(|stream| Collected::of(stream, &heard));
    let mut text = |stream: Option<Collected>| match stream.map(Collected::text) {
        Some(Some(text)) => text,
        None => String::new(),
        Some(None) => {
            child.kill().expect("a hanging child can be ended");
            panic!("the binary hangs");
        }
    };
    let (stdout, stderr) = (text(stdout), text(stderr));
    let code = child.wait().expect("a child can be waited for").code();
    Ran { code, stdout, stderr }
}

/// Checks that a run was refused in one line that holds all of `words`.
#[track_caller]
pub(crate) fn assert_refused(ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(ran.stdout, "", "{ran:?}");
    let line = ran.stderr.strip_suffix('\n').unwrap_or(&ran.stderr);
    assert!(line.starts_with("error: ") && !line.contains('\n'), "{ran:?}");
    for word in words {
        assert!(line.contains(word), "no {word:?} in {line}");
    }
}

/// Returns an empty folder of this name for the files of one test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an old folder can be removed");
    }
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// Writes a graph of 42 training facts that trains in an instant: a ring of 24 entities, walked in
/// both directions.
pub(crate) fn ring(folder: &Path) {
    let fact = |from: usize, relation: &str, to: usize| {
        format!("e{}\t{relation}\te{}\n", from % 24, to % 24)
    };
    let next = |range: std::ops::Range<usize>| {
        range.map(|at| fact(at, "next", at + 1)).collect::<String>()
    };
    let previous = |range: std::ops::Range<usize>| {
        range.map(|at| fact(at + 1, "previous", at)).collect::<String>()
    };
    write(folder, "train.txt", &(next(0..24) + &previous(0..18)));
    write(folder, "valid.txt", &previous(18..21));
    write(folder, "test.txt", &previous(21..24));
}

/// Writes one file.
pub(crate) fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("a file can be written");
}

/// Returns a path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("the target folder has a name in UTF-8")
}

/// Reads a stream to its end in the background.
pub(crate) fn collect(stream: impl Read + Send + 'static) -> Collected {
    Collected::of(stream, &Arc::default())
}

/// A stream that is read in the background.
pub(crate) struct Collected {
    heard: Arc<AtomicUsize>,
    text: mpsc::Receiver<String>,
}

impl Collected {
    /// Adds each piece that comes to the bytes `heard`.
    fn of(mut stream: impl Read + Send + 'static, heard: &Arc<AtomicUsize>) -> Self {
        let (sender, text) = mpsc::channel();
        let count = Arc::clone(heard);
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut piece = [0; 4_096];
            while let Ok(len @ 1..) = stream.read(&mut piece) {
                bytes.extend_from_slice(&piece[..len]);
                count.fetch_add(len, Ordering::Relaxed);
            }
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
        Self { heard: Arc::clone(heard), text }
    }

    /// Waits for the end of the stream; `None` if nothing comes for too long.
    pub(crate) fn text(self) -> Option<String> {
        let mut silence = Silence::new();
        loop {
            let left = silence.left(self.heard.load(Ordering::Relaxed))?;
            if let Ok(text) = self.text.recv_timeout(left) {
                return Some(text);
            }
        }
    }
}

/// The environment variables of the tests that the binary sees: none that say where data is, what
/// started a process or how screens look.
const KEPT: [&str; 6] =
    ["PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "LLVM_PROFILE_FILE", "RUST_BACKTRACE"];

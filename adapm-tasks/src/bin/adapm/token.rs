//! The secret that the processes of a cluster share: where it comes from, and who else may read that.
//!
//! In this order: `--token-file`, `ADAPM_TOKEN`, `ADAPM_TOKEN_FILE`, and with `ADAPM_TOKEN_STDIN` the first line of stdin. Never a
//! command line: everybody on the host can read it.

use std::fmt;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use adapm_tasks::files;
use adapm_transport::net::{Token, TokenLength};

use crate::launched;
use crate::launcher::Environment;

/// Why a secret cannot be used.
#[derive(Debug)]
pub(crate) enum TokenError {
    /// The file cannot be read.
    Unreadable { origin: &'static str, path: PathBuf, error: io::Error },
    /// Others may read or write the file; its permissions.
    Shared { path: PathBuf, mode: u32 },
    /// What holds the secret, and how many bytes that has.
    Length { origin: String, bytes: usize },
    /// Nothing came on stdin.
    NoLine,
}

/// The secret of this process; none is set if it is `None`.
pub(crate) fn find(flag: Option<&Path>, environment: &Environment<'_>) -> Result<Option<Token>, TokenError> {
    if let Some(path) = flag {
        return token(&path.display().to_string(), &read_text("--token-file", path)?);
    }
    if let Some(text) = environment.text("ADAPM_TOKEN") {
        return token("ADAPM_TOKEN", &text);
    }
    if let Some(path) = environment.text("ADAPM_TOKEN_FILE") {
        return token(&path, &read_text("ADAPM_TOKEN_FILE", Path::new(&path))?);
    }
    if environment.has("ADAPM_TOKEN_STDIN") {
        let line = launched::read_line().ok_or(TokenError::NoLine)?;
        return token("ADAPM_TOKEN_STDIN", line.trim());
    }
    Ok(None)
}

fn token(origin: &str, text: &str) -> Result<Option<Token>, TokenError> {
    let wrong = |length: TokenLength| TokenError::Length { origin: origin.to_owned(), bytes: length.bytes };
    Token::new(text.as_bytes()).map(Some).map_err(wrong)
}

/// The secret in the file at `path`, without white space around it. `origin` is the flag or variable that names the file.
pub(crate) fn read_text(origin: &'static str, path: &Path) -> Result<String, TokenError> {
    let unreadable = |error| TokenError::Unreadable { origin, path: path.to_owned(), error };
    let file = files::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_file() && metadata.mode() & OTHERS != 0 {
        return Err(TokenError::Shared { path: path.to_owned(), mode: metadata.mode() & 0o777 });
    }
    let mut text = String::new();
    file.take(FILE_MAX).read_to_string(&mut text).map_err(unreadable)?;
    let text = text.trim().to_owned();
    token(&path.display().to_string(), &text).map(|_| text)
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { origin, path, error } => {
                write!(f, "cannot read the secret in {} ({origin}): {error}", path.display())
            }
            Self::Shared { path, mode } => {
                let path = path.display();
                write!(f, "others may read the secret in {path} (mode {mode:o}): run chmod 600 {path}")
            }
            Self::Length { origin, bytes } => write!(
                f,
                "the secret in {origin} has {bytes} bytes: give {} to {}, as `openssl rand -hex 32` makes them",
                Token::BYTES_MIN,
                Token::BYTES_MAX,
            ),
            Self::NoLine => f.write_str("ADAPM_TOKEN_STDIN is set, but stdin holds no line with the secret"),
        }
    }
}

/// Permissions of all but the owner.
const OTHERS: u32 = 0o077;

/// Enough to see that a file is too long.
const FILE_MAX: u64 = 4096;

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions, Permissions};
    use std::io::Write as _;
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

    use super::*;

    /// The secret read from a file with these permissions.
    fn read(name: &str, mode: u32, text: &[u8]) -> Result<String, String> {
        let path = std::env::temp_dir().join(format!("adapm-token-{}-{name}", std::process::id()));
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).expect("a new file");
        file.write_all(text).expect("it can be written to");
        // Not when it is made: the system leaves out what the user's mask forbids.
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
        let read = read_text("--token-file", &path).map_err(|error| error.to_string());
        fs::remove_file(&path).expect("it can be removed");
        read
    }

    #[test]
    fn a_secret_is_read_without_what_is_around_it() {
        let secret = "0123456789abcdef0123456789abcdef";
        assert_eq!(read("good", 0o600, format!(" {secret}\n").as_bytes()).as_deref(), Ok(secret));
        assert_eq!(read("strict", 0o400, secret.as_bytes()).as_deref(), Ok(secret));
    }

    #[test]
    fn a_file_that_others_may_read_says_how_to_change_that() {
        for mode in [0o640, 0o604, 0o620] {
            let error = read(&format!("{mode:o}"), mode, &[b'x'; 64]).expect_err("it is shared");
            assert!(error.contains(&format!("(mode {mode:o}): run chmod 600 ")), "{error}");
        }
    }

    #[test]
    fn variables_hold_a_secret_or_name_its_file() {
        let secret = "0123456789abcdef0123456789abcdef";
        let find = |name: &'static str, value: &'static str| {
            let variable = |asked: &str| (asked == name).then(|| value.to_owned());
            let found = find(None, &Environment::new(&variable, None));
            found.map(|token| token.is_some()).map_err(|error| error.to_string())
        };
        assert_eq!(find("ADAPM_TOKEN", secret), Ok(true));
        assert_eq!(find("PATH", secret), Ok(false));
        assert!(find("ADAPM_TOKEN", "hush").expect_err("short").contains("in ADAPM_TOKEN has 4 bytes"));
        let missing = find("ADAPM_TOKEN_FILE", "no/such/file").expect_err("there is none");
        assert!(missing.contains("no/such/file (ADAPM_TOKEN_FILE)"), "{missing}");
    }

    #[test]
    fn secrets_of_a_wrong_length_and_files_that_hold_none_are_refused() {
        assert!(read("short", 0o600, b"hush\n").expect_err("short").contains("has 4 bytes: give 32 to 1024"));
        assert!(read("long", 0o600, &[b'x'; 5000]).expect_err("long").contains("has 4096 bytes"));
        assert!(read("binary", 0o600, &[0xff; 64]).expect_err("no text").contains("cannot read the secret"));
        let missing =
            read_text("--token-file", Path::new("no/such/file")).expect_err("there is none").to_string();
        assert!(missing.contains("cannot read the secret in no/such/file (--token-file)"), "{missing}");
    }
}

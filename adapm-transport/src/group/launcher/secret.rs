//! The secret that the processes of a run share: its origin, and who else may read it.
//!
//! In this order: a flag that names a file, `ADAPM_TOKEN`, `ADAPM_TOKEN_FILE`. Never a command
//! line, which every user of the host can read.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{getegid, getgroups};

use super::environment::Environment;
use crate::error::SystemError;
use crate::net::{Token, WeakToken};

/// Errors of a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read the secret in {} ({origin}): {}", path.display(), unread(path, *error))]
    Unreadable {
        /// The flag or variable that names the file.
        origin: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: SystemError,
    },
    /// Others may read or write the file.
    #[error(
        "others may read the secret in {file} (mode {mode:o}): run chmod 600 {file}", file = path.display()
    )]
    Shared {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A text that is too weak for a secret.
    #[error("the secret in {origin} {}", weakness(*fault))]
    Weak {
        /// The file or variable that holds it.
        origin: String,
        /// The weakness.
        fault: WeakToken,
    },
}

/// Finds the secret of this process: in the file of its flag `--token-file`, else by variables;
/// `None` if neither is set.
///
/// # Errors
/// Files that cannot be read or that others may read, and secrets that can be guessed.
pub fn token(
    file: Option<&Path>,
    environment: &Environment<'_>,
) -> Result<Option<Token>, SecretError> {
    if let Some(path) = file {
        return token_of(&path.display().to_string(), &read_secret("--token-file", path)?)
            .map(Some);
    }
    if let Some(text) = environment.text("ADAPM_TOKEN") {
        return token_of("ADAPM_TOKEN", &text).map(Some);
    }
    if let Some(path) = environment.text("ADAPM_TOKEN_FILE") {
        return token_of(&path, &read_secret("ADAPM_TOKEN_FILE", Path::new(&path))?).map(Some);
    }
    Ok(None)
}

/// Makes a token of the secret in `origin`.
///
/// # Errors
/// If it can be guessed.
pub fn token_of(origin: &str, text: &str) -> Result<Token, SecretError> {
    let weak = |fault| SecretError::Weak { origin: origin.to_owned(), fault };
    Token::new(text.as_bytes()).map_err(weak)
}

/// Reads the secret in the file at `path`, without white space around it. `origin` is the flag or
/// variable that names the file.
///
/// # Errors
/// A file that cannot be read or that others may read, and a secret that can be guessed.
pub fn read_secret(origin: &'static str, path: &Path) -> Result<String, SecretError> {
    let unreadable = |error: io::Error| SecretError::Unreadable {
        origin,
        path: path.to_owned(),
        error: error.into(),
    };
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let mode = metadata.mode() & 0o777;
    if metadata.is_file() && !is_private(mode, is_own_group(metadata.gid())) {
        return Err(SecretError::Shared { path: path.to_owned(), mode });
    }
    let mut text = String::new();
    file.take(FILE_MAX).read_to_string(&mut text).map_err(unreadable)?;
    let text = text.trim().to_owned();
    token_of(&path.display().to_string(), &text).map(|_| text)
}

fn unread(path: &Path, error: SystemError) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        return format!("no such file; create it with: adapm token {}", path.display());
    }
    error.reason()
}

fn weakness(fault: WeakToken) -> String {
    match fault {
        WeakToken::Length { bytes } => format!(
            "has {bytes} bytes: give {} to {}, as `adapm token FILE` makes them",
            Token::BYTES_MIN,
            Token::BYTES_MAX
        ),
        WeakToken::Repeats { different } => format!(
            "can be guessed, it is made of {different} different characters: take one that `adapm token FILE` makes"
        ),
    }
}

/// Returns true if a file with these permissions may hold a secret. A read-only file that a group
/// can read was made so on purpose, as orchestrators do: it is private if the process is of that
/// group.
fn is_private(mode: u32, is_own_group: bool) -> bool {
    mode & OTHERS == 0 || mode == GROUP_READS && is_own_group
}

fn is_own_group(group: u32) -> bool {
    let more = getgroups().unwrap_or_default();
    more.into_iter().chain([getegid()]).any(|own| own.as_raw() == group)
}

/// Permissions of all but the owner.
const OTHERS: u32 = 0o077;

/// Owner and group may read.
const GROUP_READS: u32 = 0o440;

/// Enough to see that a file is too long.
const FILE_MAX: u64 = 4096;

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions, Permissions};
    use std::io::Write as _;
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

    use super::*;

    /// Reads the secret from a file with these permissions.
    fn read(name: &str, mode: u32, text: &[u8]) -> Result<String, String> {
        let path = std::env::temp_dir().join(format!("adapm-token-{}-{name}", std::process::id()));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .expect("a new file");
        file.write_all(text).expect("it can be written to");
        // Not at its creation, when the user's mask removes permissions.
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
        let read = read_secret("--token-file", &path).map_err(|error| error.to_string());
        fs::remove_file(&path).expect("it can be removed");
        read
    }

    #[test]
    fn a_secret_is_read_without_what_is_around_it() {
        let secret = "0123456789abcdef0123456789abcdef";
        assert_eq!(read("good", 0o600, format!(" {secret}\n").as_bytes()).as_deref(), Ok(secret));
        assert_eq!(read("strict", 0o400, secret.as_bytes()).as_deref(), Ok(secret));
        // The group of a new file is the process's.
        assert_eq!(read("group", 0o440, secret.as_bytes()).as_deref(), Ok(secret));
    }

    #[test]
    fn only_the_group_of_the_process_may_read_a_secret_and_nobody_else_write_it() {
        assert!(is_private(0o440, true) && is_private(0o600, false));
        assert!(!is_private(0o440, false));
        for mode in [0o640, 0o460, 0o444, 0o040, 0o004] {
            assert!(!is_private(mode, true), "{mode:o}");
        }
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
            let found = token(None, &Environment::new(&variable, None));
            found.map(|token| token.is_some()).map_err(|error| error.to_string())
        };
        assert_eq!(find("ADAPM_TOKEN", secret), Ok(true));
        assert_eq!(find("PATH", secret), Ok(false));
        assert!(
            find("ADAPM_TOKEN", "hush").expect_err("short").contains("in ADAPM_TOKEN has 4 bytes")
        );
        let missing = find("ADAPM_TOKEN_FILE", "no/such/file").expect_err("there is none");
        assert!(missing.contains("no/such/file (ADAPM_TOKEN_FILE)"), "{missing}");
    }

    #[test]
    fn weak_secrets_and_files_that_hold_none_are_refused() {
        assert!(
            read("short", 0o600, b"hush\n")
                .expect_err("short")
                .contains("has 4 bytes: give 32 to 1024")
        );
        assert!(read("long", 0o600, &[b'x'; 5000]).expect_err("long").contains("has 4096 bytes"));
        let weak = read("weak", 0o600, "password".repeat(8).as_bytes()).expect_err("it repeats");
        assert!(
            weak.contains("made of 7 different characters: take one that `adapm token FILE` makes"),
            "{weak}"
        );
        assert!(
            read("binary", 0o600, &[0xff; 64])
                .expect_err("no text")
                .contains("cannot read the secret")
        );
        let missing = read_secret("--token-file", Path::new("no/such/file"))
            .expect_err("there is none")
            .to_string();
        assert!(
            missing.contains("cannot read the secret in no/such/file (--token-file)"),
            "{missing}"
        );
    }
}

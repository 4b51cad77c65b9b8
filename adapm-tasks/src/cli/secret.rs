//! The secret that the processes of a cluster share: where it comes from.
//!
//! From where every program has it ([`launcher::token`]), and with `ADAPM_TOKEN_STDIN` from the
//! first line of stdin.

use std::io;
use std::path::{Path, PathBuf};

use crate::files;
use adapm_transport::group::launcher::{self, Environment, SecretError};
use adapm_transport::net::Token;

use crate::cli::launched;

/// An error of finding the secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    /// It cannot be read, or is none.
    #[error("{0}")]
    Secret(#[from] SecretError),
    /// No file with a secret can be made there.
    #[error("{}", unwritable(path, error))]
    Unwritable { path: PathBuf, error: io::Error },
    /// Nothing came on stdin.
    #[error("ADAPM_TOKEN_STDIN is set, but stdin holds no line with the secret")]
    NoLine,
}

/// Returns the secret of this process; none is set if it is `None`.
pub(crate) fn find(
    flag: Option<&Path>,
    environment: &Environment<'_>,
) -> Result<Option<Token>, TokenError> {
    let file = flag
        .map(Path::to_owned)
        .or_else(|| environment.text("ADAPM_TOKEN_FILE").map(PathBuf::from));
    if let Some(path) = file {
        // Notes that it is an input, which no output may replace; errors of reading it are reported
        // below.
        let _ = files::open(&path);
    }
    match launcher::token(flag, environment)? {
        None if environment.has("ADAPM_TOKEN_STDIN") => {
            let line = launched::read_line().ok_or(TokenError::NoLine)?;
            Ok(Some(launcher::token_of("ADAPM_TOKEN_STDIN", line.trim())?))
        }
        token => Ok(token),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("{path} is there already: name another file, or remove it if no run needs it")
        }
        _ => format!("cannot make a secret in {path}: {}", files::reason(error)),
    }
}

//! The secret that the processes of a cluster share: the verb `token`, which makes one, and where
//! it comes from.
//!
//! From where every program has it ([`launcher::token`]), and with `ADAPM_TOKEN_STDIN` from the
//! first line of stdin.

use std::io;
use std::path::{Path, PathBuf};

use adapm_tasks::files;
use adapm_transport::group::launcher::{self, Environment, SecretError};
use adapm_transport::net::Token;

use crate::args::TokenArgs;
use crate::failure::Failure;
use crate::format;
use crate::launched;
use crate::output::Output;

/// Why a secret cannot be used.
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

/// The verb `token`: makes a file with a secret.
pub(crate) fn run(args: &TokenArgs) -> Result<(), Failure> {
    let unwritable = |error| TokenError::Unwritable { path: args.file.clone(), error };
    let text = Token::fresh_text().map_err(unwritable)?;
    files::create_private(&args.file, &format!("{text}\n")).map_err(unwritable)?;
    let file = args.file.display();
    let output = Output::new(false);
    let text = format!(
        "wrote a secret to {file}, which only you can read: copy it to every host (scp -p) and start each process with \
         --token-file {file}"
    );
    output.text(&format!("{}\n", format::wrapped(&text, output.width())))
}

/// The secret of this process; none is set if it is `None`.
pub(crate) fn find(
    flag: Option<&Path>,
    environment: &Environment<'_>,
) -> Result<Option<Token>, TokenError> {
    let file = flag
        .map(Path::to_owned)
        .or_else(|| environment.text("ADAPM_TOKEN_FILE").map(PathBuf::from));
    if let Some(path) = file {
        // Notes that it is an input, which nothing written may replace; whether it can be read is
        // told below.
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

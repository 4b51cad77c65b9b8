//! The verb `token`: makes the secret that the processes of a cluster share.

use crate::files;
use adapm_transport::net::Token;

use crate::cli::args::TokenArgs;
use crate::cli::failure::Failure;
use crate::cli::format;
use crate::cli::output::Output;
use crate::cli::secret::TokenError;

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

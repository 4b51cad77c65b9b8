//! The other processes of a run: whether there are any, and how this one joins them.

use crate::args::ProcessArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::launched;
use crate::launcher::{self, Asked, Environment, LauncherError, Placement};
use crate::token;

/// Finds out whether this process is one of several, and follows its launcher.
pub(crate) fn place(
    args: &ProcessArgs,
    nodes: Option<usize>,
    interrupt: &Interrupt,
) -> Result<(Placement, Option<String>), Failure> {
    let asked = Asked { node: args.node, nodes, rendezvous: args.rendezvous.clone() };
    let environment = Environment::new(&launcher::process_variable, launcher::process_parent());
    let placement = launcher::place(&asked, &environment)?;
    // Before the launcher is followed: a secret may come as the first line of what it says.
    let token = token::find(args.token_file.as_deref(), &environment)?;
    launched::follow(interrupt, dead_after(args, &environment)?)?;
    Ok((placement, token))
}

/// The time after which a node counts as lost.
fn dead_after(
    args: &ProcessArgs,
    environment: &Environment<'_>,
) -> Result<std::time::Duration, LauncherError> {
    match (args.dead_after, environment.text("ADAPM_DEAD_AFTER")) {
        (Some(flag), _) => Ok(flag),
        (None, None) => Ok(crate::launch::DEAD_AFTER),
        (None, Some(value)) => crate::args::seconds(&value)
            .map_err(|_| LauncherError::NotANumber { name: "ADAPM_DEAD_AFTER", value }),
    }
}

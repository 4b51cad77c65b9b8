//! torchrun and what sets the same variables (PyTorch's Kubernetes operator, hand-written scripts).
//!
//! torchrun's own store listens on `MASTER_PORT`, so the nodes meet on the port after it.

use super::environment::Environment;
use super::error::LauncherError;
use super::found::{Found, Sourced};
use super::meeting::join_host;
use crate::group::config::Rendezvous;

/// `RANK` is the sign: `WORLD_SIZE` and `MASTER_ADDR` are exported by scripts for what they start,
/// whoever starts it.
pub(super) fn find(environment: &Environment<'_>) -> Result<Option<Found>, LauncherError> {
    let Some(node) = environment.sourced_number("RANK")? else { return Ok(None) };
    let Some(nodes) = environment.sourced_number("WORLD_SIZE")? else {
        return Err(LauncherError::HalfSet { launcher: LAUNCHER, present: "RANK", missing: "WORLD_SIZE" });
    };
    let one_host = environment.number("LOCAL_WORLD_SIZE")? == Some(nodes.value);
    Ok(Some(Found {
        launcher: LAUNCHER,
        node: Some(node),
        nodes: Some(nodes),
        rendezvous: rendezvous(environment, one_host)?,
        job: environment.text("TORCHELASTIC_RUN_ID").filter(|id| id != "none"),
        ..Found::default()
    }))
}

/// Complains of what a script exports for ranks that nobody numbers. Called once no launcher was
/// found.
pub(super) fn refuse_half(environment: &Environment<'_>) -> Result<Option<Found>, LauncherError> {
    let several = environment.number("WORLD_SIZE")?.is_some_and(|nodes| nodes > 1);
    if several && environment.has("MASTER_ADDR") {
        return Err(LauncherError::HalfSet { launcher: LAUNCHER, present: "WORLD_SIZE", missing: "RANK" });
    }
    Ok(None)
}

fn rendezvous(
    environment: &Environment<'_>,
    one_host: bool,
) -> Result<Option<Sourced<Rendezvous>>, LauncherError> {
    let Some(host) = environment.text("MASTER_ADDR") else { return Ok(None) };
    let Some(value) = environment.text("MASTER_PORT") else {
        return Err(LauncherError::HalfSet {
            launcher: LAUNCHER,
            present: "MASTER_ADDR",
            missing: "MASTER_PORT",
        });
    };
    let port = value.parse::<u16>().ok().filter(|port| *port > 0).and_then(|port| port.checked_add(1));
    let Some(port) = port else { return Err(LauncherError::Port { name: "MASTER_PORT", value }) };
    // On one host the name of the host would be an address that others can reach, for nothing.
    let host = if one_host { "127.0.0.1" } else { &host };
    let value = Rendezvous::Address(join_host(host, port));
    Ok(Some(Sourced { value, origin: "MASTER_ADDR and MASTER_PORT + 1" }))
}

const LAUNCHER: &str = "torchrun";

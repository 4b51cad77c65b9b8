//! A cluster over a transport of your own: the one of `plug-in/transport`, channels of the standard
//! library, which passes `adapm_verify::transport_suite!`. Copy that folder to write yours.
//! `cargo run -p adapm-runtime --example custom_transport`

use adapm_runtime::prelude::*;

/// A crate of its own, as yours would be.
#[allow(unreachable_pub, reason = "it is a crate of its own")]
#[path = "plug-in/transport/src/lib.rs"]
mod plug_in_transport;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nodes = Nodes::over(3, |_channel, nodes| plug_in_transport::network(nodes));
    let cluster = Builder::<i64>::new(Layout::dense(&[(100, 1)])?).nodes(nodes).build()?;
    cluster.try_run(|mut worker| worker.push(&[Key(1)], &[1]))?;
    println!("{} messages through channels", cluster.stats().messages_sent);
    Ok(())
}

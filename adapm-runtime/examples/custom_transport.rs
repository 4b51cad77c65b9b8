//! A transport of your own: here a channel of the standard library per node, which carries frames
//! and wake-ups. Test a new transport with `adapm_verify::transport_suite!`. `cargo run -p
//! adapm-runtime --example custom_transport`

use std::convert::Infallible;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use adapm_core::transport::{Frame, Received, SendError, Transport, Wake};
use adapm_runtime::prelude::*;

type Post = (Received, Frame);

struct Endpoint {
    node: NodeId,
    inbox: Receiver<Post>,
    peers: Vec<Sender<Post>>,
}

#[derive(Clone)]
struct Waker(Sender<Post>);

impl Wake for Waker {
    fn wake(&self) {
        self.0.send((Received::Woken, Frame::default())).ok();
    }
}

impl Transport for Endpoint {
    type Error = Infallible;
    type Waker = Waker;

    fn send(&mut self, to: NodeId, frame: &mut Frame) -> Result<(), SendError<Infallible>> {
        self.peers[to.index()].send((Received::Frame(self.node), std::mem::take(frame))).ok();
        Ok(())
    }

    fn recv(&mut self, wait: Option<Duration>, frame: &mut Frame) -> Result<Received, Infallible> {
        let nothing = (Received::TimedOut, Frame::default());
        let (received, content) =
            self.inbox.recv_timeout(wait.unwrap_or(Duration::MAX)).unwrap_or(nothing);
        *frame = content;
        Ok(received)
    }

    fn waker(&self) -> Waker {
        Waker(self.peers[self.node.index()].clone())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nodes = Nodes::over(3, |_channel, nodes| {
        let (peers, inboxes): (Vec<_>, Vec<_>) = (0..nodes).map(|_| mpsc::channel()).unzip();
        let ends = (0..).map(NodeId).zip(inboxes);
        ends.map(|(node, inbox)| Endpoint { node, inbox, peers: peers.clone() }).collect()
    });
    let cluster = Builder::<i64>::new(Layout::dense(&[(100, 1)])?).nodes(nodes).build()?;
    cluster.try_run(|mut worker| worker.push(&[Key(1)], &[1]))?;
    println!("{} messages through channels", cluster.stats().messages_sent);
    Ok(())
}

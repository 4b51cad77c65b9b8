//! A connector that dials and accepts ZeroMQ connections for one endpoint.

use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::net::{TcpStream, UnixListener};
use tokio::runtime::Handle;
use zeromq::util::PeerIdentity;
use zeromq::{DealerRecvHalf, DealerSocket, Socket, SocketOptions, SocketRecv};

use super::router::{Home, RouterListener};
use super::{pipe_io, relay};
use crate::net::address::Address;
use crate::net::notifier::Notifier;
use crate::net::packet::Fault;
use crate::net::pipe::Connector;
use crate::net::queued::{PipeTask, QueuedPipe, queued_pipe};
use crate::tokio::{ended, started, unless};

/// A connector that carries the pipes of one endpoint over ZeroMQ.
#[derive(Debug)]
pub(crate) struct ZmqConnector {
    runtime: Handle,
    notifier: Arc<Notifier>,
    home: Arc<Home>,
    router: Option<RouterListener>,
    /// A unique prefix of names.
    incarnation: [u8; 16],
    attempts: u64,
}

impl ZmqConnector {
    /// Creates a connector that dials, and listens at `bind` if given.
    ///
    /// # Errors
    /// If the system refuses a runtime, a directory for sockets, or to listen.
    pub(crate) fn new(bind: Option<SocketAddr>, notifier: Arc<Notifier>) -> io::Result<Self> {
        let runtime = started(&RUNTIME, "adapm-zmq")?;
        let mut incarnation = [0; 16];
        getrandom::fill(&mut incarnation).map_err(io::Error::other)?;
        let home = Arc::new(Home::new()?);
        let router =
            bind.map(|bind| RouterListener::open(&runtime, &notifier, &home, bind)).transpose();
        let router = router.inspect_err(|_| home.remove())?;
        Ok(Self { runtime, notifier, home, router, incarnation, attempts: 0 })
    }

    /// Returns a unique, unguessable name.
    fn next_name(&mut self) -> Bytes {
        self.attempts += 1;
        // Names that begin with a zero are reserved by ZeroMQ.
        [b"adapm ".as_slice(), &self.incarnation, &self.attempts.to_be_bytes()].concat().into()
    }
}

impl Connector for ZmqConnector {
    fn address(&self) -> Option<Address> {
        self.router.as_ref().map(|router| Address::Zmq(router.address()))
    }

    fn dial(&mut self, to: &Address) -> Result<QueuedPipe, Fault> {
        let to = to.socket().ok_or(Fault::Io(io::ErrorKind::Unsupported.into()))?;
        let (pipe, task) = queued_pipe(Arc::clone(&self.notifier));
        let (name, home) = (self.next_name(), Arc::clone(&self.home));
        self.runtime.spawn(async move {
            match unless(TcpStream::connect(to), ended(&task)).await {
                Some(Ok(stream)) => {
                    if let Err(error) = serve(stream, name, &home, &task).await {
                        task.end(error.into());
                    }
                }
                Some(Err(error)) => task.end(error.into()),
                None => {}
            }
        });
        Ok(pipe)
    }

    fn accept(&mut self) -> Option<(QueuedPipe, Option<SocketAddr>)> {
        self.router.as_ref()?.take()
    }
}

impl Drop for ZmqConnector {
    fn drop(&mut self) {
        // Tasks may outlive the connector, and the process may end before they do.
        self.home.remove();
    }
}

/// Relays a connection to a DEALER socket until the connection ends.
async fn serve(stream: TcpStream, name: Bytes, home: &Home, task: &PipeTask) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let path = home.socket();
    let inner = UnixListener::bind(&path)?;
    let relaying = task.clone();
    tokio::spawn(async move {
        match inner.accept().await {
            Ok((inner, _)) => relay::run(stream, inner, &relaying, |_| Ok(())).await,
            Err(error) => relaying.end(error.into()),
        }
    });
    let mut options = SocketOptions::default();
    options.peer_identity(PeerIdentity::try_from(name).map_err(io::Error::other)?);
    options.connect_timeout(CONNECT_TIME);
    let mut dealer = DealerSocket::with_options(options);
    let connected = dealer.connect(&format!("ipc://{}", path.display())).await;
    // Missing if the endpoint is gone.
    let _ = std::fs::remove_file(&path);
    if connected.is_err() {
        // The relay has seen any fault before: its reason counts, if there is one.
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    let (mut sending, receiving) = dealer.split();
    let receiving = tokio::spawn(receive(receiving, task.clone()));
    pipe_io::send_all(task, &mut sending, None).await;
    receiving.abort();
    Ok(())
}

async fn receive(mut socket: DealerRecvHalf, task: PipeTask) {
    // The relay notices the end of the connection: the socket would wait forever.
    while let Ok(message) = socket.recv().await {
        pipe_io::deliver(&task, &message.into_vec());
        tokio::task::consume_budget().await;
    }
}

/// Longer than the time that the relay gives a connection to introduce itself.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// The runtime of all ZeroMQ sockets of the process, with one thread of its own.
///
/// The sockets of zeromq 0.7 keep their peers in a map whose locks some tasks await and others
/// block for. With several threads a lock can be handed to a task that waits for a thread while
/// every thread blocks for that lock: when many connections broke at once, the process deadlocked.
/// On one thread no lock is ever contended, as none is kept across an await while there is room in
/// the socket's queue, which the credit guarantees. So a runtime lent by the program is not used.
static RUNTIME: Mutex<Option<Handle>> = Mutex::new(None);

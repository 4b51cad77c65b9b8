//! The listening side: one ROUTER, and in front of it all connections that have dialed; and the
//! directory for the sockets of both sides.

use core::net::SocketAddr;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, process};

use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use zeromq::util::PeerIdentity;
use zeromq::{MultiPeerBackend, RouterRecvHalf, RouterSendHalf, RouterSocket, Socket, SocketRecv};

use super::{pipe_io, relay};
use crate::net::notifier::Notifier;
use crate::net::packet::Fault;
use crate::net::queued::{PipeTask, QueuedPipe, queued_pipe};
use crate::tcp::private_folder;
use crate::tokio::{Door, WAITING_MAX, listen, next_connection};

/// The listener of one endpoint. Dropping it closes the listener; pipes end by themselves.
#[derive(Debug)]
pub(super) struct RouterListener {
    address: SocketAddr,
    door: Arc<Door>,
    task: AbortHandle,
}

/// State shared by the tasks of a router.
struct RouterState {
    notifier: Arc<Notifier>,
    door: Arc<Door>,
    /// Peers that have introduced themselves, by name.
    peers: Mutex<HashMap<Bytes, PipeTask>>,
    /// Peers that have not, in the order of arrival.
    strangers: Mutex<BTreeMap<u64, AbortHandle>>,
    path: PathBuf,
}

/// A connected peer.
struct RouterPeer {
    number: u64,
    from: SocketAddr,
    shared: Arc<RouterState>,
}

/// The sending side of a ROUTER, with the shared state.
#[derive(Clone)]
struct Router {
    sending: RouterSendHalf,
    backend: Arc<dyn MultiPeerBackend>,
}

impl RouterListener {
    /// Opens a listener at `bind`.
    pub(super) fn open(
        runtime: &Handle,
        notifier: &Arc<Notifier>,
        home: &Home,
        bind: SocketAddr,
    ) -> io::Result<Self> {
        let _entered = runtime.enter();
        let listener = listen(bind)?;
        let address = listener.local_addr()?;
        let door = Arc::new(Door::new(Arc::clone(notifier)));
        let path = home.socket();
        let inner = std::os::unix::net::UnixListener::bind(&path)?;
        let shared = Arc::new(RouterState {
            notifier: Arc::clone(notifier),
            door: Arc::clone(&door),
            peers: Mutex::new(HashMap::new()),
            strangers: Mutex::default(),
            path,
        });
        let task = runtime.spawn(async move {
            let mut router = RouterSocket::new();
            // The socket refuses a listener only if the runtime does, which has taken the other
            // one.
            if router.bind_listener(zeromq::Listener::Ipc(inner)).await.is_err() {
                return;
            }
            let backend = router.backend();
            let (sending, receiving) = router.split();
            let router = Router { sending, backend };
            relay::both(receive(receiving, &shared), accept(listener, &shared, router)).await;
        });
        Ok(Self { address, door, task: task.abort_handle() })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn take(&self) -> Option<(QueuedPipe, Option<SocketAddr>)> {
        self.door.take()
    }
}

impl Drop for RouterListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn receive(mut socket: RouterRecvHalf, shared: &RouterState) {
    // Waits forever while there are no peers, and never fails.
    while let Ok(message) = socket.recv().await {
        let parts = message.into_vec();
        let Some((name, parts)) = parts.split_first() else { continue };
        let task = shared.peers().get(name).cloned();
        if let Some(task) = task {
            pipe_io::deliver(&task, parts);
        }
        tokio::task::consume_budget().await;
    }
}

async fn accept(listener: TcpListener, shared: &Arc<RouterState>, router: Router) {
    for number in 0.. {
        let Some((stream, from)) = next_connection(&listener).await else { continue };
        let peer = RouterPeer { number, from, shared: Arc::clone(shared) };
        // No task runs before this one waits again: all sockets share a thread.
        let task = tokio::spawn(welcome(stream, peer, router.clone()));
        let mut strangers = shared.strangers();
        strangers.insert(number, task.abort_handle());
        let surplus = if strangers.len() > WAITING_MAX { strangers.pop_first() } else { None };
        drop(strangers);
        if let Some((_, oldest)) = surplus {
            oldest.abort();
        }
    }
}

/// Serves one connection to its end.
async fn welcome(stream: TcpStream, peer: RouterPeer, router: Router) {
    let (shared, from) = (&peer.shared, peer.from);
    let Ok(()) = stream.set_nodelay(true) else { return };
    let Ok(inner) = UnixStream::connect(&shared.path).await else { return };
    let (pipe, task) = queued_pipe(Arc::clone(&shared.notifier));
    let (mut pipe, mut name) = (Some(pipe), None);
    let introduce = |identity: Option<&[u8]>| {
        let identity = Bytes::copy_from_slice(
            identity.filter(|identity| !identity.is_empty()).ok_or(Fault::Magic)?,
        );
        match shared.peers().entry(identity.clone()) {
            Entry::Occupied(_) => return Err(Fault::Magic),
            Entry::Vacant(vacant) => vacant.insert(task.clone()),
        };
        name = Some(identity.clone());
        shared.strangers().remove(&peer.number);
        tokio::spawn(serve(task.clone(), identity, router));
        pipe.take().into_iter().for_each(|pipe| shared.door.offer(pipe, Some(from)));
        Ok(())
    };
    relay::run(stream, inner, &task, introduce).await;
    if let Some(pipe) = pipe {
        // The endpoint reports a stranger's faults.
        shared.door.offer(pipe, Some(from));
    }
    if let Some(name) = name {
        shared.peers().remove(&name);
    }
}

/// Sends to one peer as long as there are packets, then releases it.
async fn serve(task: PipeTask, name: Bytes, mut router: Router) {
    pipe_io::send_all(&task, &mut router.sending, Some(name.clone())).await;
    if let Ok(identity) = PeerIdentity::try_from(name) {
        router.backend.peer_disconnected(&identity);
    }
}

impl Drop for RouterPeer {
    /// However the task ends, it frees its place.
    fn drop(&mut self) {
        self.shared.strangers().remove(&self.number);
    }
}

impl RouterState {
    fn strangers(&self) -> MutexGuard<'_, BTreeMap<u64, AbortHandle>> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<Bytes, PipeTask>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A directory for sockets, which exists until it is removed. A killed process leaves it behind,
/// with a socket without a listener.
#[derive(Debug)]
pub(super) struct Home {
    path: PathBuf,
    sockets: AtomicU64,
}

impl Home {
    /// Creates a directory among temporary files.
    pub(super) fn new() -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!("adapm-zmq-{}-{:016x}", process::id(), u64::from_le_bytes(random));
        Ok(Self { path: private_folder(&name)?, sockets: AtomicU64::new(0) })
    }

    /// Returns an unused path.
    pub(super) fn socket(&self) -> PathBuf {
        self.path.join(self.sockets.fetch_add(1, Ordering::Relaxed).to_string())
    }

    /// Removes the directory: existing connections stay, new ones fail.
    pub(super) fn remove(&self) {
        // If the system refuses, the remainder is empty.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn nobody_else_may_enter_and_nothing_is_left() {
        let (home, other) = (Home::new().expect("a directory"), Home::new().expect("another"));
        assert_ne!(home.path, other.path);
        let mode = home.path.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let _sockets =
            [home.socket(), home.socket()].map(|path| UnixListener::bind(path).expect("two paths"));
        for home in [home, other] {
            home.remove();
            assert!(!home.path.exists());
            home.remove();
        }
    }
}

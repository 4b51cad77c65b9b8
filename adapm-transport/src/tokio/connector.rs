//! A connector that dials and accepts for one endpoint; accepted connections wait for it in a
//! [`Door`].

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::{runtime, stream};
use crate::net::address::Address;
use crate::net::notifier::Notifier;
use crate::net::packet::Fault;
use crate::net::pipe::Connector;
use crate::net::queued::{QueuedPipe, queued_pipe};

/// A connector that carries the pipes of one endpoint over TCP, on tasks.
#[derive(Debug)]
pub(crate) struct TokioConnector {
    runtime: Handle,
    notifier: Arc<Notifier>,
    listening: Option<Listening>,
}

#[derive(Debug)]
struct Listening {
    address: SocketAddr,
    door: Arc<Door>,
    task: AbortHandle,
}

impl TokioConnector {
    /// Creates a connector that dials, and listens at `bind` if given.
    ///
    /// # Errors
    /// If the system refuses a runtime or to listen.
    pub(crate) fn new(bind: Option<SocketAddr>, notifier: Arc<Notifier>) -> io::Result<Self> {
        let runtime = runtime::shared()?;
        let listening = bind.map(|bind| Listening::start(&runtime, &notifier, bind)).transpose()?;
        Ok(Self { runtime, notifier, listening })
    }
}

impl Connector for TokioConnector {
    fn address(&self) -> Option<Address> {
        self.listening.as_ref().map(|listening| Address::Tokio(listening.address))
    }

    fn dial(&mut self, to: &Address) -> Result<QueuedPipe, Fault> {
        let to = to.socket().ok_or(Fault::Io(io::ErrorKind::Unsupported.into()))?;
        let (pipe, task) = queued_pipe(Arc::clone(&self.notifier));
        self.runtime.spawn(async move {
            match stream::unless(TcpStream::connect(to), stream::ended(&task)).await {
                Some(Ok(connected)) => stream::serve(connected, task).await,
                Some(Err(error)) => task.end(error.into()),
                None => {}
            }
        });
        Ok(pipe)
    }

    fn accept(&mut self) -> Option<(QueuedPipe, Option<SocketAddr>)> {
        self.listening.as_ref()?.door.take()
    }
}

impl Listening {
    fn start(runtime: &Handle, notifier: &Arc<Notifier>, bind: SocketAddr) -> io::Result<Self> {
        let _entered = runtime.enter();
        let listener = listen(bind)?;
        let address = listener.local_addr()?;
        let door = Arc::new(Door::new(Arc::clone(notifier)));
        let (accepting, notifier) = (Arc::clone(&door), Arc::clone(notifier));
        let task = runtime.spawn(async move {
            loop {
                let Some((connected, from)) = next_connection(&listener).await else { continue };
                let (pipe, task) = queued_pipe(Arc::clone(&notifier));
                accepting.offer(pipe, Some(from));
                tokio::spawn(stream::serve(connected, task));
            }
        });
        Ok(Self { address, door, task: task.abort_handle() })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Listens within the entered runtime.
pub(crate) fn listen(bind: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(bind)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Returns the next connection; `None` after a failure, with a pause before the next attempt.
pub(crate) async fn next_connection(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept().await {
        Ok(accepted) => Some(accepted),
        Err(_) => {
            // Out of descriptors, most likely: a queued connection stays in the system until there
            // are some.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// A bounded queue between the task that accepts and the endpoint that takes.
#[derive(Debug)]
pub(crate) struct Door {
    notifier: Arc<Notifier>,
    waiting: Mutex<VecDeque<(QueuedPipe, Option<SocketAddr>)>>,
}

impl Door {
    pub(crate) fn new(notifier: Arc<Notifier>) -> Self {
        Self { notifier, waiting: Mutex::new(VecDeque::new()) }
    }

    /// Hands over a pipe. If too many wait, the oldest is closed.
    pub(crate) fn offer(&self, pipe: QueuedPipe, from: Option<SocketAddr>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let surplus = if waiting.len() >= WAITING_MAX { waiting.pop_front() } else { None };
        waiting.push_back((pipe, from));
        drop(waiting);
        drop(surplus);
        self.notifier.notify();
    }

    /// Takes the oldest pipe.
    pub(crate) fn take(&self) -> Option<(QueuedPipe, Option<SocketAddr>)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of connections that wait to be taken.
pub(crate) const WAITING_MAX: usize = 64;

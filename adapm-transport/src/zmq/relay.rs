//! Bytes between a connection and the ZeroMQ socket behind it, with a guard in front of the socket.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::io;

use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpStream, UnixStream, unix};
use tokio::time::{Instant, timeout_at};

use super::guard::{Guard, Violation};
use crate::net::hello::GREETING_BYTES_MAX;
use crate::net::packet::{Fault, SEALED_HEADER_BYTES};
use crate::net::queued::PipeTask;
use crate::tokio::{close_after, drain, unless};

/// Relays until both sides have closed, or a while after the pipe of `task` has ended.
/// `introduce` gets the peer's name, once, before the socket does.
///
/// Bytes in flight are bounded by the pipe's queue and the system's buffers behind it.
pub(super) async fn run(
    outer: TcpStream,
    inner: UnixStream,
    task: &PipeTask,
    introduce: impl FnOnce(Option<&[u8]>) -> Result<(), Fault>,
) {
    let (from_peer, to_peer) = outer.into_split();
    let (from_socket, to_socket) = inner.into_split();
    let inward = async {
        // The socket sees the end of its stream after it has read everything before.
        if let Err(fault) = inward(from_peer, to_socket, task, introduce).await {
            task.end(fault);
        }
    };
    let outward = async {
        if let Err(error) = outward(from_socket, to_peer, task).await {
            task.end(error.into());
        }
    };
    let _ = unless(both(inward, outward), close_after(task)).await;
    task.end(Fault::Ended);
}

async fn inward(
    from: OwnedReadHalf,
    to: unix::OwnedWriteHalf,
    task: &PipeTask,
    introduce: impl FnOnce(Option<&[u8]>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let deadline = Instant::now() + INTRODUCTION_TIME;
    let (mut guard, mut introduce) = (Guard::new(), Some(introduce));
    let mut limit = task.limit();
    let (mut buffer, mut filled) = (vec![0; buffer_bytes(limit)], 0);
    loop {
        let passed = guard.pass(&buffer[..filled], (SEALED_HEADER_BYTES + limit) as u64)?;
        if guard.is_introduced()
            && let Some(introduce) = introduce.take()
        {
            introduce(guard.identity())?;
        }
        write_all(&to, &buffer[..passed.bytes]).await?;
        buffer.copy_within(passed.bytes..filled, 0);
        filled -= passed.bytes;
        if passed.is_held {
            let Some(other) = poll_fn(|cx| task.poll_change(cx, limit)).await else {
                return Ok(());
            };
            limit = other;
            continue;
        }
        if !poll_fn(|cx| task.poll_room(cx)).await {
            // Nothing is read any more, but there may still be bytes on the way out, for which the
            // socket must live.
            drain(&from).await;
            return Ok(());
        }
        limit = task.limit();
        buffer.resize(buffer_bytes(limit).max(filled), 0);
        let reading = read(&from, &mut buffer[filled..]);
        let read = if introduce.is_some() {
            timeout_at(deadline, reading)
                .await
                .map_err(|_| Fault::Io(io::ErrorKind::TimedOut.into()))??
        } else {
            reading.await?
        };
        match read {
            0 if filled > 0 => return Err(Fault::EndedWithin),
            0 => return Ok(()),
            read => filled += read,
        }
        task.note_bytes(read as u64);
    }
}

async fn outward(from: unix::OwnedReadHalf, to: OwnedWriteHalf, task: &PipeTask) -> io::Result<()> {
    let mut buffer = vec![0; buffer_bytes(task.limit())];
    loop {
        buffer.resize(buffer_bytes(task.limit()), 0);
        from.readable().await?;
        let read = match from.try_read(&mut buffer) {
            Ok(0) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            read => read?,
        };
        let mut rest = &buffer[..read];
        while !rest.is_empty() {
            to.writable().await?;
            match to.try_write(rest) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => rest = &rest[written?..],
            }
        }
        tokio::task::consume_budget().await;
    }
}

async fn read(from: &OwnedReadHalf, buffer: &mut [u8]) -> io::Result<usize> {
    tokio::task::consume_budget().await;
    loop {
        match from.try_read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => from.readable().await?,
            read => return read,
        }
    }
}

async fn write_all(to: &unix::OwnedWriteHalf, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable().await?,
            written => bytes = &bytes[written?..],
        }
    }
    Ok(())
}

/// Runs both futures to their ends.
pub(super) async fn both(first: impl Future<Output = ()>, second: impl Future<Output = ()>) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut has_first, mut has_second) = (false, false);
    poll_fn(|cx| {
        has_first = has_first || first.as_mut().poll(cx).is_ready();
        has_second = has_second || second.as_mut().poll(cx).is_ready();
        if has_first && has_second { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Returns the buffer size: little memory for strangers.
const fn buffer_bytes(limit: usize) -> usize {
    if limit > GREETING_BYTES_MAX { 128 << 10 } else { 2 << 10 }
}

impl From<Violation> for Fault {
    fn from(violation: Violation) -> Self {
        match violation {
            Violation::Message(bytes) | Violation::Command(bytes) => {
                Self::Oversize { bytes, limit: adapm_core::link::PACKET_BYTES_MAX }
            }
            Violation::Greeting | Violation::Flags(_) | Violation::Parts => Self::Magic,
        }
    }
}

/// Time for a connection to introduce itself to ZeroMQ with a name.
const INTRODUCTION_TIME: Duration = Duration::from_secs(5);

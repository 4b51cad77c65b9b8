//! One connection: a task that reads and one that writes, until either side ends it.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::net::packet::{PacketReader, Spares};
use crate::net::queued::{PipeTask, Writer};

/// Carries packets between `task` and `stream` until one of them ends.
pub(super) async fn serve(stream: TcpStream, task: PipeTask) {
    if let Err(error) = stream.set_nodelay(true) {
        return task.end(error.into());
    }
    let (reading, writing) = stream.into_split();
    let mut reader = tokio::spawn(read(reading, task.clone()));
    let writing = Arc::new(writing);
    task.lend(Writer::new(Now(Arc::clone(&writing))));
    if let Some(Err(error)) = unless(write(&writing, &task), close_after(&task)).await {
        task.end(error.into());
    }
    // Tells the peer that nothing more comes. Closing at once, with unread bytes, could discard
    // bytes that the peer has not read yet.
    let has_written = task.close_writer();
    drop(writing);
    if !has_written {
        // No answer is pending: strangers who find no room cost nothing from here on.
        return reader.abort();
    }
    if tokio::time::timeout(LINGER, &mut reader).await.is_err() {
        reader.abort();
    }
}

/// Waits until the endpoint has dropped the pipe, or the pipe has broken.
pub(crate) async fn ended(task: &PipeTask) {
    let mut limit = task.limit();
    while let Some(raised) = poll_fn(|cx| task.poll_change(cx, limit)).await {
        limit = raised;
    }
}

/// Waits until the pipe has ended, and then as long as packets in flight may need to leave.
pub(crate) async fn close_after(task: &PipeTask) {
    ended(task).await;
    tokio::time::sleep(LINGER).await;
}

/// Returns the result of `work`, or `None` if `end` comes first.
pub(crate) async fn unless<T>(
    work: impl Future<Output = T>,
    end: impl Future<Output = ()>,
) -> Option<T> {
    let (mut work, mut end) = (pin!(work), pin!(end));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => end.as_mut().poll(cx).map(|()| None),
    })
    .await
}

/// Reads packets until the connection ends; once the pipe is dropped, only looks for the end.
async fn read(stream: OwnedReadHalf, task: PipeTask) {
    let mut limit = task.limit();
    let mut reader = PacketReader::new(limit);
    let mut spares = Spares::default();
    let mut noted = 0;
    let fault = loop {
        if !poll_fn(|cx| task.poll_room(cx)).await {
            return drain(&stream).await;
        }
        if limit != task.limit() {
            limit = task.limit();
            reader.raise_limit(limit);
        }
        let read = reader.read(&mut Now(&stream), &mut spares);
        task.note_bytes(reader.bytes() - noted);
        noted = reader.bytes();
        match read {
            Ok(Some(packet)) => {
                task.deliver(packet);
                tokio::task::consume_budget().await;
            }
            Ok(None) => {
                if let Err(error) = stream.readable().await {
                    break error.into();
                }
            }
            Err(fault) => break fault,
        }
    };
    task.end(fault);
    drain(&stream).await;
}

/// Reads and drops bytes until no more come.
pub(crate) async fn drain(stream: &OwnedReadHalf) {
    let mut nowhere = [0; DRAIN_BYTES];
    while stream.readable().await.is_ok() {
        match stream.try_read(&mut nowhere) {
            Ok(0) => return,
            Ok(_) => tokio::task::consume_budget().await,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Writes what the endpoint could not write without waiting, until the last packet.
async fn write(stream: &OwnedWriteHalf, task: &PipeTask) -> io::Result<()> {
    while let Some(mut writer) = poll_fn(|cx| task.poll_writer(cx)).await {
        while !writer.write()? {
            stream.writable().await?;
        }
        task.lend(writer);
        tokio::task::consume_budget().await;
    }
    Ok(())
}

/// Non-blocking I/O on a stream, which fails instead of waiting.
struct Now<S>(S);

impl Read for Now<&OwnedReadHalf> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(bytes)
    }

    fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.0.try_read_vectored(slices)
    }
}

impl Write for Now<Arc<OwnedWriteHalf>> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Time for packets in flight, and for the peer to close its side, once the pipe is dropped.
const LINGER: Duration = Duration::from_secs(1);
const DRAIN_BYTES: usize = 4 << 10;

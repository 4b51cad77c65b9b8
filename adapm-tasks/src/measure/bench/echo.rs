//! The floor of remote access: bytes there and back without a parameter manager.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

use adapm_transport::net::Kind;
use adapm_transport::threads;

/// A thread that exchanges bytes with another over a socket, or nothing with another thread, whenever it is asked to.
pub(super) struct Echo {
    ask: mpsc::Sender<()>,
    answer: mpsc::Receiver<()>,
}

impl Echo {
    /// Exchanges of `out` bytes for `back` bytes over a socket such as links of this kind use, from a thread that is asked and
    /// answers through channels.
    pub(super) fn over(kind: Kind, out: usize, back: usize) -> io::Result<Self> {
        match kind {
            #[cfg(unix)]
            Kind::Unix => {
                let (here, there) = std::os::unix::net::UnixStream::pair()?;
                Self::between(here, there, out, back)
            }
            _ => {
                let listener = TcpListener::bind("127.0.0.1:0")?;
                let here = TcpStream::connect(listener.local_addr()?)?;
                let (there, _) = listener.accept()?;
                for stream in [&here, &there] {
                    stream.set_nodelay(true)?;
                }
                Self::between(here, there, out, back)
            }
        }
    }

    /// The same four hand-overs between threads as within a process, without bytes.
    pub(super) fn between_threads() -> io::Result<Self> {
        let (to_far, far_in) = mpsc::channel();
        let (far_out, from_far) = mpsc::channel();
        let answer = move || while far_in.recv().is_ok() && far_out.send(()).is_ok() {};
        threads::spawn("echo", answer).map_err(io::Error::other)?;
        Self::asking(move || to_far.send(()).is_ok() && from_far.recv().is_ok())
    }

    /// Waits for one exchange.
    pub(super) fn exchange(&self) {
        // If a thread has ended, so has the socket: then there is nothing to compare with.
        if self.ask.send(()).is_ok() {
            let _ = self.answer.recv();
        }
    }

    fn between<S>(mut here: S, mut there: S, out: usize, back: usize) -> io::Result<Self>
    where
        S: Read + Write + Send + 'static,
    {
        let answer = move || {
            let (mut request, reply) = (vec![0; out], vec![7; back]);
            while there.read_exact(&mut request).is_ok() && there.write_all(&reply).is_ok() {}
        };
        threads::spawn("echo", answer).map_err(io::Error::other)?;
        let (request, mut reply) = (vec![7; out], vec![0; back]);
        Self::asking(move || here.write_all(&request).is_ok() && here.read_exact(&mut reply).is_ok())
    }

    /// A thread that does `exchange` when it is asked to.
    fn asking(mut exchange: impl FnMut() -> bool + Send + 'static) -> io::Result<Self> {
        let (ask, asked) = mpsc::channel();
        let (answers, answer) = mpsc::channel();
        let ask_on = move || while asked.recv().is_ok() && exchange() && answers.send(()).is_ok() {};
        threads::spawn("echo", ask_on).map_err(io::Error::other)?;
        Ok(Self { ask, answer })
    }
}

//! Traces: the file records what happened, can be read back, and tracing does not change the run.

mod clusters;
mod files;
mod scripted;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use adapm_runtime::trace::Trace;

/// A file in memory.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Page {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no writer panics").clone())
            .expect("a trace is text")
    }

    fn read(&self) -> Trace {
        Trace::read(self.text().as_bytes()).expect("what a tracer writes can be read")
    }
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

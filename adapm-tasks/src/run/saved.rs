//! The saved model of a task that needs no format of its own: its settings and its parameters.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::run::file::{self, CheckpointError, Fault, Reader, Writer};

/// Settings and trained parameters of a task, as they are saved.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved<C> {
    /// The name of the task.
    pub task: &'static str,
    /// The settings, or whatever else is needed to know what the parameters are.
    pub head: C,
    /// The values of all keys, in order ([`Task::best_shape`](crate::run::Task::best_shape)).
    pub values: Arc<Vec<f32>>,
}

impl<C: Serialize> Saved<C> {
    /// Writes the file.
    ///
    /// # Errors
    ///
    /// Errors of `inner`.
    pub fn write_to(&self, inner: impl io::Write) -> io::Result<()> {
        let head = serde_json::to_vec(&self.head)?;
        let mut writer = Writer::new(self.task.as_bytes(), inner)?;
        writer.text(&head)?;
        writer.values(&self.values).map(drop)
    }
}

impl<C: DeserializeOwned> Saved<C> {
    /// Reads the file of the task called `task` at `path`; as many bytes as it has, and once more
    /// its values.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is of another task, or damaged.
    pub fn load(task: &'static str, path: &Path) -> Result<Self, CheckpointError> {
        let bytes = file::read(path)?;
        Self::of_bytes(task, &bytes).map_err(|fault| fault.at(path))
    }

    fn of_bytes(task: &'static str, bytes: &[u8]) -> Result<Self, Fault> {
        let mut reader = Reader::new(task.as_bytes(), bytes)?;
        let head = serde_json::from_slice(reader.text()?).map_err(|_| Fault::Corrupt)?;
        Ok(Self { task, head, values: Arc::new(reader.values()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_read_and_another_task_or_head_is_refused() {
        let saved =
            Saved { task: "fm", head: (3_u32, "x".to_owned()), values: Arc::new(vec![0.1]) };
        let mut bytes = Vec::new();
        saved.write_to(&mut bytes).expect("memory takes all bytes");
        assert_eq!(Saved::of_bytes("fm", &bytes), Ok(saved));
        type Head = (u32, String);
        assert_eq!(Saved::<Head>::of_bytes("lr", &bytes), Err(Fault::Task("fm".to_owned())));
        assert_eq!(Saved::<Vec<u8>>::of_bytes("fm", &bytes), Err(Fault::Corrupt));
        assert_eq!(Saved::<Head>::of_bytes("fm", &bytes[..9]), Err(Fault::Truncated));
    }
}

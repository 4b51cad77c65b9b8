//! The saved model of a task that needs no format of its own: its settings and its parameters.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::run::file::{CheckpointError, Fault, Reader};
use crate::run::partial::{self, Head};
use crate::run::tensors::{Draft, Parts, Tensor};
use crate::run::values::Values;

/// Settings and trained parameters of a task, as they are saved.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved<C> {
    /// The name of the task.
    pub task: &'static str,
    /// The settings, or whatever else is needed to know what the parameters are.
    pub head: C,
    /// The tensors that the values are, one behind the other: all values, each name once. None
    /// once a file is loaded that was written before models were safetensors.
    pub tensors: Vec<Tensor>,
    /// The values of all keys, in order ([`Task::best_shape`](crate::run::Task::best_shape)).
    pub values: Values,
}

impl<C: Serialize> Saved<C> {
    /// Writes the file: safetensors.
    ///
    /// # Errors
    ///
    /// Errors of `inner`; tensors of more or fewer values; values that cannot be read.
    pub fn write_to(&self, inner: impl io::Write) -> io::Result<()> {
        Draft::new(self.task, &self.head)?.write(&self.tensors, &self.values, inner).map(drop)
    }
}

impl<C> Saved<C> {
    /// Returns it with these tensors, if it is a file of the older form, which does not name them,
    /// or they are its own; `None` if they are others.
    pub(crate) fn with(self, tensors: Vec<Tensor>) -> Option<Self> {
        let are_own = self.tensors.is_empty() || partial::are_alike(&self.tensors, &tensors);
        are_own.then_some(Self { tensors, ..self })
    }
}

impl<C: DeserializeOwned> Saved<C> {
    /// Opens the file of the task called `task` at `path`: reads all but its values, which stay in
    /// the file until they are asked for ([`Values`]).
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is of another task, or longer or shorter than it says. Other
    /// damage of its values is seen by [`Values::check`], as an evaluation in one process does it.
    pub fn open(task: &'static str, path: &Path) -> Result<Self, CheckpointError> {
        let (Settings { head, tensors }, values) = partial::open(path, task)?;
        Ok(Self { task, head, tensors, values })
    }
}

/// What is saved beside the values.
struct Settings<C> {
    head: C,
    tensors: Vec<Tensor>,
}

impl<C: DeserializeOwned> Head for Settings<C> {
    fn of_parts(parts: &Parts<'_>) -> Result<Self, Fault> {
        Ok(Self { head: parts.head()?, tensors: parts.header.tensors() })
    }

    fn of_old(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let head = serde_json::from_slice(reader.text()?).map_err(|_| Fault::Corrupt)?;
        Ok(Self { head, tensors: Vec::new() })
    }

    fn tensors(&self) -> Option<Vec<Tensor>> {
        Some(self.tensors.clone())
    }

    /// The task compares the number with its head.
    fn with(self, _: u64) -> Result<Self, Fault> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read<C> = Result<C, CheckpointError>;

    fn read<C: DeserializeOwned>(task: &str, bytes: &[u8]) -> Read<(C, Vec<Tensor>, Vec<f32>)> {
        let (Settings { head, tensors }, values) = partial::parse(bytes, Path::new("file"), task)?;
        let values = values.in_memory().expect("they were parsed").to_vec();
        Ok((head, tensors, values))
    }

    #[test]
    fn what_is_saved_is_read_and_another_task_or_head_is_refused() {
        type Head = (u32, String);
        let (head, tensors) = ((3, "x".to_owned()), vec![Tensor::new("w", 1, 2)]);
        let saved = Saved { task: "fm", head, tensors, values: vec![0.1, 0.2].into() };
        let mut bytes = Vec::new();
        saved.write_to(&mut bytes).expect("memory takes all bytes");
        let expected = (saved.head, saved.tensors, vec![0.1, 0.2]);
        assert_eq!(read("fm", &bytes), Ok(expected));
        let refused =
            |read: Read<(Head, Vec<Tensor>, Vec<f32>)>| read.expect_err("it does not fit");
        let other = refused(read("lr", &bytes)).to_string();
        assert_eq!(other, "file is a checkpoint of task fm; give one of the task asked for");
        let damaged = read::<Vec<u8>>("fm", &bytes).expect_err("it has another head");
        assert_eq!(damaged.to_string(), "file is damaged; save it again");
        for cut in [9, bytes.len() - 1] {
            assert!(refused(read("fm", &bytes[..cut])).to_string().starts_with("file "));
        }
    }
}

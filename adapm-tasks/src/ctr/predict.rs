//! Probabilities of clicks by a saved model, example by example, without a parameter manager.
//!
//! From a file the dense layers are read, and block by block the values of the features that occur
//! in it. So the checksum, which is of the whole file, is not compared.

use std::borrow::Cow;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use crate::ctr::encoder::{Encoder, Lookup, Scale};
use crate::ctr::head::Head;
use crate::ctr::network::{Network, Pass, Placed, Rows};
use crate::ctr::reader;
use crate::export::Table;
use crate::run::values::Values;
use crate::run::{CheckpointError, Saved, TaskError};

/// A model that is asked for probabilities.
#[derive(Debug)]
pub struct Predictor {
    encoder: Encoder,
    lookup: Lookup,
    network: Network,
    /// Parameters of the dense layers.
    layers: Vec<f32>,
    /// All values, those of features first.
    pub(crate) values: Values,
    /// What clicks weighed in training adds to logits.
    correction: f32,
    pass: Pass,
}

/// Examples that are predicted at once.
#[derive(Debug)]
struct Block {
    starts: Vec<u32>,
    features: Vec<Placed>,
    numbers: Vec<f32>,
}

impl Block {
    fn new() -> Self {
        Self { starts: vec![0], features: Vec::new(), numbers: Vec::new() }
    }

    /// Reads the values of its features, each once, and has the features say where they are.
    fn read(
        &mut self,
        all: &Values,
        value_len: usize,
        values: &mut Vec<f32>,
    ) -> Result<(), CheckpointError> {
        let mut keys: Vec<u32> = self.features.iter().map(|feature| feature.place).collect();
        keys.sort_unstable();
        keys.dedup();
        values.resize(keys.len() * value_len, 0.0);
        for (key, value) in keys.iter().zip(values.chunks_mut(value_len)) {
            all.read(*key as usize * value_len, value)?;
        }
        for feature in &mut self.features {
            feature.place = keys.partition_point(|key| *key < feature.place) as u32;
        }
        Ok(())
    }
}

/// Returns what ends the reading of examples, if anything does.
fn ended<E>(
    taken: Result<Result<(), E>, CheckpointError>,
) -> Option<Result<Result<(), E>, CheckpointError>> {
    if matches!(taken, Ok(Ok(()))) { None } else { Some(taken) }
}

impl Predictor {
    /// Opens a model: reads all but the values of its features, of which what is needed is read
    /// where it is.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is of another task, or damaged; damage of values is not seen,
    /// unless it makes them no finite numbers, which is when they are read, or until
    /// [`check`](Self::check) is called.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        let Saved { head: Head { config, encoder, .. }, values, .. } = Head::open(path)?;
        let network = Network::new(&config, encoder.fields.len(), encoder.numbers.len());
        let behind = usize::try_from(encoder.keys())
            .ok()
            .and_then(|keys| keys.checked_mul(network.feature_len()))
            .filter(|behind| behind.checked_add(network.parameters()) == Some(values.len()))
            .ok_or_else(|| CheckpointError::Corrupt { path: path.to_path_buf() })?;
        let mut layers = vec![0.0; network.parameters()];
        values.read(behind, &mut layers)?;
        let correction = config.positive_weight.ln();
        let (lookup, pass) = (encoder.lookup(), Pass::default());
        Ok(Self { encoder, lookup, network, layers, values, correction, pass })
    }

    /// Reads the whole file and compares its checksum.
    ///
    /// # Errors
    ///
    /// A file that is damaged or cannot be read.
    pub fn check(&self) -> Result<(), CheckpointError> {
        self.values.check()
    }

    /// Passes the probability of a click of each example of a file to `take`, in order; what
    /// examples say of their label does not matter, and they may lack it. Reads the file front to
    /// back, and of the model the values of each feature once for every 256 examples that have it.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is malformed; a model that cannot be read. What `take` returns
    /// ends the reading, and is returned.
    pub fn predict<E>(
        &mut self,
        path: &Path,
        mut take: impl FnMut(f32) -> Result<(), E>,
    ) -> Result<Result<(), E>, TaskError> {
        let (mut block, mut failed) = (Block::new(), None);
        let (encoder, lookup) = (&self.encoder, &self.lookup);
        let (network, layers, all) = (&self.network, &self.layers, &self.values);
        let (correction, pass) = (self.correction, &mut self.pass);
        let (value_len, mut values) = (network.feature_len(), Vec::new());
        let mut flush = |block: &mut Block| {
            Scale::apply(&encoder.numbers, &mut block.numbers);
            block.read(all, value_len, &mut values)?;
            let Block { starts, features, numbers } = &*block;
            let rows = Rows { starts, features, numbers, values: &values, value_len };
            let logits = network.forward(layers, rows, None, pass);
            let probability = |logit: &f32| 1.0 / (1.0 + (correction - logit).exp());
            let taken = logits.iter().map(probability).try_for_each(&mut take);
            *block = Block::new();
            Ok::<_, CheckpointError>(taken)
        };
        let read = reader::each_to_predict(path, encoder, |line| {
            for (field, name, value) in line.features() {
                let Some(place) = lookup.find(field, name) else { continue };
                block.features.push(Placed { place, field: field as u32, value });
            }
            block.starts.push(block.features.len() as u32);
            block.numbers.extend_from_slice(&line.numbers);
            if block.starts.len() > BLOCK {
                failed = ended(flush(&mut block));
            }
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match failed {
            Some(ended) => Ok(ended?),
            None => {
                read?;
                Ok(flush(&mut block)?)
            }
        }
    }

    /// Returns the length of an embedding.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.network.feature_len() - 1
    }

    /// Writes a line for each feature: its name, its weight, and the elements of its embedding,
    /// between tabs.
    ///
    /// # Errors
    ///
    /// Errors of `file`, and values that cannot be read.
    pub fn export_to(&self, file: &mut dyn io::Write) -> io::Result<()> {
        self.table("features", 0, 1 + self.dim()).write_lines("", file)
    }

    /// Returns the `embeddings` of features, and their `weights` if the model has any.
    #[must_use]
    pub fn tables(&self) -> Vec<Table<'_>> {
        let mut tables = vec![self.table("embeddings", 1, self.dim())];
        if self.network.has_weights() {
            tables.push(self.table("weights", 0, 1));
        }
        tables
    }

    /// Returns the number of features.
    #[must_use]
    pub fn features(&self) -> u64 {
        self.encoder.keys()
    }

    /// Returns `width` numbers of each feature's value, the first of them at `from`.
    fn table(&self, kind: &'static str, from: usize, width: usize) -> Table<'_> {
        let len = self.network.feature_len();
        let name = |key| Cow::from(self.encoder.name_of(key as u64).into_bytes());
        let size = [self.encoder.keys() as usize, width];
        Table::of_values(kind, size, name, &self.values, move |values, key| {
            let start = key * len + from;
            values.get(start..start + width).map(<[f32]>::to_vec)
        })
    }
}

/// Examples that are predicted at once.
const BLOCK: usize = 256;

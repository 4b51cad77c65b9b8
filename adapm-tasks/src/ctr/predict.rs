//! Probabilities of clicks by a saved model, example by example, without a parameter manager.

use std::borrow::Cow;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::ctr::encoder::{Encoder, Lookup, Scale};
use crate::ctr::head::Head;
use crate::ctr::network::{Network, Pass, Placed, Rows};
use crate::ctr::reader;
use crate::data::DataError;
use crate::dense::Chunks;
use crate::export::Table;
use crate::run::{CheckpointError, Saved};

/// A model that is asked for probabilities.
#[derive(Debug)]
pub struct Predictor {
    encoder: Encoder,
    lookup: Lookup,
    network: Network,
    /// Parameters of the dense layers.
    layers: Vec<f32>,
    /// All values, those of features first.
    values: Arc<Vec<f32>>,
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
}

impl Predictor {
    /// Reads a model.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is of another task, or damaged.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        Self::of(Head::load(path)?)
            .ok_or_else(|| CheckpointError::Corrupt { path: path.to_path_buf() })
    }

    /// Returns the model of these values; `None` if there are not as many as it has parameters.
    fn of(Saved { head, values, .. }: Saved<Head>) -> Option<Self> {
        let Head { config, encoder, .. } = head;
        let network = Network::new(&config, encoder.fields.len(), encoder.numbers.len());
        let chunks = Chunks { first: encoder.keys(), parameters: network.parameters() };
        let behind = usize::try_from(encoder.keys()).ok()?.checked_mul(network.feature_len())?;
        let mut layers = Vec::new();
        chunks.unpack(values.get(behind..)?, 1, &mut layers);
        (layers.len() == chunks.parameters).then_some(())?;
        let correction = config.positive_weight.ln();
        let (lookup, pass) = (encoder.lookup(), Pass::default());
        Some(Self { encoder, lookup, network, layers, values, correction, pass })
    }

    /// Passes the probability of a click of each example of a file to `take`, in order; what
    /// examples say of their label does not matter, and they may lack it. Reads the file front to
    /// back.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is malformed. What `take` returns ends the reading, and is
    /// returned.
    pub fn predict<E>(
        &mut self,
        path: &Path,
        mut take: impl FnMut(f32) -> Result<(), E>,
    ) -> Result<Result<(), E>, DataError> {
        let (mut block, mut failed) = (Block::new(), None);
        let (encoder, lookup) = (&self.encoder, &self.lookup);
        let (network, layers, values) = (&self.network, &self.layers, self.values.as_slice());
        let (correction, pass) = (self.correction, &mut self.pass);
        let mut flush = |block: &mut Block| {
            Scale::apply(&encoder.numbers, &mut block.numbers);
            let Block { starts, features, numbers } = &*block;
            let value_len = network.feature_len();
            let rows = Rows { starts, features, numbers, values, value_len };
            let logits = network.forward(layers, rows, None, pass);
            let probability = |logit: &f32| 1.0 / (1.0 + (correction - logit).exp());
            let taken = logits.iter().map(probability).try_for_each(&mut take);
            *block = Block::new();
            taken
        };
        let read = reader::each_to_predict(path, encoder, |line| {
            for (field, name, value) in line.features() {
                let Some(place) = lookup.find(field, name) else { continue };
                block.features.push(Placed { place, field: field as u32, value });
            }
            block.starts.push(block.features.len() as u32);
            block.numbers.extend_from_slice(&line.numbers);
            if block.starts.len() > BLOCK {
                failed = flush(&mut block).err();
            }
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match failed {
            Some(error) => Ok(Err(error)),
            None => read.map(|()| flush(&mut block)),
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
    /// Errors of `file`.
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

    /// Returns the names of features and their values: weight, then the elements of the embedding.
    pub fn features(&self) -> impl Iterator<Item = (String, &[f32])> {
        let values = self.values.chunks(self.network.feature_len());
        (0..self.encoder.keys()).map(|key| self.encoder.name_of(key)).zip(values)
    }

    /// Returns `width` numbers of each feature's value, the first of them at `from`.
    fn table(&self, kind: &'static str, from: usize, width: usize) -> Table<'_> {
        let len = self.network.feature_len();
        let name = |key| Cow::from(self.encoder.name_of(key as u64).into_bytes());
        let row = move |key: usize| Cow::from(&self.values[key * len + from..][..width]);
        Table::new(kind, [self.encoder.keys() as usize, width], name, row)
    }
}

/// Examples that are predicted at once.
const BLOCK: usize = 256;

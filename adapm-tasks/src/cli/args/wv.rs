//! Flags of word vectors.

use std::path::PathBuf;

use crate::Scheme;
use crate::wv::{Format, Negatives, Optimizer, TrainConfig};
use clap::{Args, value_parser};

use crate::cli::args::common::{ClusterArgs, EvalOutputArgs, SettingsArgs, TrainOutputArgs};
use crate::cli::args::parse::{at_least_one, epochs, one_of};
use crate::cli::args::{ProcessArgs, TraceKeysArgs};

#[derive(Debug, Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataArgs {
    /// Text, a sentence a line, also one long line, also .gz; or its name in $ADAPM_DATA/wv; none:
    /// generated sentences
    #[arg(long, value_name = "PATH|NAME", conflicts_with_all = ["data_seed", "sentences"])]
    pub(crate) data: Option<PathBuf>,
    /// Seed of the generated text
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) data_seed: u64,
    /// Sentences of the generated text
    #[arg(long, value_name = "N", default_value_t = SENTENCES, value_parser = value_parser!(u64).range(1..=SENTENCES_MAX))]
    pub(crate) sentences: u64,
    /// Times a word has to occur to get vectors
    #[arg(long, value_name = "TIMES", default_value_t = 5)]
    pub(crate) min_count: u64,
    /// Words and their counts from FILE, lines `word count`, instead of counting them
    #[arg(long, value_name = "FILE")]
    pub(crate) read_vocab: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Evaluation")]
pub(crate) struct QuestionArgs {
    /// Questions of analogy, as questions-words.txt, or the name of such a file in $ADAPM_DATA/wv;
    /// those of the generated text come with it
    #[arg(long, value_name = "FILE|NAME")]
    pub(crate) questions: Option<PathBuf>,
    /// Pairs of words with how similar people find them, as WordSim-353, or the name of such a file
    /// in $ADAPM_DATA/wv
    #[arg(long, value_name = "FILE|NAME")]
    pub(crate) similarity: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) asked: QuestionArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Sentences between `localize` and the access, under lapse
    #[arg(long, value_name = "SENTENCES", default_value_t = TrainConfig::default().localize_ahead)]
    pub(crate) localize_ahead: u64,
    /// Sentences between the announcement of a sentence and its turn, under all others
    #[arg(long, value_name = "SENTENCES", default_value_t = TrainConfig::default().ahead)]
    pub(crate) ahead: usize,
    #[command(flatten)]
    pub(crate) training: TrainingArgs,
    #[command(flatten)]
    pub(crate) output: TrainOutputArgs,
    /// Write the vectors to FILE in word2vec's form
    #[arg(id = "output", long, value_name = "FILE", help_heading = "Output")]
    pub(crate) vectors: Option<PathBuf>,
    /// The form of --output
    #[arg(long, value_name = "FORM", default_value_t = Format::Text, value_parser = one_of::<Format>(&["text", "binary"]), help_heading = "Output")]
    pub(crate) format: Format,
    /// Write the words and their counts to FILE, lines `word count`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) save_vocab: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) traced: TraceKeysArgs,
    #[command(flatten)]
    pub(crate) processes: ProcessArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct TrainingArgs {
    /// Length of a vector
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().dim, allow_negative_numbers = true)]
    pub(crate) dim: usize,
    /// Passes over the text [default: 5, more over a short text, 50 at most]
    #[arg(long, value_name = "N", value_parser = epochs, allow_negative_numbers = true)]
    pub(crate) epochs: Option<u32>,
    /// Words to each side that a context reaches at most
    #[arg(long, value_name = "WORDS", default_value_t = TrainConfig::default().window)]
    pub(crate) window: u16,
    /// Negatives of a pair
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().negatives)]
    pub(crate) negatives: usize,
    /// Sharing of negatives: among the pairs of a sentence, those of one word, or none (word2vec's
    /// way)
    #[arg(long, value_name = "WAY", default_value_t = Negatives::Sentence, value_parser = one_of::<Negatives>(&["sentence", "window", "pair"]))]
    pub(crate) drawn: Negatives,
    /// Sampling of negatives: any words, as they come (naive), brought here ahead (preloc), from a
    /// pool that is used again (pool), such as are here (local) [default: as for kge, but preloc on
    /// several nodes where the system replicates on intent]
    #[arg(long, value_name = "SCHEME", value_parser = one_of::<Scheme>(&["naive", "preloc", "pool", "local"]))]
    pub(crate) sampling: Option<Scheme>,
    /// Share of the text from which on a word is thinned; 0 thins none
    #[arg(long, value_name = "SHARE", default_value_t = TrainConfig::default().sample, allow_negative_numbers = true)]
    pub(crate) sample: f64,
    /// Update rule of parameters: word2vec's falling rate, or the papers' AdaGrad
    #[arg(long, value_name = "NAME", default_value_t = Optimizer::Sgd, value_parser = one_of::<Optimizer>(&["sgd", "adagrad"]))]
    pub(crate) optimizer: Optimizer,
    /// Learning rate, with sgd at the start
    #[arg(long, value_name = "X", default_value_t = TrainConfig::default().learning_rate, allow_negative_numbers = true)]
    pub(crate) learning_rate: f32,
    /// Do not evaluate
    #[arg(long, conflicts_with_all = ["questions", "similarity"])]
    pub(crate) no_eval: bool,
    /// Seed of initial values, thinning, windows and negatives
    #[arg(long, value_name = "N", default_value_t = TrainConfig::default().seed)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct EvalArgs {
    /// Vectors written by `train wv --save FILE`, or in word2vec's form, text or binary, or in
    /// GloVe's, also .gz
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) load: PathBuf,
    /// The most frequent words that can be asked for and be answers [default: all]
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Model")]
    pub(crate) words: Option<usize>,
    #[command(flatten)]
    pub(crate) asked: QuestionArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) output: EvalOutputArgs,
    #[command(flatten)]
    pub(crate) processes: ProcessArgs,
}

/// Enough for nearly all questions to be answered with the default settings.
const SENTENCES: u64 = 100_000;
/// Gigabytes, in memory.
const SENTENCES_MAX: u64 = 100_000_000;

pub(super) const TRAIN_EXAMPLES: &str = "\
Examples:
  adapm train wv --nodes 4
  adapm train wv --data text8 --questions questions-words.txt --save t8.adapm
  adapm train wv --data text.gz --dim 300 --output text.bin --format binary
  adapm train wv --data corpus.txt --similarity men.txt --json";

pub(super) const EVAL_EXAMPLES: &str = "\
Examples:
  adapm eval wv --load text8.adapm --questions questions-words.txt
  adapm eval wv --load GoogleNews.bin --questions questions-words.txt --nodes 4
  adapm eval wv --load vectors.txt --similarity men.txt --json
Without --questions and --similarity, the questions of the generated text are asked.";

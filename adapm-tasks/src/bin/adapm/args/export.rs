//! What can be asked of the verb `export`.

use std::path::PathBuf;

use adapm_tasks::wv::Format;
use clap::Args;

use crate::args::one_of;

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct ExportArgs {
    /// Parameters written by `train --save FILE`
    #[arg(long, value_name = "FILE")]
    pub(crate) load: PathBuf,
    /// File to write; an older one of that name stays as it is until the new one is complete
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct ExportWordsArgs {
    #[command(flatten)]
    pub(crate) files: ExportArgs,
    /// word2vec's form of the file
    #[arg(long, value_name = "FORM", default_value_t = Format::Text, value_parser = one_of::<Format>(&["text", "binary"]))]
    pub(crate) format: Format,
}

pub(super) const KGE: &str = "\
Shape, fields between tabs:
  entity    NAME  number ...   --dim numbers; complex: real, then imaginary parts
  relation  NAME  number ...   as many; rescal: dim x dim numbers, row by row
  inverse   NAME  number ...   of each relation, with --reciprocal

Example:
  adapm export kge --load fb.adapm --output fb.tsv";

pub(super) const MF: &str = "\
Shape, fields between tabs:
  row     ID  number ...   --dim numbers; the prediction for a row and a column
  column  ID  number ...   is the sum of the products of their numbers

Example:
  adapm export mf --load ml.adapm --output ml.tsv";

pub(super) const WV: &str = "\
Shape, word2vec's, which gensim reads, too; the input vectors, the most frequent word first:
  WORDS DIM               a line of text at the start of either form
  WORD number number ...  text: a line a word
  WORD, a space, DIM floats of 4 bytes, little-endian, a line feed: binary
--load may be a file of either form, or of GloVe's, too.

Example:
  adapm export wv --load text8.adapm --output text8.bin --format binary";

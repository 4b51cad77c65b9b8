//! What can be asked of the verb `bench`.

use adapm_tasks::measure::bench::counts::Operation;
use adapm_transport::net::Kind;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::processes::transport;
use crate::measure::bench::subject::Subject;

#[derive(Debug, Args)]
#[command(after_help = BENCH_EXAMPLES, args_override_self = true)]
pub(crate) struct BenchArgs {
    /// What to measure [default: all]
    #[arg(value_name = "GROUP", value_parser = subject())]
    subjects: Vec<Subject>,
    /// Small sizes, few runs
    #[arg(long)]
    pub(crate) quick: bool,
    /// Links between nodes to measure, separated by commas [default: all that are built in]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = transport())]
    transport: Vec<Kind>,
    /// Print one JSON object per metric; the table goes to stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// Do one operation only, for callgrind
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) operation: Option<Operation>,
    /// How often
    #[arg(long, value_name = "COUNT", hide = true, default_value_t = 1)]
    pub(crate) times: u64,
}

impl BenchArgs {
    /// What to measure, each once, in the order of the list.
    pub(crate) fn subjects(&self) -> Vec<Subject> {
        Subject::all().filter(|subject| self.subjects.is_empty() || self.subjects.contains(subject)).collect()
    }

    /// The links between nodes to measure.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        Kind::available().filter(|kind| self.transport.is_empty() || self.transport.contains(kind)).collect()
    }
}

fn subject() -> impl TypedValueParser<Value = Subject> {
    PossibleValuesParser::new(Subject::all().map(Subject::name).collect::<Vec<_>>())
        .map(|name| name.parse().expect("one of the names"))
}

const BENCH_EXAMPLES: &str = "\
Groups:
  access    local pull and push
  workers   two of them
  signals   intent, clock
  remote    keys of another node
  moves     relocation, replicas
  rest      nothing happens
  memory    bytes of copies
  counts    what repeats from run to run: messages, bytes, and, if valgrind is
            installed, instructions and allocations (by callgrind)
  kge, mf, wv  training with plain arrays, on one node, and on several
            processes over TCP

Each metric stands beside its floor, what it would be without a parameter manager, measured in turns in the same run, and \
beside what AdaPM in C++ reached once on a machine of this kind. Leave the machine alone meanwhile. Training takes FB15k-237 \
and Wikipedia text from $ADAPM_DATA (kge/FB15k-237, wv/enwiki-2018.txt) if they are there, else generated data.

Examples:
  adapm bench                       everything
  adapm bench access --quick        local access, small sizes
  adapm bench remote --transport tcp,unix
  adapm bench counts --quick        instructions, allocations, messages, bytes
  adapm bench kge --json            for programs";

//! `eval wv`.

use std::sync::atomic::AtomicBool;

use adapm_tasks::wv::{self, EvalConfig, EvalReport, SimilarityReport, Vectors};
use serde::Serialize;

use crate::args::wv::EvalArgs;
use crate::eval::{Evaluating, Shared, Summary};
use crate::failure::Failure;
use crate::files::Files;
use crate::format;
use crate::processes::Processes;
use crate::progress::{Labels, Screen};
use crate::train::{Common, Plan};
use crate::wv::{Asked, Quality};

/// Vectors, and what they are asked.
pub(crate) struct Subject {
    vectors: Vectors,
    /// What kind of file they are from.
    form: String,
    asked: Asked,
    /// What tells where the questions are from.
    source: String,
}

/// What came out.
pub(crate) struct Report {
    answered: EvalReport,
    /// There were questions of analogy.
    has_questions: bool,
    similarity: Option<SimilarityReport>,
}

impl Evaluating for EvalArgs {
    const TASK: &'static str = super::TASK;
    const LABELS: Labels = super::LABELS;
    type Subject = Subject;
    type Report = Report;

    fn shared(&self) -> Shared<'_> {
        Shared { cluster: &self.cluster, processes: &self.processes, json: self.output.json }
    }

    fn files(&self) -> Files<'_> {
        let asked = &self.asked;
        let mut read = Files::given([("--questions", &asked.questions), ("--similarity", &asked.similarity)]);
        read.push(("--load", &self.load));
        Files { read, ..Files::default() }
    }

    fn subject(&self) -> Result<Subject, Failure> {
        let asked = Asked::new(&self.asked, self.asked.similarity.is_none())?;
        let source = asked.source(&self.asked);
        let (vectors, form) = super::vectors(&self.load)?;
        Ok(Subject { vectors, form, asked, source })
    }

    fn source(subject: &Subject) -> String {
        subject.source.clone()
    }

    fn is_generated(subject: &Subject) -> bool {
        subject.asked.are_planted
    }

    fn plan(&self, plan: &mut Plan<'_>, subject: &Subject) {
        let Subject { vectors, form, asked, .. } = subject;
        let (words, dim) = (format::count(vectors.words().len() as u64), vectors.dim());
        let model = format!("{words} words, {dim} numbers a vector ({form})");
        plan.table.row(["model".into(), model, format!("--load {}", self.load.display())]);
        if let Some(words) = self.words {
            let words = format!("the {} most frequent", format::count(words as u64));
            plan.row("words", &words, &["words"]);
        }
        asked.plan(plan);
    }

    fn evaluate(
        &self,
        subject: &Subject,
        common: Common,
        processes: &Processes,
        screen: &Screen<'_>,
        stop: &AtomicBool,
    ) -> Result<Report, Failure> {
        let Subject { vectors, asked, .. } = subject;
        let mut config = EvalConfig::default();
        (config.system, config.nodes, config.workers) = (common.system, common.nodes, common.workers);
        config.words = self.words;
        let none = wv::Analogies::none();
        let questions = asked.questions.as_ref().unwrap_or(&none);
        let answered = match processes.company() {
            None => wv::evaluate(vectors, questions, &config, screen, stop),
            Some(company) => wv::evaluate_in_group(vectors, questions, &config, &company.group, screen, stop),
        }?;
        let limit = self.words.unwrap_or(usize::MAX);
        let similarity = asked.similarities.as_ref().map(|pairs| pairs.evaluate(vectors, limit));
        Ok(Report { answered, has_questions: asked.questions.is_some(), similarity })
    }

    fn summary(Report { answered, .. }: &Report) -> Summary {
        let asked = answered.analogies.as_ref().map_or(0, |report| report.total().asked);
        Summary {
            items: ("questions", asked),
            seconds: answered.seconds,
            stats: answered.stats,
            stopped: answered.stopped,
            nodes: answered.nodes,
            workers: answered.workers,
        }
    }

    fn quality(&self, subject: &Subject, report: &Report) -> String {
        super::table(report.analogies(), report.similarity.as_ref(), subject.asked.are_planted)
    }

    fn object(&self, subject: &Subject, report: &Report) -> impl Serialize {
        let are_planted = subject.asked.are_planted;
        Own {
            dim: subject.vectors.dim(),
            vocabulary: subject.vectors.words().len(),
            quality: Quality::new(report.analogies(), report.similarity.as_ref(), are_planted),
        }
    }
}

impl Report {
    /// The answers, if there were questions.
    fn analogies(&self) -> Option<&wv::AnalogyReport> {
        self.answered.analogies.as_ref().filter(|_| self.has_questions)
    }
}

/// What is the task's in the object of an evaluation.
#[derive(Serialize)]
struct Own {
    dim: usize,
    vocabulary: usize,
    #[serde(flatten)]
    quality: Quality,
}

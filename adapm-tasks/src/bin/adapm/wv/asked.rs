//! What vectors are asked: questions of analogy, and how similar words are.

use std::path::PathBuf;

use adapm_tasks::wv::{Analogies, Similarities};

use crate::args::wv::QuestionArgs;
use crate::failure::Failure;
use crate::format;
use crate::input;
use crate::train::Plan;

/// Questions and pairs, if there are any.
pub(super) struct Asked {
    pub(super) questions: Option<Analogies>,
    /// The questions are those of the generated text.
    pub(super) are_planted: bool,
    pub(super) similarities: Option<Similarities>,
}

impl Asked {
    /// Reads what `args` name; if that is nothing, `planted` says whether to ask about the generated text.
    pub(super) fn new(args: &QuestionArgs, planted: bool) -> Result<Self, Failure> {
        let path = |name: &PathBuf| input::locate(super::TASK, name);
        let questions = args.questions.as_ref().map(|name| Ok::<_, Failure>(Analogies::load(&path(name)?)?));
        let similarities =
            args.similarity.as_ref().map(|name| Ok::<_, Failure>(Similarities::load(&path(name)?)?));
        let (questions, similarities) = (questions.transpose()?, similarities.transpose()?);
        let are_planted = planted && questions.is_none();
        let questions = if are_planted { Some(Analogies::planted()) } else { questions };
        Ok(Self { questions, are_planted, similarities })
    }

    /// What tells where the questions are from.
    pub(super) fn source(&self, args: &QuestionArgs) -> String {
        let files = [&args.questions, &args.similarity].into_iter().flatten();
        let mut sources: Vec<String> = files.map(|path| path.display().to_string()).collect();
        if self.are_planted {
            sources.insert(0, "generated questions".to_owned());
        }
        sources.join(", ")
    }

    /// Adds rows of what is asked.
    pub(super) fn plan(&self, plan: &mut Plan<'_>) {
        if let Some(questions) = &self.questions {
            let origin = if self.are_planted { " about the generated text" } else { "" };
            let count = format!("{}{origin}", format::count(questions.len() as u64));
            plan.row("questions", &count, &["questions"]);
        }
        if let Some(similarities) = &self.similarities {
            let count = format!("{} pairs", format::count(similarities.len() as u64));
            plan.row("similarity", &count, &["similarity"]);
        }
        if self.questions.is_none() && self.similarities.is_none() {
            plan.row(
                "questions",
                "none: give --questions or --similarity to learn how good the vectors are",
                &["no-eval"],
            );
        }
    }
}

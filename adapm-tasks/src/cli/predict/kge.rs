//! Queries of knowledge graph embeddings: head, relation, tail, one end of which may be asked for.

use serde_json::Value;

use crate::kge::{self, Graph};
use crate::run::{CheckpointError, TaskError};

use crate::cli::args::predict::{AskArgs, KgeArgs};
use crate::cli::failure::Failure;
use crate::cli::predict::{Answer, Answering, KNOWN, Named, Predicting, named, number};
use crate::cli::query::{self, Query, Separated};

impl Predicting for KgeArgs {
    const TASK: &'static str = "kge";
    const OF_FLAGS: &'static str = "give --relation with --head, --tail or both";
    const OF_LINE: &'static str =
        "give head, relation and tail, with ? for the head or the tail if it is asked for";
    const SEPARATED: Separated = Separated::ByTabsOrBlanks;
    type Data = Graph;
    type Model<'d> = kge::Predictor<'d>;

    fn ask(&self) -> &AskArgs {
        &self.ask
    }

    fn query(&self) -> Option<Query> {
        let fields = [&self.head, &self.relation, &self.tail];
        let is_any = fields.iter().any(|field| field.is_some());
        let flags = &["--head", "--relation", "--tail"];
        is_any.then(|| Query::of_flags(flags, fields.map(Clone::clone)))
    }

    fn complete(mut query: Query) -> Option<Query> {
        if query.fields.len() == 2 {
            query.fields.push(None);
        }
        let fits = matches!(query.fields.as_slice(), [Some(_), Some(_), _] | [_, Some(_), Some(_)]);
        fits.then_some(query)
    }

    fn open(&self) -> Result<kge::Predictor<'static>, Failure> {
        let predictor = kge::Predictor::open(&self.ask.load).map_err(TaskError::Checkpoint)?;
        Ok(predictor.with_known(self.known))
    }

    fn data(&self, model: &kge::Predictor<'_>) -> Result<Option<Graph>, Failure> {
        let (graph, source) = self.data.read()?;
        let is_asked = !source.is_generated;
        Ok((is_asked || model.check_facts(&graph).is_ok()).then_some(graph))
    }

    fn with_data<'d>(
        &self,
        model: kge::Predictor<'static>,
        graph: Option<&'d Graph>,
    ) -> Result<kge::Predictor<'d>, Failure> {
        match graph {
            Some(graph) => Ok(model.with_facts(graph).map_err(TaskError::Checkpoint)?),
            None => Ok(model),
        }
    }
}

impl Answering for kge::Predictor<'_> {
    fn kind(field: usize) -> &'static str {
        if field == RELATION { "relation" } else { "entity" }
    }

    fn find(&self, field: usize, asked: &[&[u8]]) -> Vec<Option<usize>> {
        let names = if field == RELATION { self.relations() } else { self.entities() };
        query::places(names, asked, false)
    }

    fn names(&self, field: usize) -> Vec<String> {
        query::texts(if field == RELATION { self.relations() } else { self.entities() })
    }

    fn check(&mut self) -> Result<(), CheckpointError> {
        kge::Predictor::check(self)
    }

    fn answer(&mut self, queries: &[Query], top: usize) -> Result<Vec<Answer>, Failure> {
        let query = |query: &Query| {
            let [head, relation, tail] =
                [0, RELATION, 2].map(|field| query.index(field).map(|index| index as u32));
            let relation = relation.unwrap_or_default();
            match (head, tail) {
                (Some(subject), Some(object)) => {
                    kge::Query::Triple(kge::Triple { subject, relation, object })
                }
                (None, object) => {
                    kge::Query::Subjects { relation, object: object.unwrap_or_default() }
                }
                (Some(subject), None) => kge::Query::Objects { subject, relation },
            }
        };
        let queries: Vec<kge::Query> = queries.iter().map(query).collect();
        let answers = kge::Predictor::answer(self, &queries, top)?;
        let known = |is_known: bool| Value::from(self.facts().map(|_| is_known));
        let named = |candidate: &kge::Candidate| Named {
            name: self.entities().text(candidate.entity as usize).unwrap_or_default().into_owned(),
            score: ("score", candidate.score),
            known: Some(known(candidate.is_known)),
        };
        let answer = |answer: kge::Answer| match answer {
            kge::Answer::Entities(entities) => Answer::Names(entities.iter().map(named).collect()),
            kge::Answer::Triple { object, subject, is_known } => Answer::Figures(vec![
                ("tail_score", number(object.score)),
                ("tail_rank", object.rank.mean().into()),
                ("head_score", number(subject.score)),
                ("head_rank", subject.rank.mean().into()),
                (KNOWN, known(is_known)),
            ]),
        };
        Ok(answers.into_iter().map(answer).collect())
    }

    fn named(query: &Query) -> Vec<(&'static str, Value)> {
        named(query, ["head", "relation", "tail"])
    }

    fn own(&self) -> Vec<(&'static str, Value)> {
        let weight = self.facts().map_or(0.0, |_| self.frequency_weight());
        vec![
            ("entities", self.entities().len().into()),
            ("frequency_weight", number(weight)),
            ("data", self.facts().map(|graph| graph.source().to_string()).into()),
        ]
    }

    fn note(&self, _: &[Query]) -> Option<String> {
        if let Some(graph) = self.facts() {
            let source = graph.source();
            return graph.is_generated().then(|| format!("known are the facts of {source}"));
        }
        let frequency = match self.frequency_weight() {
            0.0 => String::new(),
            weight => format!("; frequency, which weighs {weight} in eval, does not count"),
        };
        Some(format!("without --data known facts are among the answers, and in ranks{frequency}"))
    }
}

/// The field of a triple that is a relation.
const RELATION: usize = 1;

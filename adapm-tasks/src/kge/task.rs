//! Training embeddings as a run does it: what a loader prepares, what a step does, which epoch is better.

use std::sync::Arc;

use adapm_core::{Clock, Key};
use adapm_runtime::{Scheme, System};

use crate::kge::config::{Negatives, TrainConfig};
use crate::kge::graph::Graph;
use crate::kge::independent::IndependentStep;
use crate::kge::initial;
use crate::kge::loader::{Loader, pace};
use crate::kge::model::Model;
use crate::kge::order::Order;
use crate::kge::partition::Parts;
use crate::kge::plan::{Chunk, Planner};
use crate::kge::prior::{Chosen, Prior, Weighing};
use crate::kge::ranking::Ranking;
use crate::kge::recipe::Recipe;
use crate::kge::shape::Shape;
use crate::kge::sizes::Sizes;
use crate::kge::step::SharedStep;
use crate::kge::traced;
use crate::metric::RankMetrics;
use crate::run;
use crate::run::config::Split;
use crate::run::draws::Draws;
use crate::run::parameters::{Announcer, Parameters};
use crate::run::queue::{Over, Queue};
use crate::run::seat::Seat;
use crate::run::task::{Course, FiguresOf, Form, Initial, Round, StepError, Task, Tell, Unit};

/// Embeddings of a graph that are trained.
#[derive(Clone, Copy)]
pub(crate) struct Embeddings<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) config: &'a TrainConfig,
    /// Empty until facts are dealt by them.
    pub(crate) parts: &'a Parts,
    pub(crate) sizes: Sizes,
    /// What frequency says, if it counts: in what is trained on, for valid, and in all training triples, for test.
    pub(crate) priors: Option<&'a [Prior; 2]>,
    /// How much it counts.
    pub(crate) chosen: &'a Chosen,
}

/// A worker's memory for the steps of a configuration.
pub(crate) enum Step {
    Shared(SharedStep),
    Independent(IndependentStep),
}

impl Embeddings<'_> {
    pub(crate) fn model(self) -> Model {
        Model { kind: self.config.model, dim: self.config.dim }
    }

    /// The shape of the parameters; `halves` is 2 with accumulators, else 1.
    fn shape_of(self, halves: usize) -> Shape {
        Shape::of(self.graph, self.model(), self.config.reciprocal, halves)
    }

    /// Positives of a chunk, and chunks that are announced ahead.
    fn pace(self) -> (usize, usize) {
        pace(self.config, self.sizes.chunk, self.config.system.is_some_and(System::localizes))
    }
}

impl<'a> Task for Embeddings<'a> {
    type Unit<S: Send> = Chunk<S>;
    type Loader = Loader<'a>;
    type Learner = Step;
    type Examination = Ranking<'a>;

    fn shape(&self) -> run::shape::Shape {
        self.shape_of(2).groups()
    }

    fn kept(&self) -> run::shape::Shape {
        self.shape_of(1).groups()
    }

    fn initial(&self) -> Initial {
        let TrainConfig { seed, initial_deviation: deviation, .. } = *self.config;
        Arc::new(move |key, value| initial::value(seed, deviation, key, value))
    }

    fn name_of(&self, key: Key) -> String {
        traced::name_of(self.graph, key.0 as usize)
    }

    fn draws(&self) -> Option<Draws> {
        Some(self.shape_of(2).draws())
    }

    fn scheme(&self) -> Option<Scheme> {
        self.config.scheme
    }

    fn examples(&self) -> u64 {
        self.graph.train.len() as u64
    }

    fn ahead(&self) -> usize {
        let (_, ahead) = self.pace();
        ahead
    }

    fn loader(&self, seat: Seat, _: &Tell<'_>) -> Loader<'a> {
        let Self { graph, config, parts, sizes, .. } = *self;
        let inverse_offset = config.reciprocal.then_some(graph.relations.len() as u64);
        let planner = Planner { shape: self.shape_of(2), negatives: config.negatives, inverse_offset };
        let order = Order::new(config.seed, &graph.train, sizes.chunk, seat, parts);
        let sides = if config.negatives == Negatives::Independent { 2 } else { 1 };
        let sampled = sides * sizes.negatives;
        let (chunk, _) = self.pace();
        Loader { train: &graph.train, order, planner, chunk, sampled, clock: Clock(0) }
    }

    fn load<A: Announcer>(
        &self,
        loader: &mut Loader<'a>,
        _: Round,
        announcer: &mut A,
        queue: &Queue<Chunk<A::Sample>>,
    ) -> Result<(), Over> {
        loader.epoch(announcer, queue)
    }

    fn learner(&self) -> Step {
        let recipe = Recipe::new(self.config, self.shape_of(2), self.sizes);
        match self.config.negatives {
            Negatives::Shared => Step::Shared(SharedStep::new(recipe)),
            Negatives::Independent => Step::Independent(IndependentStep::new(recipe)),
        }
    }

    fn learning_rate(&self, _: &Course<'_>) -> f32 {
        self.config.learning_rate
    }

    fn train<P: Parameters>(
        &self,
        step: &mut Step,
        chunk: &mut Chunk<P::Sample>,
        learning_rate: f32,
        parameters: &mut P,
    ) -> Result<f64, StepError<P::Error>> {
        match step {
            Step::Shared(step) => {
                step.recipe.optimizer.learning_rate = learning_rate;
                step.train(chunk, parameters)
            }
            Step::Independent(step) => {
                step.recipe.optimizer.learning_rate = learning_rate;
                step.train(chunk, parameters)
            }
        }
    }

    fn examination(&self, split: Split, form: Form, _: Option<&FiguresOf<Self>>) -> Option<Ranking<'a>> {
        let halves = if form == Form::Trained { 2 } else { 1 };
        let (shape, reciprocal) = (self.shape_of(halves), self.config.reciprocal);
        let ranking = || {
            let ranking = Ranking::new(self.graph, split, self.model(), shape, reciprocal);
            match (self.priors, split) {
                (None, _) => ranking,
                (Some([prior, _]), Split::Valid) => {
                    ranking.weighing(Weighing::all(prior)).choosing(self.chosen)
                }
                // Test is examined when the epoch is chosen, and the weight with it.
                (Some([_, prior]), Split::Test) => {
                    ranking.weighing(Weighing::by(prior, self.chosen.weight()))
                }
            }
        };
        (!self.graph.part(split).is_empty()).then(ranking)
    }

    fn is_better(&self, figures: &RankMetrics, best: &RankMetrics) -> bool {
        figures.mrr > best.mrr
    }
}

impl<S> Unit<S> for Chunk<S> {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn examples(&self) -> u64 {
        self.positives.len() as u64
    }

    fn sample(&mut self) -> Option<&mut S> {
        // Of a chunk that is many steps, what is chosen now would have to stay here for too long.
        (self.steps == 1).then_some(&mut self.sample)
    }
}

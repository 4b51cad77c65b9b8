//! Who trains on which facts, and in which order: a pure function of the seed.
//!
//! Facts are dealt to workers anew every epoch: by chance, by their rarer entity, or by the part of the graph that it is in
//! ([`Dealing`]). By entity, most entities are needed by one node only for as long as an epoch lasts; by part, for the whole run.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::kge::graph::Triple;
use crate::kge::partition::{Parts, partition, rarer};
use crate::run::seat::Seat;

/// The part of one worker: positions in the training data, in another order every epoch. 4 bytes for each entity, and 4 more while
/// an epoch is dealt; 4 for each fact of the part, and for a moment 24 for each with an entity of another part; an epoch looks at
/// all facts once.
#[derive(Clone, Debug)]
pub(crate) struct Order<'a> {
    train: &'a [Triple],
    /// How many subjects and objects each entity is.
    degrees: Vec<u32>,
    dealing: Dealing<'a>,
    seat: Seat,
    /// No epoch was dealt yet.
    is_first: bool,
    positions: Vec<u32>,
    /// The same for all workers.
    dealer: Xoshiro256PlusPlus,
    shuffler: Xoshiro256PlusPlus,
}

/// To whom facts go. `step` facts are one step: the more of an entity's facts are in it, the more gradients come from the same
/// value of it, and the more of an entity's facts a node has, the more of them are in a step.
#[derive(Clone, Debug)]
enum Dealing<'a> {
    /// To any worker: where steps are many facts of few entities.
    Chance,
    /// Those with the same rarer entity to the same worker, another one every epoch: while an average entity is the rarer one of
    /// at most a fact in eight steps. Against that rule, CoDEx-S on four nodes ended at a mean reciprocal rank of 0.423 instead of
    /// 0.435 (means of three seeds, with the recipe).
    Entity,
    /// To the node in whose part of the graph the rarer entity is, and those with the same rarer entity to the same of its workers:
    /// while a step is one fact. What a node needs of entities in other parts stands together, so that they come once for many
    /// facts. The first epoch is dealt by entity: negatives come from what is here, and a node that has only ever seen its own part
    /// never learns to tell other parts from it.
    Part(&'a [u32]),
}

impl<'a> Order<'a> {
    /// The part of the worker in `seat`, where `step` facts are one step; `parts` are shared with the other workers of the process.
    pub(crate) fn new(seed: u64, train: &'a [Triple], step: usize, seat: Seat, parts: &'a Parts) -> Self {
        let dealer = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut shuffler = dealer.clone();
        for _ in 0..=seat.number {
            shuffler.jump();
        }
        let entities = train.iter().flat_map(|triple| [triple.subject, triple.object]);
        let mut degrees = vec![0; entities.clone().max().map_or(0, |last| last as usize + 1)];
        entities.for_each(|entity| degrees[entity as usize] += 1);
        let by_entity = step.saturating_mul(8 * seat.all) <= degrees.len();
        let dealing = match step {
            _ if !by_entity => Dealing::Chance,
            0 | 1 => Dealing::Part(parts.get_or_init(|| {
                let mut random = dealer.clone();
                random.long_jump();
                partition(train, &degrees, seat.nodes(), &mut random)
            })),
            _ => Dealing::Entity,
        };
        Self { train, degrees, dealing, seat, is_first: true, positions: Vec::new(), dealer, shuffler }
    }

    /// Deals and shuffles for the next epoch and gives the positions. The parts' sizes differ by one at most.
    pub(crate) fn next_epoch(&mut self) -> &[u32] {
        self.positions.clear();
        self.deal();
        self.positions.shuffle(&mut self.shuffler);
        if !self.is_first {
            self.gather();
        }
        self.is_first = false;
        &self.positions
    }

    fn deal(&mut self) {
        let (len, workers, of_node) = (self.train.len(), self.seat.all, self.seat.of_node as u32);
        let dealer = &mut self.dealer;
        let seats: Vec<u32> = match &self.dealing {
            Dealing::Chance => Vec::new(),
            Dealing::Part(nodes) if !self.is_first => {
                nodes.iter().map(|node| node * of_node + dealer.random_range(0..of_node)).collect()
            }
            Dealing::Entity | Dealing::Part(_) => {
                self.degrees.iter().map(|_| dealer.random_range(0..workers as u32)).collect()
            }
        };
        let mut room: Vec<usize> =
            (0..workers).map(|worker| len * (worker + 1) / workers - len * worker / workers).collect();
        let mut left_over = Vec::new();
        // What finds no room is what comes last: other facts every time.
        let first = dealer.random_range(0..len.max(1));
        for position in (first..len).chain(0..first) {
            let by_entity = || seats[rarer(&self.degrees, &self.train[position])] as usize;
            let mut seat = if seats.is_empty() { dealer.random_range(0..workers) } else { by_entity() };
            if room[seat] == 0 && !seats.is_empty() {
                // Somebody of the same node.
                let first = seat - seat % of_node as usize;
                seat = (first..first + of_node as usize).find(|seat| room[*seat] > 0).unwrap_or(seat);
            }
            if room[seat] == 0 {
                left_over.push(position as u32);
                continue;
            }
            room[seat] -= 1;
            if seat == self.seat.number {
                self.positions.push(position as u32);
            }
        }
        let before: usize = room[..self.seat.number].iter().sum();
        self.positions.extend_from_slice(&left_over[before..before + room[self.seat.number]]);
    }

    /// Lets facts with entities of other parts change places with each other, so that some of the same entity follow each other.
    fn gather(&mut self) {
        let Dealing::Part(nodes) = &self.dealing else { return };
        let (train, node) = (self.train, self.seat.node() as u32);
        let foreign = |position: u32| {
            let triple = &train[position as usize];
            [triple.subject, triple.object].into_iter().find(|entity| nodes[*entity as usize] != node)
        };
        let facts = self.positions.iter();
        let mut gathered: Vec<(u32, u32)> =
            facts.filter_map(|position| foreign(*position).map(|entity| (entity, *position))).collect();
        // The sort is stable: facts of an entity stay in the order of the shuffle.
        gathered.sort_by_key(|(entity, _)| *entity);
        let of_an_entity = gathered.chunk_by(|one, other| one.0 == other.0);
        let mut groups: Vec<_> = of_an_entity.flat_map(|facts| facts.chunks(GROUP)).collect();
        groups.shuffle(&mut self.shuffler);
        let mut gathered = groups.into_iter().flatten();
        for position in self.positions.iter_mut().filter(|position| foreign(**position).is_some()) {
            (_, *position) = *gathered.next().expect("as many as were gathered");
        }
    }
}

/// Facts of an entity that follow each other, most of them with some of the node's own part between. More would bring the same
/// entity seldomer, at the price of steps that are all about it.
const GROUP: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts of 100 entities: each has some with the next and some with entity 100, which is in more than any other.
    fn facts() -> Vec<Triple> {
        let fact = |subject, object| Triple { subject, relation: 0, object };
        (0..100).flat_map(|entity| [fact(entity, (entity + 1) % 100), fact(100, entity)]).collect()
    }

    /// Nodes of one worker each.
    fn seat(number: usize, all: usize) -> Seat {
        Seat { number, all, index: 0, here: 1, of_node: 1 }
    }

    fn parts<'a>(train: &'a [Triple], step: usize, workers: usize, shared: &'a Parts) -> Vec<Order<'a>> {
        (0..workers).map(|worker| Order::new(9, train, step, seat(worker, workers), shared)).collect()
    }

    #[test]
    fn parts_cover_the_data_once_and_differ_between_epochs() {
        let train = facts();
        for step in [1, 4, 256] {
            let shared = Parts::new();
            let mut parts = parts(&train, step, 3, &shared);
            let mut epoch = || parts.iter_mut().map(|part| part.next_epoch().to_vec()).collect::<Vec<_>>();
            let epochs = [epoch(), epoch()];
            assert!(epochs.iter().flatten().all(|part| (66..=67).contains(&part.len())));
            let [mut first, mut second] = epochs.map(|epoch| epoch.concat());
            assert_ne!(first, second);
            for epoch in [&mut first, &mut second] {
                epoch.sort_unstable();
                assert!(epoch.iter().copied().eq(0..200));
            }
        }
    }

    /// In how many of five epochs' 100 pairs both facts dealt by an entity are together: with the next one, which is as rare,
    /// and with entity 100.
    fn together(train: &[Triple], step: usize) -> usize {
        let shared = Parts::new();
        let mut parts = parts(train, step, 2, &shared);
        let mut epoch = || parts.iter_mut().map(|part| part.next_epoch().to_vec()).collect::<Vec<_>>();
        let pairs = |epoch: Vec<Vec<u32>>| {
            let of = |position| epoch.iter().position(|part| part.contains(&position));
            (0..100_u32).filter(|entity| of(2 * entity) == of(2 * entity + 1)).count()
        };
        (0..5).map(|_| pairs(epoch())).sum()
    }

    #[test]
    fn facts_with_the_same_rarer_entity_are_together_but_for_what_makes_sizes_equal() {
        let train = facts();
        assert!([1, 6].iter().all(|step| together(&train, *step) >= 375), "by part, by entity");
        assert!((200..300).contains(&together(&train, 256)), "by chance");
    }

    /// Two families of 50, in each of which everybody knows 30 others; one in ten facts is with somebody of the other one.
    fn families() -> Vec<Triple> {
        let other = |subject: u32, nth: u32| {
            let family = if nth.is_multiple_of(10) { 1 - subject % 2 } else { subject % 2 };
            (subject / 2 + nth) % 50 * 2 + family
        };
        let facts = (0..100).flat_map(|subject| (1..=30).map(move |nth| (subject, other(subject, nth))));
        facts.map(|(subject, object)| Triple { subject, relation: 0, object }).collect()
    }

    fn seats() -> [Seat; 4] {
        [0, 1, 2, 3].map(|number| Seat { number, all: 4, index: number % 2, here: 2, of_node: 2 })
    }

    #[test]
    fn a_node_keeps_its_part_of_the_graph_and_its_workers_share_it_anew() {
        let train = families();
        let shared = Parts::new();
        let mut orders = seats().map(|seat| Order::new(5, &train, 1, seat, &shared));
        let mut epoch = || {
            let parts = orders.each_mut().map(|order| order.next_epoch().to_vec());
            (0..train.len() as u32)
                .map(|fact| parts.iter().position(|part| part.contains(&fact)).expect("somebody has it"))
                .collect::<Vec<usize>>()
        };
        let [first, one, other] = [epoch(), epoch(), epoch()];
        let stay = first.iter().zip(&one).filter(|(first, one)| *first / 2 == *one / 2).count();
        assert!(
            (train.len() / 3..train.len() * 2 / 3).contains(&stay),
            "{stay}: the first is dealt by entity"
        );
        let same = |same: fn(usize, usize) -> bool| {
            one.iter().zip(&other).filter(|(one, other)| same(**one, **other)).count()
        };
        assert!(same(|one, other| one / 2 == other / 2) > train.len() * 9 / 10, "the node");
        let worker = same(|one, other| one == other);
        assert!((train.len() / 3..train.len() * 2 / 3).contains(&worker), "{worker} of {}", train.len());
    }

    #[test]
    fn nodes_in_one_process_deal_as_processes_do() {
        let train = families();
        for seat in seats() {
            let shared = [Parts::new(), Parts::new()];
            let together = Seat { here: 4, index: seat.number, ..seat };
            let epoch = |seat, shared| Order::new(5, &train, 1, seat, shared).next_epoch().to_vec();
            assert_eq!(epoch(seat, &shared[0]), epoch(together, &shared[1]));
        }
    }

    #[test]
    fn facts_with_an_entity_of_another_part_follow_each_other() {
        let train = families();
        for seat in seats() {
            let shared = Parts::new();
            let mut order = Order::new(5, &train, 1, seat, &shared);
            let first = order.next_epoch().to_vec();
            let positions = order.next_epoch().to_vec();
            assert_ne!(first, positions);
            let node = seat.node() as u32;
            let Dealing::Part(nodes) = &order.dealing else { panic!("steps are one fact") };
            let foreign = |position: &u32| {
                let Triple { subject, object, .. } = train[*position as usize];
                [subject, object].into_iter().find(|entity| nodes[*entity as usize] != node)
            };
            let entities: Vec<u32> = positions.iter().filter_map(foreign).collect();
            assert!((20..400).contains(&entities.len()), "{}", entities.len());
            let mut once = entities.clone();
            once.sort_unstable();
            let groups = once.chunk_by(u32::eq).map(|facts| facts.len().div_ceil(GROUP)).sum::<usize>();
            assert!(entities.chunk_by(u32::eq).count() <= groups, "{entities:?}");
            let own = positions.iter().position(|position| foreign(position).is_none());
            let last = positions.iter().rposition(|position| foreign(position).is_none());
            let middle = positions.len() / 2;
            assert!(own < Some(middle) && last > Some(middle), "own facts stand between them");
        }
    }

    #[test]
    fn more_workers_than_facts_leave_some_without() {
        let train = facts();
        let lens: Vec<usize> =
            parts(&train[..2], 1, 4, &Parts::new()).iter_mut().map(|part| part.next_epoch().len()).collect();
        assert_eq!(lens.iter().sum::<usize>(), 2);
        assert!(Order::new(9, &[], 256, Seat::ONLY, &Parts::new()).next_epoch().is_empty());
    }
}

//! Parts cover the data once, are of the same size and have few facts between them; the order is a
//! pure function of the seed.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

/// Facts of 100 entities: each has some with the next and some with entity 100, which is in more
/// than any other.
fn facts() -> Vec<Triple> {
    let fact = |subject, object| Triple { subject, relation: 0, object };
    (0..100).flat_map(|entity| [fact(entity, (entity + 1) % 100), fact(100, entity)]).collect()
}

fn parts<'a>(
    train: &'a [Triple],
    step: usize,
    workers: &'a [usize],
    shared: &'a Parts,
) -> Vec<Order<'a>> {
    let order = |slot| Order::new(9, train, step, (slot, workers), shared);
    WorkerSlot::all_of(workers, true).map(order).collect()
}

#[test]
fn parts_cover_the_data_once_and_differ_between_epochs() {
    let train = facts();
    for step in [1, 4, 256] {
        let shared = Parts::new();
        let mut parts = parts(&train, step, &[1; 3], &shared);
        let mut epoch =
            |epoch| parts.iter_mut().map(|part| part.epoch(epoch).to_vec()).collect::<Vec<_>>();
        let epochs = [1, 2].map(&mut epoch);
        assert!(epochs.iter().flatten().all(|part| (66..=67).contains(&part.len())));
        let [mut first, mut second] = epochs.map(|epoch| epoch.concat());
        assert_ne!(first, second);
        for epoch in [&mut first, &mut second] {
            epoch.sort_unstable();
            assert!(epoch.iter().copied().eq(0..200));
        }
    }
}

/// In how many of five epochs' 100 pairs both facts dealt by an entity are together: with the next
/// one, which is as rare, and with entity 100.
fn together(train: &[Triple], step: usize) -> usize {
    let shared = Parts::new();
    let mut parts = parts(train, step, &[1; 2], &shared);
    let mut epoch =
        |epoch| parts.iter_mut().map(|part| part.epoch(epoch).to_vec()).collect::<Vec<_>>();
    let pairs = |epoch: Vec<Vec<u32>>| {
        let of = |position| epoch.iter().position(|part| part.contains(&position));
        (0..100_u32).filter(|entity| of(2 * entity) == of(2 * entity + 1)).count()
    };
    (1..=5).map(|number| pairs(epoch(number))).sum()
}

#[test]
fn facts_with_the_same_rarer_entity_are_together_but_for_what_makes_sizes_equal() {
    let train = facts();
    assert!([1, 6].iter().all(|step| together(&train, *step) >= 375), "by part, by entity");
    assert!((200..300).contains(&together(&train, 256)), "by chance");
}

/// Returns two families of 50 entities each. Each entity has facts with 30 others of its family;
/// one fact in ten is with an entity of the other family.
fn two_families() -> Vec<Triple> {
    let other = |subject: u32, nth: u32| {
        let family = if nth.is_multiple_of(10) { 1 - subject % 2 } else { subject % 2 };
        (subject / 2 + nth) % 50 * 2 + family
    };
    let facts =
        (0..100).flat_map(|subject| (1..=30).map(move |nth| (subject, other(subject, nth))));
    facts.map(|(subject, object)| Triple { subject, relation: 0, object }).collect()
}

fn slots() -> [WorkerSlot; 4] {
    let slots: Vec<_> = WorkerSlot::all_of(&[2, 2], true).collect();
    slots.try_into().expect("there are four")
}

#[test]
fn a_node_keeps_its_part_of_the_graph_and_its_workers_share_it_anew() {
    let train = two_families();
    let shared = Parts::new();
    let mut orders = slots().map(|slot| Order::new(5, &train, 1, (slot, &[2, 2]), &shared));
    let mut epoch = |epoch| {
        let parts = orders.each_mut().map(|order| order.epoch(epoch).to_vec());
        (0..train.len() as u32)
            .map(|fact| {
                parts.iter().position(|part| part.contains(&fact)).expect("somebody has it")
            })
            .collect::<Vec<usize>>()
    };
    let [first, one, other] = [1, 2, 3].map(&mut epoch);
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
    assert!(
        (train.len() / 3..train.len() * 2 / 3).contains(&worker),
        "{worker} of {}",
        train.len()
    );
}

#[test]
fn nodes_in_one_process_deal_as_processes_do() {
    let train = two_families();
    for slot in slots() {
        let shared = [Parts::new(), Parts::new()];
        let together = WorkerSlot { here: 4, index: slot.number, ..slot };
        let epoch =
            |slot, shared| Order::new(5, &train, 1, (slot, &[2, 2]), shared).epoch(1).to_vec();
        assert_eq!(epoch(slot, &shared[0]), epoch(together, &shared[1]));
    }
}

#[test]
fn facts_with_an_entity_of_another_part_follow_each_other() {
    let train = two_families();
    for slot in slots() {
        let shared = Parts::new();
        let mut order = Order::new(5, &train, 1, (slot, &[2, 2]), &shared);
        let first = order.epoch(1).to_vec();
        let positions = order.epoch(2).to_vec();
        assert_ne!(first, positions);
        let node = slot.node as u32;
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
    let lens: Vec<usize> = parts(&train[..2], 1, &[1; 4], &Parts::new())
        .iter_mut()
        .map(|part| part.epoch(1).len())
        .collect();
    assert_eq!(lens.iter().sum::<usize>(), 2);
    assert!(Order::new(9, &[], 256, (WorkerSlot::ONLY, &[1]), &Parts::new()).epoch(1).is_empty());
}

/// Returns four families of 30 that know each other well, and few of the others.
fn four_families() -> Vec<Triple> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut fact = |_| {
        let subject = random.random_range(0..120);
        let stranger = random.random_range(0..10) == 0;
        let family = if stranger { random.random_range(0..4) } else { subject % 4 };
        Triple { subject, relation: 0, object: random.random_range(0..30) * 4 + family }
    };
    (0..3_000).map(&mut fact).collect()
}

fn degrees(train: &[Triple]) -> Vec<u32> {
    let mut degrees = vec![0; 120];
    train
        .iter()
        .flat_map(|fact| [fact.subject, fact.object])
        .for_each(|entity| degrees[entity as usize] += 1);
    degrees
}

#[test]
fn few_facts_are_between_parts_of_the_same_size() {
    let train = four_families();
    let degrees = degrees(&train);
    // By chance, a half, two thirds and three quarters of the facts are between parts.
    for (parts, mean_max) in [(1, 0.0), (2, 0.2), (3, 0.4), (4, 0.5)] {
        let of = |seed| {
            partition(
                &train,
                &degrees,
                &vec![1; parts],
                &mut Xoshiro256PlusPlus::seed_from_u64(seed),
            )
        };
        assert_eq!(of(1), of(1), "a function of the seed");
        let mut between = 0;
        for seed in 0..20 {
            let of = of(seed);
            between += train
                .iter()
                .filter(|fact| of[fact.subject as usize] != of[fact.object as usize])
                .count();
            let mut loads = vec![0; parts];
            train.iter().for_each(|fact| loads[of[rarer(&degrees, fact)] as usize] += 1);
            let largest = loads.iter().max().expect("there are parts");
            assert!(
                largest * parts <= train.len() * 11 / 10,
                "{parts} parts, seed {seed}: {loads:?}"
            );
        }
        let share = between as f64 / (20 * train.len()) as f64;
        assert!(share <= mean_max, "{parts} parts: {share}");
    }
}

#[test]
fn no_facts_and_more_parts_than_entities_are_fine() {
    let mut dealer = Xoshiro256PlusPlus::seed_from_u64(1);
    assert!(partition(&[], &[], &[1; 3], &mut dealer).is_empty());
    let train = [Triple { subject: 0, relation: 0, object: 1 }];
    assert!(partition(&train, &[1, 1], &[1; 9], &mut dealer).iter().all(|part| *part < 9));
}

/// Machines that differ (AdaPM §4.2): each worker has its share, and a node keeps its part.
#[test]
fn a_node_with_more_workers_has_a_larger_part() {
    let train = two_families();
    let (workers, shared) = (&[3, 1], Parts::new());
    let mut orders = parts(&train, 1, workers, &shared);
    let mut epoch = |epoch| {
        let of = orders.iter_mut().map(|order| order.epoch(epoch).to_vec());
        of.collect::<Vec<Vec<u32>>>()
    };
    let [one, other] = [2, 3].map(&mut epoch);
    for of in [&one, &other] {
        assert!(of.iter().all(|part| part.len().abs_diff(train.len() / 4) <= 1));
        let mut all = of.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..train.len() as u32));
    }
    let stay = one[3].iter().filter(|fact| other[3].contains(fact)).count();
    // By chance, a quarter would.
    assert!(stay > one[3].len() * 3 / 4, "{stay} of {}", one[3].len());
}

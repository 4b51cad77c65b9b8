//! Which worker visits which cells, in which order.

use super::*;
use crate::mf::config::Order;
use crate::mf::ratings::Ratings;
use crate::mf::residuals::Residuals;
use crate::mf::synthetic::SyntheticConfig;
use crate::mf::tiles::CHUNK_CELLS;
use crate::partition::Partition;

type Visited = (u32, u32, u32);

fn ratings() -> Ratings {
    let config =
        SyntheticConfig { rows: 90, columns: 40, cells: 900, ..SyntheticConfig::default() };
    Ratings::synthetic(config).expect("valid")
}

fn visits(order: Order, workers: &[usize]) -> Vec<Visits> {
    visits_by(None, order, workers)
}

fn visits_by(
    partition: Option<&Arc<PartitionFile>>,
    order: Order,
    workers: &[usize],
) -> Vec<Visits> {
    let ratings = ratings();
    let residuals = Residuals::new(&ratings, Vec::new());
    let mut division = Division::new(&residuals, order, workers, 5);
    partition.iter().for_each(|partition| division.deal_by(partition));
    let all = division.workers();
    assert_eq!(division.rounds(), if order == Order::Dsgd { all } else { 1 });
    let visits =
        |slot: WorkerSlot| Visits::new(division.part(slot, &|_, _| {}), 5, slot.number, all);
    WorkerSlot::all_of(workers, true).map(visits).collect()
}

/// Returns the chunks of an epoch, round by round.
fn rounds(visits: &Visits, epoch: u32) -> Vec<Vec<Chunk>> {
    let rounds = match visits.part() {
        Part::Blocks { own, .. } => own.len(),
        Part::Cells(_) => 1,
    };
    let round = |index| {
        let mut chunks = Vec::new();
        let round = Round { epoch, index: index as u32 };
        let taken: Result<(), ()> = visits.round(round, 0, &mut |chunk| {
            assert!(!chunk.cells.is_empty());
            chunks.push(chunk);
            Ok(())
        });
        assert_eq!(taken, Ok(()));
        chunks
    };
    (0..rounds).map(round).collect()
}

fn chunks(visits: &Visits, epoch: u32) -> Vec<Chunk> {
    rounds(visits, epoch).concat()
}

fn visited(chunks: &[Chunk]) -> Vec<Visited> {
    let of_chunk = |chunk: &Chunk| {
        let cell = |cell: &Visit| {
            let (row, column) =
                (chunk.rows[usize::from(cell.row)], chunk.columns[usize::from(cell.column)]);
            (row, column, cell.value.to_bits())
        };
        chunk.cells.iter().map(cell).collect::<Vec<_>>()
    };
    chunks.iter().flat_map(of_chunk).collect()
}

#[test]
fn every_order_visits_each_cell_once_an_epoch_and_another_way_in_the_next() {
    let mut expected = Vec::new();
    let ratings = ratings();
    Residuals::new(&ratings, Vec::new())
        .for_each(0..90, |cell| expected.push((cell.row, cell.column, cell.value.to_bits())));
    expected.sort_unstable();
    for order in [Order::Columnwise, Order::Dsgd, Order::Plain] {
        for workers in [&[1][..], &[1, 1], &[3, 3], &[50], &[1, 4, 2]] {
            let all = visits(order, workers);
            let are_few = all.len() < 8;
            let epoch = |epoch| {
                let of_all = all.iter().flat_map(|visits| visited(&chunks(visits, epoch)));
                of_all.collect::<Vec<Visited>>()
            };
            let [mut first, mut second] = [1, 2].map(epoch);
            assert!(!are_few || first != second, "the same in both");
            for epoch in [&mut first, &mut second] {
                epoch.sort_unstable();
                assert!(*epoch == expected, "{order:?} {workers:?}");
            }
        }
    }
}

#[test]
fn columnwise_gives_rows_to_nodes_and_columns_to_workers() {
    let all = visits(Order::Columnwise, &[2, 2]);
    let cells: Vec<Vec<Visited>> = all.iter().map(|visits| visited(&chunks(visits, 1))).collect();
    let distinct = |worker: usize, of: fn(&Visited) -> u32| {
        let mut found: Vec<u32> = cells[worker].iter().map(of).collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    for (a, b) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        let rows = [a, b].map(|worker| distinct(worker, |cell| cell.0));
        assert!(
            rows[0].iter().all(|row| rows[1].binary_search(row).is_err()),
            "rows of other nodes"
        );
    }
    for (a, b) in [(0, 1), (2, 3)] {
        let [first, second] = [a, b].map(|worker| distinct(worker, |cell| cell.1));
        assert!(
            first.iter().all(|column| second.binary_search(column).is_err()),
            "one node's workers"
        );
    }
    assert_eq!(all[0].part().rows(90), distinct(0, |cell| cell.0));
}

#[test]
fn under_a_partition_rows_are_visited_where_they_lie() {
    let workers = [1, 3];
    let home: Vec<u16> = (0..130).map(|key| u16::from(key % 3 == 0)).collect();
    let (secondary, sample) = (vec![Vec::new(); 2], Vec::new());
    let parts = Partition { home: home.clone(), secondary, sample };
    let partition = Arc::new(PartitionFile::new("mf", 1, 0, parts));
    for order in [Order::Columnwise, Order::Dsgd, Order::Plain] {
        let mut seen = Vec::new();
        let all = visits_by(Some(&partition), order, &workers);
        for (slot, visits) in WorkerSlot::all_of(&workers, true).zip(&all) {
            let cells = visited(&chunks(visits, 1));
            assert!(!cells.is_empty(), "{order:?} {slot:?}");
            let is_here = |(row, ..): &Visited| usize::from(home[*row as usize]) == slot.node;
            assert!(cells.iter().all(is_here), "{order:?} {slot:?}");
            seen.extend(cells);
        }
        let mut expected = visited(&chunks(&visits(order, &[1])[0], 1));
        seen.sort_unstable();
        expected.sort_unstable();
        assert!(seen == expected, "{order:?}");
    }
}

#[test]
fn in_a_sub_epoch_no_two_workers_of_dsgd_meet() {
    let workers = 4;
    let all = visits(Order::Dsgd, &[2; 2]);
    for epoch in 1..=3 {
        let sub_epochs: Vec<Vec<Vec<Visited>>> = all
            .iter()
            .map(|visits| rounds(visits, epoch).iter().map(|chunks| visited(chunks)).collect())
            .collect();
        for turn in 0..workers {
            let mut owners = [None; 40];
            for (worker, parts) in sub_epochs.iter().enumerate() {
                for (_, column, _) in &parts[turn] {
                    let owner = owners[*column as usize].get_or_insert(worker);
                    assert_eq!(*owner, worker, "column {column} in turn {turn}");
                }
            }
        }
    }
}

#[test]
fn schedules_are_latin_squares_and_differ_between_epochs() {
    for workers in [1, 2, 5] {
        let schedule = Schedule::new(7, 1, workers);
        for fixed in 0..workers {
            let by_turn = (0..workers).map(|turn| schedule.block(fixed, turn));
            let by_worker = (0..workers).map(|worker| schedule.block(worker, fixed));
            for mut blocks in [by_turn.collect::<Vec<_>>(), by_worker.collect()] {
                blocks.sort_unstable();
                assert!(blocks.into_iter().eq(0..workers));
            }
        }
    }
    let first = Schedule::new(7, 1, 5);
    assert!((2..5).any(|epoch| Schedule::new(7, epoch, 5).blocks != first.blocks));
}

#[test]
fn any_cells_make_a_chunk_that_has_each_row_and_column_once_and_a_refused_chunk_ends_the_visit() {
    for order in [Order::Columnwise, Order::Plain] {
        let ratings = Ratings::synthetic(SyntheticConfig::default()).expect("valid");
        let residuals = Residuals::new(&ratings, Vec::new());
        let part = Division::new(&residuals, order, &[1], 5).part(WorkerSlot::ONLY, &|_, _| {});
        let (visits, mut taken) = (Visits::new(part, 5, 0, 1), 0);
        let refused = visits.round(Round { epoch: 1, index: 0 }, 0, &mut |chunk| {
            taken += 1;
            for list in [&chunk.rows, &chunk.columns] {
                let mut distinct = list.clone();
                distinct.sort_unstable();
                distinct.dedup();
                assert_eq!(distinct.len(), list.len());
            }
            assert!(chunk.cells.len() <= CHUNK_CELLS && chunk.rows.len() <= CHUNK_ROWS);
            if taken < 2 { Ok(()) } else { Err(()) }
        });
        assert_eq!((refused, taken), (Err(()), 2));
    }
}

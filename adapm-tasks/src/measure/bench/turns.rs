//! Medians of what is measured in turns.

use std::time::Instant;

/// Turns of each measurement that count.
pub(super) const TURNS: usize = 9;

/// Medians of nanoseconds per unit of work of `floor` and `ours`, which take turns; each does `units` of it.
pub(super) fn medians(units: usize, mut floor: impl FnMut(), mut ours: impl FnMut()) -> (f64, f64) {
    let mut times = [Vec::new(), Vec::new()];
    // The first turn warms up.
    for turn in 0..=TURNS {
        let taken = [nanos_per(units, &mut floor), nanos_per(units, &mut ours)];
        if turn > 0 {
            times.iter_mut().zip(taken).for_each(|(times, taken)| times.push(taken));
        }
    }
    let [floor, ours] = times.map(median);
    (floor, ours)
}

/// Nanoseconds that a unit of `work` takes.
pub(super) fn nanos_per(units: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / units as f64
}

/// The median of some numbers.
pub(super) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

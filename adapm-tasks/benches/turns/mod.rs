//! Ways of training that are measured in turns: plain arrays, one worker, two workers.

use adapm_tasks::System;

/// Prints the medians of `rate`, units of work per second, in `scale` of them; `rate` is given the system, or `None` for plain
/// arrays, and the workers.
pub(crate) fn print(scale: f64, mut rate: impl FnMut(Option<System>, usize) -> f64) {
    let mut rates = WAYS.map(|_| Vec::new());
    for _ in 0..RUNS {
        for (rates, (system, workers)) in rates.iter_mut().zip(WAYS) {
            rates.push(rate(system, workers));
        }
    }
    let [floor, one, two] = rates.map(median);
    println!("plain arrays, 1 worker: {:.2}", floor / scale);
    println!("1 node x 1 worker:      {:.2}, time {:.2} of plain arrays", one / scale, floor / one);
    println!("1 node x 2 workers:     {:.2}, {:.2} of the rate of 1 x 1", two / scale, two / one);
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

const WAYS: [(Option<System>, usize); 3] = [(None, 1), (Some(System::Adapm), 1), (Some(System::Adapm), 2)];

/// Of each way.
pub(crate) const RUNS: usize = 5;

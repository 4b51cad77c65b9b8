//! AdaPM §4.2: adaptive action timing.

use adapm_core::policy::timing::{ActionTimer, RATE_INITIAL};
use adapm_core::policy::{System, poisson};
use adapm_core::slot::State::{Main, None};
use adapm_core::{Clock, WorkerId};

use super::play::{Claim, N1, Play, of};

const W0: WorkerId = WorkerId(0);

/// AdaPM §4.2.1: an intent is acted on if it starts before the soft upper bound, the quantile of
/// two rounds: strictly.
#[test]
fn acts_on_an_intent_strictly_before_the_bound() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 39..40)?;
    assert_eq!(
        play.states(key),
        [Main, None, None, None],
        "39 is the bound of a worker at clock 0"
    );
    play.signal(N1, key, 38..40)?;
    assert_eq!(play.states(key), [None, Main, None, None]);
    Ok(())
}

/// AdaPM §4.2.1: acting can wait while a later round suffices; when it no longer does, it is done.
#[test]
fn acts_when_a_later_round_would_be_too_late() -> Claim {
    let mut play = Play::new(System::Adapm);
    let key = play.key();
    play.signal(N1, key, 60..61)?;
    let mut clock = 0;
    while play.state(N1, key) != Main {
        play.tick(N1, 1)?;
        clock += 1;
    }
    assert!(
        (21..60).contains(&clock),
        "acted at clock {clock}, not in time but not at once either"
    );
    Ok(())
}

/// AdaPM §4.2.1: however early intent is signalled, the parameter is there when the worker gets to
/// it.
#[test]
fn early_signals_are_acted_on_in_time() -> Claim {
    let mut play = Play::new(System::Adapm);
    let keys = play.keys_of(adapm_core::NodeId(2), 8);
    for clock in 0..120_u64 {
        let ahead = clock + 100;
        play.intent(of(N1), &[keys[(ahead % 8) as usize]], ahead..ahead + 1)?;
        if clock >= 100 {
            let pull = play.pull(of(N1), &[keys[(clock % 8) as usize]])?;
            assert!(play.is_done(pull), "remote at clock {clock}");
        }
        play.tick(N1, 1)?;
    }
    Ok(())
}

/// AdaPM §5.8: without timing, an intent is acted on however early it is signalled.
#[test]
fn the_immediate_variant_acts_at_once() -> Claim {
    let mut play = Play::new(System::AdapmImmediate);
    let key = play.key();
    play.signal(N1, key, 1_000_000..1_000_001)?;
    assert_eq!(play.states(key), [None, Main, None, None]);
    Ok(())
}

/// AdaPM §4.2.2: rounds in which the worker did not move leave the estimate as it is.
#[test]
fn idle_rounds_leave_the_estimate() {
    let mut timer = ActionTimer::new(1);
    let before = timer.act_before(W0, Clock(7));
    for _ in 0..1_000 {
        assert_eq!(timer.act_before(W0, Clock(7)), before);
    }
    assert_eq!(timer.rate(W0), RATE_INITIAL);
}

/// AdaPM §4.2.2: a last round with more clocks than estimated counts at once, so that no slow
/// regime can settle.
#[test]
fn a_burst_widens_the_window_at_once() {
    let mut timer = ActionTimer::new(1);
    timer.act_before(W0, Clock(0));
    let bound = timer.act_before(W0, Clock(100));
    assert_eq!(bound, Clock(100 + poisson::quantile(200.0, 0.9999)));
    assert!(timer.rate(W0) < 20.0, "the estimate itself is smooth");
}

/// AdaPM §4.2.2: exponential smoothing finds the rate of a steady worker.
#[test]
fn the_estimate_converges() {
    let mut timer = ActionTimer::new(1);
    for round in 0..200 {
        timer.act_before(W0, Clock(round * 3));
    }
    assert!((timer.rate(W0) - 3.0).abs() < 1e-6);
}

/// AdaPM Alg. 1: step by step, with its parameters (α = 0.1, p = 0.9999, initial rate 10).
#[test]
fn algorithm_1_step_by_step() {
    let mut timer = ActionTimer::new(1);
    let (mut rate, mut clock) = (10.0_f64, 0_u64);
    timer.act_before(W0, Clock(0));
    for passed in [0, 5, 5, 0, 40, 3, 1, 1, 0, 250] {
        clock += passed;
        if passed > 0 {
            rate = 0.9 * rate + 0.1 * passed as f64;
        }
        let window = poisson::quantile(2.0 * rate.max(passed as f64), 0.9999);
        assert_eq!(timer.act_before(W0, Clock(clock)), Clock(clock + window), "after {passed}");
    }
}

/// AdaPM §4.2.1: the bound is exceeded with probability `1 - p` if clocks per round are Poisson
/// distributed. Here rounds last for 50, 150 or, one in 20, 600 clocks of a steady worker: without
/// observing the variance, one bound in 20 is too low.
#[test]
fn a_bound_that_observes_rounds_holds_where_they_vary() {
    let exceeded = |mut timer: ActionTimer| {
        let mut state = 7_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            match (state >> 33) % 20 {
                0 => 600,
                draw => 50 + 100 * (draw % 2),
            }
        };
        let (mut clock, mut rounds) = (0_u64, [next(), next()]);
        let mut too_low = 0;
        for _ in 0..20_000 {
            let bound = timer.act_before(W0, Clock(clock));
            too_low += u32::from(clock + rounds[0] + rounds[1] >= bound.0);
            clock += rounds[0];
            rounds = [rounds[1], next()];
        }
        too_low
    };
    let [poisson, observing] = [ActionTimer::new(1), ActionTimer::observing(1)].map(exceeded);
    assert!(
        poisson > 1_000 && observing < 200,
        "of 20,000 bounds {poisson} and {observing} are too low"
    );
}

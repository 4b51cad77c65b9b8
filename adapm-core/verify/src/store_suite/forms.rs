//! The macro of the loom form, which only has content in builds for loom: `--cfg adapm_loom`.

/// Expands to a module of loom models of a store: latches exclude and publish, copies come and go
/// beside accesses.
///
/// Takes the module's name and the constructor, like [`store_suite!`]. Without `--cfg adapm_loom`
/// it expands to nothing; with it [`store_suite!`] and [`store_fuzz!`] do, as primitives of loom
/// work only in models: one file of tests may contain all three. The store takes its primitives
/// from `loom` 0.7 under that cfg, and spins only with `loom::thread::yield_now`. Models have two
/// threads, and two preemptions unless `LOOM_MAX_PREEMPTIONS` says otherwise:
///
/// ```text
/// RUSTFLAGS="--cfg adapm_loom" cargo test --release --test suite
/// ```
///
/// [`store_suite!`]: crate::store_suite!
/// [`store_fuzz!`]: crate::store_fuzz!
#[cfg(not(adapm_loom))]
#[macro_export]
macro_rules! store_suite_loom {
    ($suite:ident, $make:expr) => {};
}

/// Expands to a module of loom models of a store.
#[cfg(adapm_loom)]
#[macro_export]
macro_rules! store_suite_loom {
    ($suite:ident, $make:expr) => {
        $crate::store_suite_loom!(@ $suite, $make,
            what_is_written_under_a_latch_is_seen_under_the_next
            two_accesses_exclude_each_other
            words_of_absent_keys_are_latched_too
            visits_and_accesses_exclude_each_other
            a_visit_beside_a_release_shows_what_is_held
            a_copy_leaves_whole_or_not_at_all
            a_delta_comes_and_goes_beside_a_push
            words_outlive_copies_that_come_and_go
            different_keys_come_and_go_at_once
        );
    };
    (@ $suite:ident, $make:expr, $($claim:ident)*) => {
        #[cfg(test)]
        mod $suite {
            #[allow(unused_imports, reason = "the constructor may name what is imported around it")]
            use super::*;

            $(
                #[test]
                fn $claim() {
                    $crate::store_suite::models::$claim(|layout: &$crate::adapm_core::Layout| ($make)(layout));
                }
            )*
        }
    };
}

/// Tests that use a store outside of models: there are none in a build for loom.
#[cfg(not(adapm_loom))]
#[doc(hidden)]
#[macro_export]
macro_rules! outside_of_models {
    ($($test:item)*) => { $($test)* };
}

/// Tests that use a store outside of models: there are none in a build for loom.
#[cfg(adapm_loom)]
#[doc(hidden)]
#[macro_export]
macro_rules! outside_of_models {
    ($($test:item)*) => {};
}

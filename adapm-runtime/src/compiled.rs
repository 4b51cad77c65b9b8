//! The code of clusters of the usual values, compiled once in debug builds: else every program that
//! has such a cluster compiles it again. Crates share the code of generics only if
//! they are optimized little (`opt-level` 0, 1), so other builds go without it.

use adapm_core::Key;
use adapm_core::error::OpError;
use adapm_core::value::Value;

use crate::{BuildError, Builder, Cluster, LayoutStore, Worker};

type Start<V> = fn(Builder<V>) -> Result<Cluster<V, LayoutStore<V>>, BuildError>;
type Work<V> = fn(&mut Worker<V>, &[Key], &mut [V]) -> Result<(), OpError>;

#[used]
static FLOATS: (Start<f32>, Work<f32>) = (Builder::build, work);
#[used]
static INTEGERS: (Start<i64>, Work<i64>) = (Builder::build, work);

fn work<V: Value>(worker: &mut Worker<V>, keys: &[Key], values: &mut [V]) -> Result<(), OpError> {
    let clock = worker.advance_clock();
    worker.intent(keys, clock..clock + 1)?;
    worker.localize(keys)?;
    worker.pull(keys, values)?;
    worker.push(keys, values)?;
    worker.set(keys, values)?;
    drop(worker.pull_async(keys)?);
    drop(worker.push_async(keys, values)?);
    worker.barrier()?;
    worker.quiesce()
}

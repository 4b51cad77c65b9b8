//! Update rules: the update that a worker pushes for a gradient.
//!
//! The operations of a parameter manager add (AdaPM §3), so an optimizer is written as an update of
//! the whole value, its own state included. The rules are `no_std` and allocate nothing.
//!
//! Not here: pulling and pushing. A worker takes steps under the latch of a key by `Worker::update`
//! of the runtime ([`crate::slot::Slot::step`]), or pulls, computes and pushes by itself.

mod adagrad;

pub use adagrad::AdaGrad;

/// An optimizer of one parameter: its step for a gradient, as an update added to the value.
///
/// A value is `[parameter | state]`: `dim` elements that are trained, and `state_len(dim)` that the
/// rule keeps for them. The value that a step is computed from is the worker's copy; its update is
/// added to the main copy, which may meanwhile have the updates of other nodes.
///
/// # Obligations
/// - The results depend on the rule and the arguments alone.
/// - `state_len` does not fall as `dim` grows.
/// - `step` is bounded and does not panic: it runs under the latch of a key. A worker whose rule
///   has panicked is to be dropped.
pub trait UpdateRule<V>: Send + Sync {
    /// Returns the number of elements that the rule keeps beside a parameter of `dim` elements.
    fn state_len(&self, dim: usize) -> usize;

    /// Writes the whole update of `value` for `gradient`. Returns true if all of it is finite:
    /// otherwise it is not to be pushed.
    ///
    /// # Shapes
    /// `gradient` `[dim]`, `value` and `update` `[dim + state_len(dim)]`.
    fn step(&self, value: &[V], gradient: &[V], update: &mut [V]) -> bool;

    /// Returns the length of the parameter in a value of `value_len` elements, `None` if there is
    /// no such length. Costs a call of `state_len` for each bit of `value_len`.
    fn dim(&self, value_len: usize) -> Option<usize> {
        let len = |dim| dim + self.state_len(dim);
        let (mut dim, mut end) = (1, value_len);
        while dim < end {
            let middle = dim + (end - dim) / 2;
            if len(middle) < value_len {
                dim = middle + 1;
            } else {
                end = middle;
            }
        }
        (len(dim) == value_len).then_some(dim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps `per_element` numbers for each element, and some more for all of them.
    struct Keeps {
        per_element: usize,
        for_all: usize,
    }

    impl UpdateRule<i64> for Keeps {
        fn state_len(&self, dim: usize) -> usize {
            self.per_element * dim + self.for_all
        }

        fn step(&self, _value: &[i64], _gradient: &[i64], _update: &mut [i64]) -> bool {
            false
        }
    }

    #[test]
    fn the_length_of_a_parameter_follows_from_that_of_its_value() {
        for (per_element, for_all) in [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (0, 40)] {
            let rule = Keeps { per_element, for_all };
            for value_len in 1..200 {
                let dim = (1..=value_len).find(|dim| dim + rule.state_len(*dim) == value_len);
                assert_eq!(rule.dim(value_len), dim, "{value_len} with {per_element}, {for_all}");
            }
        }
    }

    #[test]
    fn a_value_without_room_for_a_parameter_fits_no_rule() {
        assert_eq!(Keeps { per_element: 0, for_all: 0 }.dim(0), None);
        assert_eq!(Keeps { per_element: 0, for_all: 1 }.dim(1), None);
    }
}

//! Steps of an update rule: local keys under their latches, the others by a pull and a push.
//!
//! ```text
//!   local           latch { value -> rule -> update -> value }            one step after the other
//!   elsewhere       pull -> value -> rule -> update -> push               others may push in between
//! ```
//!
//! Not here: the rules ([`adapm_core::update`]), and the step on one copy, which is the slot's.

use adapm_core::error::OpError;
use adapm_core::slot::Pushed;
use adapm_core::store::Store;
use adapm_core::update::UpdateRule;
use adapm_core::value::accumulate;
use adapm_core::{Key, Value};

use super::access::Access;
use crate::ticket::Place;

/// The buffers of a worker's updates, kept from call to call.
#[derive(Debug, Default)]
pub(super) struct Updates<V> {
    /// The update of one key.
    update: Vec<V>,
    /// Keys of the current call that are not local.
    elsewhere: Vec<Elsewhere>,
}

/// A key that is not local.
#[derive(Clone, Copy, Debug)]
struct Elsewhere {
    key: Key,
    /// The place of its value among those that are pulled.
    value: Place,
    /// The place of its gradient in the call.
    gradient: Place,
}

impl<V: Value> Updates<V> {
    /// Takes a step for each key. Returns the first error.
    pub(super) fn take_steps<S: Store<Value = V>>(
        &mut self,
        access: &mut Access<S>,
        keys: &[Key],
        gradients: &[V],
        rule: &dyn UpdateRule<V>,
    ) -> Result<(), OpError> {
        let mut lens = Lens { rule, last: None };
        self.check(access, keys, gradients.len(), &mut lens)?;
        let mut blamed = None;
        let mut offset = 0;
        access.prefetch_first(keys);
        for (index, key) in keys.iter().enumerate() {
            access.prefetch_ahead(keys, index);
            let value_len = access.value_len(*key);
            let len = lens.dim(*key, value_len).expect("a rule does not change its lengths");
            let gradient = Place { offset, len };
            offset += gradient.len;
            let update = &mut self.update[..value_len];
            match access.try_step(*key, rule, &gradients[gradient.range()], update) {
                Some(Pushed::Done | Pushed::Dirtied) => {}
                Some(Pushed::Refused) => self.leave(access, *key, value_len, gradient),
                None => blamed = blamed.or(Some(*key)),
            }
        }
        access.finish_steps(keys.len());
        if !self.elsewhere.is_empty() {
            let blamed_elsewhere = self.take_steps_elsewhere(access, gradients, rule)?;
            blamed = blamed.or(blamed_elsewhere);
        }
        blamed.map_or(Ok(()), |key| Err(OpError::NotFinite { key }))
    }

    /// Checks keys and lengths, and makes room for the longest update.
    fn check<S: Store<Value = V>>(
        &mut self,
        access: &Access<S>,
        keys: &[Key],
        given: usize,
        lens: &mut Lens<'_, V>,
    ) -> Result<(), OpError> {
        access.shared().elements(keys)?;
        let (mut expected, mut longest) = (0, self.update.len());
        for key in keys {
            let value_len = access.value_len(*key);
            expected += lens.dim(*key, value_len)?;
            longest = longest.max(value_len);
        }
        if given != expected {
            return Err(OpError::ValueLen { expected, given });
        }
        self.update.resize(longest, V::default());
        Ok(())
    }

    /// Leaves a key to the engines.
    #[cold]
    fn leave<S: Store<Value = V>>(
        &mut self,
        access: &mut Access<S>,
        key: Key,
        value_len: usize,
        gradient: Place,
    ) {
        let offset = self.elsewhere.last().map_or(0, |last| last.value.offset + last.value.len);
        let value = Place { offset, len: value_len };
        access.refuse(key, value);
        self.elsewhere.push(Elsewhere { key, value, gradient });
    }

    /// Pulls the keys that are not local, computes their updates and pushes them. Returns a key
    /// whose step is not finite.
    #[cold]
    fn take_steps_elsewhere<S: Store<Value = V>>(
        &mut self,
        access: &mut Access<S>,
        gradients: &[V],
        rule: &dyn UpdateRule<V>,
    ) -> Result<Option<Key>, OpError> {
        let mut steps = std::mem::take(&mut self.elsewhere);
        let elements = steps.iter().map(|step| step.value.len).sum();
        let (mut values, mut updates) = (vec![V::default(); elements], Vec::new());
        access.finish_pull(&mut values)?;
        // Steps of one key stand together, in the order of the call.
        steps.sort_by_key(|step| step.key);
        let (mut keys, mut blamed) = (Vec::with_capacity(steps.len()), None);
        for of_key in steps.chunk_by(|a, b| a.key == b.key) {
            let value = &mut values[of_key[0].value.range()];
            for Elsewhere { key, gradient, .. } in of_key {
                let update = &mut self.update[..value.len()];
                if rule.step(value, &gradients[gradient.range()], update) {
                    accumulate(value, update);
                    updates.extend_from_slice(update);
                    keys.push(*key);
                } else {
                    blamed = blamed.or(Some(*key));
                }
            }
        }
        access.push(&keys, &updates)?;
        Ok(blamed)
    }
}

/// The lengths of parameters under a rule.
struct Lens<'a, V> {
    rule: &'a dyn UpdateRule<V>,
    /// The last answer: the length of a value and that of its parameter.
    last: Option<(usize, usize)>,
}

impl<V> Lens<'_, V> {
    /// Returns the length of the parameter in the value of `key`.
    #[inline]
    fn dim(&mut self, key: Key, value_len: usize) -> Result<usize, OpError> {
        match self.last {
            Some((of, dim)) if of == value_len => Ok(dim),
            _ => self.dim_of_another(key, value_len),
        }
    }

    #[cold]
    fn dim_of_another(&mut self, key: Key, value_len: usize) -> Result<usize, OpError> {
        let dim = self.rule.dim(value_len).ok_or(OpError::RuleLen { key, value_len })?;
        self.last = Some((value_len, dim));
        Ok(dim)
    }
}

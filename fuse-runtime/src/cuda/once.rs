//! A map whose values are made once per key, however many threads ask.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Slot<V> = Arc<Mutex<Option<V>>>;

/// Values made on demand: threads asking for one key wait for one of them to make it, other keys go on in parallel.
pub(super) struct OnceMap<K, V> {
    slots: Mutex<HashMap<K, Slot<V>>>,
}

impl<K: Eq + Hash, V: Clone> OnceMap<K, V> {
    /// An empty map.
    pub(super) fn new() -> Self {
        OnceMap { slots: Mutex::new(HashMap::new()) }
    }

    /// The value of `key`, made by `make` if there is none yet; a failure is not remembered.
    pub(super) fn get_or_try_make<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let slot = lock(&self.slots).entry(key).or_default().clone();
        let mut value = lock(&slot);
        match &*value {
            Some(made) => Ok(made.clone()),
            None => Ok(value.insert(make()?).clone()),
        }
    }
}

/// Locks, also after a panic elsewhere: every value behind these locks is replaced as a whole, never half done.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_tried_again_and_a_value_is_kept() {
        let map = OnceMap::new();
        assert_eq!(map.get_or_try_make("k", || Err("no")), Err("no"));
        assert_eq!(map.get_or_try_make("k", || Ok::<_, ()>(1)), Ok(1));
        assert_eq!(map.get_or_try_make("k", || Ok::<_, ()>(2)), Ok(1));
    }
}

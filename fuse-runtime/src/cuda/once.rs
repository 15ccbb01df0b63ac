//! A map whose values are made once per key, however many threads ask.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Slot<V> = Arc<Mutex<Option<V>>>;

/// Values made on demand: threads asking for one key wait for one of them to make it, other keys go on in parallel.
pub(super) struct OnceMap<K, V> {
    slots: Mutex<HashMap<K, Slot<V>>>,
    limit: usize,
}

impl<K: Eq + Hash, V: Clone> OnceMap<K, V> {
    /// An empty map that keeps everything.
    pub(super) fn new() -> Self {
        OnceMap::bounded(usize::MAX)
    }

    /// An empty map that forgets everything when it holds `limit` values, for values that are cheap to make again.
    pub(super) fn bounded(limit: usize) -> Self {
        OnceMap { slots: Mutex::new(HashMap::new()), limit }
    }

    /// The value of `key`, made by `make` if there is none yet; a failure is not remembered.
    pub(super) fn get_or_try_make<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let slot = self.slot(key);
        let mut value = lock(&slot);
        match &*value {
            Some(made) => Ok(made.clone()),
            None => Ok(value.insert(make()?).clone()),
        }
    }

    fn slot(&self, key: K) -> Slot<V> {
        let mut slots = lock(&self.slots);
        if slots.len() >= self.limit && !slots.contains_key(&key) {
            slots.clear();
        }
        slots.entry(key).or_default().clone()
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

    #[test]
    fn a_bounded_map_starts_over() {
        let map = OnceMap::bounded(2);
        let get = |key: u8, value: u8| map.get_or_try_make(key, || Ok::<_, ()>(value)).unwrap();
        assert_eq!([get(1, 10), get(2, 20), get(2, 21), get(3, 30), get(1, 11)], [10, 20, 20, 30, 11]);
    }
}

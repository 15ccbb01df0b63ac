//! Work on all cores. On a GPU the kernels of a suite are compiled one after another by every thread that runs calls.

use super::device;
use fuse_runtime::rt::recorder;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `body` on every item, on all cores, and returns what it gave in the order of the items.
///
/// The threads are of their own: work of the runtime's pool waits for other work of that pool, which must not be an item
/// that needs a lock this one holds.
pub fn on_all_cores<T: Sync, R: Send>(items: &[T], body: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![]));
    let work = || {
        while let Some((at, item)) = take(items, &next) {
            let result = body(item);
            done.lock().expect("no thread panics while it pushes").push((at, result));
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    std::thread::scope(|scope| {
        (0..cores.min(items.len())).for_each(|_| drop(scope.spawn(work)));
    });
    let mut done = done.into_inner().expect("no thread panics while it pushes");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

fn take<'a, T>(items: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    items.get(at).map(|item| (at, item))
}

/// Says how many programs were compiled so far, where a recorder counts them.
pub fn report_programs(what: &str) {
    if device() == recorder::device() {
        println!("{what}: {} programs are compiled by now", recorder::programs());
    }
}

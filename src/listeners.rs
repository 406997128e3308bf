//! Who is to hear of what a thread of ours does.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Called by that thread, so it must be quick.
pub type Listener = dyn Fn() + Send + Sync;

/// Those who listen, each for as long as it keeps its listener.
#[derive(Default)]
pub struct Listeners(Mutex<Vec<Weak<Listener>>>);

impl Listeners {
    /// One more.
    pub fn add(&self, listener: &Arc<Listener>) {
        self.0.lock().push(Arc::downgrade(listener));
    }

    /// Calls all who still listen.
    pub fn tell(&self) {
        let mut listeners = self.0.lock();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.iter().filter_map(Weak::upgrade).for_each(|listener| listener());
    }
}

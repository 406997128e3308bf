//! Listeners notified by background threads.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// A callback. It runs on the notifying thread, so it must be quick.
pub type Listener = dyn Fn() + Send + Sync;

/// Listeners. Each is notified as long as its owner keeps the [`Arc`].
#[derive(Default)]
pub struct Listeners(Mutex<Vec<Weak<Listener>>>);

impl Listeners {
    /// Adds a listener.
    pub fn add(&self, listener: &Arc<Listener>) {
        self.0.lock().push(Arc::downgrade(listener));
    }

    /// Calls the listeners that still exist, and forgets the others.
    pub fn notify(&self) {
        self.0.lock().retain(|listener| listener.upgrade().map(|listener| listener()).is_some());
    }
}

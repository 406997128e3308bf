//! The ring with nothing said about the order of its reads and writes.

#[allow(dead_code)]
#[path = "../../src/ring.rs"]
pub mod ring;

mod atomic {
    use Ordering::Relaxed;
    pub use loom::sync::atomic::Ordering;

    use crate::explored;

    pub struct AtomicU64(explored::AtomicU64);

    impl AtomicU64 {
        pub fn new(value: u64) -> Self {
            AtomicU64(explored::AtomicU64::new(value))
        }

        pub fn load(&self, _: Ordering) -> u64 {
            self.0.load(Relaxed)
        }

        pub fn store(&self, value: u64, _: Ordering) {
            self.0.store(value, Relaxed);
        }

        pub fn compare_exchange(
            &self,
            from: u64,
            to: u64,
            _: Ordering,
            _: Ordering,
        ) -> Result<u64, u64> {
            self.0.compare_exchange(from, to, Relaxed, Relaxed)
        }
    }
}

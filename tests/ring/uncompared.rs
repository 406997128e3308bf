//! The ring with a cursor that is moved without a look whether it still stands where it was.

#[allow(dead_code)]
#[path = "../../src/ring.rs"]
pub mod ring;

mod atomic {
    pub use loom::sync::atomic::Ordering;

    use crate::explored;

    pub struct AtomicU64(explored::AtomicU64);

    impl AtomicU64 {
        pub fn new(value: u64) -> Self {
            AtomicU64(explored::AtomicU64::new(value))
        }

        pub fn load(&self, order: Ordering) -> u64 {
            self.0.load(order)
        }

        pub fn store(&self, value: u64, order: Ordering) {
            self.0.store(value, order);
        }

        pub fn compare_exchange(
            &self,
            from: u64,
            to: u64,
            order: Ordering,
            _: Ordering,
        ) -> Result<u64, u64> {
            self.0.store(to, order);
            Ok(from)
        }
    }
}

//! The sequencer that ships, on cells of the [`World`](super::world::World).

pub use snowdrift::core::{clock, layout, node, sequencer};

#[allow(dead_code, unused_imports, unused_macros)]
#[path = "../../src/core/fault.rs"]
pub mod fault;
#[allow(dead_code, unused_imports)]
#[path = "../../src/core/sequence/mod.rs"]
pub mod sequence;

pub mod atomic {
    pub use std::sync::atomic::Ordering;

    use sequence::Cells;

    use super::super::steps::{Access, access};
    use super::super::world::{CELLS, File, PAGES, World};
    use super::sequence;

    thread_local! {
        /// Places of the cells of all files. Their values are the world's.
        pub static PLACES: &'static [Cells; PAGES] = Box::leak(Box::default());
    }

    /// A cell of a page. Its place tells which.
    #[derive(Default)]
    pub struct AtomicU64 {
        _place: u64,
    }

    /// The index of a cell: between the word and the others is padding.
    fn place<T>(of: &T) -> (usize, usize) {
        let words =
            PLACES.with(|places| std::ptr::from_ref(of).addr() - places.as_ptr().addr()) / 8;
        let (file, at) = (words / (size_of::<Cells>() / 8), words % (size_of::<Cells>() / 8));
        (file, at.saturating_sub(15))
    }

    impl AtomicU64 {
        fn access(&self, is_load: bool, change: impl FnOnce(u64) -> u64) -> u64 {
            let (file, at) = place(self);
            assert!(file < PAGES && at < CELLS);
            // Nobody else sees a page that has no name yet.
            let what = |world: &World| match world.files[file] {
                Some(File { is_named: true, .. }) if !is_load || world.loads >> at & 1 == 1 => {
                    Access::Step
                }
                _ => Access::Quiet,
            };
            access(what, |world, _| {
                let cell = &mut world.file(file as u8).cells[at];
                let before = *cell;
                *cell = change(before);
                before
            })
        }

        pub fn load(&self, _: Ordering) -> u64 {
            self.access(true, |value| value)
        }

        pub fn store(&self, value: u64, _: Ordering) {
            self.access(false, |_| value);
        }

        pub fn fetch_max(&self, value: u64, _: Ordering) -> u64 {
            self.access(false, |before| before.max(value))
        }

        pub fn compare_exchange(
            &self,
            from: u64,
            to: u64,
            _: Ordering,
            _: Ordering,
        ) -> Result<u64, u64> {
            let seen = self.access(false, |before| if before == from { to } else { before });
            if seen == from { Ok(seen) } else { Err(seen) }
        }
    }
}

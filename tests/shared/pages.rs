//! The life of pages that ships, on files of the [`World`](super::world::World).

#[path = "../../src/pages/begin.rs"]
mod begin;
#[allow(dead_code)]
#[path = "../../src/pages/life.rs"]
mod life;
#[allow(dead_code)]
#[path = "../../src/pages/names.rs"]
mod names;

pub use directory::{Directory, node};
pub use header::Terms;
pub use page::{Page, PageMemory};

mod header {
    pub use snowdrift::pages::{BootId, Header, Terms};

    pub const MARKER: &str = "born";
}

mod directory {
    use std::path::{Path, PathBuf};

    use super::header::{BootId, Header, Terms};
    use crate::core::fault::Failure;
    use crate::core::layout::{Layout, Tick};
    use crate::core::node::Node;
    use crate::files::PAGE;

    /// Two IDs a tick, and no counter value to rise to.
    pub fn node() -> Node {
        Node::new(Layout::new([5, 0, 0, 0, 1], 1, 0), 0, 0).unwrap()
    }

    /// The node's directory.
    #[derive(Clone)]
    pub struct Directory;

    impl Directory {
        pub fn path(&self) -> &Path {
            Path::new("")
        }

        pub fn page_of(&self, _: &Node) -> PathBuf {
            PAGE.into()
        }

        pub fn header_for(&self, node: &Node, terms: Terms) -> Header {
            let (boot_id, node) = (BootId([1; 16]), *node);
            Header { node, terms, page_id: 0, boot_id, created_ms: 0, pid: 1, uid: 0 }
        }

        /// Nobody changes the process's user.
        pub fn of_present_user(&self) -> Result<Directory, Failure> {
            Ok(Directory)
        }

        pub fn other_users_pages(&self, _: &Node) -> std::iter::Empty<()> {
            std::iter::empty()
        }

        pub fn swept_tick(&self, _: &Layout) -> Option<Tick> {
            None
        }

        pub fn note_created(&self) {}
    }
}

mod own {
    use std::path::Path;

    use crate::core::fault::Failure;
    use crate::files::under;
    use crate::shared::steps::step;
    use crate::shared::world::NONE;

    pub fn ensure_directory(_: &Path, _: u32) -> Result<(), Failure> {
        Ok(())
    }

    pub fn explain(_: &Path) {}

    pub fn remove(path: &Path) -> Result<(), Failure> {
        step(|world, actor| {
            *under(world, actor, path) = NONE;
            0
        });
        Ok(())
    }
}

mod page {
    use std::borrow::Borrow;
    use std::io::{self, ErrorKind};
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};

    use super::directory::{Directory, node};
    use super::header::{Header, MARKER, Terms};
    use crate::core::atomic::PLACES;
    use crate::core::fault::{Class, Failure, fault};
    use crate::core::sequence::{Cells, Sequence};
    use crate::files::lock::LockMode;
    use crate::files::path::Identity;
    use crate::files::{PAGE, under};
    use crate::shared::steps::{Access, access, effect, myself, step};
    use crate::shared::world::{File, NONE, Open, Tick, World};

    /// The number of the page that a process has open at rest.
    const RESTING: u16 = u16::MAX;

    /// A page that a process has opened or made.
    pub struct Page {
        sequence: Sequence<PageMemory>,
        header: Header,
        pub checked_ms: AtomicI64,
        pub place: Option<PageFile>,
        /// The file that was created for the page.
        original: Identity,
        opening: u16,
        packed: u64,
        pub may_be_old: bool,
        pub knows_earlier: bool,
    }

    pub struct PageFile {
        pub path: PathBuf,
        pub marker: PathBuf,
        pub identity: Identity,
        pub uid: u32,
        pub is_left: AtomicBool,
    }

    pub struct PageMemory(Identity);

    impl Borrow<Cells> for PageMemory {
        fn borrow(&self) -> &Cells {
            PLACES.with(|places| &places[usize::from(self.0)])
        }
    }

    impl Page {
        /// The page of a file, by what never changes of it.
        fn of(packed: u64, path: &Path) -> Page {
            let [identity, id, original, max_ahead, owner, low, high, _] = packed.to_le_bytes();
            let owner = Some(owner.into()).filter(|&owner| owner > 0);
            let terms = Terms { max_ahead: max_ahead.into(), owner };
            let header = Directory.header_for(&node(), terms);
            Page {
                sequence: Sequence::new(PageMemory(identity), header.node.layout()),
                header: Header { page_id: id.into(), ..header },
                checked_ms: AtomicI64::new(i64::MIN),
                place: Some(PageFile {
                    path: path.to_owned(),
                    marker: path.with_extension(MARKER),
                    identity,
                    uid: 0,
                    is_left: AtomicBool::new(false),
                }),
                original,
                opening: u16::from_le_bytes([low, high]),
                packed,
                may_be_old: false,
                knows_earlier: false,
            }
        }

        /// What a process remembers of its page. It has no other page open then.
        pub fn remembered(&self) -> (u64, Tick) {
            myself(|me| {
                me.open.retain(|open| open.number == self.opening);
                me.open.iter_mut().for_each(|open| open.number = RESTING);
            });
            let [at, id, original, max_ahead, owner, ..] = self.packed.to_le_bytes();
            let [low, high] = RESTING.to_le_bytes();
            let packed = u64::from_le_bytes([at, id, original, max_ahead, owner, low, high, 0]);
            (packed, self.checked_ms.load(SeqCst))
        }

        pub fn again((packed, checked_ms): (u64, Tick)) -> Page {
            let page = Page::of(packed, Path::new(PAGE));
            page.checked_ms.store(checked_ms, SeqCst);
            page
        }

        pub fn new(wanted: Header) -> Page {
            let file = |made| File {
                id: made,
                max_ahead: wanted.terms.max_ahead as u8,
                owner: wanted.terms.owner.unwrap_or(0) as u8,
                ..File::default()
            };
            let packed = open(Access::Quiet, |world, _| {
                world.made += 1;
                let made = file(world.made);
                let at = world.add(made)?;
                world.file(at).original = at;
                Some(at)
            });
            let page = Page::of(packed, Path::new(""));
            page.cells().prepare(wanted.node.layout());
            page
        }

        pub fn map(path: &Path, _: u32) -> Result<Option<Page>, Failure> {
            let at = |world: &mut World, actor| {
                Some(*under(world, actor, path)).filter(|&at| at != NONE)
            };
            let packed = open(Access::Step, at);
            Ok((packed as u8 != NONE).then(|| Page::of(packed, path)))
        }

        /// Writes the page to a file, which has no name yet.
        pub fn write(&self, _: &Path) -> io::Result<&Page> {
            Ok(self)
        }

        pub fn persist_noclobber(&self, path: &Path) -> Result<(), ErrorKind> {
            let at = self.sequence.memory().0;
            let is_done = step(|world, actor| {
                let name = under(world, actor, path);
                if *name != NONE || at == NONE {
                    return 0;
                }
                *name = at;
                world.file(at).is_named = true;
                1
            });
            if is_done == 1 { Ok(()) } else { Err(ErrorKind::AlreadyExists) }
        }

        pub fn sequence(&self) -> &Sequence<PageMemory> {
            &self.sequence
        }

        pub fn cells(&self) -> &Cells {
            self.sequence.memory().borrow()
        }

        pub fn header(&self) -> &Header {
            &self.header
        }

        pub fn id(&self) -> u128 {
            self.header.page_id
        }

        pub fn path(&self) -> Option<&Path> {
            self.place.as_ref().map(|place| &*place.path)
        }

        pub fn notes(&self) -> &Page {
            self
        }

        pub fn original_file(&self) -> Identity {
            self.original
        }

        pub fn contents(&self) -> &Page {
            self
        }

        pub fn is_intact(&self) -> bool {
            true
        }

        pub fn is_disputed(&self) -> bool {
            false
        }

        pub fn overwritten(&self) -> Failure {
            Failure::new(Class::Page, fault!("page-overwritten"))
        }

        pub fn living_user(&self) -> Option<u32> {
            None
        }

        pub fn enter(&mut self) {}

        pub fn with_file(&self, lock: impl FnOnce(&()) -> io::Result<()>) -> Result<(), Failure> {
            lock(&()).map_err(Failure::io("page-io", "lock", Path::new("")))
        }

        /// The highest lock of others on the file.
        fn of_others(&self, world: &World, actor: usize) -> u8 {
            let at = self.sequence.memory().0;
            let all = world.actors.iter().enumerate();
            let open = all.flat_map(|(one, actor)| actor.open.iter().map(move |open| (one, open)));
            let others = open.filter(|(one, open)| {
                open.file == at && (*one, open.number) != (actor, self.opening)
            });
            others.map(|(_, open)| open.lock).max().unwrap_or(0)
        }

        pub fn lock_of_others(&self) -> Result<Option<LockMode>, Failure> {
            Ok(match step(|world, actor| self.of_others(world, actor).into()) {
                0 => None,
                1 => Some(LockMode::Shared),
                _ => Some(LockMode::Exclusive),
            })
        }

        pub fn is_used(&self) -> Result<bool, Failure> {
            Ok(self.lock_of_others()?.is_some())
        }

        pub fn lock(&self, mode: LockMode) -> Result<bool, Failure> {
            let is_locked = step(|world, actor| {
                let is_free = self.of_others(world, actor) + mode as u8 <= 2;
                if is_free {
                    self.set_lock(world, actor, mode as u8);
                }
                is_free.into()
            });
            Ok(is_locked == 1)
        }

        fn set_lock(&self, world: &mut World, actor: usize, lock: u8) {
            let open = world.actors[actor].open.iter_mut();
            open.filter(|open| open.number == self.opening).for_each(|open| open.lock = lock);
        }

        pub fn retire(&self) {
            effect(|world, actor| self.set_lock(world, actor, 0));
        }
    }

    /// Opens a file; none where there is none, or no room for it.
    fn open(what: Access, find: impl FnOnce(&mut World, usize) -> Option<u8>) -> u64 {
        access(
            |_| what,
            |world, actor| {
                let Some(at) = find(world, actor) else { return NONE.into() };
                let number = world.actors[actor].log.len() as u16;
                world.actors[actor].open.push(Open { number, file: at, lock: 0 });
                let File { id, original, max_ahead, owner, .. } = *world.file(at);
                let [low, high] = number.to_le_bytes();
                u64::from_le_bytes([at, id, original, max_ahead, owner, low, high, 0])
            },
        )
    }

    impl Drop for Page {
        fn drop(&mut self) {
            effect(|world, actor| {
                world.actors[actor].open.retain(|open| open.number != self.opening)
            });
        }
    }
}

//! The file system of the [`World`](super::world::World), as `src/pages` and `src/files` see it.

use std::path::{Path, PathBuf};

use super::world::World;

pub const PAGE: &str = "page";
const TEMPORARY: &str = "temporary";

/// The file under a path.
pub fn under<'a>(world: &'a mut World, actor: usize, path: &Path) -> &'a mut u8 {
    match path.to_str() {
        Some(PAGE) => &mut world.name,
        Some(TEMPORARY) => &mut world.actors[actor].temporary,
        _ => &mut world.marker,
    }
}

pub mod fs {
    use std::io::{self, ErrorKind};
    use std::mem;
    use std::path::Path;

    use super::super::steps::step;
    use super::super::world::NONE;
    use super::under;

    pub fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
        let done = step(|world, actor| {
            let file = *under(world, actor, from);
            let to = under(world, actor, to);
            match (file, *to) {
                (NONE, _) => 1,
                (_, NONE) => {
                    *to = file;
                    0
                }
                _ => 2,
            }
        });
        match done {
            0 => Ok(()),
            1 => Err(ErrorKind::NotFound.into()),
            _ => Err(ErrorKind::AlreadyExists.into()),
        }
    }

    pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
        let done = step(|world, actor| {
            let file = *under(world, actor, from);
            if file == NONE {
                return 1;
            }
            // Where both names are of one file, both stay.
            if mem::replace(under(world, actor, to), file) != file {
                *under(world, actor, from) = NONE;
            }
            0
        });
        if done == 0 { Ok(()) } else { Err(ErrorKind::NotFound.into()) }
    }
}

pub mod lock {
    use std::io;

    use super::super::steps::{Access, access};

    pub const USERS: u64 = 0;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LockMode {
        Shared = 1,
        Exclusive,
    }

    /// Nobody changes the process's user.
    pub fn release((): &(), _: u64) -> io::Result<()> {
        Ok(())
    }

    pub fn pause() {
        access(|_| Access::Pause, |_, _| 0);
    }
}

pub mod path {
    use std::io::{self, ErrorKind};
    use std::path::Path;

    use super::super::steps::step;
    use super::super::world::NONE;
    use super::under;

    /// Files that exist at one time have different ones.
    pub type Identity = u8;

    pub fn identity_at(path: &Path) -> io::Result<Identity> {
        let file = step(|world, actor| (*under(world, actor, path)).into()) as u8;
        if file == NONE { Err(ErrorKind::NotFound.into()) } else { Ok(file) }
    }
}

pub mod system {
    pub fn user() -> u32 {
        0
    }
}

pub mod whole {
    use std::io::{self, ErrorKind};
    use std::path::Path;

    use super::super::steps::effect;
    use super::super::world::NONE;
    use super::{PathBuf, TEMPORARY};

    /// The temporary name of a process, until dropped.
    pub struct Named(PathBuf);

    impl Named {
        pub fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Named {
        fn drop(&mut self) {
            effect(|world, actor| world.actors[actor].temporary = NONE);
        }
    }

    pub fn named(_: &Path, name: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<Named> {
        let named = Named(TEMPORARY.into());
        name(&named.0).map(|()| named)
    }

    pub fn if_possible<T>(done: io::Result<T>) -> io::Result<Option<T>> {
        match done {
            Err(cause)
                if matches!(cause.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) =>
            {
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    pub fn sweep_temporary(_: &Path) {}
}

//! States that differ only in names are one state. So the pages of a search come to an end.

use super::*;

impl State {
    /// An ID that no page has.
    pub(super) fn free_id(&self) -> u8 {
        let taken = self.pages.iter().map(|page| page.id).filter(|&id| id != NONE);
        taken.max().map_or(0, |id| id + 1)
    }

    /// The same state with its pages and their IDs in the order in which they are referred to, and without those that
    /// nobody refers to. Which of two equal processes is which makes no difference, either.
    pub(super) fn canonical(mut self, is_pair: bool) -> State {
        if is_pair && self.actors[1] < self.actors[0] {
            self.actors.swap(0, 1);
            self.turn = [1, 0, 2][usize::from(self.turn)];
        }
        let (mut files, mut ids) = (Names::default(), Names::default());
        let old = self.pages;
        for file in [&mut self.name, &mut self.marker, &mut self.kept] {
            files.rename(file);
        }
        for actor in &mut self.actors {
            for file in [&mut actor.page, &mut actor.found, &mut actor.other] {
                files.rename(file);
            }
        }
        self.made = files.count;
        for (page, file) in self.pages.iter_mut().zip(0..) {
            *page = if file < files.count {
                old[usize::from(files.old[usize::from(file)])]
            } else {
                NO_PAGE
            };
            ids.rename(&mut page.id);
        }
        self
    }
}

/// New numbers for old ones.
#[derive(Default)]
struct Names {
    old: [u8; 16],
    count: u8,
}

impl Names {
    fn rename(&mut self, name: &mut u8) {
        if *name == NONE {
            return;
        }
        let known = &self.old[..usize::from(self.count)];
        let at = known.iter().position(|old| old == name);
        let at = at.unwrap_or_else(|| {
            self.old[usize::from(self.count)] = *name;
            self.count += 1;
            usize::from(self.count) - 1
        });
        *name = at as u8;
    }
}

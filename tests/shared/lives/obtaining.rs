//! How a process obtains the node's page: `PageSearch` of `src/pages/life.rs`, access by access.

use super::*;

impl Scenario {
    pub(super) fn obtain(&self, s: &mut State, a: &mut Actor, index: usize) {
        let terms = self.terms(index);
        let at = usize::from(a.found) % PAGES;
        let again = Actor {
            at: At::Map,
            found: NONE,
            hold: Hold::None,
            other: NONE,
            was_begun: false,
            seen: Word::default(),
            ..*a
        };
        let is_wanted = s.pages[at].terms == terms;
        let is_begun = s.pages[at].word != self.not_begun();
        match a.at {
            At::Map if s.name == NONE => {
                if self.has(Fault::ClockBeforeNames) {
                    a.now = s.clock;
                }
                a.at = At::Create;
            }
            At::Map => (a.found, a.at) = (s.name, At::Judge),
            At::Judge => {
                let Page { is_copy, word, .. } = s.pages[at];
                let is_over = is_copy || self.has_ended(word);
                a.at = if is_over { At::EndFound } else { At::Lock };
            }
            At::Lock => {
                let wanted = if is_wanted { Hold::Shared } else { Hold::Exclusive };
                let (is_shared, is_alone) = self.holds(s, a, index);
                if is_alone {
                    *a = again;
                } else if is_wanted || !is_shared {
                    (a.hold, a.at) = (wanted, At::Named);
                } else {
                    // In use on other terms.
                    *a = Actor { draws: a.draws - 1, ..*a }.rest();
                }
            }
            At::Named if s.name != a.found => *a = again,
            At::Named => a.at = if is_wanted { At::Marked } else { At::EndFound },
            At::Marked => a.at = if s.marker == a.found { At::Obtained } else { At::MapMarker },
            At::MapMarker if s.marker == NONE => a.at = At::LinkMarker,
            At::MapMarker if s.marker == a.found => a.at = At::Obtained,
            At::MapMarker => {
                a.other = s.marker;
                a.was_begun = s.pages[usize::from(a.other)].word != self.not_begun();
                a.at = At::EndBehind;
            }
            At::LinkMarker => {
                if s.name != NONE && s.marker == NONE {
                    s.marker = s.name;
                }
                a.at = At::Linked;
            }
            At::Linked if s.marker == a.found => a.at = At::Obtained,
            At::Linked => *a = again,
            // What it has reached is in `seen`, which a draw does not need now.
            At::EndBehind => {
                a.seen.tick = self.end(s, a.other);
                a.at = At::BothBegun;
            }
            At::BothBegun if a.was_begun && is_begun => a.at = At::MarkedYet,
            At::BothBegun => a.at = At::NoteBefore,
            At::MarkedYet if s.marker == a.found => a.at = At::Obtained,
            At::MarkedYet => {
                a.reached = a.reached.max(a.seen.tick);
                a.at = At::EndFound;
            }
            At::NoteBefore => {
                let page = &mut s.pages[at];
                if !is_begun {
                    page.before = page.before.max(a.seen.tick);
                }
                a.at = At::SecondName;
            }
            At::SecondName if s.name == a.found => a.at = At::RenameMarker,
            At::SecondName => *a = again,
            At::RenameMarker => {
                s.marker = a.found;
                let is_done = self.has(Fault::BegunUnnamed);
                a.at = if is_done { At::Obtained } else { At::NamedStill };
            }
            At::NamedStill if s.name == a.found => a.at = At::Obtained,
            At::NamedStill => *a = again,
            At::EndFound => {
                a.seen.tick = self.end(s, a.found);
                a.at = At::IsMarker;
            }
            At::IsMarker => {
                if s.marker != a.found {
                    a.reached = a.reached.max(a.seen.tick);
                }
                a.at = At::RenameAway;
            }
            At::RenameAway => {
                let away = std::mem::replace(&mut s.name, NONE);
                let is_other = away != NONE && away != a.found;
                *a = if is_other { Actor { other: away, at: At::EndAway, ..*a } } else { again };
            }
            At::EndAway => {
                let reached = a.reached.max(self.end(s, a.other));
                *a = Actor { reached, ..again };
            }
            At::Create => {
                if s.name == NONE && usize::from(s.made) < PAGES {
                    let page = self.new_page(terms, s.free_id(), a.reached);
                    s.name = self.add_page(s, page);
                }
                *a = again;
            }
            At::Obtained => {
                let found = Actor { page: a.found, checked: NEVER, ..a.rest() };
                *a = Actor { at: At::RaiseBefore, now: a.now, ..found };
            }
            _ => {}
        }
    }

    /// Whether others share a page with this opening of it, and whether one holds it alone.
    pub(super) fn holds(&self, s: &State, a: &Actor, index: usize) -> (bool, bool) {
        let (mut is_shared, mut is_alone) = (false, false);
        for (other, actor) in s.actors.iter().enumerate() {
            let is_own = other == index;
            // The page that it draws from is another opening of it, unless it is about to use that one.
            let is_drawn_from = actor.page == a.found && (!is_own || a.at == At::Lock);
            is_shared |= is_drawn_from && !self.is_thread(other);
            if !is_own && actor.found == a.found {
                is_shared |= actor.hold != Hold::None;
                is_alone |= actor.hold == Hold::Exclusive;
            }
        }
        (is_shared, is_alone)
    }
}

//! The page of a record: `Durable::bind` and `Durable::renew`.

use super::*;

impl Scenario {
    pub(super) fn bind(&self, s: &mut State, a: &mut Actor, index: usize) -> Result<(), Wrong> {
        let terms = self.terms(index);
        let slot = usize::from(terms.record.unwrap_or(0));
        let at = usize::from(a.found) % PAGES;
        let others = || {
            let all = s.actors.iter().enumerate();
            all.filter(|&(other, _)| other != index && self.terms(other).record == terms.record)
        };
        let is_unbound = Actor { is_bound: false, ..*a };
        match a.at {
            At::Unbind => {
                let page = &mut s.pages[usize::from(a.page)];
                if a.is_bound {
                    let high = page.word.mark();
                    if !self.is_closed(page.word) {
                        page.word =
                            Word { tick: page.word.tick.max(1), next: self.closed(), lead: 0 };
                    }
                    a.known = Record { page: page.id, floor: page.floor, high, ..a.record };
                }
                *a = Actor { at: At::TakeOpening, is_bound: false, ..*a }.rest();
                a.at = At::TakeOpening;
            }
            At::TakeOpening if others().any(|(_, other)| other.is_opening) => {}
            At::TakeOpening => (a.is_opening, a.at) = (true, At::TakeUsers),
            At::TakeUsers if others().any(|(_, other)| other.using == Hold::Exclusive) => {
                *a = is_unbound.rest();
            }
            At::TakeUsers => (a.using, a.at) = (Hold::Shared, At::ReadRecord),
            At::ReadRecord => {
                a.record = s.records[slot];
                a.at = At::PresentNamed;
            }
            At::PresentNamed if a.page != NONE && s.name == a.page => {
                let is_done = self.has(Fault::OpenedUnnamed);
                (a.found, a.at) = (a.page, if is_done { At::Join } else { At::PresentMarked });
            }
            At::PresentMarked if s.marker == a.page => a.at = At::Join,
            At::PresentMarked => (a.found, a.at) = (NONE, At::Map),
            At::PresentNamed => a.at = At::Map,
            At::Join if a.using == Hold::Exclusive => a.at = At::Usable,
            At::Join => {
                let page = &s.pages[at];
                if a.record.page == page.id && !self.is_closed(page.word) {
                    a.window = page.window;
                    self.adopt(a);
                } else {
                    (a.using, a.at) = (Hold::None, At::TakeAlone);
                }
            }
            At::TakeAlone if others().any(|(_, other)| other.using != Hold::None) => {
                *a = is_unbound.rest();
            }
            At::TakeAlone => (a.using, a.at) = (Hold::Exclusive, At::ReadRecord),
            At::Usable => {
                let page = &s.pages[at];
                let is_closed = a.record.page == page.id && self.is_closed(page.word);
                let is_usable = is_closed || page.word == self.not_begun();
                (a.seen, a.window) = (page.word, page.window);
                a.at = if is_usable { At::Know } else { At::LockAlone };
            }
            At::LockAlone if self.holds(s, a, index) != (false, false) => {
                *a = Actor { draws: a.draws - 1, ..is_unbound }.rest();
            }
            At::LockAlone => (a.hold, a.at) = (Hold::Exclusive, At::EndUnusable),
            At::EndUnusable => {
                self.end(s, a.found)?;
                a.at = At::UnusableNamed;
            }
            At::UnusableNamed => a.at = if s.name == a.found { At::Remove } else { At::TakeUsers },
            At::Remove => {
                s.name = NONE;
                (a.found, a.hold, a.at) = (NONE, Hold::None, At::TakeUsers);
            }
            At::Know => {
                a.record = self.next_record(s, a, terms);
                a.at = At::WriteRecord;
            }
            At::WriteRecord if s.records[slot].generation >= a.record.generation => {
                *a = is_unbound.rest();
            }
            At::WriteRecord => {
                s.records[slot] = a.record;
                // Read again: what is closed by now is reopened.
                if self.has(Fault::OpenedUnnamed) {
                    (a.seen, a.window) = (s.pages[at].word, s.pages[at].window);
                }
                a.at = At::Window;
            }
            At::Window => {
                let page = &mut s.pages[at];
                page.floor = page.floor.max(a.record.floor);
                if page.window == a.window && self.is_closed(a.seen) {
                    page.window += 1;
                    page.ceiling = a.record.ceiling;
                    a.window = page.window;
                    a.at = At::Reopen;
                } else {
                    *a = is_unbound.rest();
                }
            }
            At::Reopen if s.pages[at].word != a.seen => *a = is_unbound.rest(),
            At::Reopen => {
                let tick = (a.record.high.max(a.seen.tick) + 1).max(1);
                s.pages[at].word = Word { tick, next: 0, lead: 0 };
                a.at = At::NameHeld;
                if self.has(Fault::OpenedUnnamed) {
                    self.adopt(a);
                }
            }
            At::NameHeld => {
                a.at = if s.name == a.found { At::MarkerHeld } else { At::CloseUnnamed }
            }
            At::MarkerHeld if s.marker == a.found => self.adopt(a),
            At::MarkerHeld => a.at = At::CloseUnnamed,
            At::CloseUnnamed => {
                self.end(s, a.found)?;
                *a = is_unbound.rest();
            }
            At::Renew => {
                let record = s.records[slot];
                let is_same =
                    (record.generation, record.page) == (a.record.generation, a.record.page);
                assert!(is_same, "overtaken while it holds the record");
                a.next.tick = record.ceiling;
                a.at = At::WriteRenewed;
            }
            At::WriteRenewed => {
                let page = &s.pages[usize::from(a.page)];
                let ceiling = self.next_ceiling(s, page.word.mark(), terms).max(a.next.tick);
                let record = &mut s.records[slot];
                if record.generation == a.record.generation {
                    record.ceiling = record.ceiling.max(ceiling);
                }
                (a.next.tick, a.at) = (ceiling, At::Raise);
            }
            At::Raise => {
                let page = &mut s.pages[usize::from(a.page)];
                if page.window == a.window {
                    page.ceiling = page.ceiling.max(a.next.tick);
                }
                *a = a.rest();
            }
            _ => {}
        }
        Ok(())
    }

    /// Draws from the page that it has found, and lets others open the record.
    fn adopt(&self, a: &mut Actor) {
        let is_same = a.page == a.found;
        let checked = if is_same { a.checked } else { NEVER };
        let known = NO_RECORD;
        *a = Actor { page: a.found, checked, using: Hold::Shared, is_bound: true, known, ..*a }
            .rest();
    }

    fn next_ceiling(&self, s: &State, issued: Tick, terms: Terms) -> Tick {
        s.clock.max(issued.min(s.clock + terms.max_ahead)).max(issued - TTL) + TTL
    }

    /// `up_to_date`, and the record that names the page.
    fn next_record(&self, s: &State, a: &Actor, terms: Terms) -> Record {
        let (page, record, last) = (&s.pages[usize::from(a.found)], a.record, a.known);
        let is_begun = page.word != self.not_begun();
        let is_last = last.page == record.page
            && (last.generation == record.generation || self.has(Fault::OldKnowledge));
        let follows = record.page != NONE && page.follows == record.page;
        let (mut floor, mut high) = if record.page == page.id && is_begun {
            // A page that was ended before it opened tells less than its record.
            (record.floor.max(page.floor), page.word.mark().max(record.high))
        } else if record.page == page.id || record.page == NONE {
            (record.floor, record.high)
        } else if is_last && last.page != NONE {
            (last.floor, last.high)
        } else if follows {
            (record.floor.max(page.before), NEVER)
        } else if self.has(Fault::CeilingForgotten) {
            (record.floor, record.high)
        } else {
            (record.ceiling, NEVER)
        };
        if !follows && !is_begun {
            if page.before == NEVER {
                high = high.max(s.clock);
            } else {
                floor = floor.max(s.clock).max(page.before);
            }
        }
        let drawn = if a.page == NONE { NEVER } else { s.pages[usize::from(a.page)].word.mark() };
        let ceiling = self.next_ceiling(s, drawn, terms).max(high).max(floor);
        Record {
            generation: record.generation + 1,
            page: page.id,
            floor,
            high,
            ceiling: ceiling.max(record.ceiling),
        }
    }
}

//! A process from one ID to the next: `Sequence::swap`, `Reading::now` and `Generator::resolve`.

use super::*;

/// What the rule says of a word at a clock.
enum Decided {
    Draws(Word),
    /// A later clock helps.
    Waits,
}

impl Scenario {
    pub(super) fn draw(&self, s: &mut State, a: &mut Actor, index: usize) -> Result<(), Wrong> {
        let terms = self.terms(index);
        let reads_thread_memory = matches!(a.at, At::Load | At::Decide | At::Swap);
        if self.is_thread(index)
            && reads_thread_memory
            && self.has(Fault::UnmappedEarly)
            && s.actors[0].page != a.page
        {
            return Err(Wrong::Unmapped);
        }
        let at = usize::from(a.page) % PAGES;
        let is_named = if self.checks_marker { s.marker } else { s.name } == a.page;
        let is_checked_first = self.has(Fault::CheckBeforeClock);
        match a.at {
            At::Idle if a.page == NONE => a.at = At::Map,
            At::Idle if is_checked_first => {
                a.at = if is_named { At::Load } else { At::Lost };
            }
            At::Idle | At::Load => (a.seen, a.at) = (s.pages[at].word, At::Clock),
            At::Clock => {
                a.now = s.clock;
                a.at = if a.checked == a.now || is_checked_first { At::Decide } else { At::Check };
            }
            At::Check if is_named => (a.checked, a.at) = (a.now, At::Decide),
            At::Check => a.at = At::Lost,
            At::Decide => match self.decide(a, &s.pages[at], terms.max_ahead) {
                _ if self.is_closed(a.seen) => a.at = At::Lost,
                Decided::Draws(next) => (a.next, a.at) = (next, At::Swap),
                Decided::Waits => *a = a.rest(),
            },
            At::Swap if s.pages[at].word != a.seen => *a = Actor { at: At::Load, ..a.rest() },
            At::Swap => {
                let lead = a.next.tick - a.now;
                s.pages[at].word = Word { next: a.next.next + 1, lead, ..a.next };
                if lead > terms.max_ahead {
                    a.at = At::Booked;
                } else {
                    self.issue(s, a.next)?;
                    *a = Actor { draws: a.draws - 1, ..a.rest() };
                }
            }
            // Awake once its tick has begun, it checks the name; what is on a page that is gone is lost.
            At::Booked if s.clock >= a.next.tick => {
                if is_named || self.has(Fault::BookingNotRechecked) {
                    self.issue(s, a.next)?;
                    *a = Actor { draws: a.draws - 1, ..a.rest() };
                } else {
                    *a = a.rest();
                }
            }
            At::Lost if self.is_thread(index) => *a = a.rest(),
            At::Lost => {
                let reached = self.end(s, a.page);
                *a = Actor { at: At::Map, lost: a.lost.max(reached), ..a.rest() };
            }
            At::RaiseBefore => {
                if a.lost > NEVER && !self.has(Fault::BeginsTooLow) {
                    let page = &mut s.pages[at];
                    page.before = page.before.max(a.lost);
                    page.floor = page.floor.max(a.lost);
                }
                (a.at, a.lost) = (At::LoadBegin, NEVER);
            }
            At::LoadBegin => {
                (a.seen, a.window) = (s.pages[at].word, s.pages[at].window);
                let is_begun = a.seen != self.not_begun();
                if is_begun {
                    *a = a.rest();
                } else if self.has(Fault::ClockBeforeNames) {
                    a.at = At::FloorBegin;
                } else {
                    a.at = At::ClockBegin;
                }
            }
            At::ClockBegin => (a.now, a.at) = (s.clock, At::FloorBegin),
            At::FloorBegin => {
                let page = &mut s.pages[at];
                if page.before > NEVER || terms.max_ahead > 0 {
                    let before = if self.has(Fault::BeginsTooLow) { NEVER } else { page.before };
                    page.floor = page.floor.max(before).max(a.now + terms.max_ahead);
                    if terms.max_ahead > 0 {
                        page.before = page.before.max(page.floor);
                    }
                }
                a.at = At::WindowBegin;
            }
            At::WindowBegin if s.pages[at].window != a.window => a.at = At::LoadBegin,
            At::WindowBegin => {
                s.pages[at].window += 1;
                a.at = At::SwapBegin;
            }
            At::SwapBegin if s.pages[at].word != a.seen => a.at = At::LoadBegin,
            At::SwapBegin => {
                s.pages[at].word = Word { tick: a.now, next: self.numbers, lead: 0 };
                *a = a.rest();
            }
            _ => {}
        }
        Ok(())
    }

    fn decide(&self, a: &Actor, page: &Page, max_ahead: Tick) -> Decided {
        let (seen, now) = (a.seen, a.now);
        let reach = max_ahead.max(self.horizon);
        let current = seen.mark();
        let ahead = current - now;
        let is_ahead = ahead > 0 && ahead <= seen.lead.max(max_ahead);
        if is_ahead && ahead > reach {
            return Decided::Waits;
        }
        let tick = if is_ahead { current } else { now };
        let is_low = tick <= page.floor && page.floor < now + max_ahead;
        let tick = if is_low { page.floor + 1 } else { tick };
        let is_exhausted = seen.next == self.numbers && seen.tick == tick;
        let tick = if is_exhausted { tick + 1 } else { tick };
        if tick - now > reach
            || tick <= page.floor
            || usize::from(tick as u8) >= 64 / usize::from(self.numbers)
        {
            Decided::Waits
        } else if current < tick {
            Decided::Draws(Word { tick, next: 0, lead: 0 })
        } else if seen.tick == tick && seen.next < self.numbers {
            Decided::Draws(seen)
        } else {
            Decided::Waits
        }
    }
}

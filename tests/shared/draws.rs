//! Processes that draw from one page, in every order of their steps: `src/core/sequence`, from one block to the next. And
//! windows: keepers that renew the page's slot, release it and take it again, and another host that takes it meanwhile.
//!
//! A process that is killed is one that takes no further step, which is tried in any case. The memory is sequentially
//! consistent; loom tries the weaker orders.

use super::lives::story;
use super::steps::{self, choose, effect, step};
use super::world::{Actor, File, Tick, World, Wrong};
use crate::amount::amount;
use crate::core::atomic::PLACES;
use crate::core::layout::Layout;
use crate::core::sequence::{Cells, Rules, Sequence};
use crate::core::sequencer::{Block, Stall, Window};
use crate::search::{Model, search};

/// How the clock moves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Clock {
    /// Each reading shows any tick.
    Any,
    /// It rises, at any moment.
    Rising,
}

/// What keepers do.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Keeping {
    /// Renew the page's slot, or end the page and release the slot.
    OnePage,
    /// End the page, release the slot, and take it again for the same cells: one keeper does so, since no page begins
    /// again whose slot others may take for it.
    AgainAndAgain,
}

/// What is searched.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    ticks: Tick,
    counter_bits: u8,
    processes: usize,
    /// Reservations of each process.
    draws: u8,
    clock: Clock,
    /// How many ticks ahead a waiter may book.
    horizon: Tick,
    keepers: usize,
    keeping: Keeping,
    /// Of each keeper.
    keepings: u8,
    /// How often another host takes the slot.
    others: u8,
    /// How often one is held up between two steps while another goes on.
    switches: u8,
    /// Of which cells each load is a step, a bit each.
    loads: u8,
}

const WORD: u8 = 1;
const BOUNDS: u8 = 0b110;
const MARKS: u8 = 0b11_0000;

const DRAWS: Scenario = Scenario {
    ticks: 3,
    counter_bits: 1,
    processes: 2,
    draws: 2,
    clock: Clock::Any,
    horizon: 0,
    keepers: 0,
    keeping: Keeping::OnePage,
    keepings: 0,
    others: 0,
    switches: 2,
    loads: WORD | MARKS,
};

const RISING: Scenario = Scenario { clock: Clock::Rising, ticks: 3, horizon: 2, ..DRAWS };

const WINDOWS: Scenario = Scenario {
    ticks: 5,
    counter_bits: 0,
    processes: 1,
    keepers: 1,
    keepings: 2,
    others: 1,
    loads: WORD | BOUNDS,
    ..DRAWS
};

impl Scenario {
    /// Two IDs a tick.
    fn layout(&self) -> Layout {
        Layout::new([4, 2, 2, self.counter_bits, 1], 1, 0)
    }

    fn sequence(&self) -> Sequence<&'static Cells> {
        Sequence::new(PLACES.with(|places| &places[0]), &self.layout())
    }

    fn now(&self) -> Tick {
        match self.clock {
            Clock::Any => choose(self.ticks as u64) as Tick,
            Clock::Rising => step(|world, _| world.clock as u64) as Tick,
        }
    }

    /// A number for each ID.
    fn ids(&self, block: &Block, len: u64) -> impl Iterator<Item = u64> + use<> {
        let run = (block.tick as u64) << self.counter_bits | block.counter as u64;
        (block.first..block.first + len).map(move |number| run << 1 | number)
    }

    /// One reservation. Of its block, all is handed out, or all but the last ID, which is given back.
    fn draw(&self) {
        let (sequence, rules) = (self.sequence(), Rules { may_raise: true, ..Rules::default() });
        let (want, back) = [(2, 0), (1, 0), (2, 1), (1, 1)][choose(4) as usize];
        let mut now = || self.now();
        let drawn = match self.horizon {
            0 => sequence.reserve(&rules, &mut now, |_| want),
            horizon => sequence.book(&rules, &mut now, want, horizon),
        };
        effect(|world, actor| {
            world.actors[actor].wants -= 1;
            let is_rollback = match drawn {
                Ok(block) => {
                    self.ids(&block, block.len - back).for_each(|id| world.issue(id));
                    block.counter > 0
                }
                Err(stall) => matches!(stall, Stall::ClockBehind { .. }),
            };
            if is_rollback && self.clock == Clock::Rising {
                world.wrong = Some(Wrong::FalseRollback);
            }
        });
        if let Ok(block) = drawn
            && back > 0
        {
            sequence.give_back(&block, back);
        }
        self.rest();
    }

    fn rest(&self) {
        if steps::myself(|me| me.wants > 0) {
            steps::again(steps::Next::Idle, 0);
        }
    }

    fn keep(&self) {
        let sequence = self.sequence();
        let held = step(|world, actor| {
            world.actors[actor].wants -= 1;
            world.held.into()
        });
        if self.keeping == Keeping::OnePage && choose(2) == 0 {
            let ceiling = sequence.memory().ceiling() + 1;
            let is_confirmed = step(|world, _| {
                let is_held = ceiling < self.ticks && u64::from(world.holding) == held;
                if is_held {
                    world.confirmed = world.confirmed.max(ceiling);
                }
                is_held.into()
            });
            if is_confirmed == 1 {
                sequence.raise_ceiling(ceiling);
            }
            return self.rest();
        }
        let last = sequence.end().highest().max(sequence.floor());
        step(|world, _| {
            if u64::from(world.holding) == held {
                // Never above what was confirmed.
                world.confirmed = world.confirmed.min(last);
                world.holding += 1;
            }
            0
        });
        if self.keeping == Keeping::AgainAndAgain {
            let closed = sequence.closed();
            let floor = step(|world, _| {
                world.holding += 1;
                world.held = world.holding;
                world.confirmed = (world.confirmed + 1).min(self.ticks - 1);
                world.confirmed as u64 - 1
            }) as Tick;
            if let Some(closed) = closed {
                let _ = sequence.begin(&closed, Window { floor, ceiling: floor + 1 }, None);
            }
        }
        self.rest();
    }

    fn code(self, actor: usize) -> impl Fn() {
        move || if actor < self.processes { self.draw() } else { self.keep() }
    }
}

impl Model for Scenario {
    type State = World;
    type Wrong = Wrong;

    fn start(&self) -> World {
        let mut world = World { clock: 0, loads: self.loads, name: 0, ..World::default() };
        world.add(File::default());
        if self.keepers > 0 {
            // The host holds the slot up to tick 1.
            world.confirmed = 1;
            world.actors.push(Actor::new(1));
            world = steps::run(world, 0, 0, true, &|| {
                let sequence = self.sequence();
                sequence.memory().prepare(&self.layout());
                let window = Window { floor: -1, ceiling: 1 };
                sequence.begin(&sequence.closed().unwrap(), window, None).unwrap();
            })
            .0;
        }
        let mut actors = vec![Actor::new(self.draws); self.processes];
        actors.extend(vec![Actor::new(self.keepings); self.keepers]);
        world.file(0).is_named = true;
        World { actors, acts: self.others, switches: self.switches, ..world }
    }

    fn steps(&self, world: &World, next: &mut Vec<World>) -> Result<(), Wrong> {
        if self.clock == Clock::Rising && world.clock + 1 < self.ticks {
            next.push(World { clock: world.clock + 1, ..world.clone() });
        }
        if world.acts > 0 && world.confirmed + 1 < self.ticks {
            // Whether the slot was released or has expired: that must not matter.
            let mut taken = world.clone();
            taken.acts -= 1;
            taken.holding += 1;
            taken.confirmed += 1;
            let block = Block { tick: taken.confirmed, counter: 0, first: 0, len: 2 };
            self.ids(&block, 2).for_each(|id| taken.issue(id));
            taken.wrong.map_or(Ok(()), Err)?;
            next.push(taken);
        }
        for actor in 0..world.actors.len() {
            steps::next(world, actor, &self.code(actor), next)?;
        }
        for world in next {
            world.sort(0..self.processes);
            world.sort(self.processes..self.processes + self.keepers);
        }
        Ok(())
    }
}

fn holds(scenario: Scenario) {
    let found = search(&scenario);
    println!("{} states: {scenario:?}", found.states);
    assert_eq!(found.wrong, None, "{scenario:?}\n{}", story(&found.path));
    assert!(found.is_whole, "some states were not searched");
}

/// Where storms run, with more of them held up between two steps.
fn held_up(scenario: Scenario) -> Scenario {
    Scenario { switches: scenario.switches + amount(0, 1) as u8, ..scenario }
}

#[test]
fn draws_never_repeat_whatever_the_clock_shows() {
    holds(Scenario { ticks: amount(2, 3) as Tick, ..DRAWS });
}

/// With three processes, and with two keepers.
#[test]
#[ignore = "a storm"]
fn no_id_repeats_among_more_of_them() {
    holds(Scenario { processes: 3, draws: 1, ..DRAWS });
    holds(held_up(Scenario { ticks: 4, keepers: 2, draws: 1, ..WINDOWS }));
}

#[test]
fn bookings_never_repeat_whatever_the_clock_shows() {
    holds(held_up(Scenario { horizon: 2, ticks: 2, ..DRAWS }));
}

#[test]
fn a_clock_that_rises_never_seems_to_roll_back() {
    holds(held_up(RISING));
}

#[test]
fn no_tick_is_issued_by_two_holders() {
    holds(held_up(WINDOWS));
    holds(held_up(Scenario { counter_bits: 1, ticks: 4, loads: WORD | BOUNDS | MARKS, ..WINDOWS }));
}

#[test]
fn no_tick_is_issued_again_in_a_later_window() {
    holds(held_up(Scenario { keeping: Keeping::AgainAndAgain, ..WINDOWS }));
}

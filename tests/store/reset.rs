//! Slots that a wrong clock made useless, and their resets.

use std::collections::HashMap;
use std::fs;

use snowdrift::layout::{Layout, Tick};
use snowdrift::sequencer::{NEVER, Window};

use crate::rule::{Rules, SequenceStart, Sequencer};

use snowdrift::store::record::{Record, Skip};
use snowdrift::store::reset::{Plan, Reset};
use snowdrift::store::{Held, MarkTable, Store, StoreError};

use crate::contract::{LAYOUT, holder, slot};
use crate::machine::Machine;

const HOUR: Tick = 3_600_000;
const YEAR: Tick = 365 * 24 * HOUR;
/// Ticks are ms since 1970 here.
const NOW: Tick = 56 * YEAR;
const TTL: Tick = 10_000;

fn reset(machine: &Machine, now: Tick, is_meant: bool) -> Reset {
    machine.store().reset((1, 3), None, now, is_meant).unwrap()
}

fn floor_of(machine: &Machine) -> Tick {
    machine.store().acquire(&slot(3), &holder(), NOW + TTL).unwrap().terms().floor
}

/// A machine whose clock stood nine years ahead for a minute, and was set right before the power went.
fn machine_from_the_future() -> Machine {
    let mut machine = Machine::new(None);
    let mut held = machine.store().acquire(&slot(3), &holder(), NOW - HOUR).unwrap();
    held.renew(NOW + 9 * YEAR + TTL).unwrap();
    held.renew(NOW + 9 * YEAR + 60_000).unwrap();
    drop(held);
    machine.cut_power(&mut fastrand::Rng::with_seed(1));
    machine
}

#[test]
fn a_slot_that_a_clock_ahead_made_useless_goes_on_after_a_reset() {
    let machine = machine_from_the_future();
    assert_eq!(floor_of(&machine), NOW + 9 * YEAR + 60_000);
    let plan = reset(&machine, NOW, false).plan.unwrap();
    assert_eq!((plan.floor, plan.repeats_to), (NOW, NEVER));
    assert_eq!(floor_of(&machine), NOW + 9 * YEAR + 60_000, "it was only looked at");
    reset(&machine, NOW, true);
    assert_eq!(floor_of(&machine), NOW);
    assert!(reset(&machine, NOW + 2 * TTL, true).plan.is_none(), "the clock has passed it");
}

#[test]
fn what_a_clock_ahead_issued_is_skipped_when_the_clock_comes_to_it() {
    let machine = machine_from_the_future();
    let Skip { from, to } = reset(&machine, NOW, true).plan.unwrap().skip;
    assert!(from < NOW + 9 * YEAR && to == NOW + 9 * YEAR + 60_000);
    let mut held = machine.store().acquire(&slot(3), &holder(), from - 1).unwrap();
    for ceiling in [from, to, to + YEAR] {
        let refused = held.renew(ceiling).unwrap_err().to_string();
        assert!(refused.contains("a clock that stood ahead has issued"), "{refused}");
        assert_eq!(held.terms().ceiling, from - 1);
    }
    drop(held);
    let before = fs::read(machine.store().path_of(&slot(3))).unwrap();
    for ceiling in [from, to, to + TTL] {
        let refused = machine.store().acquire(&slot(3), &holder(), ceiling).err().unwrap();
        assert!(matches!(refused, StoreError::Unusable { .. }), "{refused:?}");
        assert_eq!(fs::read(machine.store().path_of(&slot(3))).unwrap(), before);
    }
    let held = machine.store().acquire(&slot(3), &holder(), to + 4 * HOUR).unwrap();
    assert_eq!((held.terms().floor, held.terms().ceiling), (to, to + 4 * HOUR));
}

#[test]
fn a_holder_that_lives_keeps_its_slot() {
    let machine = machine_from_the_future();
    let held = machine.store().acquire(&slot(3), &holder(), NOW).unwrap();
    let before = fs::read(machine.store().path_of(&slot(3))).unwrap();
    let refused = machine.store().reset((1, 3), None, NOW, true).err();
    assert!(matches!(refused, Some(StoreError::InUse { holder: Some(_), .. })), "{refused:?}");
    assert_eq!(fs::read(machine.store().path_of(&slot(3))).unwrap(), before);
    drop(held);
    assert!(machine.store().reset((1, 3), None, NOW, true).is_ok());
}

#[test]
fn a_file_that_cannot_be_read_starts_at_the_clock_and_stays_its_users() {
    let machine = machine_from_the_future();
    let path = machine.store().path_of(&slot(3));
    let whole = fs::read(&path).unwrap();
    let mut older = whole.clone();
    older[8] = 1;
    let mut damaged = whole.clone();
    damaged[1030] ^= 1;
    for bytes in [&older[..], &whole[..100], &[0; 4096], &[]] {
        fs::write(&path, bytes).unwrap();
        let looked = machine.store().reset((1, 3), Some(LAYOUT), NOW, false).unwrap();
        assert!(looked.found.is_err());
        assert_eq!(fs::read(&path).unwrap(), bytes, "it was only looked at");
        let plan = machine.store().reset((1, 3), Some(LAYOUT), NOW, true).unwrap().plan;
        let expected = Plan { floor: NOW, skip: Skip::NONE, repeats_to: Tick::MAX };
        assert_eq!(plan, Some(expected));
        assert_eq!(floor_of(&machine), NOW);
    }
}

#[test]
fn another_layout_and_a_slot_that_was_never_used_are_said() {
    let machine = machine_from_the_future();
    let refused = machine.store().reset((1, 3), Some(Layout::TWITTER), NOW, true).err();
    assert!(matches!(refused, Some(StoreError::OtherLayout { .. })), "{refused:?}");
    let refused = machine.store().reset((1, 4), None, NOW, true).err().unwrap().to_string();
    assert!(refused.contains("datacenter-1-worker-4.slot"), "{refused}");
    assert!(!machine.store().path_of(&slot(4)).exists());
}

/// A process that draws, and what all of them drew: (counter, tick).
struct Process {
    held: Box<dyn Held>,
    marks: MarkTable,
    sequencer: Sequencer,
}

impl Process {
    fn start(machine: &Machine, now: Tick) -> Option<Process> {
        let mut held = match machine.store().acquire(&slot(3), &holder(), now + TTL) {
            Err(StoreError::Unusable { .. }) => return None,
            answer => answer.unwrap(),
        };
        let rules = Rules { may_raise: true, max_ahead: 0, start: SequenceStart::Zero };
        let marks = held.marks().unwrap();
        let terms = held.terms();
        marks.write(&terms.high);
        let mut sequencer = Sequencer::new(&LAYOUT, rules, terms.high);
        sequencer.set_window(Window { floor: terms.floor, ceiling: terms.ceiling });
        Some(Process { held, marks, sequencer })
    }

    /// Every run is one tick's whole sequence, so a pair that comes twice is a duplicate.
    fn draw(&mut self, now: Tick) -> Option<(usize, Tick)> {
        let Window { floor, ceiling } = self.sequencer.window();
        if now + TTL > ceiling && self.held.renew(now + TTL).is_ok() {
            self.sequencer.set_window(Window { floor, ceiling: self.held.terms().ceiling });
        }
        let block = self.sequencer.reserve(now, u64::MAX).ok()?;
        self.marks.note(block.counter, block.tick);
        Some((block.counter, block.tick))
    }

    fn release(self) {
        let last = self.sequencer.high_marks().highest();
        drop(self.marks);
        self.held.release(last).unwrap();
    }
}

/// Of a life of a slot under a clock that jumps, and resets whenever it is useless: duplicates that
/// no reset has announced, IDs, resets, and those that announced some.
fn life(seed: u64) -> [usize; 4] {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut machine = Machine::new(None);
    let (mut right, mut ahead) = (NOW, 0);
    let mut drawn: HashMap<(usize, Tick), usize> = HashMap::new();
    let mut announced: Vec<(Tick, Tick)> = Vec::new();
    let [mut duplicates, mut resets] = [0, 0];
    for _ in 0..40 {
        let Some(mut process) = Process::start(&machine, right + ahead) else {
            right += random.i64(0..YEAR);
            ahead = 0;
            continue;
        };
        for _ in 0..random.usize(1..12) {
            match random.u8(0..10) {
                0 => ahead = [0, 0, HOUR / 2, 2 * HOUR, YEAR, 9 * YEAR][random.usize(0..6)],
                1 => right += random.i64(0..20 * HOUR),
                2 if ahead > 0 => right += ahead + random.i64(-HOUR..HOUR).max(-ahead),
                _ => right += random.i64(0..2 * TTL),
            }
            if let Some(pair) = process.draw(right + ahead) {
                let times = drawn.entry(pair).or_default();
                *times += 1;
                let is_announced = |&(from, to): &(Tick, Tick)| from <= pair.1 && pair.1 <= to;
                if *times > 1 && !announced.iter().any(is_announced) {
                    duplicates += 1;
                }
            }
        }
        match random.u8(0..3) {
            0 => process.release(),
            1 => drop(process),
            _ => {
                drop(process);
                machine.cut_power(&mut random);
            }
        }
        if random.bool() {
            // Somebody looks at the clock.
            ahead = 0;
            if let Reset { plan: Some(plan), .. } = reset(&machine, right, true) {
                resets += 1;
                if plan.repeats_to > plan.floor {
                    announced.push((plan.floor + 1, plan.repeats_to));
                }
            }
        }
    }
    [duplicates, drawn.len(), resets, announced.len()]
}

#[test]
fn a_reset_repeats_nothing_but_what_it_announces() {
    let mut sums = [0; 4];
    for seed in 0..120 {
        let life = life(seed);
        assert_eq!(life[0], 0, "seed {seed}");
        for (sum, one) in sums.iter_mut().zip(life) {
            *sum += one;
        }
    }
    let [_, ids, resets, announcing] = sums;
    println!("{ids} ticks, {resets} resets, of which {announcing} announced repetitions");
    assert!(ids > 10_000 && resets > 1000 && announcing < resets / 2, "{sums:?}");
}

#[test]
fn a_record_keeps_what_is_skipped() {
    let machine = machine_from_the_future();
    let skip = reset(&machine, NOW, true).plan.unwrap().skip;
    let held = machine.store().acquire(&slot(3), &holder(), NOW + TTL).unwrap();
    held.release(NOW + 1).unwrap();
    let bytes = fs::read(machine.store().path_of(&slot(3))).unwrap();
    let record = Record::from_bytes(bytes.first_chunk().unwrap()).unwrap();
    assert_eq!((record.skip, record.ceiling), (skip, NOW + 1));
}

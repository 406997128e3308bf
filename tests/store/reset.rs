//! Slots that a wrong clock made useless, and their resets.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use snowdrift::authority::record::Skip;
use snowdrift::authority::reset::{Plan, Reset};
use snowdrift::core::clock::ManualClock;
use snowdrift::core::fault::{Class, Failure};
use snowdrift::core::layout::{Layout, Tick};
use snowdrift::core::sequencer::NEVER;
use snowdrift::generator::Policies;

use super::machine::Machine;
use super::pages::{Process, TTL};
use super::slots::{LAYOUT, slot};

const HOUR: Tick = 3_600_000;
const YEAR: Tick = 365 * 24 * HOUR;
/// Ticks are ms since 1970 here.
const NOW: Tick = 56 * YEAR;

fn reset(machine: &Machine, now: Tick, is_meant: bool) -> Reset {
    machine.store().reset((1, 3), None, now, is_meant, Some(&machine.host())).unwrap()
}

fn start(machine: &Machine, clock: &Arc<ManualClock>) -> Result<Process, Failure> {
    Process::start(machine, slot(3), clock)
}

fn at(ms: Tick) -> Arc<ManualClock> {
    Arc::new(ManualClock::at(ms))
}

fn renew(process: &mut Process) -> Result<(), Failure> {
    process.durable.renew(process.generator.next_ceiling(TTL))
}

fn floor_of(machine: &Machine) -> Tick {
    start(machine, &at(NOW)).unwrap().durable.floor()
}

/// Nothing was issued above it.
const AHEAD: Tick = NOW + 9 * YEAR + 60_000;

/// A machine whose clock stood nine years ahead for a minute, and was set right before the power went.
fn machine_from_the_future() -> Machine {
    let mut machine = Machine::new(None);
    let clock = at(NOW - HOUR);
    let mut process = start(&machine, &clock).unwrap();
    for ceiling in [NOW + 9 * YEAR + 10_000, AHEAD] {
        clock.set(ceiling - TTL.as_millis() as Tick);
        renew(&mut process).unwrap();
    }
    drop(process);
    machine.cut_power(&mut fastrand::Rng::with_seed(1));
    machine
}

#[test]
fn a_slot_that_a_clock_ahead_made_useless_goes_on_after_a_reset() {
    let machine = machine_from_the_future();
    assert_eq!(floor_of(&machine), AHEAD);
    let plan = reset(&machine, NOW, false).plan.unwrap();
    assert_eq!((plan.floor, plan.repeats_to), (NOW, NEVER));
    assert_eq!(floor_of(&machine), AHEAD, "it was only looked at");
    reset(&machine, NOW, true);
    assert_eq!(floor_of(&machine), NOW);
    assert!(reset(&machine, NOW + 20_000, true).plan.is_none(), "the clock has passed it");
}

#[test]
fn what_a_clock_ahead_issued_is_skipped_when_the_clock_comes_to_it() {
    let machine = machine_from_the_future();
    let Skip { from, to } = reset(&machine, NOW, true).plan.unwrap().skip;
    assert!(from < NOW + 9 * YEAR && to == AHEAD);
    let ttl = TTL.as_millis() as Tick;
    let clock = at(from - 1 - ttl);
    let mut process = start(&machine, &clock).unwrap();
    for ceiling in [from, to, to + HOUR] {
        let refused = format!("{:?}", process.durable.renew(ceiling).unwrap_err());
        assert!(refused.contains("slot-skips"), "{refused}");
        assert_eq!(process.generator.window().ceiling, from - 1);
    }
    // One that stays until the clock has certainly passed them goes on.
    clock.set(to + 4 * HOUR);
    renew(&mut process).unwrap();
    assert!(process.generator.window().floor >= to);
    process.draw().unwrap();
}

#[test]
fn who_starts_where_ticks_are_skipped_is_refused() {
    let mut machine = machine_from_the_future();
    let Skip { from, to } = reset(&machine, NOW, true).plan.unwrap().skip;
    drop(start(&machine, &at(NOW)).unwrap());
    let ttl = TTL.as_millis() as Tick;
    for boot in 0..2 {
        for ceiling in [from, to, to + ttl] {
            let refused = start(&machine, &at(ceiling - ttl)).err().unwrap();
            assert!(matches!(refused, Failure { class: Class::Slot, .. }), "{refused:?}");
        }
        if boot == 0 {
            machine.cut_power(&mut fastrand::Rng::with_seed(2));
        }
    }
    let process = start(&machine, &at(to + 4 * HOUR)).unwrap();
    let window = process.generator.window();
    assert!(window.floor >= to && window.ceiling == to + 4 * HOUR + ttl, "{window:?}");
}

#[test]
fn a_holder_that_lives_keeps_its_slot() {
    let machine = machine_from_the_future();
    let process = start(&machine, &at(NOW)).unwrap();
    let before = fs::read(machine.store().path_of(&slot(3))).unwrap();
    let refused = machine.store().reset((1, 3), None, NOW, true, Some(&machine.host())).err();
    assert_eq!(refused.map(|refused| refused.fault.parts("holders").len()), Some(1));
    assert_eq!(fs::read(machine.store().path_of(&slot(3))).unwrap(), before);
    drop(process);
    assert!(machine.store().reset((1, 3), None, NOW, true, None).is_ok());
}

#[test]
fn a_reset_removes_the_page_which_remembers_the_future() {
    let machine = Machine::new(None);
    let clock = at(NOW + YEAR);
    let process = start(&machine, &clock).unwrap();
    clock.set(NOW + YEAR + 1);
    process.draw().unwrap();
    drop(process);
    let found = reset(&machine, NOW, true);
    assert_eq!(found.high.unwrap().marks[0], NOW + YEAR + 1, "the page has them exactly");
    let clock = at(NOW + 10);
    let process = start(&machine, &clock).unwrap();
    clock.set(NOW + 11);
    process.draw().unwrap();
}

#[test]
fn a_file_that_cannot_be_read_starts_at_the_clock_and_stays_its_users() {
    let machine = machine_from_the_future();
    let path = machine.store().path_of(&slot(3));
    let whole = fs::read(&path).unwrap();
    let mut older = whole.clone();
    older[8] = 2;
    let mut damaged = whole.clone();
    damaged[1030] ^= 1;
    for bytes in [&older[..4096], &damaged, &whole[..100], &[0; 4096], &[]] {
        fs::write(&path, bytes).unwrap();
        let looked = machine.store().reset((1, 3), Some(LAYOUT), NOW, false, None).unwrap();
        assert!(looked.found.is_err());
        assert_eq!(fs::read(&path).unwrap(), bytes, "it was only looked at");
        let plan = machine.store().reset((1, 3), Some(LAYOUT), NOW, true, None).unwrap().plan;
        let expected = Plan { floor: NOW, skip: Skip::NONE, repeats_to: Tick::MAX };
        assert_eq!(plan, Some(expected));
        assert_eq!(floor_of(&machine), NOW);
        // What another file's page has is no matter.
        machine.forget_pages();
    }
}

#[test]
fn another_layout_and_a_slot_that_was_never_used_are_said() {
    let machine = machine_from_the_future();
    let other = Layout::new([41, 5, 5, 0, 12], 1, 0);
    let refused = machine.store().reset((1, 3), Some(other), NOW, true, None).err();
    assert_eq!(refused.map(|refused| refused.fault.kind), Some("slot-layout"));
    let refused = machine.store().reset((1, 4), None, NOW, true, None).err().unwrap();
    let refused = format!("{refused:?}");
    assert!(refused.contains("datacenter-1-worker-4.slot"), "{refused}");
    assert!(!machine.store().path_of(&slot(4)).exists());
}

/// Draws a tick's whole sequence, so that a pair that comes twice is a duplicate.
fn draw(process: &mut Process) -> Option<(usize, Tick)> {
    if process.generator.window().ceiling < process.generator.next_ceiling(TTL) {
        let _ = renew(process);
    }
    let reserved = process
        .generator
        .try_reserve(&process.generator.user_page(), &Policies::default(), |_| u64::MAX)
        .ok()?;
    Some((reserved.block.counter, reserved.block.tick))
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
        let clock = at(right + ahead);
        let Ok(mut process) = start(&machine, &clock) else {
            right += random.i64(0..YEAR);
            ahead = 0;
            continue;
        };
        for _ in 0..random.usize(1..12) {
            match random.u8(0..10) {
                0 => ahead = [0, 0, HOUR / 2, 2 * HOUR, YEAR, 9 * YEAR][random.usize(0..6)],
                1 => right += random.i64(0..20 * HOUR),
                2 if ahead > 0 => right += ahead + random.i64(-HOUR..HOUR).max(-ahead),
                _ => right += random.i64(0..20_000),
            }
            clock.set(right + ahead);
            if let Some(pair) = draw(&mut process) {
                let times = drawn.entry(pair).or_default();
                *times += 1;
                let is_announced = |&(from, to): &(Tick, Tick)| from <= pair.1 && pair.1 <= to;
                if *times > 1 && !announced.iter().any(is_announced) {
                    duplicates += 1;
                }
            }
        }
        match random.u8(0..3) {
            0 => process.close(),
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
    for seed in 0..60 {
        let life = life(seed);
        assert_eq!(life[0], 0, "seed {seed}");
        for (sum, one) in sums.iter_mut().zip(life) {
            *sum += one;
        }
    }
    let [_, ids, resets, announcing] = sums;
    println!("{ids} ticks, {resets} resets, of which {announcing} announced repetitions");
    assert!(ids > 5000 && resets > 500 && announcing < resets / 2, "{sums:?}");
}

#[test]
fn a_record_keeps_what_is_skipped() {
    let machine = machine_from_the_future();
    let skip = reset(&machine, NOW, true).plan.unwrap().skip;
    let clock = at(NOW);
    let process = start(&machine, &clock).unwrap();
    clock.set(NOW + 1);
    process.draw().unwrap();
    process.close();
    let record = machine.store().slot(&slot(3)).unwrap().read().unwrap();
    assert_eq!((record.skip, record.ceiling), (skip, NOW + 1));
}

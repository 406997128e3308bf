//! Any life of a slot, then one damaged byte, within a boot or across one: whoever takes the slot next
//! is refused, or knows of everything that was issued.

use std::fs;

use arbitrary::Arbitrary;
use snowdrift::layout::Tick;
use snowdrift::sequencer::NEVER;
use snowdrift::store::record::BYTES as RECORD_BYTES;
use snowdrift::store::{Store, StoreError};

use crate::scratch::{MARKS_AT, MARKS_BYTES, Scratch, holder, slot};

#[derive(Arbitrary, Debug)]
pub struct Input {
    damage: Damage,
    is_same_boot: bool,
    lives: Vec<Life>,
}

#[derive(Arbitrary, Debug)]
struct Life {
    /// How far ahead the first ceiling lies.
    width: u8,
    steps: Vec<Step>,
    is_released: bool,
    is_last_of_boot: bool,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// An ID of so many ticks after the floor, if that is allowed.
    Issue {
        counter: u8,
        tick: u8,
    },
    Renew {
        more: u8,
    },
}

#[derive(Arbitrary, Debug)]
struct Damage {
    at: u16,
    /// 0 for none.
    mask: u8,
}

pub fn check(input: Input) {
    Scratch::with(|scratch| nothing_is_forgotten(scratch, input));
}

fn nothing_is_forgotten(scratch: &Scratch, input: Input) {
    let slot = slot();
    let counters = slot.layout().counters();
    // The highest tick that was issued under each counter.
    let mut issued = vec![NEVER; counters];
    let mut is_same_boot = true;
    // More lives or steps show nothing more, and take longer.
    for life in input.lives.into_iter().take(3) {
        let store = scratch.store(is_same_boot);
        // Of two boots here, each comes after the other.
        is_same_boot ^= life.is_last_of_boot;
        let highest = issued.iter().copied().max().unwrap_or(NEVER);
        let mut held = store
            .acquire(&slot, &holder(1), highest + Tick::from(life.width))
            .expect("nothing is damaged yet");
        let terms = held.terms();
        let mut high = terms.high.marks;
        let mut ceiling = terms.ceiling;
        let marks = held.marks().expect("it is kept");
        for step in life.steps.into_iter().take(20) {
            match step {
                Step::Issue { counter, tick } => {
                    let counter = usize::from(counter) % counters;
                    let tick = terms.floor.saturating_add(1 + Tick::from(tick));
                    if tick <= ceiling && tick > high[counter] {
                        assert!(tick > issued[counter], "tick {tick} is issued again");
                        marks.note(counter, tick);
                        high[counter] = tick;
                        issued[counter] = tick;
                    }
                }
                Step::Renew { more } => {
                    ceiling += Tick::from(more);
                    held.renew(ceiling).expect("it is still held");
                }
            }
        }
        drop(marks);
        if life.is_released {
            let last = high[..counters].iter().copied().max().unwrap_or(NEVER);
            held.release(last).expect("it is still held");
        }
    }

    let store = scratch.store(is_same_boot == input.is_same_boot);
    let path = store.path_of(&slot);
    if let (Damage { at, mask }, Ok(mut bytes)) = (input.damage, fs::read(&path)) {
        // Of the record or the marks; the zeros between and behind them are the other target's.
        let at = usize::from(at) % (RECORD_BYTES + MARKS_BYTES);
        let at = if at < RECORD_BYTES { at } else { at - RECORD_BYTES + MARKS_AT };
        bytes[at] ^= mask;
        fs::write(&path, bytes).expect("it is written");
    }
    match store.acquire(&slot, &holder(2), NEVER) {
        Ok(held) => {
            let terms = held.terms();
            for (counter, tick) in issued.into_iter().enumerate() {
                let known = terms.floor.max(terms.high.marks[counter]);
                assert!(tick <= known, "tick {tick} of counter {counter} is forgotten: {terms:?}");
            }
        }
        Err(StoreError::Unusable { .. } | StoreError::OtherLayout { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

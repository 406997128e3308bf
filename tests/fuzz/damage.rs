//! Any life of a slot, then one damaged byte: whoever takes the slot next is refused, or knows of
//! everything that was issued.

use std::fs;

use arbitrary::Arbitrary;
use snowdrift::authority::record::BYTES as RECORD_BYTES;
use snowdrift::core::fault::{Class, Failure};
use snowdrift::core::layout::Tick;
use snowdrift::core::sequencer::NEVER;

use super::scratch::{BLOCK_BYTES, BLOCKS, Process, Scratch, slot};

#[derive(Arbitrary, Debug)]
pub struct Input {
    damage: Damage,
    lives: Vec<Life>,
}

#[derive(Arbitrary, Debug)]
struct Life {
    steps: Vec<Step>,
    is_closed: bool,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// All IDs of a tick, so many after the floor.
    Issue { tick: u8 },
    /// A ceiling so many ticks higher.
    Renew { more: u8 },
}

#[derive(Arbitrary, Debug)]
struct Damage {
    block: u8,
    at: u16,
    /// 0 for none.
    mask: u8,
}

pub fn check(input: Input) {
    Scratch::with(|scratch| nothing_is_forgotten(scratch, input));
}

fn nothing_is_forgotten(scratch: &Scratch, input: Input) {
    let slot = slot();
    let mut issued: Vec<(usize, Tick)> = Vec::new();
    let mut now = 0;
    // More lives or steps show nothing more, and take longer.
    for life in input.lives.into_iter().take(3) {
        let mut process = Process::start(scratch, &slot, now).expect("nothing is damaged yet");
        let mut ceiling = process.generator.window().ceiling;
        for step in life.steps.into_iter().take(20) {
            match step {
                Step::Issue { tick } => {
                    now = process.durable.floor().saturating_add(1 + Tick::from(tick));
                    if let Some(pair) = process.draw_at(now) {
                        assert!(!issued.contains(&pair), "{pair:?} is issued again");
                        issued.push(pair);
                    }
                }
                Step::Renew { more } => {
                    ceiling += Tick::from(more);
                    process.durable.renew(ceiling).expect("it is still held");
                }
            }
        }
        if life.is_closed {
            process.durable.close(&process.generator).expect("it is still held");
        }
    }

    let path = scratch.store().path_of(&slot);
    if let (Damage { block, at, mask }, Ok(mut bytes)) = (input.damage, fs::read(&path)) {
        let at = usize::from(at) % RECORD_BYTES + usize::from(block) % BLOCKS * BLOCK_BYTES;
        bytes[at] ^= mask;
        fs::write(&path, bytes).expect("it is written");
    }
    match Process::start(scratch, &slot, now) {
        Ok(process) => {
            let high = process.generator.stats().high;
            for (counter, tick) in issued {
                let known = process.durable.floor().max(high.marks[counter]).max(NEVER);
                assert!(tick <= known, "tick {tick} of counter {counter} is forgotten");
            }
        }
        Err(Failure { class, fault }) => {
            assert!(class == Class::Slot || fault.kind == "slot-layout", "{fault:?}");
        }
    }
}

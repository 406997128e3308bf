//! Every path that a clock can take over a tiny layout, walked in full: no path makes the sequencer repeat an ID.

use snowdrift::core::layout::{Layout, Tick};
use snowdrift::core::sequence::{Cells, Rules, Sequence};

/// 1 clock-back bit and 1 sequence bit: 2 counter values, 2 IDs a tick.
const TINY: Layout = Layout::new([4, 0, 0, 1, 1], 1, 0);
const READINGS: usize = 5;

/// Reads the clock and reserves so many IDs, and gives so many of them back.
#[derive(Clone, Copy, Debug)]
struct Move {
    now: Tick,
    want: u64,
    back: u64,
}

/// Walks every sequence of so many moves.
fn walk(rules: Rules, moves: &[Move], depth: u32) {
    for path in 0..moves.len().pow(depth) {
        let sequence = Sequence::new(Box::<Cells>::default(), &TINY);
        // A bit for each ID.
        let mut issued = 0u64;
        for at in 0..depth {
            let Move { now, want, back } = moves[path / moves.len().pow(at) % moves.len()];
            let Ok(block) = sequence.reserve(&rules, &mut || now, |_| want) else { continue };
            let back = back.min(block.len - 1);
            for number in block.first..block.first + block.len - back {
                let id = (block.tick as u64 * 2 + block.counter as u64) * 2 + number;
                let is_new = issued >> id & 1 == 0;
                issued |= 1 << id;
                assert!(is_new, "{block:?} after move {at} of path {path} of {moves:?}, {rules:?}");
            }
            sequence.give_back(&block, back);
        }
    }
}

fn draws(want: u64, back: u64) -> Vec<Move> {
    (0..READINGS).map(|now| Move { now: now as Tick, want, back }).collect()
}

#[test]
fn no_path_of_eight_readings_repeats_an_id() {
    for want in [1, 2] {
        for may_raise in [true, false] {
            for max_ahead in [0, 1] {
                walk(Rules { may_raise, max_ahead, random_start: false }, &draws(want, 0), 8);
            }
        }
    }
}

#[test]
fn no_path_with_blocks_given_back_repeats_an_id() {
    for max_ahead in [0, 2] {
        let rules = Rules { may_raise: true, max_ahead, random_start: false };
        walk(rules, &[draws(1, 0), draws(2, 1)].concat(), 5);
    }
}

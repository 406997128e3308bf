//! The words that a sequencer can have written.

use super::*;
use crate::core::clock::HOUR_MS;

/// Twitter's widths, and those of UidGenerator.
const TWITTER: Layout = Layout::new([41, 5, 5, 0, 12], 1, 1_288_834_974_657);
const UID: Layout = Layout::new([28, 0, 22, 0, 13], 1000, 1_463_673_600_000);

/// A word of these fields, each with its width, from the lowest bit up. The lead takes the remaining bits.
fn word(fields: [(u64, u8); 3], lead: u64) -> u64 {
    let (word, at) = fields
        .into_iter()
        .fold((0, 0), |(word, at), (value, bits)| (word | value << at, at + u32::from(bits)));
    word | lead.checked_shl(at).unwrap_or(0)
}

#[test]
fn any_tick_and_counter_is_possible_but_no_number_beyond_closed() {
    for layout in [Layout::NODE, TWITTER, UID] {
        let shape = Shape::of(&layout);
        let Layout { clock_back_bits, timestamp_bits, sequence_bits, .. } = layout;
        let last = layout.last_tick() as u64;
        for tick in [0, 1, last / 2, last - 1, last] {
            for counter in [0, layout.counters() as u64 - 1] {
                let of = |next| {
                    let low = (next, sequence_bits + 1);
                    let fields = [low, (counter, clock_back_bits), (tick, timestamp_bits)];
                    shape.is_possible(word(fields, 0), 0)
                };
                let closed = layout.last_sequence() + 2;
                let is_cleared = (tick, counter) == (0, 0);
                assert_eq!(of(0), !is_cleared, "{tick} {counter}");
                assert!(of(1) && of(closed - 1) && of(closed), "{tick} {counter}");
                assert!(!of(closed + 1) && !of(2 * closed - 5), "{tick} {counter}");
            }
        }
    }
}

#[test]
fn a_lead_longer_than_any_booking_is_impossible() {
    for (tick_ms, booked) in [(1, 60_001), (1000, 61), (3000, 21), (HOUR_MS, 1)] {
        let shape = Shape::of(&Layout::new([31, 6, 14, 0, 6], tick_ms, 0));
        for max_ahead in [0, 5] {
            let of = |lead| shape.is_possible(word([(3, 7), (0, 0), (9, 31)], lead), max_ahead);
            let last = booked + max_ahead as u64;
            assert!(of(0) && of(last - 1) && of(last), "{tick_ms} {max_ahead}");
            assert!(!of(last + 1) && !of(shape.last_lead), "{tick_ms} {max_ahead}");
        }
    }
    // A lead has at most 32 bits. The bits above it are zeros.
    let shape = Shape::of(&Layout::new([20, 1, 1, 0, 4], 1, 0));
    let of = |lead| shape.is_possible(word([(3, 5), (0, 0), (9, 20)], lead), 0);
    assert!(of(1) && !of(1 << 32 | 1) && !of(1 << 38 | 1));
}

#[test]
fn packed_runs_are_possible_and_a_word_of_ones_is_not() {
    let full = Layout::new([48, 0, 0, 0, 15], 1, 0);
    for layout in [Layout::NODE, TWITTER, UID, full] {
        let shape = Shape::of(&layout);
        for lead in [0, 1, 60, shape.most_booked] {
            for next in [0, 1, shape.last_sequence + 1, shape.closed()] {
                let run = Run { tick: shape.last_tick, counter: 0, next, lead };
                assert!(shape.is_possible(shape.pack(run), 0), "{run:?}");
            }
        }
        assert!(!shape.is_possible(u64::MAX, HOUR_MS));
    }
}

#[test]
fn a_mark_is_a_tick_of_the_layout_or_none() {
    let shape = Shape::of(&Layout::NODE);
    let last = Layout::NODE.last_tick();
    for (code, tick, is_possible) in [
        (0, -1, true),
        (1, 0, true),
        (last as u64, last - 1, true),
        (last as u64 + 1, last, true),
        (last as u64 + 2, last + 1, false),
        (i64::MAX as u64, Tick::MAX - 1, false),
        (1 << 63, Tick::MAX - 1, false),
        (u64::MAX, Tick::MAX - 1, false),
    ] {
        assert_eq!((mark_of(code), shape.is_possible_mark(code)), (tick, is_possible), "{code}");
    }
}

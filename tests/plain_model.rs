//! The sequencer against the plainest statement of its rules, on random layouts and clocks.

use crate::model::{Event, Model};
use proptest::prelude::*;
use snowdrift::core::layout::Layout;

fn events() -> impl Strategy<Value = Vec<Event>> {
    let step = prop_oneof![8 => -3..4i8, 1 => -40..41i8, 4 => Just(0)];
    let unused = prop_oneof![Just(0), 0..20u32];
    let draw = (step, 1..20u32, unused, prop::option::of(0..30u8))
        .prop_map(|(step, want, unused, max_lag)| Event::Draw { step, want, unused, max_lag });
    let window = (-60..60i8, 1..80u8).prop_map(|(from, width)| Event::Window { from, width });
    prop::collection::vec(prop_oneof![14 => draw, 1 => Just(Event::Restart), 1 => window], 1..150)
}

/// Miri takes a thousand times as long.
const CASES: u32 = if cfg!(miri) { 4 } else { 2000 };

proptest! {
    #![proptest_config(ProptestConfig {
        cases: CASES, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn no_id_repeats_and_every_answer_is_the_rule_s(
        (clock_back_bits, sequence_bits) in (0..3u8, 1..4u8),
        may_raise: bool,
        max_ahead in 0..4i64,
        random: Option<u64>,
        events in events(),
    ) {
        let layout = Layout {
            timestamp_bits: 7,
            datacenter_bits: 0,
            worker_bits: 0,
            clock_back_bits,
            sequence_bits,
            tick_ms: 1,
            epoch_ms: 0,
        };
        let mut model = Model::new(layout, may_raise, max_ahead, random);
        for event in events {
            model.apply(event);
        }
    }
}

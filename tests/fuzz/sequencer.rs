//! Any clock, any calls, any layout: the sequencer answers by its rules, and no ID comes twice.

use arbitrary::Arbitrary;
use snowdrift::core::layout::Layout;
use snowdrift::core::sequence::Rules;

use crate::model::{Event, Model};

#[derive(Arbitrary, Debug)]
pub struct Input {
    timestamp_bits: u8,
    clock_back_bits: u8,
    sequence_bits: u8,
    may_raise: bool,
    max_ahead: u16,
    random: Option<u64>,
    events: Vec<Event>,
}

pub fn check(input: Input) {
    let layout = Layout {
        timestamp_bits: 1 + input.timestamp_bits % 62,
        datacenter_bits: 0,
        worker_bits: 0,
        clock_back_bits: input.clock_back_bits % 5,
        sequence_bits: 1 + input.sequence_bits % 53,
        tick_ms: 1,
        epoch_ms: 0,
    };
    let Ok(layout) = layout.checked() else { return };
    let (may_raise, max_ahead) = (input.may_raise, input.max_ahead.into());
    let rules = Rules { may_raise, max_ahead, random_start: input.random.is_some() };
    let mut model = Model::new(layout, rules);
    for event in input.events {
        model.apply(event);
    }
}

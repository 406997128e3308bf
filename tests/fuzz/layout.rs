//! Any widths, tick and epoch: refused, or IDs and their fields go there and back within 63 bits.

use arbitrary::Arbitrary;
use snowdrift::core::layout::{DATE_LIMIT_MS, Layout};
use snowdrift::core::node::Node;
use snowdrift::core::sequencer::Block;

#[derive(Arbitrary, Debug)]
pub struct Input {
    /// Of timestamp, datacenter, worker, clock-back and sequence.
    widths: [u8; 5],
    tick_ms: i64,
    epoch_ms: i64,
    /// Whether those are brought into their ranges, which chance seldom does.
    in_range: bool,
    /// As the widths.
    fields: [u64; 5],
    /// Whether the fields are cut to their widths first.
    fits: bool,
    id: u64,
    unix_ms: i64,
}

const MOST_TICK_MS: i64 = 86_400_000;

pub fn check(input: Input) {
    let Input { mut widths, mut tick_ms, mut epoch_ms, unix_ms, .. } = input;
    if input.in_range {
        widths.iter_mut().zip([63, 54, 54, 5, 54]).for_each(|(width, range)| *width %= range);
        tick_ms = tick_ms.rem_euclid(MOST_TICK_MS + 1);
        epoch_ms %= DATE_LIMIT_MS + 1;
    }
    let [timestamp_bits, datacenter_bits, worker_bits, clock_back_bits, sequence_bits] = widths;
    let layout = Layout::new(widths, tick_ms, epoch_ms);
    let is_one = (1..=62).contains(&timestamp_bits)
        && datacenter_bits <= 53
        && worker_bits <= 53
        && clock_back_bits <= 4
        && (1..=53).contains(&sequence_bits)
        && (1..=MOST_TICK_MS).contains(&tick_ms)
        && (-DATE_LIMIT_MS..=DATE_LIMIT_MS).contains(&epoch_ms)
        && widths.map(u32::from).iter().sum::<u32>() <= 63;
    assert_eq!(layout.checked().is_ok(), is_one);
    if !is_one {
        return;
    }
    fields_there_and_back(&layout, &input);
    let tick = layout.tick_at(unix_ms);
    let start = layout.tick_start_ms(tick);
    // Both saturate, where no ID has its time.
    if start > i64::MIN && start < i64::MAX && unix_ms.checked_sub(epoch_ms).is_some() {
        assert!(start <= unix_ms && unix_ms - start < tick_ms, "{start} holds {unix_ms}");
    }
}

fn fields_there_and_back(layout: &Layout, input: &Input) {
    let most = layout.widths().map(|bits| (1u64 << bits) - 1);
    let mut given = input.fields;
    if input.fits {
        given.iter_mut().zip(most).for_each(|(field, most)| *field &= most);
    }
    let [tick, datacenter_id, worker_id, counter, first] = given;
    let node = match Node::new(*layout, datacenter_id, worker_id) {
        Ok(node) => node,
        Err(error) => {
            assert_eq!(error.kind, "field-too-large");
            assert!(given[1] > most[1] || given[2] > most[2]);
            return;
        }
    };
    assert!(given[1] <= most[1] && given[2] <= most[2]);
    for id in [input.id, input.id >> (64 - layout.bits())] {
        if let Some(block) = node.block_of(id) {
            assert!(id >> layout.bits() == 0);
            assert_eq!(node.first_id(&block), id);
        }
    }
    if given.iter().zip(most).all(|(field, most)| *field <= most) {
        let block = Block { tick: tick as i64, counter: counter as usize, first, len: 1 };
        let id = node.first_id(&block);
        assert!(id >> layout.bits() == 0 && id <= i64::MAX as u64);
        assert_eq!(node.block_of(id), Some(block));
    }
}

//! Any widths, tick and epoch: refused, or IDs and their fields go there and back within 63 bits.

use arbitrary::Arbitrary;
use snowdrift::core::layout::{DATE_LIMIT_MS, Fields, Layout};

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
    fields_there_and_back(&layout, widths, input.fields, input.fits);
    id_there_and_back(&layout, input.id);
    id_there_and_back(&layout, input.id >> (64 - layout.bits()));
    let tick = layout.tick_at(unix_ms);
    let start = layout.tick_start_ms(tick);
    // Both saturate, where no ID has its time.
    if start > i64::MIN && start < i64::MAX && unix_ms.checked_sub(epoch_ms).is_some() {
        assert!(start <= unix_ms && unix_ms - start < tick_ms, "{start} holds {unix_ms}");
    }
    match layout.tick_within(unix_ms) {
        Ok(within) => assert_eq!(within, tick),
        Err(error) => {
            assert_eq!(error.kind, "time-outside");
            assert!(tick < 0 || tick > layout.last_tick());
        }
    }
}

fn fields_there_and_back(layout: &Layout, widths: [u8; 5], fields: [u64; 5], fits: bool) {
    let most = widths.map(|bits| (1u64 << bits) - 1);
    let mut given = fields;
    if fits {
        given.iter_mut().zip(most).for_each(|(field, most)| *field &= most);
    }
    let [tick, datacenter_id, worker_id, clock_back, sequence] = given;
    let fields = Fields { tick: tick as i64, datacenter_id, worker_id, clock_back, sequence };
    match layout.encode(&fields) {
        Ok(id) => {
            assert!(id >> layout.bits() == 0 && id <= i64::MAX as u64);
            match layout.decode(id) {
                Ok(decoded) => assert_eq!(decoded, fields),
                Err(error) => assert_eq!(error.kind, "beyond-date"),
            }
        }
        Err(error) => {
            assert_eq!(error.kind, "field-too-large");
            assert!(given.iter().zip(most).any(|(field, most)| *field > most));
        }
    }
}

fn id_there_and_back(layout: &Layout, id: u64) {
    match layout.decode(id) {
        Ok(fields) => assert_eq!(layout.encode(&fields), Ok(id)),
        Err(error) if error.kind == "beyond-date" => {
            let tick = (id >> (layout.bits() - u32::from(layout.timestamp_bits))) as i64;
            assert!(layout.tick_start_ms(tick).abs() > DATE_LIMIT_MS);
        }
        Err(_) => assert!(id >> layout.bits() != 0),
    }
}

//! The layout of an ID. From high to low: timestamp, datacenter, worker, clock-back counter, sequence. Bit 63 is always
//! 0, so an ID is positive as a signed 64-bit integer.

use crate::core::fault::{Fault, fault};

/// Ticks since the epoch of a layout. Negative before the epoch.
pub type Tick = i64;

/// The range of a JavaScript `Date`: at most this many ms before or after 1970 (ECMA-262, Time Values).
pub const DATE_LIMIT_MS: i64 = 8_640_000_000_000_000;

/// The most bits of a datacenter, worker or sequence: a JavaScript number holds 53 bits exactly.
const NUMBER_BITS: u8 = 53;
const MAX_CLOCK_BACK_BITS: u8 = 4;
const MAX_TICK_MS: i64 = 86_400_000;

/// The number of counter values in the widest clock-back field.
pub const MAX_COUNTERS: usize = 1 << MAX_CLOCK_BACK_BITS;

/// The widths of the fields, the length of a tick and the start of tick 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// 1 to 62.
    pub timestamp_bits: u8,
    /// 0 to 53.
    pub datacenter_bits: u8,
    /// 0 to 53.
    pub worker_bits: u8,
    /// 0 to 4.
    pub clock_back_bits: u8,
    /// 1 to 53.
    pub sequence_bits: u8,
    /// Length of a tick in ms, 1 to 86,400,000 (a day).
    pub tick_ms: i64,
    /// Unix ms of the start of tick 0.
    pub epoch_ms: i64,
}

impl Layout {
    /// The layout of the Node SnowFlake class: 8 datacenters of 32 workers, 4096 IDs a ms, for 69.7 years from
    /// 2020-02-01 00:00 +08:00.
    pub const NODE: Layout = Layout::new([41, 3, 5, 2, 12], 1, 1_580_486_400_000);
    /// A layout from widths in the order of the fields, high to low. Checks nothing: see [`Layout::checked`].
    pub const fn new(widths: [u8; 5], tick_ms: i64, epoch_ms: i64) -> Layout {
        let [timestamp_bits, datacenter_bits, worker_bits, clock_back_bits, sequence_bits] = widths;
        Layout {
            timestamp_bits,
            datacenter_bits,
            worker_bits,
            clock_back_bits,
            sequence_bits,
            tick_ms,
            epoch_ms,
        }
    }

    /// Returns this layout if every width, the tick and the epoch are in range and the widths add up to at most 63.
    pub fn checked(self) -> Result<Layout, Fault> {
        let number = i64::from(NUMBER_BITS);
        for (name, value, min, max) in [
            ("timestampBits", self.timestamp_bits.into(), 1, 62),
            ("datacenterBits", self.datacenter_bits.into(), 0, number),
            ("workerBits", self.worker_bits.into(), 0, number),
            ("clockBackBits", self.clock_back_bits.into(), 0, MAX_CLOCK_BACK_BITS.into()),
            ("sequenceBits", self.sequence_bits.into(), 1, number),
            ("tickMs", self.tick_ms, 1, MAX_TICK_MS),
            ("epoch", self.epoch_ms, -DATE_LIMIT_MS, DATE_LIMIT_MS),
        ] {
            if !(min..=max).contains(&value) {
                return Err(fault!("out-of-range", name, value, min, max));
            }
        }
        match self.bits() {
            ..=63 => Ok(self),
            bits => Err(fault!("layout-too-wide", bits)),
        }
    }

    /// The widths in the order of the fields, high to low.
    pub fn widths(&self) -> [u8; 5] {
        let Layout { timestamp_bits, datacenter_bits, worker_bits, .. } = *self;
        [timestamp_bits, datacenter_bits, worker_bits, self.clock_back_bits, self.sequence_bits]
    }

    /// The sum of the widths.
    pub fn bits(&self) -> u32 {
        self.widths().into_iter().map(u32::from).sum()
    }

    /// The largest tick.
    pub fn last_tick(&self) -> Tick {
        mask(self.timestamp_bits) as Tick
    }

    /// The largest datacenter ID.
    pub fn last_datacenter(&self) -> u64 {
        mask(self.datacenter_bits)
    }

    /// The largest worker ID.
    pub fn last_worker(&self) -> u64 {
        mask(self.worker_bits)
    }

    /// The largest sequence number.
    pub fn last_sequence(&self) -> u64 {
        mask(self.sequence_bits)
    }

    /// The number of clock-back counter values; 1 if the counter has no bits.
    pub fn counters(&self) -> usize {
        1 << self.clock_back_bits
    }

    /// The tick of a Unix time in ms. Saturates. Negative before the epoch.
    pub fn tick_at(&self, unix_ms: i64) -> Tick {
        let ms = unix_ms.saturating_sub(self.epoch_ms);
        // A 64-bit division takes as long as all other steps of an ID, and most layouts need none.
        if self.tick_ms == 1 { ms } else { ms.div_euclid(self.tick_ms) }
    }

    /// The last ms of a tick.
    pub fn tick_end_ms(&self, tick: Tick) -> i64 {
        self.tick_start_ms(tick.saturating_add(1)).saturating_sub(1)
    }

    /// The first Unix ms of a tick. Saturates.
    pub fn tick_start_ms(&self, tick: Tick) -> i64 {
        tick.saturating_mul(self.tick_ms).saturating_add(self.epoch_ms)
    }

    /// The layout as a part of a fault.
    pub fn described(&self) -> Fault {
        fault!(
            "layout",
            timestampBits: self.timestamp_bits,
            datacenterBits: self.datacenter_bits,
            workerBits: self.worker_bits,
            clockBackBits: self.clock_back_bits,
            sequenceBits: self.sequence_bits,
            tickMs: self.tick_ms,
            epoch: self.epoch_ms,
        )
    }

    /// The first Unix ms after the last tick of the layout. Saturates.
    pub fn end_ms(&self) -> i64 {
        self.tick_start_ms(self.last_tick() + 1)
    }
}

/// The largest number of this many bits.
pub fn mask(bits: u8) -> u64 {
    (1 << bits) - 1
}

#[cfg(test)]
mod tests;

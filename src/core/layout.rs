//! The layout of an ID: timestamp, datacenter, worker, clock-back counter and sequence, from high to low. Bit 63 stays
//! 0, so an ID stored as a signed 64-bit integer is positive.

use crate::core::fault::{Fault, fault};

/// Ticks since the epoch of a layout. Negative before the epoch.
pub type Tick = i64;

/// The largest distance of a JavaScript `Date` from 1970, in ms, in both directions (ECMA-262, Time Values).
pub const DATE_LIMIT_MS: i64 = 8_640_000_000_000_000;

/// The most bits of a datacenter, worker or sequence: a JavaScript number holds 53 bits exactly.
const NUMBER_BITS: u8 = 53;
const MAX_CLOCK_BACK_BITS: u8 = 4;
const MAX_TICK_MS: i64 = 86_400_000;

/// The number of counter values in the widest clock-back field.
pub const MAX_COUNTERS: usize = 1 << MAX_CLOCK_BACK_BITS;

/// The widths of the fields, the length of a tick and the moment of tick 0.
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

/// The fields of an ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Ticks since the epoch.
    pub tick: Tick,
    /// The datacenter of the node.
    pub datacenter_id: u64,
    /// The worker within the datacenter.
    pub worker_id: u64,
    /// The clock-back counter value.
    pub clock_back: u64,
    /// The sequence number within the tick.
    pub sequence: u64,
}

impl Layout {
    /// The Node SnowFlake class: 8 datacenters of 32 workers, 4096 IDs a ms, from 2020-02-01 00:00 +08:00 for 69.7
    /// years.
    pub const NODE: Layout = Layout::new([41, 3, 5, 2, 12], 1, 1_580_486_400_000);
    /// Twitter Snowflake, from 2010-11-04T01:42:54.657Z.
    pub const TWITTER: Layout = Layout::new([41, 5, 5, 0, 12], 1, 1_288_834_974_657);
    /// Baidu UidGenerator, in seconds, from 2016-05-20 00:00 +08:00. Its timestamps ran out on 2024-11-20: use it to
    /// decode, not to generate.
    pub const UID: Layout = Layout::new([28, 0, 22, 0, 13], 1000, 1_463_673_600_000);
    /// Discord, from 2015-01-01T00:00:00Z.
    pub const DISCORD: Layout = Layout::new([41, 5, 5, 0, 12], 1, 1_420_070_400_000);

    /// 53 bits, which a JavaScript number holds exactly: 64 hosts, 32 IDs a ms, one clock rollback at once, from
    /// 2026-01-01T00:00:00Z for 69.7 years.
    pub const SAFE: Layout = Layout::new([41, 0, 6, 1, 5], 1, 1_767_225_600_000);

    /// The named layouts.
    pub const PRESETS: [(&'static str, Layout); 5] = [
        ("node", Layout::NODE),
        ("twitter", Layout::TWITTER),
        ("uid", Layout::UID),
        ("discord", Layout::DISCORD),
        ("safe", Layout::SAFE),
    ];

    /// A layout from widths in the order of the fields, high to low. Unchecked.
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
        let range = |name: &str, value: i64, min, max| {
            if (min..=max).contains(&value) {
                Ok(())
            } else {
                Err(fault!("out-of-range", name, value, min, max))
            }
        };
        let number = i64::from(NUMBER_BITS);
        range("timestampBits", self.timestamp_bits.into(), 1, 62)?;
        range("datacenterBits", self.datacenter_bits.into(), 0, number)?;
        range("workerBits", self.worker_bits.into(), 0, number)?;
        range("clockBackBits", self.clock_back_bits.into(), 0, MAX_CLOCK_BACK_BITS.into())?;
        range("sequenceBits", self.sequence_bits.into(), 1, number)?;
        range("tickMs", self.tick_ms, 1, MAX_TICK_MS)?;
        range("epoch", self.epoch_ms, -DATE_LIMIT_MS, DATE_LIMIT_MS)?;
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

    /// The largest worker ID.
    pub fn last_worker(&self) -> u64 {
        mask(self.worker_bits)
    }

    /// The largest sequence number.
    pub fn last_sequence(&self) -> u64 {
        mask(self.sequence_bits)
    }

    /// The number of clock-back counter values: 1 if the layout gives the counter no bits.
    pub fn counters(&self) -> usize {
        1 << self.clock_back_bits
    }

    /// The tick of a Unix time in ms. Saturates. Negative before the epoch.
    pub fn tick_at(&self, unix_ms: i64) -> Tick {
        let ms = unix_ms.saturating_sub(self.epoch_ms);
        // A 64-bit division costs as much as the rest of an ID, and most layouts need none.
        if self.tick_ms == 1 { ms } else { ms.div_euclid(self.tick_ms) }
    }

    /// The first Unix ms of a tick. Saturates.
    pub fn tick_start_ms(&self, tick: Tick) -> i64 {
        tick.saturating_mul(self.tick_ms).saturating_add(self.epoch_ms)
    }

    /// The first Unix ms after the last tick of the layout. Saturates.
    pub fn end_ms(&self) -> i64 {
        self.tick_start_ms(self.last_tick() + 1)
    }

    /// The tick of a Unix time in ms; fails if it is outside the layout.
    pub fn tick_within(&self, unix_ms: i64) -> Result<Tick, Fault> {
        let tick = self.tick_at(unix_ms);
        if (0..=self.last_tick()).contains(&tick) {
            Ok(tick)
        } else {
            // A JavaScript number may not hold it.
            let last = self.end_ms().saturating_sub(1).to_string();
            Err(fault!("time-outside", time: unix_ms, first: self.epoch_ms, last))
        }
    }

    /// Builds an ID. Fails if a field does not fit; never masks.
    pub fn encode(&self, fields: &Fields) -> Result<u64, Fault> {
        let mut id = 0;
        for (name, value, bits) in [
            ("tick", fields.tick as u64, self.timestamp_bits),
            ("datacenterId", fields.datacenter_id, self.datacenter_bits),
            ("workerId", fields.worker_id, self.worker_bits),
            ("clockBack", fields.clock_back, self.clock_back_bits),
            ("sequence", fields.sequence, self.sequence_bits),
        ] {
            let max = mask(bits);
            if value > max {
                return Err(fault!("field-too-large", name, value, max));
            }
            id = id << bits | value;
        }
        Ok(id)
    }

    /// Returns the fields of an ID.
    pub fn decode(&self, id: u64) -> Result<Fields, Fault> {
        let bits = self.bits();
        if id >> bits != 0 {
            return Err(fault!("id-too-wide", id: id.to_string(), bits));
        }
        let mut rest = id;
        let mut low = |bits: u8| {
            let field = rest & mask(bits);
            rest >>= bits;
            field
        };
        let sequence = low(self.sequence_bits);
        let clock_back = low(self.clock_back_bits);
        let worker_id = low(self.worker_bits);
        let datacenter_id = low(self.datacenter_bits);
        let tick = rest as Tick;
        if self.tick_start_ms(tick).abs() > DATE_LIMIT_MS {
            return Err(fault!("beyond-date", id: id.to_string()));
        }
        Ok(Fields { tick, datacenter_id, worker_id, clock_back, sequence })
    }
}

fn mask(bits: u8) -> u64 {
    (1 << bits) - 1
}

#[cfg(test)]
mod tests;

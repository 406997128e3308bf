//! How 63 bits are cut into a timestamp, a datacenter, a worker, a clock-back counter and a
//! sequence, high to low. Bit 63 stays 0, so that an ID is positive wherever it is stored as a
//! signed 64-bit integer.

use thiserror::Error;

/// Units of a layout's time since its epoch. Negative before the epoch.
pub type Tick = i64;

/// The furthest a JavaScript `Date` reaches from 1970, either way, in ms (ECMA-262, Time Values).
pub const DATE_LIMIT_MS: i64 = 8_640_000_000_000_000;

/// The most bits a datacenter, worker or sequence may have: what a JavaScript number holds exactly.
const NUMBER_BITS: u8 = 53;
const MAX_CLOCK_BACK_BITS: u8 = 4;
const MAX_TICK_MS: i64 = 86_400_000;

/// How many counter values the widest clock-back field has.
pub const MAX_COUNTERS: usize = 1 << MAX_CLOCK_BACK_BITS;

/// A cut of 63 bits, with the length of a tick and the moment of tick 0.
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

/// An ID taken apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Ticks since the epoch.
    pub tick: Tick,
    /// Who made it: the datacenter.
    pub datacenter_id: u64,
    /// Who made it: the worker within the datacenter.
    pub worker_id: u64,
    /// The clock-back counter it was issued under.
    pub clock_back: u64,
    /// Its place within the tick.
    pub sequence: u64,
}

/// Why a layout, a field or an ID is not one.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LayoutError {
    /// A width or a tick length is outside what it may be.
    #[error("{name} must be a whole number from {min} to {max}; it is {value}")]
    Range {
        /// The layout's own name for it, as applications spell it.
        name: &'static str,
        /// What was given.
        value: i64,
        /// Smallest allowed.
        min: i64,
        /// Largest allowed.
        max: i64,
    },
    /// The widths add up to more than 63.
    #[error(
        "the widths of a layout may add up to 63 bits at the most (bit 63 is the sign); these add up to {0}"
    )]
    TooWide(u32),
    /// A field does not fit its bits.
    #[error("{name} must be a whole number from 0 to {max} in this layout; it is {value}")]
    Field {
        /// Which field.
        name: &'static str,
        /// What was given.
        value: u64,
        /// Largest that fits.
        max: u64,
    },
    /// A moment outside the layout's time.
    #[error(
        "the time {unix_ms} (Unix ms) is outside this layout, which reaches from {first_ms} to {last_ms}"
    )]
    Time {
        /// What was given, Unix ms.
        unix_ms: i64,
        /// First ms of the layout.
        first_ms: i64,
        /// Last ms of the layout.
        last_ms: i64,
    },
    /// An ID with bits set above the layout's highest.
    #[error("{id} has bits above the {bits} of this layout")]
    IdTooWide {
        /// The ID.
        id: u64,
        /// How many bits the layout has in all.
        bits: u32,
    },
    /// An ID whose time no JavaScript `Date` can hold.
    #[error(
        "the time of {0} lies beyond what a Date can hold; check the layout's epoch and tickMs"
    )]
    BeyondDate(u64),
}

impl Layout {
    /// The Node SnowFlake class: 8 datacenters of 32 workers, 4096 IDs a ms, from
    /// 2020-02-01 00:00 +08:00 for 69.7 years.
    pub const NODE: Layout = Layout::cut([41, 3, 5, 2, 12], 1, 1_580_486_400_000);
    /// Twitter Snowflake, from 2010-11-04T01:42:54.657Z.
    pub const TWITTER: Layout = Layout::cut([41, 5, 5, 0, 12], 1, 1_288_834_974_657);
    /// Baidu UidGenerator, in seconds, from 2016-05-20 00:00 +08:00. That epoch ran out on
    /// 2024-11-20: good for decoding, not for generating.
    pub const UID: Layout = Layout::cut([28, 0, 22, 0, 13], 1000, 1_463_673_600_000);
    /// Discord, from 2015-01-01T00:00:00Z.
    pub const DISCORD: Layout = Layout::cut([41, 5, 5, 0, 12], 1, 1_420_070_400_000);

    /// The layouts that have a name.
    pub const PRESETS: [(&'static str, Layout); 4] = [
        ("node", Layout::NODE),
        ("twitter", Layout::TWITTER),
        ("uid", Layout::UID),
        ("discord", Layout::DISCORD),
    ];

    /// Of widths in the order of the fields, from high to low. Not checked.
    pub const fn cut(widths: [u8; 5], tick_ms: i64, epoch_ms: i64) -> Layout {
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

    /// This layout, if it is one: every width, the tick and the epoch in range, 63 bits at the most.
    pub fn checked(self) -> Result<Layout, LayoutError> {
        let range = |name, value: i64, min, max| {
            if (min..=max).contains(&value) {
                Ok(())
            } else {
                Err(LayoutError::Range { name, value, min, max })
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
            bits => Err(LayoutError::TooWide(bits)),
        }
    }

    /// All widths together.
    pub fn bits(&self) -> u32 {
        [
            self.timestamp_bits,
            self.datacenter_bits,
            self.worker_bits,
            self.clock_back_bits,
            self.sequence_bits,
        ]
        .into_iter()
        .map(u32::from)
        .sum()
    }

    /// The last tick that fits.
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

    /// How many values the clock-back counter has: 1 where the layout gives it no bits.
    pub fn counters(&self) -> usize {
        1 << self.clock_back_bits
    }

    /// The tick that holds this moment. Saturates; a moment before the epoch gives a negative tick.
    pub fn tick_at(&self, unix_ms: i64) -> Tick {
        let ms = unix_ms.saturating_sub(self.epoch_ms);
        // A 64-bit division costs as much as the rest of an ID, and most layouts need none.
        if self.tick_ms == 1 { ms } else { ms.div_euclid(self.tick_ms) }
    }

    /// Unix ms of the first moment of a tick. Saturates.
    pub fn tick_start_ms(&self, tick: Tick) -> i64 {
        tick.saturating_mul(self.tick_ms).saturating_add(self.epoch_ms)
    }

    /// Unix ms of the first moment after the layout's last tick. Saturates.
    pub fn end_ms(&self) -> i64 {
        self.tick_start_ms(self.last_tick() + 1)
    }

    /// The tick that holds this moment, if the layout has it.
    pub fn tick_within(&self, unix_ms: i64) -> Result<Tick, LayoutError> {
        let tick = self.tick_at(unix_ms);
        if (0..=self.last_tick()).contains(&tick) {
            Ok(tick)
        } else {
            Err(LayoutError::Time {
                unix_ms,
                first_ms: self.epoch_ms,
                last_ms: self.end_ms().saturating_sub(1),
            })
        }
    }

    /// Puts an ID together. Every field is checked; nothing is masked.
    pub fn encode(&self, fields: &Fields) -> Result<u64, LayoutError> {
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
                return Err(LayoutError::Field { name, value, max });
            }
            id = id << bits | value;
        }
        Ok(id)
    }

    /// Takes an ID apart.
    pub fn decode(&self, id: u64) -> Result<Fields, LayoutError> {
        let bits = self.bits();
        if id >> bits != 0 {
            return Err(LayoutError::IdTooWide { id, bits });
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
            return Err(LayoutError::BeyondDate(id));
        }
        Ok(Fields { tick, datacenter_id, worker_id, clock_back, sequence })
    }
}

fn mask(bits: u8) -> u64 {
    (1 << bits) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn custom(widths: [u8; 5]) -> Result<Layout, LayoutError> {
        Layout::cut(widths, 1, 0).checked()
    }

    #[test]
    fn every_preset_is_a_layout_of_63_bits() {
        for (name, layout) in Layout::PRESETS {
            assert_eq!(layout.checked(), Ok(layout), "{name}");
            assert_eq!(layout.bits(), 63, "{name}");
        }
    }

    #[test]
    fn known_ids_decode_and_compose() {
        // The Twitter ID is public; the discord one is the example of its API reference; the uid
        // one is from an article on UidGenerator. All of them are in `__test__/vectors.json` too.
        for (layout, id, unix_ms, dc, worker, sequence) in [
            (Layout::TWITTER, 1541815603606036480, 1656432460105, 11, 26, 0),
            (Layout::DISCORD, 175928847299117063, 1462015105796, 1, 0, 7),
            (Layout::UID, 3200169789968523265, 1556810799000, 0, 21, 1),
        ] {
            let fields = layout.decode(id).unwrap();
            assert_eq!(layout.tick_start_ms(fields.tick), unix_ms);
            assert_eq!(
                (fields.datacenter_id, fields.worker_id, fields.clock_back, fields.sequence),
                (dc, worker, 0, sequence)
            );
            assert_eq!(layout.encode(&fields), Ok(id));
        }
    }

    #[test]
    fn the_largest_id_of_a_63_bit_layout_is_the_largest_signed_integer() {
        let last = Layout::NODE.decode(i64::MAX as u64).unwrap();
        assert_eq!(
            last,
            Fields {
                tick: (1 << 41) - 1,
                datacenter_id: 7,
                worker_id: 31,
                clock_back: 3,
                sequence: 4095
            }
        );
        assert_eq!(Layout::NODE.encode(&last), Ok(i64::MAX as u64));
        assert_eq!(
            Layout::NODE.decode(i64::MAX as u64 + 1),
            Err(LayoutError::IdTooWide { id: 1 << 63, bits: 63 })
        );
    }

    #[test]
    fn a_field_one_past_its_range_is_refused_not_masked() {
        let fits =
            Fields { tick: 1, datacenter_id: 7, worker_id: 31, clock_back: 3, sequence: 4095 };
        assert!(Layout::NODE.encode(&fits).is_ok());
        for (name, fields) in [
            ("tick", Fields { tick: 1 << 41, ..fits }),
            ("tick", Fields { tick: -1, ..fits }),
            ("datacenterId", Fields { datacenter_id: 8, ..fits }),
            ("workerId", Fields { worker_id: 32, ..fits }),
            ("clockBack", Fields { clock_back: 4, ..fits }),
            ("sequence", Fields { sequence: 4096, ..fits }),
        ] {
            match Layout::NODE.encode(&fields) {
                Err(LayoutError::Field { name: found, .. }) => assert_eq!(found, name),
                other => panic!("{name}: {other:?}"),
            }
        }
    }

    #[test]
    fn widths_are_checked_at_their_bounds() {
        assert!(custom([62, 0, 0, 0, 1]).is_ok());
        assert!(custom([1, 4, 4, 1, 53]).is_ok());
        assert_eq!(custom([62, 0, 0, 1, 1]), Err(LayoutError::TooWide(64)));
        for (name, widths) in [
            ("timestampBits", [0, 0, 0, 0, 12]),
            ("timestampBits", [63, 0, 0, 0, 1]),
            ("datacenterBits", [5, 54, 0, 0, 1]),
            ("workerBits", [5, 0, 54, 0, 1]),
            ("clockBackBits", [41, 0, 0, 5, 12]),
            ("sequenceBits", [41, 0, 0, 0, 0]),
            ("sequenceBits", [1, 0, 0, 0, 54]),
        ] {
            match custom(widths) {
                Err(LayoutError::Range { name: found, .. }) => assert_eq!(found, name),
                other => panic!("{name}: {other:?}"),
            }
        }
        for tick_ms in [0, -1, MAX_TICK_MS + 1] {
            assert!(Layout { tick_ms, ..Layout::NODE }.checked().is_err());
        }
        for epoch_ms in [DATE_LIMIT_MS + 1, -DATE_LIMIT_MS - 1] {
            assert!(Layout { epoch_ms, ..Layout::NODE }.checked().is_err());
        }
    }

    #[test]
    fn a_tick_holds_the_moments_from_its_start_to_the_next() {
        let uid = Layout::UID;
        assert_eq!(uid.tick_at(uid.epoch_ms - 1), -1);
        assert_eq!(uid.tick_at(uid.epoch_ms), 0);
        assert_eq!(uid.tick_at(uid.epoch_ms + 999), 0);
        assert_eq!(uid.tick_at(uid.epoch_ms + 1000), 1);
        assert_eq!(uid.tick_within(uid.end_ms() - 1), Ok(uid.last_tick()));
        assert!(uid.tick_within(uid.end_ms()).is_err());
        assert!(uid.tick_within(uid.epoch_ms - 1).is_err());
    }

    #[test]
    fn a_time_beyond_any_date_is_refused() {
        let wide = Layout {
            timestamp_bits: 62,
            tick_ms: MAX_TICK_MS,
            ..custom([62, 0, 0, 0, 1]).unwrap()
        };
        assert_eq!(wide.decode(1 << 62), Err(LayoutError::BeyondDate(1 << 62)));
        assert!(wide.decode(3).is_ok());
    }
}

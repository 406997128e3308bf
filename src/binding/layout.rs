//! Layouts as `js/` writes them.

use napi::bindgen_prelude::Either;
use napi_derive::napi;

use super::fault::answer;
use crate::core::clock::{Clock, SystemClock};
use crate::core::fault::Fault;
use crate::core::layout::{Layout, Tick};
use crate::core::sequencer::NEVER;

/// `LayoutRecord`, from the widths of a layout.
macro_rules! layout_record {
    ($($width:ident)*) => {
        /// A layout as applications write it. All values are whole numbers.
        #[napi(object)]
        #[derive(Clone)]
        pub struct LayoutRecord {
            $(pub $width: f64,)*
            pub tick_ms: f64,
            pub epoch: f64,
        }

        impl From<&Layout> for LayoutRecord {
            fn from(layout: &Layout) -> Self {
                let Layout { $($width,)* tick_ms, epoch_ms } = *layout;
                let (tick_ms, epoch) = (tick_ms as f64, epoch_ms as f64);
                LayoutRecord { $($width: $width.into(),)* tick_ms, epoch }
            }
        }

        impl TryFrom<&LayoutRecord> for Layout {
            type Error = Fault;

            fn try_from(record: &LayoutRecord) -> Result<Layout, Fault> {
                let (tick_ms, epoch_ms) = (record.tick_ms as i64, record.epoch as i64);
                // `as` saturates, and a saturated value is out of range of every width.
                Layout { $($width: record.$width as u8,)* tick_ms, epoch_ms }.checked()
            }
        }
    };
}

layout_record!(timestamp_bits datacenter_bits worker_bits clock_back_bits sequence_bits);

/// The last ms of a tick.
pub fn end_of(layout: &Layout, tick: Tick) -> i64 {
    layout.tick_start_ms(tick.saturating_add(1)).saturating_sub(1)
}

/// The tick of a Unix time in ms, within the layout; -1 before its epoch.
#[napi(catch_unwind)]
pub fn tick_at(layout: LayoutRecord, unix_ms: f64) -> Either<i64, Fault> {
    answer(
        Layout::try_from(&layout)
            .map(|layout| layout.tick_at(unix_ms.floor() as i64).clamp(NEVER, layout.last_tick())),
    )
}

/// The ceiling of a first lease: that many ms ahead of the clock, in ticks.
#[napi(catch_unwind)]
pub fn first_ceiling(layout: LayoutRecord, ms: f64) -> Either<i64, Fault> {
    tick_at(layout, SystemClock.now().ms as f64 + ms)
}

/// The last Unix ms of a tick.
#[napi(catch_unwind)]
pub fn tick_end(layout: LayoutRecord, tick: f64) -> Either<i64, Fault> {
    answer(Layout::try_from(&layout).map(|layout| end_of(&layout, tick as Tick)))
}

//! The hot path: how IDs get from a generator to one JavaScript instance on one thread.
//!
//! JavaScript reads IDs out of memory that `refill` has filled, so that a burst costs one native
//! call for up to [`LARGEST_BLOCK`] IDs. `refill` is a bare Node-API callback, because that is the
//! cheapest call there is: no `this`, no arguments, an integer back. `js/turn.js` is its other half,
//! and sees to it that a block does not outlive the turn of the event loop that reserved it.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::Arc;

use napi::bindgen_prelude::{
    BigUint64Array, Either, FromNapiValue, FunctionCallContext, JsValue, Null, Object, ToNapiValue,
    Unknown,
};
use napi::{Env, check_status, sys};
use napi_derive::napi;

use crate::clock::ManualClock;
use crate::generator::{ClockStep, Generator, Refusal, Reserved};
use crate::layout::Tick;
use crate::lease::Standing;
use crate::registry::Share;
use crate::sequencer::{Block, NEVER, Stall};

/// The most IDs one refill asks for. Past this, the call no longer shows in the time of an ID.
const LARGEST_BLOCK: usize = 256;

/// Noticing the end of a turn costs as much as several refills, so a block pays only for a turn that
/// draws more IDs than this. Until that many refills have followed each other, each asks for one.
const PATIENCE: u32 = 4;

/// Patience grows to this while block after block is given back small.
const LONGEST_PATIENCE: u32 = 64;

/// A block that was still this small when it was given back did not pay.
const SMALL_BLOCK: u64 = 8;

/// An ID's decimal digits in two parts, each exact as a double: 2^63 / 10,000 is below 2^53.
const LOW_DIGITS: u64 = 10_000;

/// Where a channel's IDs come from.
pub enum Source {
    /// The node's generator, shared by all of the process, on the system clock.
    Shared(Share),
    /// A generator of this instance alone, on a clock that the application tells.
    Own(Box<Generator>, Arc<ManualClock>),
}

impl Source {
    fn generator(&self) -> &Generator {
        match self {
            Source::Shared(share) => share,
            Source::Own(generator, _) => generator,
        }
    }
}

/// One instance's way to its generator. It belongs to one thread.
struct Channel {
    /// None once it is closed.
    source: RefCell<Option<Source>>,
    /// The IDs JavaScript reads: [`LARGEST_BLOCK`] u64, then two f64 for the first ID's digits.
    memory: NonNull<u64>,
    /// The block JavaScript draws from.
    block: Cell<Option<Block>>,
    last_tick: Cell<Tick>,
    last_want: Cell<u64>,
    /// How many refills still ask for one ID.
    singles: Cell<u32>,
    patience: Cell<u32>,
    refusal: Cell<Option<Refusal>>,
}

impl Channel {
    /// Reserves the next block and writes its IDs to the memory. Answers how many, negative if a
    /// step of the clock is to be reported; 0 if it was refused.
    fn refill(&self, may_wait: bool) -> i32 {
        self.block.set(None);
        let source = self.source.borrow();
        let Some(source) = source.as_ref() else { return 0 };
        let generator = source.generator();
        let singles = self.singles.get();
        self.singles.set(singles.saturating_sub(1));
        let want = |tick| {
            let same_tick = self.last_tick.replace(tick) == tick;
            if singles > 0 || !same_tick {
                1
            } else {
                (self.last_want.get() * 2).clamp(1, LARGEST_BLOCK as u64)
            }
        };
        let reserved = match source {
            Source::Shared(_) if may_wait => generator.reserve(want),
            Source::Shared(_) => generator.try_reserve(want),
            // Such a clock is read for every ID, in js/, and waited for there.
            Source::Own(..) => generator.try_reserve(|_| 1),
        };
        match reserved {
            Ok(reserved) => {
                self.write(&reserved);
                let len = reserved.block.len as i32;
                if reserved.step_to_report { -len } else { len }
            }
            Err(refusal) => {
                self.refusal.set(Some(refusal));
                0
            }
        }
    }

    fn write(&self, reserved: &Reserved) {
        let Reserved { first_id, block, .. } = *reserved;
        self.last_want.set(block.len);
        if block.len > SMALL_BLOCK {
            self.patience.set(PATIENCE);
        }
        self.block.set(Some(block));
        let ids = self.memory.as_ptr();
        for n in 0..block.len {
            // SAFETY: `memory` has LARGEST_BLOCK ids, no block is longer, and the array buffer lives
            // as long as the functions that get here (see `keep_memory`). Only this thread uses it.
            unsafe { ids.add(n as usize).write(first_id + n) };
        }
        // SAFETY: as above; the two doubles follow the ids.
        unsafe {
            let digits = ids.add(LARGEST_BLOCK).cast::<f64>();
            digits.write((first_id / LOW_DIGITS) as f64);
            digits.add(1).write((first_id % LOW_DIGITS) as f64);
        }
    }

    /// Gives back the last `unused` IDs of the block JavaScript holds, and ends it.
    fn give_back(&self, unused: u64) {
        self.last_want.set(0);
        if let (Some(block), Some(source)) = (self.block.take(), self.source.borrow().as_ref()) {
            if block.len <= SMALL_BLOCK {
                self.patience.set((self.patience.get() * 2).min(LONGEST_PATIENCE));
            }
            self.singles.set(self.patience.get());
            source.generator().give_back(&block, unused.min(block.len));
        }
    }

    /// Fills an array with IDs, across as many ticks as it takes. All of it or, if refused, nothing.
    fn fill(&self, ids: &mut [u64]) -> bool {
        let source = self.source.borrow();
        let Some(generator) = source.as_ref().map(Source::generator) else { return false };
        let mut blocks = Vec::new();
        let mut rest = ids;
        while !rest.is_empty() {
            match generator.reserve(|_| rest.len() as u64) {
                Ok(Reserved { first_id, block, .. }) => {
                    let (run, after) = rest.split_at_mut(block.len as usize);
                    for (n, slot) in run.iter_mut().enumerate() {
                        *slot = first_id + n as u64;
                    }
                    rest = after;
                    blocks.push(block);
                }
                Err(refusal) => {
                    for block in blocks.iter().rev() {
                        generator.give_back(block, block.len);
                    }
                    self.refusal.set(Some(refusal));
                    return false;
                }
            }
        }
        true
    }
}

/// Why there is no ID, for `js/errors.js` to word.
#[napi(object)]
pub struct RefusalRecord {
    #[napi(
        ts_type = "'closed' | 'used-up' | 'clock-back' | 'before-epoch' | 'floor' | 'ceiling' | 'time-ended'"
    )]
    pub kind: String,
    /// What the clock showed, Unix ms.
    pub now: f64,
    /// Whole ms, at least 1; none where waiting does not help.
    pub retry_after_ms: Option<f64>,
}

impl RefusalRecord {
    fn closed() -> Self {
        RefusalRecord { kind: "closed".to_owned(), now: 0.0, retry_after_ms: None }
    }
}

impl From<Refusal> for RefusalRecord {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal.stall {
            Stall::SequenceUsedUp { .. } => "used-up",
            Stall::ClockBehind { .. } => "clock-back",
            Stall::BeforeEpoch => "before-epoch",
            Stall::AtFloor { .. } => "floor",
            Stall::AboveCeiling { .. } => "ceiling",
            Stall::TimeEnded => "time-ended",
        };
        RefusalRecord {
            kind: kind.to_owned(),
            now: refusal.now.ms as f64,
            retry_after_ms: refusal
                .retry_after
                .map(|after| after.as_nanos().div_ceil(1_000_000) as f64),
        }
    }
}

/// A step of the clock back.
#[napi(object)]
pub struct StepRecord {
    pub back_ms: f64,
    pub counter: u32,
    pub unreported: f64,
}

impl From<ClockStep> for StepRecord {
    fn from(step: ClockStep) -> Self {
        StepRecord {
            back_ms: step.back_ms as f64,
            counter: step.counter as u32,
            unreported: step.unreported as f64,
        }
    }
}

/// What a generator has done so far. Times in ms.
#[napi(object)]
pub struct StatsRecord {
    pub issued: f64,
    pub waits: f64,
    pub waited_ms: f64,
    pub clock_steps_back: f64,
    pub clock_back: u32,
    /// Unix ms of the tick, by counter value; null where nothing was issued.
    pub high_marks: Vec<Either<f64, Null>>,
    /// Unix ms.
    pub end_of_time: f64,
}

impl From<&Generator> for StatsRecord {
    fn from(generator: &Generator) -> Self {
        let layout = generator.node().layout();
        let stats = generator.stats();
        let time_of = |&tick: &Tick| match tick {
            NEVER => Either::B(Null),
            tick => Either::A(layout.tick_start_ms(tick) as f64),
        };
        StatsRecord {
            issued: stats.issued as f64,
            waits: stats.waits as f64,
            waited_ms: stats.waited.as_secs_f64() * 1000.0,
            clock_steps_back: stats.steps as f64,
            clock_back: stats.high.current as u32,
            high_marks: stats.high.marks[..layout.counters()].iter().map(time_of).collect(),
            end_of_time: layout.end_ms() as f64,
        }
    }
}

/// How a lease stands. Times in Unix ms.
#[napi(object)]
pub struct LeaseRecord {
    pub store: String,
    /// Hexadecimal.
    pub owner: String,
    /// The end of the last tick that may not be issued; null where there is none.
    pub floor: Either<f64, Null>,
    /// The end of the last tick that may be issued.
    pub ceiling: f64,
    pub renewals: f64,
    #[napi(ts_type = "'held' | 'failing' | 'lost'")]
    pub state: String,
    pub failure: Option<String>,
}

impl LeaseRecord {
    fn of(share: &Share) -> Option<LeaseRecord> {
        let report = share.lease()?;
        let layout = share.node().layout();
        let state = match report.standing {
            Standing::Held => "held",
            Standing::Failing => "failing",
            Standing::Lost => "lost",
        };
        let end_of = |tick: Tick| layout.tick_start_ms(tick.saturating_add(1)).saturating_sub(1);
        Some(LeaseRecord {
            store: report.store,
            owner: format!("{:032x}", report.holder.token),
            floor: match report.floor {
                NEVER => Either::B(Null),
                floor => Either::A(end_of(floor) as f64),
            },
            ceiling: end_of(report.ceiling) as f64,
            renewals: report.renewals as f64,
            state: state.to_owned(),
            failure: report.failure,
        })
    }
}

/// The object that JavaScript draws from. Its functions are for `js/turn.js` and `js/snowflake.js`.
pub fn build<'env>(env: &'env Env, source: Source) -> napi::Result<Object<'env>> {
    let worker_id = source.generator().node().worker_id();
    let passed_over = match &source {
        Source::Shared(share) => share.passed_over.clone(),
        Source::Own(..) => Vec::new(),
    };
    let (memory, buffer) = create_buffer(env)?;
    let channel = Rc::new(Channel {
        source: RefCell::new(Some(source)),
        memory,
        block: Cell::new(None),
        last_tick: Cell::new(NEVER),
        last_want: Cell::new(0),
        singles: Cell::new(PATIENCE),
        patience: Cell::new(PATIENCE),
        refusal: Cell::new(None),
    });

    let mut object = Object::new(env)?;
    object.set("workerId", worker_id as f64)?;
    object.set("passedOver", passed_over)?;
    object.set("memory", buffer)?;
    object.set("refill", bare(env, &channel, refill, buffer)?)?;
    object.set("tryRefill", bare(env, &channel, try_refill, buffer)?)?;
    object.set("giveBack", bare(env, &channel, give_back, buffer)?)?;

    let own = channel.clone();
    define(env, &mut object, "setClock", move |call| {
        let now: f64 = call.get(0)?;
        if let Some(Source::Own(_, clock)) = own.source.borrow().as_ref() {
            clock.set(now as i64);
        }
        Ok(())
    })?;
    let own = channel.clone();
    define(env, &mut object, "fill", move |call| {
        let mut ids: BigUint64Array = call.get(0)?;
        // SAFETY: js/turn.js has just made the array and nobody else has seen it yet.
        Ok(own.fill(unsafe { ids.as_mut() }))
    })?;
    let own = channel.clone();
    define(env, &mut object, "refusal", move |_| {
        Ok(own.refusal.get().map_or_else(RefusalRecord::closed, RefusalRecord::from))
    })?;
    let own = channel.clone();
    define(env, &mut object, "takeStep", move |_| {
        let source = own.source.borrow();
        Ok(source.as_ref().and_then(|source| source.generator().take_step()).map(StepRecord::from))
    })?;
    let own = channel.clone();
    define(env, &mut object, "stats", move |_| {
        Ok(own.source.borrow().as_ref().map(|source| StatsRecord::from(source.generator())))
    })?;
    let own = channel.clone();
    define(env, &mut object, "lease", move |_| match own.source.borrow().as_ref() {
        Some(Source::Shared(share)) => Ok(LeaseRecord::of(share)),
        _ => Ok(None),
    })?;
    define(env, &mut object, "close", move |_| {
        channel.source.borrow_mut().take();
        channel.refusal.set(None);
        Ok(())
    })?;
    Ok(object)
}

fn define<R: ToNapiValue + 'static>(
    env: &Env,
    object: &mut Object,
    name: &str,
    call: impl Fn(FunctionCallContext) -> napi::Result<R> + 'static,
) -> napi::Result<()> {
    object.set(name, env.create_function_from_closure::<(), R, _>(name, call)?)
}

/// The array buffer that JavaScript reads IDs from, and where it lies.
fn create_buffer<'env>(env: &'env Env) -> napi::Result<(NonNull<u64>, Unknown<'env>)> {
    let bytes = (LARGEST_BLOCK + 2) * size_of::<u64>();
    let mut start = ptr::null_mut();
    let mut buffer = ptr::null_mut();
    check_status!(
        // SAFETY: a call on this thread's own env; both out-pointers live.
        unsafe { sys::napi_create_arraybuffer(env.raw(), bytes, &mut start, &mut buffer) },
        "no memory for a block of IDs"
    )?;
    let memory = NonNull::new(start.cast())
        .ok_or_else(|| napi::Error::from_reason("no memory for a block of IDs"))?;
    // SAFETY: `buffer` is the value that the call above has just made.
    Ok((memory, unsafe { Unknown::from_napi_value(env.raw(), buffer)? }))
}

/// A JavaScript function that calls `callback` with the channel as its data, and keeps the channel
/// and its memory alive for as long as it lives itself.
fn bare<'env>(
    env: &'env Env,
    channel: &Rc<Channel>,
    callback: unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> sys::napi_value,
    buffer: Unknown<'env>,
) -> napi::Result<Unknown<'env>> {
    let raw = env.raw();
    let data = Rc::into_raw(channel.clone()).cast_mut().cast::<c_void>();
    let mut function = ptr::null_mut();
    // SAFETY: calls on this thread's own env. `data` is an Rc's; `drop_channel` gives it up, once,
    // when the function is collected. Node-API copies the property's name.
    unsafe {
        check_status!(sys::napi_create_function(
            raw,
            ptr::null(),
            0,
            Some(callback),
            data,
            &mut function
        ))?;
        check_status!(sys::napi_add_finalizer(
            raw,
            function,
            data,
            Some(drop_channel),
            ptr::null_mut(),
            ptr::null_mut()
        ))?;
        let memory = sys::napi_property_descriptor {
            utf8name: c"memory".as_ptr(),
            name: ptr::null_mut(),
            method: None,
            getter: None,
            setter: None,
            value: buffer.raw(),
            attributes: sys::PropertyAttributes::default,
            data: ptr::null_mut(),
        };
        check_status!(sys::napi_define_properties(raw, function, 1, &memory))?;
        Unknown::from_napi_value(raw, function)
    }
}

unsafe extern "C" fn drop_channel(_: sys::napi_env, data: *mut c_void, _: *mut c_void) {
    // SAFETY: `data` is the Rc that `bare` gave to this function's data, and this its one finalizer.
    drop(unsafe { Rc::from_raw(data.cast::<Channel>()) });
}

unsafe extern "C" fn refill(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    // SAFETY: Node-API passes what the function was made with.
    unsafe { number(env, info, |channel| channel.refill(true)) }
}

unsafe extern "C" fn try_refill(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    // SAFETY: Node-API passes what the function was made with.
    unsafe { number(env, info, |channel| channel.refill(false)) }
}

/// # Safety
/// `info` belongs to a call of a function made by `bare`.
unsafe fn number(
    env: sys::napi_env,
    info: sys::napi_callback_info,
    answer: impl FnOnce(&Channel) -> i32,
) -> sys::napi_value {
    let mut data = ptr::null_mut();
    let mut result = ptr::null_mut();
    // SAFETY: `data` is the channel's Rc, alive while its function is, so during this call.
    unsafe {
        sys::napi_get_cb_info(
            env,
            info,
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
            &mut data,
        );
        let channel = &*data.cast::<Channel>();
        // A panic must not cross into Node. There is none to expect; js/ reports a 0 without a
        // refusal as a closed channel.
        let number = catch_unwind(AssertUnwindSafe(|| answer(channel))).unwrap_or(0);
        sys::napi_create_int32(env, number, &mut result);
    }
    result
}

unsafe extern "C" fn give_back(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    let mut argc = 1;
    let mut unused = ptr::null_mut();
    let mut data = ptr::null_mut();
    let mut count = 0;
    // SAFETY: as in `number`; one argument is asked for and there is room for one.
    unsafe {
        sys::napi_get_cb_info(env, info, &mut argc, &mut unused, ptr::null_mut(), &mut data);
        sys::napi_get_value_uint32(env, unused, &mut count);
        let channel = &*data.cast::<Channel>();
        let _ = catch_unwind(AssertUnwindSafe(|| channel.give_back(count.into())));
    }
    ptr::null_mut()
}

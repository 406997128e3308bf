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
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::{
    BigUint64Array, FromNapiValue, Function, FunctionCallContext, JsValue, Object, ToNapiValue,
    Unknown,
};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi::{Env, check_status, sys};

use super::Fault;
use super::opening::{WindowRecord, joined, leased};
use super::options::OpenRequest;
use super::records::{
    LeaseRecord, NewsRecord, RefusalRecord, StatsRecord, StepRecord, WaitsRecord, end_of,
};
use super::ring::RingShare;
use crate::clock::ManualClock;
use crate::generator::{
    Booking, Generator, Policies, Redeemed, Refusal, Reserved, Waits, WindowId,
};
use crate::layout::Tick;
use crate::listeners::Listener;
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

/// Where a channel's IDs come from.
pub enum Source {
    /// The node's generator, shared by all of the process, on the system clock.
    Shared(Share),
    /// The same, by the ring in front of it.
    Ring(RingShare),
    /// A generator of this instance alone, on a clock that the application tells.
    Own(Box<Generator>, Arc<ManualClock>, Policies),
}

impl Source {
    fn generator(&self) -> &Generator {
        match self {
            Source::Shared(share) | Source::Ring(RingShare { share, .. }) => share,
            Source::Own(generator, ..) => generator,
        }
    }

    fn share(&self) -> Option<&Share> {
        match self {
            Source::Shared(share) | Source::Ring(RingShare { share, .. }) => Some(share),
            Source::Own(..) => None,
        }
    }
}

/// One instance's way to its generator. It belongs to one thread.
struct Channel {
    /// None once it is closed.
    source: RefCell<Option<Source>>,
    /// The IDs JavaScript reads: [`LARGEST_BLOCK`] u64.
    memory: NonNull<u64>,
    /// The block JavaScript draws from.
    block: Cell<Option<Block>>,
    /// What a draw that does not wait has booked for the next one.
    booking: RefCell<Option<Booking>>,
    last_tick: Cell<Tick>,
    last_want: Cell<u64>,
    /// How many refills still ask for one ID.
    singles: Cell<u32>,
    patience: Cell<u32>,
    refusal: Cell<Option<Refusal>>,
    /// What was waited for and not told of yet.
    waits: RefCell<Waits>,
    /// Listeners end with the instance: of renewals,
    renewed: RefCell<Vec<Arc<Listener>>>,
    /// and of rejected puts, which every ring that this draws from reports to.
    rejected_put: RefCell<Vec<Arc<Listener>>>,
}

impl Channel {
    /// Reserves the next block and writes its IDs to the memory. Answers how many, negative if
    /// there are news to report; 0 if it was refused.
    fn refill(&self, may_wait: bool) -> i32 {
        self.block.set(None);
        let source = self.source.borrow();
        let Some(source) = source.as_ref() else { return 0 };
        let generator = source.generator();
        let singles = self.singles.get();
        self.singles.set(singles.saturating_sub(1));
        let larger = (self.last_want.get() * 2).clamp(1, LARGEST_BLOCK as u64);
        let last_tick = self.last_tick.get();
        let want = |tick| {
            self.last_tick.set(tick);
            if singles > 0 || tick != last_tick { 1 } else { larger }
        };
        let reserved = match source {
            Source::Ring(ring) => {
                let want = if singles > 0 { 1 } else { larger };
                return self.refill_from(ring, want as usize, may_wait);
            }
            Source::Shared(share) => {
                let most = if singles > 0 { 1 } else { larger };
                match self.booked(share, may_wait) {
                    Some(booked) => booked,
                    None if may_wait => self.wait_for(share, most, want),
                    None => self.try_in_turn(share, most, want),
                }
            }
            // Such a clock is read for every ID, in js/, and waited for there.
            Source::Own(_, _, policies) => generator.try_reserve(policies, |_| 1),
        };
        match reserved {
            Ok(reserved) => {
                self.write(&reserved);
                self.answer(reserved.block.len, generator.has_step_to_report())
            }
            Err(refusal) => {
                self.refusal.set(Some(refusal));
                0
            }
        }
    }

    /// What an earlier call has booked, if any. It comes before anything else, so that IDs rise.
    fn booked(&self, share: &Share, may_wait: bool) -> Option<Result<Reserved, Refusal>> {
        if self.booking.borrow().is_none() {
            return None;
        }
        let booking = self.booking.take()?;
        if may_wait {
            let mut left = share.policies().max_wait;
            return share.await_turn(&booking, &mut left, &mut self.waits.borrow_mut()).map(Ok);
        }
        match share.redeem(&booking) {
            Redeemed::Ids(reserved) => Some(Ok(reserved)),
            Redeemed::Early(refusal) => {
                self.booking.replace(Some(booking));
                Some(Err(refusal))
            }
            Redeemed::Lost => None,
        }
    }

    /// Waits where the policies allow it.
    #[inline]
    fn wait_for(
        &self,
        share: &Share,
        most: u64,
        want: impl Fn(Tick) -> u64,
    ) -> Result<Reserved, Refusal> {
        let attempt = || share.try_reserve(share.policies(), &want);
        let waits = &mut *self.waits.borrow_mut();
        share.waiting(share.policies(), waits, most, attempt, |reserved| reserved)
    }

    /// Does not wait. Where the tick is exhausted it books, and the next call hands that out: a caller that
    /// waits by itself has its turn, too.
    fn try_in_turn(
        &self,
        share: &Share,
        most: u64,
        want: impl Fn(Tick) -> u64,
    ) -> Result<Reserved, Refusal> {
        let refusal = match share.try_reserve(share.policies(), want) {
            Err(refusal @ Refusal { stall: Stall::SequenceUsedUp { .. }, .. }) => refusal,
            answer => return answer,
        };
        // The next tick at least, which such a caller waits for however long it takes.
        let horizon = share.ticks_within(share.policies().max_wait).max(1);
        let Ok(booking) = share.book(share.policies(), most, horizon) else { return Err(refusal) };
        self.booking.replace(Some(booking));
        self.booked(share, false).unwrap_or(Err(refusal))
    }

    fn refill_from(&self, ring: &RingShare, want: usize, may_wait: bool) -> i32 {
        // SAFETY: as in `write`.
        let ids = unsafe { slice::from_raw_parts_mut(self.memory.as_ptr(), LARGEST_BLOCK) };
        let mut waits = self.waits.borrow_mut();
        match ring.take(&mut ids[..want], may_wait.then_some(&mut waits)) {
            Ok(count) => {
                self.note_length(count as u64);
                drop(waits);
                self.answer(count as u64, ring.cached.has_step_to_report())
            }
            Err(refusal) => {
                self.refusal.set(Some(refusal));
                0
            }
        }
    }

    fn answer(&self, len: u64, step_to_report: bool) -> i32 {
        let has_news = step_to_report || self.waits.borrow().count > 0;
        if has_news { -(len as i32) } else { len as i32 }
    }

    fn note_length(&self, len: u64) {
        self.last_want.set(len);
        if len > SMALL_BLOCK {
            self.patience.set(PATIENCE);
        }
    }

    fn write(&self, reserved: &Reserved) {
        let Reserved { first_id, block, .. } = *reserved;
        self.note_length(block.len);
        self.block.set(Some(block));
        let ids = self.memory.as_ptr();
        for n in 0..block.len {
            // SAFETY: `memory` has LARGEST_BLOCK ids, no block is longer, and the array buffer lives
            // as long as the functions that get here (see `keep_memory`). Only this thread uses it.
            unsafe { ids.add(n as usize).write(first_id + n) };
        }
    }

    /// Gives back the last `unused` IDs of the block JavaScript holds, and ends it. More than the block
    /// has cannot be unused: then none is issued again.
    fn give_back(&self, unused: u64) {
        let len = self.last_want.replace(0);
        let block = self.block.take();
        if unused > len {
            return;
        }
        match (self.source.borrow().as_ref(), block) {
            (Some(Source::Ring(ring)), _) => {
                self.lose_patience(len);
                // SAFETY: as in `write`.
                let ids = unsafe { slice::from_raw_parts(self.memory.as_ptr(), len as usize) };
                ring.keep(&ids[(len - unused) as usize..]);
            }
            (Some(source), Some(block)) => {
                self.lose_patience(len);
                source.generator().give_back(&block, unused);
            }
            _ => {}
        }
    }

    /// Takes back single IDs that JavaScript has drawn and nobody has seen, in the order of their draws.
    fn take_back(&self, ids: &[u64]) {
        match self.source.borrow().as_ref() {
            Some(Source::Ring(ring)) => ring.keep(ids),
            Some(source) => {
                let generator = source.generator();
                for id in ids.iter().rev() {
                    if let Some(block) = generator.node().block_of(*id) {
                        generator.give_back(&block, 1);
                    }
                }
            }
            None => {}
        }
    }

    fn lose_patience(&self, len: u64) {
        if len <= SMALL_BLOCK {
            self.patience.set((self.patience.get() * 2).min(LONGEST_PATIENCE));
        }
        self.singles.set(self.patience.get());
    }

    /// Does something to the window that an engine keeps, if one does.
    fn leased<R>(&self, change: impl FnOnce(&Share, WindowId) -> R) -> Option<R> {
        let source = self.source.borrow();
        let share = source.as_ref()?.share()?;
        Some(change(share, share.engine_window()?))
    }

    /// Draws from another generator from now on. If that cannot be opened, the one before stays, whose
    /// window is closed.
    fn change_source(
        &self,
        worker_id: Option<f64>,
        open: impl FnOnce() -> Result<Source, Fault>,
    ) -> Option<Fault> {
        // What JavaScript still has of the last block is of the slot before, and was reserved while
        // that was held: it is not given back to the next.
        self.block.set(None);
        self.booking.take();
        self.last_want.set(0);
        self.last_tick.set(NEVER);
        // The same slot again has one user at a time, so its share goes first.
        let is_same = |source: &Source| {
            worker_id.is_some_and(|id| id as u64 == source.generator().node().worker_id())
        };
        if self.source.borrow().as_ref().is_some_and(is_same) {
            self.source.take();
        }
        match open() {
            Ok(source) => {
                if let Source::Ring(ring) = &source {
                    self.rejected_put
                        .borrow()
                        .iter()
                        .for_each(|one| ring.cached.rejected_put().add(one));
                }
                self.source.replace(Some(source));
                None
            }
            Err(fault) => Some(fault),
        }
    }

    /// Fills an array with IDs, across as many ticks as it takes. All of it or, if refused, nothing.
    fn fill(&self, ids: &mut [u64], may_wait: bool) -> bool {
        let source = self.source.borrow();
        let Some(source) = source.as_ref() else { return false };
        if let Source::Ring(ring) = source {
            let mut waits = self.waits.borrow_mut();
            return ring
                .fill(ids, may_wait.then_some(&mut waits))
                .map_err(|refusal| self.refusal.set(Some(refusal)))
                .is_ok();
        }
        let generator = source.generator();
        let policies = match source {
            Source::Own(_, _, policies) => policies,
            Source::Shared(share) | Source::Ring(RingShare { share, .. }) => share.policies(),
        };
        // A batch takes a tick in parts, so that others draw of it, too.
        let part = LARGEST_BLOCK as u64;
        let mut blocks = Vec::new();
        let mut rest = ids;
        while !rest.is_empty() {
            let want = part.min(rest.len() as u64);
            let booked = source.share().and_then(|share| self.booked(share, true));
            let reserved = booked.unwrap_or_else(|| {
                let attempt = || generator.try_reserve(policies, |_| want);
                let waits = &mut *self.waits.borrow_mut();
                generator.waiting(policies, waits, want, attempt, |reserved| reserved)
            });
            match reserved.map(|reserved| reserved.shortened(generator, want)) {
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

/// The object that JavaScript draws from. Its functions are for `js/turn.js` and `js/snowflake.js`.
pub fn build<'env>(env: &'env Env, source: Source) -> napi::Result<Object<'env>> {
    let worker_id = source.generator().node().worker_id();
    let passed_over = source.share().map(|share| share.passed_over.clone()).unwrap_or_default();
    let second_users = source.share().map(|share| share.second_users.clone()).unwrap_or_default();
    let (memory, buffer) = create_buffer(env)?;
    let channel = Rc::new(Channel {
        source: RefCell::new(Some(source)),
        memory,
        block: Cell::new(None),
        booking: RefCell::default(),
        last_tick: Cell::new(NEVER),
        last_want: Cell::new(0),
        singles: Cell::new(PATIENCE),
        patience: Cell::new(PATIENCE),
        refusal: Cell::new(None),
        waits: RefCell::default(),
        renewed: RefCell::default(),
        rejected_put: RefCell::default(),
    });

    let mut object = Object::new(env)?;
    object.set("workerId", worker_id as f64)?;
    object.set("passedOver", passed_over)?;
    object.set("secondUsers", second_users)?;
    object.set("memory", buffer)?;
    object.set("refill", bare(env, &channel, refill, buffer)?)?;
    object.set("tryRefill", bare(env, &channel, try_refill, buffer)?)?;
    object.set("giveBack", bare(env, &channel, give_back, buffer)?)?;

    let own = channel.clone();
    define(env, &mut object, "setClock", move |call| {
        let now: f64 = call.get(0)?;
        if let Some(Source::Own(_, clock, _)) = own.source.borrow().as_ref() {
            clock.set(now as i64);
        }
        Ok(())
    })?;
    let own = channel.clone();
    define(env, &mut object, "fill", move |call| {
        let mut ids: BigUint64Array = call.get(0)?;
        let may_wait = call.get(1)?;
        // SAFETY: js/turn.js has just made the array and nobody else has seen it yet.
        Ok(own.fill(unsafe { ids.as_mut() }, may_wait))
    })?;
    let own = channel.clone();
    define(env, &mut object, "takeBack", move |call| {
        let ids: BigUint64Array = call.get(0)?;
        own.take_back(&ids);
        Ok(())
    })?;
    let own = channel.clone();
    define(env, &mut object, "noteWaits", move |call| {
        let (waits, ms): (f64, f64) = (call.get(0)?, call.get(1)?);
        if let Some(source) = own.source.borrow().as_ref() {
            source.generator().note_waits(waits as u64, Duration::from_secs_f64(ms / 1000.0));
        }
        Ok(())
    })?;
    let own = channel.clone();
    define(env, &mut object, "refusal", move |_| {
        let source = own.source.borrow();
        let refusal = own.refusal.get().map_or_else(RefusalRecord::closed, RefusalRecord::from);
        let Some(generator) = source.as_ref().map(Source::generator) else { return Ok(refusal) };
        let why = if refusal.kind == "page" { generator.page_failure() } else { None };
        let page = generator.page().map(|page| page.path().display().to_string());
        Ok(RefusalRecord { why, page, ..refusal })
    })?;
    let own = channel.clone();
    define(env, &mut object, "takeNews", move |_| {
        let source = own.source.borrow();
        let step = source.as_ref().and_then(|source| source.generator().take_step());
        let waits = WaitsRecord::of(own.waits.take());
        // Mostly there are none, and an object takes time to make.
        let has_news = step.is_some() || waits.is_some();
        Ok(has_news.then(|| NewsRecord { step: step.map(StepRecord::from), waits }))
    })?;
    let own = channel.clone();
    define(env, &mut object, "stats", move |_| {
        Ok(own.source.borrow().as_ref().map(|source| {
            let ring = match source {
                Source::Ring(RingShare { cached, .. }) => Some(cached.stats()),
                _ => None,
            };
            StatsRecord::of(source.generator(), ring)
        }))
    })?;
    let own = channel.clone();
    define(env, &mut object, "lease", move |_| {
        Ok(own.source.borrow().as_ref().and_then(Source::share).and_then(LeaseRecord::of))
    })?;
    let own = channel.clone();
    define(env, &mut object, "onRejectedPut", move |call| {
        let listener = listener(&call)?;
        if let Some(Source::Ring(ring)) = own.source.borrow().as_ref() {
            ring.cached.rejected_put().add(&listener);
        }
        own.rejected_put.borrow_mut().push(listener);
        Ok(())
    })?;
    let own = channel.clone();
    define(env, &mut object, "onRenewed", move |call| {
        let listener = listener(&call)?;
        if let Some(share) = own.source.borrow().as_ref().and_then(Source::share) {
            share.on_renewed(&listener);
        }
        own.renewed.borrow_mut().push(listener);
        Ok(())
    })?;
    let own = channel.clone();
    define(env, &mut object, "nextCeiling", move |call| {
        let ms: f64 = call.get(0)?;
        let ahead = Duration::from_millis(ms as u64);
        Ok(own.leased(|share, _| share.next_ceiling(ahead) as f64))
    })?;
    let own = channel.clone();
    define(env, &mut object, "ceiling", move |_| {
        let end = |share: &Share| end_of(share.node().layout(), share.window().ceiling) as f64;
        Ok(own.leased(|share, _| end(share)))
    })?;
    let own = channel.clone();
    define(env, &mut object, "raiseCeiling", move |call| {
        let ceiling: f64 = call.get(0)?;
        own.leased(|share, window| share.raise_ceiling(window, ceiling as Tick));
        Ok(())
    })?;
    let own = channel.clone();
    define(env, &mut object, "endWindow", move |_| {
        Ok(own.leased(|share, window| share.end_window(window)).flatten().map(|last| last as f64))
    })?;
    let own = channel.clone();
    define(env, &mut object, "moveTo", move |call| {
        let (request, window): (OpenRequest, WindowRecord) = (call.get(0)?, call.get(1)?);
        Ok(own.change_source(request.worker_id, || leased(&request, &window)))
    })?;
    let own = channel.clone();
    define(env, &mut object, "joinAnother", move |call| {
        let request: OpenRequest = call.get(0)?;
        Ok(own.change_source(request.worker_id, || joined(&request)))
    })?;
    define(env, &mut object, "close", move |_| {
        channel.source.borrow_mut().take();
        channel.renewed.borrow_mut().clear();
        channel.rejected_put.borrow_mut().clear();
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

/// Calls the function that was passed, in a turn of its own.
fn listener(call: &FunctionCallContext) -> napi::Result<Arc<Listener>> {
    let function: Function<'_, (), ()> = call.get(0)?;
    let function = function
        .build_threadsafe_function()
        // It is no reason to stay alive.
        .weak::<true>()
        .build_callback(|_| Ok(()))?;
    Ok(Arc::new(move || {
        function.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }))
}

/// The array buffer that JavaScript reads IDs from, and where it lies.
fn create_buffer<'env>(env: &'env Env) -> napi::Result<(NonNull<u64>, Unknown<'env>)> {
    let bytes = LARGEST_BLOCK * size_of::<u64>();
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
    let mut count = 0.0;
    // SAFETY: as in `number`; one argument is asked for and there is room for one.
    unsafe {
        sys::napi_get_cb_info(env, info, &mut argc, &mut unused, ptr::null_mut(), &mut data);
        sys::napi_get_value_double(env, unused, &mut count);
        let channel = &*data.cast::<Channel>();
        // Not even a negative count is taken for one that is possible.
        let count = if count >= 0.0 { count as u64 } else { u64::MAX };
        let _ = catch_unwind(AssertUnwindSafe(|| channel.give_back(count)));
    }
    ptr::null_mut()
}

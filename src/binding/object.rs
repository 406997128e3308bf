//! The object that JavaScript draws from. Its functions are for `js/generator/draw.js`, `js/generator/generator.js` and
//! `js/lease/`.

use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::{FromNapiValue, Function, Object};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi::{Env, PropertyAttributes, sys};

use super::array::Ids;
use super::block::SharedBlock;
use super::calls;
use super::channel::Channel;
use super::class::{Class, Methods};
use super::fault::define;
use super::layout::end_of;
use super::leases::{id, lease_of, leasing_of, loss_of};
use super::records::{closed, news_of, refusal_of};
use super::request::Requested;
use super::source::Source;
use crate::core::layout::Tick;
use crate::core::listeners::Listener;

/// Builds the object of a source. It is valid within the scope of this call.
pub fn build<'call>(env: &Env, source: Source) -> napi::Result<Object<'call>> {
    let (node, warnings) = (*source.node(), source.warnings.clone());
    let (block, memory) = SharedBlock::new(env, node.layout())?;
    let class = Class::of(env, add_methods)?;
    let mut object = class.instance(env, Channel::new(source, block))?;
    let fixed = PropertyAttributes::empty();
    define(env, &mut object, "workerId", node.worker_id() as f64, fixed)?;
    define(env, &mut object, "memory", memory, fixed)?;
    // Mostly there are none, and an array takes time to make.
    if !warnings.is_empty() {
        define(env, &mut object, "warnings", warnings, fixed)?;
    }
    Ok(object)
}

fn add_methods(methods: &mut Methods) -> napi::Result<()> {
    methods.add_bare("refill", calls::refill)?;
    methods.add_bare("tryRefill", calls::try_refill)?;
    methods.add_bare("giveBack", calls::give_back)?;
    methods.add_bare("fill", calls::fill)?;
    methods.add("setClock", |own, (now,): (f64,)| {
        own.with(|source| {
            if let Some(clock) = &source.clock {
                clock.set(now as i64);
            }
        });
    })?;
    methods.add("takeBack", |own, (ids,): (Ids,)| {
        own.with(|source| source.take_back(&ids.0));
    })?;
    methods.add_plain("refusal", |own| {
        let refused = |source: &Source| Some(refusal_of(own.draws.refusal.get()?, source));
        if own.draws.block.is_detached() {
            return closed();
        }
        own.with(refused).flatten().unwrap_or_else(closed)
    })?;
    methods.add_plain("takeNews", |own| {
        let rollback = own.with(|source| source.take_rollback()).flatten();
        news_of(rollback, own.draws.waits.take())
    })?;
    methods.add("noteWaits", |own, (waits, ms): (f64, f64)| {
        let time = Duration::from_millis(ms as u64);
        own.with(|source| source.note_waits(waits as u64, time));
    })?;
    methods.add_plain("stats", Channel::stats)?;
    methods
        .add("onRejectedPut", |own, (callback,): (Callback,)| own.on_rejected_put(callback.0))?;
    methods.add_plain("close", Channel::close)?;
    methods.add_plain("lease", |own| own.with(|source| lease_of(source)).flatten())?;
    methods.add("onRenewed", |own, (callback,): (Callback,)| own.on_renewed(callback.0))?;
    add_lease(methods)
}

/// For leases that JavaScript renews.
fn add_lease(methods: &mut Methods) -> napi::Result<()> {
    methods.add("nextCeiling", |own, (ms,): (f64,)| {
        let ahead = Duration::from_millis(ms as u64);
        own.with_window(|share, _| share.next_ceiling(ahead))
    })?;
    methods.add_plain("ceiling", |own| {
        own.with_window(|share, _| end_of(share.node().layout(), share.window().ceiling))
    })?;
    methods.add("raiseCeiling", |own, (ceiling,): (f64,)| {
        own.with_window(|share, window| share.raise_ceiling(window, ceiling as Tick));
    })?;
    methods.add_plain("endWindow", |own| {
        // A leased page is not this process's alone.
        if own.on_leased_page(|_| ()).is_some() {
            return None;
        }
        own.draws.block.lose();
        own.with_window(|share, window| share.end_window(window)).flatten()
    })?;
    methods.add("moveTo", |own, (request,): (Requested,)| own.move_to(request))?;
    methods.add_plain("leasing", |own| own.with(|source| leasing_of(source)).flatten())?;
    type Confirmed = (String, f64, f64, Option<f64>, f64);
    methods.add("confirm", |own, (owner, ceiling, now, expires, ttl): Confirmed| {
        own.with_window(|share, window| {
            // A ceiling that was confirmed to an earlier owner is not this one's.
            let page = share.page();
            if page.leasing().is_some_and(|one| id(&owner).is_ok_and(|owner| owner == one.owner)) {
                share.raise_ceiling(window, ceiling as Tick);
                page.kept().note_renewal(now as i64, expires.map(|ms| ms as i64), ttl as i64);
            }
        });
    })?;
    methods.add("endPage", |own, (loss,): (String,)| {
        own.draws.block.lose();
        own.on_leased_page(|page| page.end_lease(loss_of(&loss))).flatten()
    })?;
    methods.add_plain("leave", Channel::leave)
}

/// A function of JavaScript that other threads may call. It runs in a turn of its own.
struct Callback(Arc<Listener>);

impl FromNapiValue for Callback {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        // SAFETY: the caller's promise.
        let function = unsafe { Function::<(), ()>::from_napi_value(env, value)? }
            .build_threadsafe_function()
            // It does not keep the event loop alive.
            .weak::<true>()
            .build_callback(|_| Ok(()))?;
        Ok(Callback(Arc::new(move || {
            function.call((), ThreadsafeFunctionCallMode::NonBlocking);
        })))
    }
}

//! Channels: each connects one JavaScript instance to its source of IDs. In JavaScript it is an object of the class
//! `Channel`, whose methods are for `js/generator/` and `js/lease/`.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::{FromNapiValue, Function, JavaScriptClassExt, JsObjectValue, Object};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi::{Env, Property, PropertyAttributes, sys};
use napi_derive::napi;
use slab::Slab;

use super::draw::SharedBlock;
use super::memory::Ids;
use super::reports::{directory_lease_of, news_of, refusal_of, stats_of};
use super::request::Requested;
use super::source::Source;
use super::values::{Value, end_of, report};
use crate::core::fault::{Fault, fault};
use crate::core::listeners::Listener;
use crate::core::loss::Loss;

thread_local! {
    /// They live as long as the thread.
    pub static CHANNELS: Channels = Channels::default();
}

/// The channels of one thread, by number. A call of the hot path has no pointer to its channel, only a number in memory
/// that JavaScript can change: a wrong number finds another channel or none. Numbers are reused.
#[derive(Default)]
pub struct Channels(RefCell<Slab<Rc<Connection>>>);

impl Channels {
    /// Calls a function with the block and the source of a channel. `None` if the channel is closed, or the number is
    /// no channel's. 0 is no channel's number, since memory starts as zeros.
    #[inline(always)]
    pub fn with<R>(&self, number: u32, does: impl FnOnce(&SharedBlock, &Source) -> R) -> Option<R> {
        let found = self.0.borrow().get((number as usize).wrapping_sub(1))?.clone();
        found.with(|source| does(&found.block, source))
    }
}

/// The connection of one instance to its source. It belongs to one thread.
pub struct Connection {
    /// `None` once it is closed.
    source: RefCell<Option<Source>>,
    block: SharedBlock,
    /// The counters at the time of its close.
    last_stats: RefCell<Option<Value>>,
    /// Listeners for renewals. They end with the instance.
    renewed: RefCell<Vec<Arc<Listener>>>,
    /// Listeners for rejected puts of the present and later rings. They end with the instance.
    rejected_put: RefCell<Vec<Arc<Listener>>>,
}

impl Connection {
    /// Calls a function with the source; `None` once it is closed.
    #[inline(always)]
    fn with<R>(&self, does: impl FnOnce(&Source) -> R) -> Option<R> {
        self.source.borrow().as_ref().map(does)
    }

    /// Like `with`, for a function that returns an option.
    fn find<R>(&self, find: impl FnOnce(&Source) -> Option<R>) -> Option<R> {
        self.with(find).flatten()
    }

    /// Ends the block for later turns: JavaScript may draw from it only within this turn. The rest of the block and the
    /// booking are lost.
    fn lose(&self) {
        self.with(|source| source.lose());
        self.block.change(|memory| memory.reserved_ms = f64::NAN);
    }

    /// Takes the source, and keeps the last counters.
    fn end(&self) -> Option<Source> {
        if let Some(stats) = self.with(stats_of) {
            self.last_stats.replace(Some(stats));
        }
        self.source.take()
    }
}

/// The JavaScript object of a connection, which keeps it alive. napi tags objects of this class, so no other object is
/// accepted as one.
#[napi]
pub struct Channel {
    number: usize,
    connection: Rc<Connection>,
}

impl Deref for Channel {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // The thread may be ending, and its table may be gone.
        let _ = CHANNELS.try_with(|channels| channels.0.borrow_mut().try_remove(self.number - 1));
    }
}

impl Channel {
    /// The channel object of a source. It is valid within the scope of this call.
    pub fn build<'call>(env: &Env, source: Source) -> napi::Result<Object<'call>> {
        let (node, warnings) = (*source.node(), source.warnings.clone());
        let (block, memory) = SharedBlock::new(env, node.layout())?;
        let (last_stats, renewed, rejected_put) = Default::default();
        let source = RefCell::new(Some(source));
        let connection = Rc::new(Connection { source, block, last_stats, renewed, rejected_put });
        let key = CHANNELS.with(|all| all.0.borrow_mut().insert(connection.clone()));
        let channel = Channel { number: key + 1, connection };
        channel.block.change(|memory| memory.number = channel.number as u32);
        let mut object = Object::from_raw(env.raw(), channel.into_instance(env)?.value);
        let fixed = |name| {
            Ok::<_, napi::Error>(
                Property::new()
                    .with_utf8_name(name)?
                    .with_property_attributes(PropertyAttributes::empty()),
            )
        };
        object.define_properties(&[
            fixed("workerId")?.with_napi_value(env, node.worker_id() as f64)?,
            fixed("memory")?.with_napi_value(env, memory)?,
            // Most channels have none, and creating an array takes time.
            fixed("warnings")?.with_napi_value(env, (!warnings.is_empty()).then_some(warnings))?,
        ])?;
        Ok(object)
    }
}

#[napi]
impl Channel {
    /// A promise that resolves with a channel reads this property, and must not find one on `Object.prototype`.
    #[napi(getter, catch_unwind, skip_typescript)]
    pub fn then(&self) {}

    /// Takes back IDs that were not handed out.
    #[napi(catch_unwind)]
    pub fn take_back(&self, ids: Ids) {
        self.with(|source| source.take_back(&ids.0));
    }

    /// The last refusal.
    #[napi(catch_unwind, ts_return_type = "Refusal")]
    pub fn refusal(&self) -> Value {
        let refused = |source: &Source| Some(refusal_of(self.block.refusal.get()?, source));
        let refusal = self.find(refused).filter(|_| self.block.change(|_| ()));
        refusal.unwrap_or_else(|| report!(kind: "closed", now: 0u32))
    }

    /// The events since the last call, if any.
    #[napi(catch_unwind, ts_return_type = "News | null")]
    pub fn take_news(&self) -> Option<Value> {
        self.find(|source| news_of(source.take_rollback(), source.waits.take()))
    }

    /// Counts waits in JavaScript.
    #[napi(catch_unwind)]
    pub fn note_waits(&self, waits: f64, ms: f64) {
        let time = Duration::from_millis(ms as u64);
        self.with(|source| source.note_waits(waits as u64, time));
    }

    /// The counters, even after a close.
    #[napi(catch_unwind, ts_return_type = "ChannelStats | null")]
    pub fn stats(&self) -> Option<Value> {
        self.with(stats_of).or_else(|| self.last_stats.borrow().clone())
    }

    /// Calls a function for each rejected put of its rings.
    #[napi(catch_unwind)]
    pub fn on_rejected_put(&self, callback: Callback) {
        self.with(|source| source.on_rejected_put(&callback.0));
        self.rejected_put.borrow_mut().push(callback.0);
    }

    /// Closes the connection.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.end();
        self.renewed.take();
        self.rejected_put.take();
        self.block.refusal.set(None);
    }

    /// The lease from a directory, if there is one.
    #[napi(catch_unwind, ts_return_type = "DirectoryLeaseState | null")]
    pub fn lease(&self) -> Option<Value> {
        self.find(directory_lease_of)
    }

    /// Calls a function after each change of that lease, and after each renewal.
    #[napi(catch_unwind)]
    pub fn on_renewed(&self, callback: Callback) {
        let listens = |source: &Source| {
            source.lease.iter().for_each(|lease| lease.listeners().add(&callback.0));
        };
        self.with(listens);
        self.renewed.borrow_mut().push(callback.0);
    }

    /// The end of the window, Unix ms.
    #[napi(catch_unwind)]
    pub fn ceiling(&self) -> Option<i64> {
        self.with(|source| end_of(source.node().layout(), source.window().ceiling))
    }

    /// Ends the lease, since this machine was restored from a snapshot. Returns false if the slot is not leased from a
    /// store.
    #[napi(catch_unwind)]
    pub fn restored(&self) -> bool {
        self.lose();
        self.find(|source| {
            let page = source.page();
            page.lease_status().filter(|_| source.lease.is_none())?;
            page.end_lease(Loss::Restored);
            Some(())
        })
        .is_some()
    }

    /// Changes to another source: that of a request, or the present slot of its lease from a directory. If that cannot be
    /// opened, keeps the previous one, whose page has ended, and returns the fault.
    #[napi(catch_unwind)]
    pub fn move_to(&self, request: Requested) -> Option<Fault> {
        // The rest of JavaScript's block is the previous slot's, so it is not given back to the next one.
        self.lose();
        let lease = self.find(|source| source.lease.clone());
        let opened = request.0.and_then(|wanted| match lease {
            Some(lease) => Source::of_lease(&wanted, &lease).map(Some),
            None => Source::open(&wanted),
        });
        match opened {
            Ok(Some(source)) => {
                self.rejected_put.borrow().iter().for_each(|one| source.on_rejected_put(one));
                self.source.replace(Some(source));
                None
            }
            Ok(None) => Some(fault!("slot-left")),
            Err(fault) => Some(fault),
        }
    }
}

/// A JavaScript function that other threads may call. It runs in a turn of its own.
pub struct Callback(Arc<Listener>);

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

//! The JavaScript class of channels. One prototype has the functions of all, since a function per instance takes as
//! long to make as many IDs.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::{self, without_provenance_mut};
use std::rc::{Rc, Weak};

use napi::bindgen_prelude::{
    FromNapiValue, FunctionCallContext, JsObjectValue, JsValue, Object, ToNapiValue,
    TupleFromSliceValues, Unknown,
};
use napi::{Env, check_status, sys};

use super::channel::Channel;
use super::fault::define;

thread_local! {
    /// The class in each environment of this thread: test runners load an addon more than once.
    static CLASSES: RefCell<HashMap<sys::napi_env, Rc<Class>>> = RefCell::default();
}

/// The class in one environment.
pub struct Class {
    constructor: sys::napi_ref,
    channels: Rc<Channels>,
}

/// The channels of one environment by number. JavaScript has no pointer to a channel, only its number: whatever it
/// passes instead, it gets another channel or none. A number passes to another channel once its own has gone, so a user
/// of a number keeps the channel's object alive.
pub struct Channels {
    /// The first is none: 0 is what is left of a value that is no number of a channel.
    all: RefCell<Vec<Weak<Numbered>>>,
    free: RefCell<Vec<u32>>,
}

/// A channel, and its number as long as it lives.
struct Numbered {
    channel: Channel,
    number: u32,
    channels: Rc<Channels>,
}

impl Drop for Numbered {
    fn drop(&mut self) {
        self.channels.free.borrow_mut().push(self.number);
    }
}

impl Channels {
    fn new() -> Rc<Self> {
        let (all, free) = (RefCell::new(vec![Weak::new()]), RefCell::default());
        Rc::new(Channels { all, free })
    }

    fn add(self: &Rc<Self>, channel: Channel) -> Rc<Numbered> {
        let mut all = self.all.borrow_mut();
        let number = self.free.borrow_mut().pop().unwrap_or(all.len() as u32);
        let numbered = Rc::new(Numbered { channel, number, channels: self.clone() });
        let weak = Rc::downgrade(&numbered);
        match all.get_mut(number as usize) {
            Some(slot) => *slot = weak,
            None => all.push(weak),
        }
        numbered
    }

    /// Applies a function to the channel of a number.
    #[inline]
    pub fn with<R>(&self, number: u32, does: impl FnOnce(&Channel) -> R) -> Option<R> {
        let found = self.all.borrow().get(number as usize)?.upgrade()?;
        Some(does(&found.channel))
    }
}

type AddMethods = fn(&mut Methods) -> napi::Result<()>;
type Callback = unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> sys::napi_value;

impl Class {
    /// The class of this environment. The first call makes it.
    pub fn of(env: &Env, add_methods: AddMethods) -> napi::Result<Rc<Class>> {
        let raw = env.raw();
        if let Some(known) = CLASSES.with_borrow(|classes| classes.get(&raw).cloned()) {
            return Ok(known);
        }
        let channels = Channels::new();
        let class = env.define_class::<()>("Channel", construct, &[])?;
        let mut prototype: Object = class.get_named_property("prototype")?;
        // What a channel may lack is not looked up on `Object.prototype`. A promise that resolves asks for `then`.
        for absent in ["warnings", "then"] {
            define(env, &mut prototype, absent, (), Default::default())?;
        }
        add_methods(&mut Methods { env, prototype, channels: &channels })?;
        let mut constructor = ptr::null_mut();
        // SAFETY: calls on this thread's own env, with a value that it has just made.
        unsafe {
            check_status!(sys::napi_create_reference(raw, class.raw(), 1, &mut constructor))?;
            check_status!(sys::napi_add_env_cleanup_hook(raw, Some(forget), raw.cast()))?;
        }
        let class = Rc::new(Class { constructor, channels });
        CLASSES.with_borrow_mut(|classes| classes.insert(raw, class.clone()));
        Ok(class)
    }

    /// A new object of the class, which keeps the channel alive.
    pub fn instance<'call>(&self, env: &Env, channel: Channel) -> napi::Result<Object<'call>> {
        let raw = env.raw();
        let (mut constructor, mut object) = (ptr::null_mut(), ptr::null_mut());
        let channel = self.channels.add(channel);
        channel.channel.draws.block.set_number(channel.number);
        let number = without_provenance_mut(channel.number as usize);
        // SAFETY: calls on this thread's own env, with a reference of it. It removes the reference when it ends. The
        // finalizer holds a strong count of the Rc; it releases that, once, when the object is collected. What the
        // object wraps is the number: other addons can unwrap it, and wrap what they like.
        unsafe {
            check_status!(sys::napi_get_reference_value(raw, self.constructor, &mut constructor))?;
            check_status!(sys::napi_new_instance(raw, constructor, 0, ptr::null(), &mut object))?;
            let hint = Rc::into_raw(channel).cast_mut().cast::<c_void>();
            let (finalizer, result) = (Some(drop_channel as _), ptr::null_mut());
            check_status!(sys::napi_wrap(raw, object, number, finalizer, hint, result))?;
            Object::from_napi_value(raw, object)
        }
    }
}

unsafe extern "C" fn drop_channel(_: sys::napi_env, _: *mut c_void, hint: *mut c_void) {
    // SAFETY: `hint` is the Rc that was made into it, and this its one finalizer.
    drop(unsafe { Rc::from_raw(hint.cast::<Numbered>()) });
}

unsafe extern "C" fn forget(env: *mut c_void) {
    // The thread may be ending, too, and with it `CLASSES`.
    let _ = CLASSES.try_with(|classes| classes.borrow_mut().remove(&env.cast()));
}

unsafe extern "C" fn construct(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    let (no_arguments, mut this, no_data) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: Node-API calls this with both, and no arguments are requested.
    unsafe { sys::napi_get_cb_info(env, info, ptr::null_mut(), no_arguments, &mut this, no_data) };
    this
}

/// The number of a channel's object; 0 for other values. What another addon has wrapped gives any number.
///
/// # Safety
/// `this` is that of a call.
unsafe fn number_of(env: sys::napi_env, this: sys::napi_value) -> u32 {
    let mut found = ptr::null_mut();
    // SAFETY: a value of this call, and the out-pointer lives. What was found is not followed.
    unsafe { sys::napi_unwrap(env, this, &mut found) };
    u32::try_from(found.addr()).unwrap_or(0)
}

/// The methods of the class while it is made. A function takes 10 us to make, and 1 kB.
pub struct Methods<'env> {
    env: &'env Env,
    prototype: Object<'env>,
    channels: &'env Rc<Channels>,
}

impl Methods<'_> {
    /// Adds a method with arguments.
    pub fn add<A: TupleFromSliceValues, R: ToNapiValue>(
        &mut self,
        name: &str,
        call: impl Fn(&Channel, A) -> R + 'static,
    ) -> napi::Result<()> {
        self.add_call(name, move |channel, context| Ok(call(channel, context.args()?)))
    }

    /// Adds a method without arguments.
    pub fn add_plain<R: ToNapiValue>(
        &mut self,
        name: &str,
        call: impl Fn(&Channel) -> R + 'static,
    ) -> napi::Result<()> {
        self.add_call(name, move |channel, _| Ok(call(channel)))
    }

    fn add_call<R: ToNapiValue>(
        &mut self,
        name: &str,
        call: impl Fn(&Channel, &FunctionCallContext) -> napi::Result<R> + 'static,
    ) -> napi::Result<()> {
        let channels = self.channels.clone();
        let on_this = move |context: FunctionCallContext| {
            let this: Unknown = context.this()?;
            // SAFETY: both belong to this call.
            let number = unsafe { number_of(context.env.raw(), this.raw()) };
            let no_channel = || napi::Error::from_reason("no channel");
            channels.with(number, |channel| call(channel, &context)).ok_or_else(no_channel)?
        };
        let method = self.env.create_function_from_closure::<(), R, _>(name, on_this)?;
        define(self.env, &mut self.prototype, name, method, Default::default())
    }

    /// Adds a bare callback, the cheapest method: without a `this` to look into it takes half the time. Its data are
    /// the [`Channels`].
    pub fn add_bare(&mut self, name: &str, callback: Callback) -> napi::Result<()> {
        let raw = self.env.raw();
        let mut function = ptr::null_mut();
        let data = Rc::as_ptr(self.channels).cast_mut().cast();
        // SAFETY: calls on this thread's own env, with a value that it has just made. The class keeps the channels
        // until the env ends, and no function is called after that.
        unsafe {
            let create = sys::napi_create_function;
            check_status!(create(raw, ptr::null(), 0, Some(callback), data, &mut function))?;
            let method = Unknown::from_napi_value(raw, function)?;
            define(self.env, &mut self.prototype, name, method, Default::default())
        }
    }
}

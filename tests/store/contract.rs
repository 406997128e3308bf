//! What every store of leases must do: the four rules of `src/authority/mod.rs`, as tests. A store joins by
//! a [`World`] and a line of [`held_to_the_contract`].

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use snowdrift::authority::{Holder, Recorded};
use snowdrift::core::fault::{Class, Failure};
use snowdrift::core::layout::{Layout, Tick};
use snowdrift::core::node::Node;
use snowdrift::core::sequencer::{NEVER, Window};

/// Where slots are leased.
pub trait Store: Send + Sync {
    /// The slots of a datacenter that were ever held, in any order.
    fn recorded(&self, layout: &Layout, datacenter_id: u64) -> Result<Vec<Recorded>, Failure>;

    /// Takes a slot, and raises its ceiling to the given one if it is lower; or says who holds it.
    fn acquire(
        &self,
        slot: &Node,
        holder: &Holder,
        ceiling: Tick,
    ) -> Result<Box<dyn Held>, Failure>;
}

/// A slot that is held. Dropped without a release, it is as if the holder had died.
pub trait Held: Send {
    /// What the holder starts from.
    fn terms(&self) -> Window;

    /// Raises the ceiling, if the slot is still this holder's. A lower one than recorded changes
    /// nothing. When it returns, the ceiling is safe against anything that can happen.
    fn renew(&mut self, ceiling: Tick) -> Result<(), Failure>;

    /// Gives the slot up. Nothing above `last` was issued, nor ever will be by this holder.
    fn release(self: Box<Self>, last: Tick) -> Result<(), Failure>;
}

/// A store and what surrounds it, as the contract needs it.
pub trait World: Sync {
    /// The store, as one more process reaches it.
    fn store(&self) -> Box<dyn Store>;

    /// Lets pass whatever must pass before the slot of a dead holder is free.
    fn bury_the_dead(&self);

    /// Takes a slot away from a holder that lives, so that another can take it.
    fn take_away(&self, slot: &Node);

    /// From now on nothing can be recorded, or it can again.
    fn break_down(&self, is_broken: bool);
}

/// Makes a test of each rule for a world.
macro_rules! held_to_the_contract {
    ($world:expr) => {
        #[test]
        fn nothing_that_was_issued_is_issued_by_the_next_holder() {
            $crate::contract::nothing_issued_twice(&$world);
        }
        #[test]
        fn a_recorded_ceiling_never_falls() {
            $crate::contract::ceiling_never_falls(&$world);
        }
        #[test]
        fn a_release_lowers_the_ceiling_to_the_last_tick_and_no_further() {
            $crate::contract::release_lowers_to_the_last_tick(&$world);
        }
        #[test]
        fn a_held_slot_is_refused_and_stays_as_it_is() {
            $crate::contract::held_slot_is_refused(&$world);
        }
        #[test]
        fn of_many_who_want_a_slot_at_once_one_gets_it() {
            $crate::contract::one_of_many(&$world);
        }
        #[test]
        fn whoever_lost_a_slot_can_neither_raise_nor_lower_it() {
            $crate::contract::lost_slot(&$world);
        }
        #[test]
        fn a_ceiling_that_could_not_be_recorded_is_not_confirmed() {
            $crate::contract::unrecorded_is_unconfirmed(&$world);
        }
    };
}
pub(crate) use held_to_the_contract;

pub const LAYOUT: Layout = Layout { epoch_ms: 0, ..Layout::NODE };

pub fn slot(worker_id: u64) -> Node {
    Node::new(LAYOUT, 1, worker_id).unwrap()
}

pub fn holder() -> Holder {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let token = NEXT.fetch_add(1, SeqCst).into();
    Holder { token, pid: std::process::id(), host: "here".to_owned(), started_ms: 0 }
}

/// A holder and what it issues.
struct Tenant {
    held: Box<dyn Held>,
    terms: Window,
}

impl Tenant {
    fn of(world: &dyn World, ceiling: Tick) -> Tenant {
        let held = world.store().acquire(&slot(3), &holder(), ceiling).unwrap();
        let terms = held.terms();
        Tenant { held, terms }
    }

    fn may_issue(&self, tick: Tick) -> bool {
        self.terms.floor < tick
    }

    fn issue(&self, tick: Tick) {
        assert!(self.may_issue(tick), "tick {tick}");
    }

    fn recorded_ceiling(world: &dyn World) -> Option<Tick> {
        let recorded = world.store().recorded(&LAYOUT, 1).unwrap();
        recorded.iter().find(|slot| slot.worker_id == 3).unwrap().ceiling
    }
}

pub fn nothing_issued_twice(world: &dyn World) {
    let first = Tenant::of(world, 100);
    assert_eq!(first.terms.floor, NEVER, "nobody was here before");
    first.issue(90);
    first.issue(80);
    drop(first);
    world.bury_the_dead();
    let mut second = Tenant::of(world, 120);
    for (counter, tick) in [(0, 90), (0, 1), (1, 80), (1, 7)] {
        assert!(!second.may_issue(tick), "{tick} of {counter} again");
    }
    second.issue(119);
    second.held.renew(200).unwrap();
    second.issue(200);
    drop(second);
    world.bury_the_dead();
    let third = Tenant::of(world, 10);
    for (counter, tick) in [(0, 200), (0, 119), (0, 90), (1, 80)] {
        assert!(!third.may_issue(tick), "{tick} of {counter} again");
    }
    third.issue(201);
}

pub fn ceiling_never_falls(world: &dyn World) {
    let mut first = Tenant::of(world, 300);
    assert_eq!(first.terms.ceiling, 300);
    first.held.renew(250).unwrap();
    assert_eq!(Tenant::recorded_ceiling(world), Some(300));
    first.held.renew(310).unwrap();
    first.held.renew(5).unwrap();
    drop(first);
    world.bury_the_dead();
    assert_eq!(Tenant::recorded_ceiling(world), Some(310));
    let second = Tenant::of(world, 20);
    assert_eq!(second.terms.ceiling, 310);
}

pub fn release_lowers_to_the_last_tick(world: &dyn World) {
    let first = Tenant::of(world, 300);
    first.issue(40);
    first.held.release(40).unwrap();
    assert_eq!(Tenant::recorded_ceiling(world), Some(40));
    // At once, without waiting for anything: that is what a release is for.
    let second = Tenant::of(world, 500);
    assert!(!second.may_issue(40));
    assert!(second.may_issue(41));
    // It issued nothing, so what was issued before it stays the bound.
    second.held.release(NEVER).unwrap();
    let third = Tenant::of(world, 500);
    assert!(!third.may_issue(40));
}

pub fn held_slot_is_refused(world: &dyn World) {
    let mut first = Tenant::of(world, 100);
    for _ in 0..3 {
        match world.store().acquire(&slot(3), &holder(), 9999).map(|_| ()) {
            Err(Failure { class: Class::InUse, fault }) => {
                let [who] = fault.parts("holders") else { panic!("{fault:?}") };
                assert_eq!(who.value("pid"), Some(&std::process::id().into()));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(Tenant::recorded_ceiling(world), Some(100));
    assert!(world.store().acquire(&slot(4), &holder(), 50).is_ok(), "another slot is free");
    first.held.renew(110).unwrap();
}

pub fn one_of_many(world: &dyn World) {
    for _ in 0..20 {
        let start = Barrier::new(4);
        let got: Vec<Box<dyn Held>> = thread::scope(|scope| {
            let contend = || {
                start.wait();
                world.store().acquire(&slot(3), &holder(), 100).ok()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(contend)).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(got.len(), 1);
        drop(got);
        world.bury_the_dead();
    }
}

pub fn lost_slot(world: &dyn World) {
    let mut first = Tenant::of(world, 100);
    world.take_away(&slot(3));
    let mut second = Tenant::of(world, 150);
    let before = Tenant::recorded_ceiling(world);
    assert!(matches!(first.held.renew(900), Err(Failure { class: Class::Lost, .. })));
    assert_eq!(Tenant::recorded_ceiling(world), before, "it was not raised");
    let _ = first.held.release(1);
    assert_eq!(Tenant::recorded_ceiling(world), before, "it was not lowered");
    second.held.renew(200).unwrap();
}

pub fn unrecorded_is_unconfirmed(world: &dyn World) {
    let mut first = Tenant::of(world, 100);
    world.break_down(true);
    assert!(first.held.renew(500).is_err());
    assert_eq!(first.held.terms().ceiling, 100);
    assert!(world.store().acquire(&slot(5), &holder(), 100).is_err());
    world.break_down(false);
    first.held.renew(501).unwrap();
    assert_eq!(first.held.terms().ceiling, 501);
}

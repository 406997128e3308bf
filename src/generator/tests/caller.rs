//! One instance, used as JavaScript uses it.

use super::*;

/// An instance, and the memory that it shares with JavaScript.
struct Instance {
    caller: Caller,
    memory: BlockMemory,
}

impl Instance {
    /// An instance that has reached blocks of 8 IDs.
    fn new(layout: Layout, policies: Policies) -> (Instance, Arc<ManualClock>) {
        let (caller, clock) = generator(layout, policies);
        let memory = BlockMemory {
            ids: [0; _],
            reserved_ms: f64::NAN,
            unused: 0,
            is_watched: 0,
            most_checked: 8,
            advice: 0,
            number: 0,
        };
        let mut instance = Instance { caller, memory };
        for _ in 0..8 {
            instance.end(0);
            instance.refill(false).unwrap();
        }
        instance.end(0);
        (instance, clock)
    }

    fn refill(&mut self, may_wait: bool) -> Result<Vec<u64>, Stalled> {
        let len = self.caller.refill(&mut self.memory, may_wait)?;
        Ok(self.memory.ids[..len as usize].to_vec())
    }

    fn end(&mut self, unused: u64) -> usize {
        self.caller.end(&mut self.memory, unused).len()
    }

    /// Exhausts the clock's tick, and leaves a booking by a call that does not wait.
    fn book(&mut self) {
        while self.caller.try_reserve_next(|_| 4096).is_ok() {}
        let refusal = self.refill(false).unwrap_err();
        assert_eq!(refusal.retry_after, Some(Duration::from_millis(1)));
    }

    fn blocks(&self, ids: &[u64]) -> Vec<Block> {
        ids.iter().map(|id| self.caller.node().block_of(*id).unwrap()).collect()
    }

    /// The ID that another caller would get now.
    fn other(&self) -> u64 {
        self.caller.try_reserve_next(|_| 1).unwrap().first_id
    }
}

#[test]
fn unused_ids_are_issued_next() {
    let (mut instance, clock) = Instance::new(Layout::NODE, POLICIES);
    let ids = instance.refill(true).unwrap();
    assert_eq!((ids.len(), instance.memory.reserved_ms), (8, clock.now().ms as f64));
    assert_eq!(instance.end(3), 3);
    assert_eq!(instance.refill(true).unwrap()[0], ids[5]);
}

/// JavaScript may write any number to the memory.
#[test]
fn more_unused_ids_than_a_block_has_give_back_none() {
    let (mut instance, _) = Instance::new(Layout::NODE, POLICIES);
    for unused in [9, 4096, u64::MAX] {
        let ids = instance.refill(true).unwrap();
        assert_eq!(instance.end(unused), 0, "{unused}");
        assert_eq!(instance.end(1), 0, "the block has ended");
        assert!(instance.other() > *ids.last().unwrap(), "{unused}");
    }
}

#[test]
fn a_lost_block_and_a_lost_booking_are_not_issued_again() {
    let (mut instance, clock) = Instance::new(Layout::NODE, POLICIES);
    let lost = instance.refill(false).unwrap();
    instance.caller.lose();
    assert_eq!(instance.end(1), 0);
    assert!(instance.other() > *lost.last().unwrap());
    instance.book();
    instance.caller.lose();
    clock.set(START + 1);
    let [first, ..] = instance.refill(false).unwrap()[..] else { panic!("no IDs") };
    assert_eq!(instance.blocks(&[first])[0].first, 8, "those before it were booked");
}

/// A caller that waits by a timer gets its booked IDs, which are below those of later callers.
#[test]
fn a_call_that_does_not_wait_books_once_and_is_served_in_turn() {
    let (mut instance, clock) = Instance::new(Layout::NODE, POLICIES);
    instance.book();
    instance.book();
    clock.set(START + 1);
    let late = instance.other();
    let ids = instance.refill(false).unwrap();
    assert_eq!((ids.len(), late), (8, ids[7] + 1));
    assert_eq!(instance.memory.reserved_ms, (START + 1) as f64, "later turns draw from it, too");
    assert_eq!(clock.now().ms, START + 1, "nothing has waited");
}

#[test]
fn a_call_that_does_not_wait_books_the_next_tick_for_any_max_wait() {
    let policies = Policies { max_wait: Duration::ZERO, ..POLICIES };
    let (mut instance, clock) = Instance::new(Layout::NODE, policies);
    instance.book();
    instance.refill(true).unwrap_err();
    instance.book();
    clock.set(START + 1);
    let ids = instance.refill(true).unwrap();
    assert_eq!(instance.blocks(&ids)[0].tick, Layout::NODE.tick_at(START + 1));
}

#[test]
fn no_later_turn_draws_from_a_booked_tick_that_has_passed() {
    let (mut instance, clock) = Instance::new(Layout::NODE, POLICIES);
    instance.book();
    clock.set(START + 7);
    let ids = instance.refill(false).unwrap();
    assert_eq!(instance.blocks(&ids)[0].tick, Layout::NODE.tick_at(START + 1));
    assert!(instance.memory.reserved_ms.is_nan());
}

#[test]
fn a_waiting_call_takes_the_booking_of_an_earlier_one() {
    let (mut instance, clock) = Instance::new(Layout::NODE, POLICIES);
    instance.book();
    let ids = instance.refill(true).unwrap();
    assert_eq!((instance.blocks(&ids)[0].first, clock.now().ms), (0, START + 1));
    assert_eq!(instance.caller.waits.take().count, 1);
}

#[test]
fn a_waiting_call_that_loses_its_booking_reserves_like_others() {
    let (mut instance, clock) = Instance::new(Layout::NODE, POLICIES);
    instance.book();
    clock.set(START - 5);
    let ids = instance.refill(true).unwrap();
    let Block { tick, counter, .. } = instance.blocks(&ids)[0];
    assert_eq!((tick, counter), (Layout::NODE.tick_at(START - 5), 1));
    assert_eq!(clock.now().ms, START - 5, "nothing has waited");
}

#[test]
fn a_batch_rises_across_ticks() {
    let layout = Layout { timestamp_bits: 40, sequence_bits: 13, ..Layout::NODE };
    let (instance, _) = Instance::new(layout, POLICIES);
    let before = instance.caller.stats().issued;
    let mut ids = vec![0; 10_000];
    instance.caller.fill(&mut ids).unwrap();
    assert!(ids.is_sorted_by(|one, next| one < next));
    assert_eq!(instance.caller.stats().issued, before + 10_000);
    assert_eq!(instance.other(), ids[9_999] + 1);
}

#[test]
fn a_refused_batch_gives_back_all_that_it_has_taken() {
    let policies = Policies { max_wait: Duration::ZERO, ..POLICIES };
    let (instance, _) = Instance::new(Layout::NODE, policies);
    let before = instance.other();
    let issued = instance.caller.stats().issued;
    let refusal = instance.caller.fill(&mut [0; 5000]).unwrap_err();
    assert!(matches!(refusal.stall, Stall::SequenceExhausted { .. }));
    assert_eq!(instance.caller.stats().issued, issued);
    assert_eq!(instance.other(), before + 1);
}

#[test]
fn an_idle_instance_has_reserved_a_32nd_of_a_tick_at_most() {
    for (sequence_bits, most) in [(1, 1), (5, 1), (8, 8), (12, 64), (53, 64)] {
        assert_eq!(pace::most_checked(&Layout { sequence_bits, ..Layout::NODE }), most);
    }
}

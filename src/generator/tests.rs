//! A generator on a manual clock.

mod caller;
mod waiting;
mod windows;

use std::sync::Arc;

use super::*;
use crate::core::clock::{ManualClock, UnixTime};
use crate::core::layout::Layout;
use crate::core::sequencer::{Block, Stall};

const START: i64 = 1_700_000_000_000;
const POLICIES: Policies = Policies {
    clock_back: ClockBack::Counter,
    max_wait: Duration::from_millis(10),
    random_start: false,
};

impl Caller {
    fn reserve(&self, want: impl Fn(Tick) -> u64) -> Result<Reserved, Stalled> {
        reserve(self, &self.policies, want)
    }

    fn try_reserve(&self, want: impl Fn(Tick) -> u64) -> Result<Reserved, Stalled> {
        self.try_reserve_next(want)
    }
}

/// Reserves as a caller that may wait.
fn reserve(
    generator: &Generator,
    policies: &Policies,
    want: impl Fn(Tick) -> u64,
) -> Result<Reserved, Stalled> {
    let user_page = generator.user_page();
    let attempt = || generator.try_reserve(&user_page, policies, &want);
    let most = want(generator.tick_now());
    generator.waiting(policies, &mut Waits::default(), most, attempt, |reserved| reserved)
}

fn generator(layout: Layout, policies: Policies) -> (Caller, Arc<ManualClock>) {
    ahead(layout, policies, 0)
}

fn ahead(layout: Layout, policies: Policies, max_ahead_ms: i64) -> (Caller, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(START));
    let node = Node::new(layout, 1, 2).unwrap();
    let generator = Generator::new(node, max_ahead_ms, Box::new(clock.clone()));
    (Caller::new(Arc::new(generator), policies), clock)
}

#[test]
fn ids_decode_to_their_node_and_time() {
    let (generator, _) = generator(Layout::NODE, POLICIES);
    let reserved = generator.reserve(|_| 3).unwrap();
    let last = Node::new(Layout::NODE, 1, 2).unwrap().block_of(reserved.first_id + 2).unwrap();
    assert_eq!(Layout::NODE.tick_start_ms(last.tick), START);
    assert_eq!((last.counter, last.first), (0, 2));
}

#[test]
fn an_exhausted_tick_is_waited_for_within_max_wait() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    generator.reserve(|_| 4096).unwrap();
    let next = generator.reserve(|_| 1).unwrap();
    assert_eq!(clock.now().ms, START + 1);
    assert_eq!(next.block.first, 0);
    assert_eq!((generator.stats().waits, generator.stats().waited), (1, Duration::from_millis(1)));
}

#[test]
fn a_wait_longer_than_max_wait_is_refused_with_the_retry_time() {
    let (generator, clock) =
        generator(Layout { tick_ms: 1000, epoch_ms: START - 250, ..Layout::NODE }, POLICIES);
    generator.reserve(|_| 4096).unwrap();
    let refusal = generator.reserve(|_| 1).unwrap_err();
    assert_eq!(refusal.stall, Stall::SequenceExhausted { until: 1 });
    assert_eq!(refusal.retry_after, Some(Duration::from_millis(750)));
    assert_eq!(clock.now().ms, START, "it did not wait in vain");
}

#[test]
fn each_clock_back_policy_handles_a_rollback() {
    for (clock_back, back_ms, goes_on) in [
        (ClockBack::Counter, 5000, true),
        (ClockBack::Wait, 9, true),
        (ClockBack::Wait, 10, false),
        (ClockBack::Throw, 1, false),
    ] {
        let (generator, clock) = generator(Layout::NODE, Policies { clock_back, ..POLICIES });
        generator.reserve(|_| 4096).unwrap();
        clock.set(START - back_ms);
        let answer = generator.reserve(|_| 1);
        assert_eq!(answer.is_ok(), goes_on, "{clock_back:?} {back_ms}");
        let waited = clock.now().ms - (START - back_ms);
        assert_eq!(waited > 0, goes_on && clock_back == ClockBack::Wait, "{clock_back:?}");
        if let Err(refusal) = answer {
            let caught_up = Duration::from_millis(back_ms as u64 + 1);
            assert_eq!(refusal.retry_after, Some(caught_up));
        }
    }
}

#[test]
fn a_rollback_is_reported_once_with_its_length_and_counter() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    generator.reserve(|_| 1).unwrap();
    clock.set(START - 7);
    generator.reserve(|_| 1).unwrap();
    assert!(generator.has_rollback_to_report());
    assert_eq!(
        generator.take_rollback(),
        Some(Rollback { back_ms: 7, counter: 1, is_refused: false, unreported: 0 })
    );
    generator.reserve(|_| 1).unwrap();
    assert!(!generator.has_rollback_to_report());
    assert_eq!(generator.take_rollback(), None);
    assert_eq!(generator.stats().rollbacks, 1);
}

/// A clock that shows an earlier ms at every second reading.
#[derive(Default)]
struct FlickeringClock {
    readings: AtomicI64,
    is_known: bool,
}

impl Clock for FlickeringClock {
    fn now(&self) -> UnixTime {
        UnixTime::from_ms(START - self.readings.fetch_add(1, Relaxed) % 2)
    }

    fn wait(&self, _: Duration) {}

    fn may_flicker(&self) -> bool {
        self.is_known
    }
}

/// Reserves at the later ms, then at the earlier one. Returns the second block, and the number of clock readings.
fn drawn_while_flickering(clock_back: ClockBack, is_known: bool) -> (Result<Block, Stall>, i64) {
    let clock = Arc::new(FlickeringClock { is_known, ..FlickeringClock::default() });
    let node = Node::new(Layout::NODE, 1, 2).unwrap();
    let generator = Generator::new(node, 0, Box::new(clock.clone()));
    let policies = Policies { clock_back, ..POLICIES };
    let draw = || generator.try_reserve(&generator.user_page(), &policies, |_| 1);
    draw().unwrap();
    let drawn = draw().map(|reserved| reserved.block).map_err(|refusal| refusal.stall);
    (drawn, clock.readings.load(Relaxed))
}

#[test]
fn a_clock_that_may_flicker_is_read_again_before_a_rollback_counts() {
    let now = Layout::NODE.tick_at(START);
    for clock_back in [ClockBack::Counter, ClockBack::Throw] {
        let continued = (Ok(Block { tick: now, counter: 0, first: 1, len: 1 }), 3);
        // A thread that is stopped for longer than `RECHECK_TIME` does not read the clock again.
        let mut tries = (0..100).map(|_| drawn_while_flickering(clock_back, true));
        assert!(tries.any(|drawn| drawn == continued), "{clock_back:?}");
    }
    let raised = Ok(Block { tick: now - 1, counter: 1, first: 0, len: 1 });
    assert_eq!(drawn_while_flickering(ClockBack::Counter, false), (raised, 2));
    let behind = Err(Stall::ClockBehind { until: now + 1 });
    assert_eq!(drawn_while_flickering(ClockBack::Throw, false), (behind, 2));
}

#[test]
fn a_refused_rollback_counts_once_for_all_tries() {
    let (generator, clock) =
        generator(Layout::NODE, Policies { clock_back: ClockBack::Throw, ..POLICIES });
    generator.reserve(|_| 1).unwrap();
    clock.set(START - 500);
    for _ in 0..5 {
        generator.reserve(|_| 1).unwrap_err();
    }
    assert_eq!(
        generator.take_rollback(),
        Some(Rollback { back_ms: 500, counter: 0, is_refused: true, unreported: 0 })
    );
    assert_eq!(generator.stats().rollbacks, 1);
    clock.set(START + 1);
    generator.reserve(|_| 1).unwrap();
    clock.set(START);
    generator.reserve(|_| 1).unwrap_err();
    assert_eq!(generator.stats().rollbacks, 2, "after an ID it is another one");
}

/// A storm: if it takes 10 seconds, another report is due.
#[test]
#[ignore = "a storm: npm run storms -- rust"]
fn a_clock_that_keeps_rolling_back_is_reported_ten_times_and_always_counted() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    let mut reports = 0;
    for step in 0..100 {
        clock.set(START + step * 10);
        generator.reserve(|_| 1).unwrap();
        clock.set(START + step * 10 - 5);
        generator.reserve(|_| 1).unwrap();
        reports += u32::from(generator.take_rollback().is_some());
    }
    assert_eq!((reports, generator.stats().rollbacks), (10, 100));
}

#[test]
fn ids_given_back_are_not_counted_as_issued() {
    let (generator, _) = generator(Layout::NODE, POLICIES);
    let first = generator.reserve(|_| 256).unwrap();
    generator.give_back(&first.block, 255);
    assert_eq!(generator.stats().issued, 1);
    let reserved = generator.reserve(|_| 9).unwrap();
    assert_eq!(reserved.first_id, first.first_id + 1);
    assert_eq!(reserved.shortened(&generator, 9), reserved);
    let block = Block { len: 4, ..reserved.block };
    assert_eq!(reserved.shortened(&generator, 4), Reserved { block, ..reserved });
    assert_eq!(generator.reserve(|_| 1).unwrap().first_id, reserved.first_id + 4);
}

#[test]
fn there_is_no_wait_past_the_last_tick() {
    let (generator, clock) = generator(Layout::NODE, POLICIES);
    clock.set(Layout::NODE.end_ms());
    let refusal = generator.reserve(|_| 1).unwrap_err();
    assert_eq!((refusal.stall, refusal.retry_after), (Stall::TimeEnded, None));
    clock.set(Layout::NODE.end_ms() - 2);
    let last = Layout::NODE.last_tick();
    // A caller that waits for a tick gets a share of it.
    for (tick, len) in [(last - 1, 4096), (last, 256), (last, 3840)] {
        let block = generator.reserve(|_| 4096).unwrap().block;
        assert_eq!((block.tick, block.len), (tick, len));
    }
    let refusal = generator.reserve(|_| 1).unwrap_err();
    assert_eq!(refusal.retry_after, None, "the tick used up was the last");
    assert_eq!(clock.now().ms, Layout::NODE.end_ms() - 1);
}

//! What needs no search: claims, damage, limits, and what a caller waits for.

use super::super::*;
use super::fleet::{Deed, EPOCH, Fleet, HOUR, MINUTE, Network, PLAN, Plan, SECOND};
use crate::core::layout::Tick;

const ONE: Plan = Plan { processes: 1, worker_bits: 5, ..PLAN };
/// The tick when a fleet begins.
const START: Tick = 1000 * HOUR;
const BUCKET: Key = Key::Bucket(0, 0);

/// A bucket, to be changed: it has another token.
fn bucket(fleet: &mut Fleet, key: Key) -> &mut Bucket {
    match fleet.records.get_mut(&key) {
        Some((token, Record::Bucket(bucket))) => {
            *token = Token(token.0 ^ 1);
            bucket
        }
        other => panic!("{other:?}"),
    }
}

fn namespace(fleet: &mut Fleet) -> &mut Namespace {
    match fleet.records.get_mut(&Key::Namespace) {
        Some((token, Record::Namespace(namespace))) => {
            *token = Token(token.0 ^ 1);
            namespace
        }
        other => panic!("{other:?}"),
    }
}

/// A fleet whose first host has started.
fn started(plan: Plan, until: i64) -> Fleet {
    let mut fleet = Fleet::new(plan);
    fleet.plan(0, Deed::SetClock(0, 0));
    fleet.plan(0, Deed::Boot(0));
    fleet.run(until);
    fleet
}

fn refusals(fleet: &Fleet) -> Vec<&Refusal> {
    let reports = fleet.log.iter().map(|(.., report)| report);
    reports
        .filter_map(|report| match report {
            Report::Refused(why) => Some(why),
            _ => None,
        })
        .collect()
}

#[test]
fn a_line_beyond_the_horizon_and_an_hour_is_named_and_not_used() {
    let mut fleet = started(Plan { hosts: 2, worker_bits: 0, size: 1, ..ONE }, SECOND);
    fleet.plan(2 * SECOND, Deed::Reboot(0, HOUR));
    fleet.run(3 * SECOND);
    let highest = START + 3 * SECOND + 60_000 + HOUR;
    bucket(&mut fleet, BUCKET).lines.values_mut().for_each(|line| line.ceiling = highest + 30_000);
    fleet.plan(3 * SECOND, Deed::Boot(1));
    fleet.run(5 * SECOND);
    assert_eq!(refusals(&fleet), [&Refusal::NoSlot(vec![(0, None)])]);
    // With another line, that one is used.
    let mut fleet = started(Plan { hosts: 2, worker_bits: 1, size: 2, ..ONE }, SECOND);
    let (first, _) = fleet.window(0).unwrap();
    let line = bucket(&mut fleet, BUCKET).lines.remove(&first).unwrap();
    let text = format!("{} no line", 1 - first);
    bucket(&mut fleet, BUCKET).damaged.insert(1 - first, text.clone());
    bucket(&mut fleet, BUCKET).lines.insert(first, line);
    fleet.plan(SECOND, Deed::Boot(1));
    fleet.run(2 * SECOND);
    assert!(fleet.window(1).is_none());
    // A damaged line stays when others of its record are written.
    fleet.run(MINUTE);
    assert!(fleet.issues(0));
    assert_eq!(bucket(&mut fleet, BUCKET).damaged[&(1 - first)], text);
}

#[test]
fn a_floor_beyond_the_horizon_refuses_takes_by_name() {
    let mut fleet = started(Plan { hosts: 2, ..ONE }, SECOND);
    let floor = START + 2 * HOUR;
    namespace(&mut fleet).floor = floor;
    fleet.plan(SECOND, Deed::Boot(1));
    fleet.run(2 * MINUTE);
    assert_eq!(refusals(&fleet)[0], &Refusal::Ahead(Key::Namespace, floor));
    assert!(fleet.issues(0), "a holder goes on");
    // The same of a bucket's.
    namespace(&mut fleet).floor = -1;
    bucket(&mut fleet, BUCKET).floor = floor;
    fleet.log.clear();
    fleet.plan(2 * MINUTE, Deed::Boot(1));
    fleet.run(3 * MINUTE);
    assert_eq!(refusals(&fleet)[0], &Refusal::Ahead(BUCKET, floor));
}

#[test]
fn an_unreadable_record_is_named_and_concerns_its_bucket_alone() {
    let mut fleet = started(Plan { hosts: 3, worker_bits: 6, ..ONE }, SECOND);
    let (worker, _) = fleet.window(0).unwrap();
    let other = Key::Bucket(0, 1 - worker / 32);
    fleet.unreadable.insert(other, Unreadable::Format);
    for host in 1..3 {
        fleet.plan(SECOND, Deed::Boot(host));
    }
    fleet.run(5 * SECOND);
    assert_eq!(fleet.open(), 3);
    let mut fleet = Fleet::new(ONE);
    fleet.unreadable.insert(BUCKET, Unreadable::Line(3));
    fleet.plan(0, Deed::Boot(0));
    fleet.run(SECOND);
    assert_eq!(refusals(&fleet), [&Refusal::Unreadable(BUCKET, Unreadable::Line(3))]);
}

#[test]
fn no_line_is_added_to_a_record_that_damaged_ones_fill() {
    let mut fleet = started(Plan { hosts: 2, ..ONE }, SECOND);
    let (worker, _) = fleet.window(0).unwrap();
    let damaged = (worker + 1) % 32;
    let line = format!("{damaged} held {}", "x".repeat(16_100));
    let bucket = bucket(&mut fleet, BUCKET);
    bucket.damaged.insert(damaged, line);
    let bytes = bucket.text().len();
    assert!(Bucket::of_text(&bucket.text()).is_ok());
    fleet.plan(SECOND, Deed::Boot(1));
    fleet.run(MINUTE);
    let refusal = Refusal::Unreadable(BUCKET, Unreadable::Long(bytes));
    assert!(refusals(&fleet).first() == Some(&&refusal), "{:?}", fleet.log);
    assert!(fleet.issues(0), "each holder of one renews it");
}

#[test]
fn a_namespace_of_another_layout_is_refused_at_once() {
    let patience = Patience { wait: HOUR, call: 5000 };
    let mut fleet = started(Plan { hosts: 2, patience, ..ONE }, SECOND);
    let layout = namespace(&mut fleet).layout;
    namespace(&mut fleet).layout.sequence_bits += 1;
    let other = namespace(&mut fleet).layout;
    assert_ne!(layout, other);
    fleet.plan(SECOND, Deed::Boot(1));
    fleet.run(2 * SECOND);
    assert_eq!(refusals(&fleet), [&Refusal::Layout(other)]);
}

/// The second process claims what the first one holds.
fn claimed(wait: i64) -> Fleet {
    let patience = Patience { wait, call: 5000 };
    // Two hosts of one claim: that of host 0.
    let plan = Plan { hosts: 2, worker_bits: 0, size: 1, patience, ..ONE };
    let mut fleet = started(plan, SECOND);
    fleet.plan(SECOND, Deed::Boot(1));
    fleet
}

#[test]
fn a_claim_waits_for_its_worker_id_and_is_refused_with_the_holder() {
    let mut fleet = claimed(10 * SECOND);
    fleet.run(11 * SECOND + SECOND / 2);
    let expected = Refusal::NoSlot(vec![(0, Some(Holder::default()))]);
    assert_eq!(*refusals(&fleet).last().unwrap(), &expected);
    assert_eq!(fleet.counts.ends.values().sum::<u64>(), 1);
    // One that is released meanwhile, and calls that fail.
    let mut fleet = claimed(MINUTE);
    fleet.plan(2 * SECOND, Deed::Reach(Network::Refused));
    fleet.plan(10 * SECOND, Deed::Reach(Network::Fine(2)));
    fleet.plan(15 * SECOND, Deed::Restart(0, HOUR));
    fleet.run(17 * SECOND);
    assert!(fleet.issues(1), "{:?}", fleet.log);
    // The holder's alone has ended.
    assert_eq!(fleet.counts.ends.values().sum::<u64>(), 1, "{:?}", fleet.counts.ends);
    // One whose holder has died.
    let mut fleet = claimed(MINUTE);
    fleet.plan(2 * SECOND, Deed::Reboot(0, HOUR));
    fleet.run(50 * SECOND);
    assert!(fleet.issues(1), "{:?}", fleet.log);
}

#[test]
fn a_stopped_process_keeps_the_lock_for_as_long_as_a_take_may_last() {
    let patience = Patience { wait: 0, call: 500 };
    let mut fleet = Fleet::new(Plan { processes: 2, patience, ..ONE });
    fleet.plan(0, Deed::Reach(Network::Fine(100)));
    fleet.plan(0, Deed::Boot(0));
    fleet.run(0);
    // Both read the namespace; the first one to have the lock is stopped.
    let mut stopped = None;
    for ms in 1..2000 {
        fleet.run(ms);
        stopped = stopped.or(fleet.lock(0));
        if let Some(process) = stopped {
            fleet.plan(ms, Deed::Stop(process, MINUTE));
            break;
        }
    }
    let stopped = stopped.unwrap();
    fleet.run(6 * SECOND);
    let is_broken = |(_, id, report): &&(i64, usize, Report<usize>)| {
        *id != stopped && *report == Report::Unlocked
    };
    let (broken, ..) = fleet.log.iter().find(is_broken).unwrap();
    assert!((2000..2500).contains(broken), "after {broken} ms");
    assert!(
        fleet.log.iter().any(|(_, id, report)| *id != stopped && matches!(report, Report::Open(_)))
    );
    fleet.run(2 * MINUTE);
    assert!(fleet.issues(0));
}

#[test]
fn a_store_that_does_not_keep_what_is_written_is_given_up() {
    let mut fleet = started(ONE, SECOND);
    fleet.forgets_writes = true;
    fleet.plan(SECOND, Deed::Restart(0, 3 * SECOND));
    fleet.run(3 * MINUTE);
    assert!(fleet.log.iter().any(|(.., report)| *report == Report::Unsettled), "{:?}", fleet.log);
    assert!(fleet.calls() < 5000, "{} calls", fleet.calls());
}

#[test]
fn a_suspended_machine_issues_again_at_once() {
    for tells_time in [true, false] {
        let mut fleet = started(Plan { tells_time, ..ONE }, MINUTE);
        // The wall clock has gone on, the monotonic clock has not.
        fleet.plan(MINUTE, Deed::Suspend(0, HOUR));
        fleet.run(MINUTE + 1);
        assert!(!fleet.issues(0));
        fleet.want(0);
        fleet.run(MINUTE + 200);
        assert!(fleet.issues(0), "{tells_time} {:?} {:?}", fleet.window(0), fleet.log.last());
    }
}

#[test]
fn a_restored_machine_takes_another_slot_and_frees_none() {
    let mut fleet = started(Plan { processes: 3, worker_bits: 1, size: 2, ..ONE }, 15 * SECOND);
    let (worker, _) = fleet.window(0).unwrap();
    let line = bucket(&mut fleet, BUCKET).lines[&worker].clone();
    fleet.restore(1);
    assert!(!fleet.issues(0), "at once, and for all processes");
    fleet.run(17 * SECOND);
    assert_eq!(fleet.window(0).unwrap().0, 1 - worker);
    assert!(fleet.issues(0));
    assert_eq!(bucket(&mut fleet, BUCKET).lines[&worker], line);
    assert_eq!(fleet.counts.losses, [("Restored".to_owned(), 3)].into());
}

#[test]
fn a_restored_machine_waits_for_what_its_original_holds() {
    let mut fleet = started(Plan { worker_bits: 0, size: 1, ..ONE }, 15 * SECOND);
    let (_, window) = fleet.window(0).unwrap();
    fleet.restore(0);
    let mut at = 15 * SECOND;
    while !fleet.issues(0) && at < 2 * MINUTE {
        at += SECOND;
        fleet.run(at);
    }
    assert!((40 * SECOND..MINUTE).contains(&at), "as long as the line is held: {at}");
    assert!(fleet.window(0).unwrap().1.floor >= window.ceiling);
    assert!(matches!(refusals(&fleet)[0], Refusal::NoSlot(_)));
}

#[test]
fn a_restored_machine_goes_by_no_reply_of_before() {
    // A take, at each of its calls.
    for at in 0..80 {
        let (seed, tells_time) = (at as u64, at % 2 == 0);
        let mut fleet = Fleet::new(Plan { worker_bits: 1, size: 2, seed, tells_time, ..ONE });
        fleet.plan(0, Deed::Reach(Network::Fine(10)));
        fleet.plan(0, Deed::SetClock(0, 0));
        fleet.plan(0, Deed::Boot(0));
        // An hour passes that the monotonic clock does not see: what the reply says of the store's clock is old.
        fleet.plan(at, Deed::Suspend(0, HOUR));
        fleet.run(at);
        let before = bucket_lines(&fleet);
        fleet.restore(0);
        fleet.run(2 * SECOND);
        assert!(fleet.issues(0), "{at} {:?}", fleet.log);
        let held = bucket_lines(&fleet);
        assert!(before.iter().all(|line| held.contains(line)), "{at} {before:?} {held:?}");
    }
}

fn bucket_lines(fleet: &Fleet) -> Vec<Line> {
    match fleet.records.get(&BUCKET) {
        Some((_, Record::Bucket(bucket))) => bucket.lines.values().cloned().collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_release_raises_no_ceiling() {
    let mut fleet = started(ONE, SECOND);
    // Whoever opens now begins above its ceiling.
    namespace(&mut fleet).floor = START + 10 * MINUTE;
    fleet.plan(SECOND, Deed::Restart(0, SECOND));
    fleet.run(4 * SECOND);
    let (worker, window) = fleet.window(0).unwrap();
    assert!(window.floor == START + 10 * MINUTE && window.ceiling == window.floor);
    let before = bucket(&mut fleet, BUCKET).lines[&worker].ceiling;
    fleet.plan(5 * SECOND, Deed::Restart(0, HOUR));
    fleet.run(7 * SECOND);
    let line = &bucket(&mut fleet, BUCKET).lines[&worker];
    assert!(!line.is_held && line.ceiling <= before, "{line:?}");
}

#[test]
fn a_clock_that_differs_too_much_gets_no_first_slot() {
    let most = ONE.limits.max_clock_skew;
    for tells_time in [true, false] {
        for (clock, is_refused) in
            [(-most, false), (-most - 11, true), (most, false), (most + 11, true)]
        {
            let patience = Patience { wait: HOUR, call: 5000 };
            let mut fleet = Fleet::new(Plan { patience, tells_time, ..ONE });
            fleet.plan(0, Deed::SetClock(0, clock));
            fleet.plan(0, Deed::Reach(Network::Fine(10)));
            fleet.plan(0, Deed::Boot(0));
            fleet.run(SECOND);
            let refused = refusals(&fleet).len() == 1;
            assert_eq!((fleet.open(), refused), (usize::from(!is_refused), is_refused), "{clock}");
            let is_named = |refusal: &&Refusal| matches!(refusal, Refusal::Clock(skew) if (skew - clock).abs() <= 20);
            assert!(refusals(&fleet).iter().all(is_named), "{:?}", fleet.log);
            let skew = || fleet.driver(0).skew();
            assert!(is_refused || (skew() - clock).abs() <= 20, "{} of {clock}", skew());
        }
    }
    // One that has a slot already keeps it, and gets another one.
    let mut fleet = started(ONE, SECOND);
    fleet.plan(SECOND, Deed::SetStoreClock(HOUR));
    fleet.plan(2 * SECOND, Deed::LosePages(0));
    fleet.run(4 * SECOND);
    assert!(fleet.issues(0), "{:?}", fleet.log);
}

#[test]
fn higher_limits_are_written_before_a_slot_is_taken() {
    let mut fleet = started(Plan { hosts: 2, ..ONE }, SECOND);
    fleet.plan.limits.max_ahead = 60_000;
    fleet.plan(SECOND, Deed::Boot(1));
    fleet.run(2 * SECOND);
    assert_eq!(namespace(&mut fleet).limits.max_ahead, 60_000);
    assert!(fleet.issues(1));
    // Who has lower ones uses its own, and lowers none.
    fleet.plan.limits = Limits { max_ahead: 0, ttl: 20_000, ..fleet.plan.limits };
    fleet.plan(3 * SECOND, Deed::Restart(1, SECOND));
    fleet.run(5 * SECOND);
    let (_, window) = fleet.window(1).unwrap();
    assert!((window.ceiling - START - 24 * SECOND).abs() < SECOND, "{window:?}");
    assert_eq!(namespace(&mut fleet).limits.max_ahead, 60_000);
    assert_eq!(namespace(&mut fleet).limits.ttl, 30_000);
}

#[test]
fn a_release_ends_in_time_whatever_the_store_does() {
    let mut fleet = started(ONE, SECOND);
    fleet.plan(SECOND, Deed::Reach(Network::Silent));
    fleet.run(SECOND + 1);
    fleet.plan(2 * SECOND, Deed::Restart(0, HOUR));
    fleet.run(5 * SECOND);
    assert_eq!(fleet.counts.ends.values().sum::<u64>(), 1, "{:?}", fleet.counts.ends);
    assert_eq!(fleet.open(), 0);
}

#[test]
fn a_search_in_millions_of_worker_ids_is_a_few_calls() {
    let mut fleet = started(Plan { worker_bits: 22, ..ONE }, SECOND);
    assert!(fleet.calls() <= 8, "{} calls", fleet.calls());
    fleet.run(2 * SECOND);
    let mut fleet = Fleet::new(Plan { hosts: 500, worker_bits: 22, ..ONE });
    (0..500).for_each(|host| fleet.plan(host * 20, Deed::Boot(host as usize)));
    fleet.run(20 * SECOND);
    assert_eq!(fleet.open(), 500);
    let text = namespace(&mut fleet).text();
    assert!(text.len() < MOST_BYTES, "{} bytes", text.len());
}

/// How many lines of the bucket are held.
fn held(fleet: &Fleet) -> usize {
    bucket_lines(fleet).iter().filter(|line| line.is_held).count()
}

#[test]
fn what_was_taken_when_a_lease_gives_up_is_freed() {
    let mut taken = 0;
    for seed in 0..100 {
        let mut fleet = Fleet::new(Plan { seed, ..ONE });
        fleet.plan(0, Deed::Boot(0));
        fleet.plan(5 + seed as i64 % 15, Deed::Reach(Network::Lossy(100, 2)));
        fleet.plan(5 * SECOND + 100, Deed::Reach(Network::Fine(2)));
        fleet.run(5 * SECOND);
        let is_open = fleet.open() > 0;
        taken += usize::from(!is_open && held(&fleet) > 0);
        fleet.run(9 * SECOND);
        let ended: u64 = fleet.counts.ends.values().sum();
        assert_eq!((held(&fleet), ended), if is_open { (1, 0) } else { (0, 1) }, "seed {seed}");
    }
    assert!(taken > 5, "{taken}");
}

#[test]
fn what_was_taken_when_a_clock_is_refused_is_freed_in_time() {
    let mut taken = 0;
    for at in 0..60 {
        for (then, held_after) in [(Network::Fine(10), 0), (Network::Silent, 1)] {
            let mut fleet = Fleet::new(Plan { seed: at as u64, ..ONE });
            fleet.plan(0, Deed::SetClock(0, 0));
            fleet.plan(0, Deed::Reach(Network::Fine(10)));
            fleet.plan(0, Deed::Boot(0));
            fleet.plan(at, Deed::SetClock(0, HOUR));
            fleet.run(at);
            while fleet.open() == 0 && refusals(&fleet).is_empty() {
                fleet.run(fleet.time - START + 1);
            }
            if fleet.open() > 0 {
                continue;
            }
            taken += held(&fleet);
            let now = fleet.time - START;
            fleet.plan(now, Deed::Reach(then));
            fleet.run(now + 2 * SECOND);
            assert_eq!(fleet.counts.ends.values().sum::<u64>(), 1, "{at}: {:?}", fleet.log);
            assert!(held(&fleet) <= held_after, "{at}: {:?}", fleet.log);
        }
    }
    assert!(taken > 5, "{taken}");
}

#[test]
fn a_lease_that_is_closed_while_it_opens_holds_nothing() {
    for at in 0..30 {
        for call_ends in [true, false] {
            let mut fleet = Fleet::new(Plan { processes: 2, ..ONE });
            fleet.plan(0, Deed::Boot(0));
            fleet.run(at);
            fleet.close_all(call_ends);
            fleet.run(at + 100);
            assert_eq!(fleet.open(), 0, "{at}");
            fleet.run(3 * SECOND);
            let held = match fleet.records.get(&BUCKET) {
                Some((_, Record::Bucket(bucket))) => bucket.lines.values().any(|line| line.is_held),
                _ => false,
            };
            assert!(!held, "{at} {:?}", fleet.log);
        }
    }
}

#[test]
fn a_clock_far_ahead_asks_for_no_more_than_the_store_s_clock_allows() {
    let mut fleet = started(ONE, SECOND);
    fleet.plan(SECOND, Deed::SetClock(0, HOUR));
    fleet.run(MINUTE);
    let highest = bucket(&mut fleet, BUCKET).lines.values().map(|line| line.ceiling).max();
    let cap = START + MINUTE + 40_000;
    assert!(highest.unwrap() <= cap && highest.unwrap() > cap - 15_000, "{highest:?}");
}

/// When processes reported renewals, ms after the start.
fn renewals(fleet: &Fleet) -> Vec<i64> {
    let renewed = fleet.log.iter().filter(|(.., report)| *report == Report::Renewed);
    renewed.map(|(at, ..)| *at).collect()
}

#[test]
fn a_lease_is_renewed_at_a_third_of_its_ttl() {
    let mut fleet = started(ONE, MINUTE + SECOND);
    let renewed = renewals(&fleet);
    assert_eq!(renewed.len(), 7, "{renewed:?}");
    assert!(
        renewed.windows(2).all(|pair| (10_000..10_010).contains(&(pair[1] - pair[0]))),
        "{renewed:?}"
    );
    assert!(fleet.counts.events < 50, "{} events", fleet.counts.events);
    let line = bucket(&mut fleet, BUCKET).lines.values().next().unwrap().clone();
    assert!((line.expires - line.ceiling - EPOCH).abs() < 10, "{line:?}");
    assert!((line.ceiling - START - 90_000).abs() < 100, "{line:?}");
}

#[test]
fn where_replies_lack_the_store_s_time_it_is_read_before_a_slot_is_taken_and_once_an_hour() {
    let limits = Limits { ttl: 30 * MINUTE, ..ONE.limits };
    let mut fleet = started(Plan { tells_time: false, limits, ..ONE }, 50 * MINUTE);
    assert_eq!(fleet.counts.nows, 1);
    fleet.run(70 * MINUTE);
    assert_eq!(fleet.counts.nows, 2);
    assert!(fleet.issues(0));
}

/// Another host has a host's line from now on.
fn steal(fleet: &mut Fleet, host: usize) {
    let (worker, _) = fleet.window(host).unwrap();
    let time = fleet.time + EPOCH;
    let line = bucket(fleet, BUCKET).lines.get_mut(&worker).unwrap();
    (line.owner, line.token, line.floor) = (Token(77), Token(78), line.ceiling);
    (line.ceiling, line.expires) = (line.ceiling + 10 * MINUTE, time + 10 * MINUTE);
}

#[test]
fn a_namespace_that_is_gone_when_a_holder_needs_another_slot_was_lost() {
    for is_created_anew in [false, true] {
        let mut fleet = started(Plan { worker_bits: 1, size: 2, ..ONE }, SECOND);
        let (worker, window) = fleet.window(0).unwrap();
        steal(&mut fleet, 0);
        while !fleet.log.iter().any(|(.., report)| matches!(report, Report::Lost(_))) {
            fleet.run(fleet.time - START + 1);
        }
        let fresh = Namespace {
            id: Token(99),
            created: Ranges::default(),
            ..namespace(&mut fleet).clone()
        };
        fleet.records.clear();
        if is_created_anew {
            // As by a holder that had none before.
            fleet.records.insert(Key::Namespace, (Token(98), Record::Namespace(fresh)));
        }
        fleet.run(2 * MINUTE);
        let (next, opened) = fleet.window(0).unwrap();
        assert!(opened.floor > window.ceiling, "worker {worker}, then {next} {opened:?}");
    }
}

#[test]
fn a_line_that_cannot_be_read_ends_its_own_holder_alone() {
    let mut fleet = started(Plan { hosts: 2, ..ONE }, SECOND);
    fleet.plan(SECOND, Deed::Boot(1));
    fleet.run(2 * SECOND);
    let [damaged, kept] = [0, 1].map(|host| fleet.window(host).unwrap().0);
    let text = format!("{damaged} of a newer version");
    bucket(&mut fleet, BUCKET).lines.remove(&damaged);
    bucket(&mut fleet, BUCKET).damaged.insert(damaged, text.clone());
    fleet.run(3 * MINUTE);
    assert!(fleet.issues(0) && fleet.window(0).unwrap().0 != damaged);
    assert!(fleet.issues(1) && fleet.window(1).unwrap().0 == kept);
    assert_eq!(bucket(&mut fleet, BUCKET).damaged[&damaged], text, "it stays");
    assert_eq!(fleet.counts.losses.values().sum::<u64>(), 1, "{:?}", fleet.counts.losses);
}

#[test]
fn a_lost_call_stops_no_ids_though_a_ttl_is_shorter_than_a_call_may_take() {
    for ttl in [1000, 2000, 3000] {
        let limits = Limits { ttl, max_clock_skew: 500, max_ahead: 0 };
        // Two of a record: so one reads before it renews.
        let mut fleet = started(Plan { hosts: 2, limits, ..ONE }, 100);
        fleet.plan(100, Deed::Boot(1));
        fleet.run(3 * ttl);
        // What is called within some ms of a renewal is lost, or its reply is.
        for at in 0..200 {
            let at = 3 * ttl + at * (ttl + 41);
            fleet.plan(at, Deed::Reach(Network::Lossy(100, 0)));
            fleet.plan(at + 60, Deed::Reach(Network::Fine(2)));
        }
        for at in (3 * ttl..200 * ttl).step_by(10) {
            fleet.run(at);
            assert!(fleet.issues(0) && fleet.issues(1), "a ttl of {ttl}, after {at} ms");
        }
        assert!(fleet.counts.losses.is_empty());
        let failed = fleet.log.iter().filter(|(.., report)| *report == Report::Failed).count();
        assert!(failed > 5, "{failed} calls were lost");
    }
}

#[test]
fn a_store_that_does_not_keep_what_is_written_refuses_a_lease_in_bounded_calls() {
    let mut fleet = Fleet::new(ONE);
    fleet.forgets_writes = true;
    fleet.plan(0, Deed::Boot(0));
    fleet.run(5 * SECOND);
    assert!(fleet.log.iter().any(|(.., report)| *report == Report::Unsettled), "{:?}", fleet.log);
    assert!(fleet.calls() < 400, "{} calls", fleet.calls());
}

#[test]
fn a_lease_that_fails_again_and_again_makes_few_calls_a_second() {
    type Break = fn(&mut Fleet);
    let breaks: [(&str, Break, u64); 5] = [
        ("whose slots are all held", |fleet| [0, 1].into_iter().for_each(|at| steal(fleet, at)), 0),
        ("that fails at once", |fleet| fleet.plan(MINUTE, Deed::Reach(Network::Refused)), 2),
        (
            "whose namespace cannot be read",
            |fleet| {
                fleet.records.clear();
                fleet.unreadable.insert(Key::Namespace, Unreadable::Format);
            },
            2,
        ),
        (
            "whose bucket cannot be read",
            |fleet| {
                fleet.unreadable.insert(BUCKET, Unreadable::Format);
            },
            4,
        ),
        ("that forgets each write", |fleet| fleet.forgets_writes = true, 8),
    ];
    for (what, break_store, most) in breaks {
        let patience = Patience { wait: HOUR, call: 5000 };
        let plan = Plan { hosts: 2, worker_bits: 1, size: 2, patience, ..ONE };
        let mut fleet = started(plan, SECOND);
        fleet.plan(SECOND, Deed::Boot(1));
        fleet.run(MINUTE);
        break_store(&mut fleet);
        fleet.run(2 * MINUTE);
        let before = fleet.calls();
        fleet.run(3 * MINUTE);
        let rate = (fleet.calls() - before) / 60;
        assert!(rate <= most + 1, "a store {what}: {rate} calls a second");
    }
}

#[test]
fn each_host_gets_the_worker_id_that_its_store_assigns() {
    for size in [1, 8] {
        let mut fleet = started(Plan { hosts: 12, claims: true, size, ..ONE }, 0);
        (1..12).for_each(|host| fleet.plan(0, Deed::Boot(host)));
        fleet.run(5 * SECOND);
        assert!((0..12).all(|host| fleet.worker(host) == Some(host as u64)));
    }
    // A page of its host that has another one is not joined.
    let mut fleet = started(Plan { processes: 2, seed: 2, ..ONE }, SECOND);
    assert!(fleet.worker(0) > Some(0) && fleet.worker(1) == fleet.worker(0));
    fleet.plan.claims = true;
    fleet.plan(SECOND, Deed::Kill(1));
    fleet.run(5 * SECOND);
    assert!(fleet.worker(0) > Some(0) && fleet.worker(1) == Some(0));
}

#[test]
fn a_page_that_was_renewed_in_another_time_namespace_is_renewed_in_time() {
    let mut fleet = started(Plan { processes: 2, ..ONE }, MINUTE + SECOND);
    fleet.renew_ahead(0, HOUR);
    fleet.want(0);
    for second in 61..300 {
        fleet.run(second * SECOND);
        assert!(fleet.issues(0), "after {second} s");
    }
}

#[test]
fn a_directory_s_lease_is_renewed_at_two_fifths_of_its_ttl() {
    let renewed = renewals(&started(Plan { has_own_clock: true, ..ONE }, MINUTE));
    let is_usual = |pair: &[i64]| (12_000..12_010).contains(&(pair[1] - pair[0]));
    assert!(renewed.len() == 5 && renewed.windows(2).all(is_usual), "{renewed:?}");
}

/// A fleet of one worker ID whose holder has died, and whose line expires after 30 s. Then another host waits for it.
fn deserted(has_own_clock: bool, wait: i64) -> Fleet {
    let patience = Patience { wait, call: 5000 };
    let plan = Plan { hosts: 2, worker_bits: 0, size: 1, patience, has_own_clock, ..ONE };
    let mut fleet = started(plan, SECOND);
    fleet.plan(SECOND, Deed::Reboot(0, HOUR));
    fleet.plan(SECOND, Deed::SetClock(1, 0));
    fleet
}

fn only_line(fleet: &mut Fleet) -> &mut Line {
    bucket(fleet, BUCKET).lines.get_mut(&0).unwrap()
}

#[test]
fn a_dead_holder_s_line_is_taken_after_its_expiry_by_clocks_that_agree_or_half_a_ttl_of_watching() {
    for (has_own_clock, begins, later, taken) in [
        // More than the skew of 10 s after the expiry.
        (false, 42, 0, 42),
        (false, 32, 0, 40),
        (false, 32, 6000, 46),
        (false, 32, HOUR, 47),
        (true, 42, 0, 57),
        (true, 32, 0, 47),
        (true, 32, HOUR, 47),
    ] {
        let mut fleet = deserted(has_own_clock, HOUR);
        fleet.plan(begins * SECOND, Deed::Boot(1));
        fleet.run(2 * SECOND);
        only_line(&mut fleet).expires += later;
        fleet.run(taken * SECOND - 100);
        assert!(!fleet.issues(1), "{has_own_clock} {begins} {later}");
        fleet.run((taken + 2) * SECOND);
        assert!(fleet.issues(1), "{has_own_clock} {begins} {later} {:?}", fleet.log);
    }
}

#[test]
fn who_watches_a_line_waits_for_a_ttl_at_most() {
    let mut fleet = deserted(false, 0);
    fleet.plan(31 * SECOND, Deed::Boot(1));
    for second in 31..60 {
        fleet.run(second * SECOND);
        assert!(fleet.counts.ends.is_empty(), "after {second} s");
        // Its holder lives, and its clock is late.
        let expires = EPOCH + fleet.time;
        let line = only_line(&mut fleet);
        (line.token, line.expires) = (Token(second as u64), expires);
    }
    fleet.run(63 * SECOND);
    assert_eq!((fleet.open(), fleet.counts.ends.len()), (0, 1));
}

#[test]
fn in_a_directory_a_slot_whose_ids_begin_later_comes_after_all_others() {
    for claims in [false, true] {
        let plan = Plan { worker_bits: 1, size: 1, has_own_clock: true, claims, ..ONE };
        let mut fleet = started(plan, SECOND);
        // It restarts. Meanwhile its IDs begin so many minutes after the start, by worker ID.
        for (at, minutes, soonest) in [(1, [30, 0], 1), (2, [30, 10], 1), (3, [10, 20], 0)] {
            fleet.plan(at * MINUTE, Deed::Restart(0, 10 * SECOND));
            fleet.run(at * MINUTE + 5 * SECOND);
            for (worker, minutes) in (0..).zip(minutes).filter(|(_, minutes)| *minutes > 0) {
                if fleet.records.contains_key(&Key::Bucket(0, worker)) {
                    let lines = &mut bucket(&mut fleet, Key::Bucket(0, worker)).lines;
                    lines.get_mut(&worker).unwrap().ceiling = START + minutes * MINUTE;
                }
            }
            fleet.run(at * MINUTE + 15 * SECOND);
            let (worker, _) = fleet.window(0).unwrap();
            assert_eq!(worker, if claims { 0 } else { soonest }, "{minutes:?}");
        }
    }
}

#[test]
fn where_the_process_that_opened_a_page_dies_another_takes_its_line_over_above_what_was_issued() {
    for seed in 0..20 {
        let plan = Plan { processes: 2, worker_bits: 4, size: 2, seed, ..ONE };
        let mut fleet = started(plan, SECOND);
        let (worker, _) = fleet.window(0).unwrap();
        let is_open =
            |(.., report): &&(i64, usize, Report<usize>)| matches!(report, Report::Open(_));
        let (_, opener, _) = *fleet.log.iter().find(is_open).unwrap();
        fleet.plan(SECOND, Deed::Kill(opener));
        fleet.run(14 * SECOND);
        assert!(fleet.issues(0));
        // After half a ttl nobody has renewed it.
        fleet.run(17 * SECOND);
        let (next, window) = fleet.window(0).unwrap();
        let floor = window.floor - START;
        assert!(next == worker && (15 * SECOND..16 * SECOND).contains(&floor), "{seed} {window:?}");
        assert!(fleet.issues(0));
    }
}

#[test]
fn a_take_over_that_others_precede_goes_on_only_where_the_line_is_still_the_page_s() {
    let mut precedes = [0; 3];
    for at in 0..300 {
        let plan = Plan { processes: 2, worker_bits: 1, size: 2, seed: at / 3, ..ONE };
        let mut fleet = started(Plan { claims: true, ..plan }, SECOND);
        let first = bucket_lines(&fleet)[0].owner;
        fleet.plan(SECOND, Deed::Kill(0));
        fleet.plan(SECOND, Deed::Kill(1));
        fleet.plan(2 * SECOND, Deed::Reach(Network::Fine(50)));
        fleet.run(14 * SECOND);
        while fleet.lock(0).is_none() {
            fleet.run(fleet.time - START + 1);
        }
        fleet.run(fleet.time - START + at as i64 % 100);
        if fleet.window(0).is_some() || bucket_lines(&fleet)[0].owner != first {
            continue;
        }
        // It has ended its page. Then another host writes, or a clone of this one.
        let lines = &mut bucket(&mut fleet, BUCKET).lines;
        let line = lines.get_mut(&0).unwrap();
        let (is_other, is_clone) = (at % 3 == 1, at % 3 == 2);
        if is_other || is_clone {
            line.token = Token(78);
            line.owner = if is_other { Token(77) } else { line.owner };
            (line.floor, line.ceiling) = (line.ceiling, line.ceiling + MINUTE);
        }
        precedes[at as usize % 3] += 1;
        fleet.run(20 * SECOND);
        let opened = fleet.window(0);
        assert_eq!(opened.is_some(), !is_other && !is_clone, "{at} {opened:?}");
    }
    assert!(precedes.iter().all(|count| *count > 5), "{precedes:?}");
}

#[test]
fn a_renewal_holds_the_line_and_names_who_renews() {
    let mut fleet = started(ONE, SECOND);
    let (worker, _) = fleet.window(0).unwrap();
    let held = bucket_lines(&fleet)[0].clone();
    // As a directory shows it whose locks are lost, and of a process that has died.
    let line = bucket(&mut fleet, BUCKET).lines.get_mut(&worker).unwrap();
    (line.is_held, line.holder.pid) = (false, 4711);
    fleet.run(15 * SECOND);
    let line = &bucket(&mut fleet, BUCKET).lines[&worker];
    assert_eq!((line.is_held, &line.holder), (true, &held.holder));
}

#[test]
fn who_joins_a_page_that_ends_takes_another_one() {
    let mut joined = 0;
    for at in 0..100 {
        let mut fleet = started(Plan { processes: 2, ..ONE }, SECOND);
        fleet.plan(SECOND, Deed::Reach(Network::Fine(50)));
        fleet.plan(SECOND, Deed::Kill(1));
        fleet.run(2 * SECOND + at);
        let is_joining = fleet.driver(1).machine().has_page() && fleet.worker(1).is_none();
        joined += usize::from(is_joining);
        let now = fleet.time - START;
        fleet.plan(now, Deed::LosePages(0));
        fleet.run(now + 5 * SECOND);
        assert!(fleet.worker(0).is_some() && fleet.worker(0) == fleet.worker(1), "{at}");
        assert!(fleet.calls() < 40, "{} calls", fleet.calls());
    }
    assert!(joined > 5, "{joined}");
}

#[test]
fn a_worker_id_that_cannot_be_used_keeps_nobody_of_a_directory_from_waiting_for_another() {
    for (size, worker_bits) in [(1, 1), (8, 4)] {
        let patience = Patience { wait: MINUTE, call: 5000 };
        let plan = Plan { hosts: 2, worker_bits, size, patience, ..ONE };
        let mut fleet = started(Plan { has_own_clock: size == 1, ..plan }, SECOND);
        let (worker, _) = fleet.window(0).unwrap();
        let key = Key::Bucket(0, worker / size);
        let unreadable = Key::Bucket(0, 1 - worker / size);
        fleet.unreadable.insert(unreadable, Unreadable::Format);
        let line = Line { owner: Token(77), ..bucket(&mut fleet, key).lines[&worker].clone() };
        for other in (worker / size * size..).take(size as usize).filter(|one| *one != worker) {
            bucket(&mut fleet, key).lines.insert(other, line.clone());
        }
        fleet.plan(SECOND, Deed::Boot(1));
        fleet.run(3 * SECOND);
        if size > 1 {
            let refusal = Refusal::Unreadable(unreadable, Unreadable::Format);
            assert_eq!(refusals(&fleet), [&refusal]);
            continue;
        }
        assert!(matches!(refusals(&fleet)[0], Refusal::NoSlot(_)), "{:?}", fleet.log);
        fleet.plan(5 * SECOND, Deed::Restart(0, HOUR));
        fleet.run(10 * SECOND);
        assert!(fleet.issues(1), "{:?}", fleet.log);
    }
}

#[test]
fn a_call_of_a_lease_that_opens_may_take_longer_than_one_of_a_renewal() {
    let limits = Limits { ttl: 1000, max_clock_skew: 500, max_ahead: 0 };
    let patience = Patience { wait: 10 * SECOND, call: 5000 };
    let mut fleet = Fleet::new(Plan { limits, patience, ..ONE });
    fleet.plan(0, Deed::Reach(Network::Fine(400)));
    fleet.plan(0, Deed::Boot(0));
    fleet.run(10 * SECOND);
    let opened = fleet.log.iter().any(|(.., report)| matches!(report, Report::Open(_)));
    assert!(opened, "{:?}", fleet.log);
}

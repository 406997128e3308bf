use std::time::Instant;

use super::chaos::QUIET;
use super::*;
use crate::amount;
use crate::leases::pages;

const SMALL: Plan = Plan {
    hosts: 50,
    processes: 4,
    worker_bits: 6,
    may_forget: true,
    broken: None,
    most_calls: 2000,
    audit: SECOND,
    pause: 5 * MINUTE..25 * MINUTE,
};

/// Hours of faults, and what goes wrong in them. At the end each host only renews.
fn chaos(plan: Plan, seed: u64, length: i64) -> Result<(), Wrong> {
    let start = Instant::now();
    let mut fleet = Fleet::new(plan.clone(), seed);
    for host in 0..plan.hosts {
        let begins = fleet.random.i64(0..MINUTE);
        fleet.plan(begins, Deed::Boot(host));
    }
    fleet.plan_chaos(length);
    let ended = fleet.run_until(length).and_then(|()| {
        let (rate, _) = fleet.rate(length - QUIET / 2, length);
        // A host whose store lagged for longer than its processes wait for each other had two slots for a while.
        let slots = fleet.open_workers().len();
        let is_held = slots == plan.hosts;
        let is_quiet = (rate * 10.0 / slots as f64 - 1.0).abs() < 0.02;
        if is_held && is_quiet { Ok(()) } else { Err(Wrong::Restless((rate * 10.0) as u64)) }
    });
    let (rate, most) = fleet.rate(0, fleet.time - START);
    println!(
        "{} hosts of {}, {:?}, seed {seed}: {ended:?} after {} s: {rate:.1} calls a second, {most} at most; in {:?}\n  {}",
        plan.hosts,
        plan.processes,
        plan.broken,
        (fleet.time - START) / SECOND,
        start.elapsed(),
        fleet.summary()
    );
    ended
}

/// What goes wrong, where a part of the world is broken.
fn finds(broken: Broken) -> Wrong {
    let plan = Plan { broken: Some(broken), ..SMALL };
    let found = (1..20).find_map(|seed| chaos(plan.clone(), seed, 2 * HOUR).err());
    found.unwrap_or_else(|| panic!("{broken:?} was not found"))
}

/// `TESTS_SEED=4711` runs one seed alone, `TESTS_TIMES=100` more of them.
#[test]
fn a_fleet_keeps_its_slots_whatever_fails() {
    for seed in amount::seed().map_or(1..1 + amount::amount(2, 50), |seed| seed..seed + 1) {
        let plan = Plan { may_forget: seed % 2 == 0, ..SMALL };
        assert_eq!(chaos(plan, seed, 2 * HOUR), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_seed_makes_one_world() {
    let end = || {
        let mut fleet = Fleet::new(SMALL, 3);
        (0..SMALL.hosts).for_each(|host| fleet.plan(0, Deed::Boot(host)));
        fleet.plan_chaos(HOUR);
        fleet.run_until(HOUR).expect("nothing goes wrong");
        (fleet.summary(), fleet.records)
    };
    assert_eq!(end(), end());
}

#[test]
fn a_broken_part_is_found() {
    assert!(matches!(finds(Broken::ExpiryIgnored), Wrong::Lost(..) | Wrong::Dark(..)));
    assert!(matches!(finds(Broken::Unconditional), Wrong::Overlap(..)));
    assert!(matches!(finds(Broken::ReleaseFloor), Wrong::Overlap(..)));
    assert!(matches!(finds(Broken::NoPause), Wrong::Storm(..)));
    assert!(matches!(finds(Broken::NoRestart), Wrong::Dark(..)));
    assert!(matches!(finds(Broken::Page(pages::Wrong::NoFloor)), Wrong::Overlap(..)));
    assert!(matches!(
        finds(Broken::Page(pages::Wrong::Unannounced)),
        Wrong::Lost(..) | Wrong::Dark(..)
    ));
}

/// The calls of one host of 16: in the first 9 s, in the first renewal, and after the store was away.
fn calls_of_a_host(broken: Option<Broken>) -> [u64; 3] {
    let mut fleet = Fleet::new(Plan { hosts: 1, processes: 16, broken, ..SMALL }, 1);
    let mut before = 0;
    let mut next = |fleet: &mut Fleet, until: i64| {
        fleet.run_until(until).expect("nothing goes wrong");
        let calls = fleet.calls() - before;
        before += calls;
        calls
    };
    fleet.plan(0, Deed::Boot(0));
    let start = next(&mut fleet, 9 * SECOND);
    let renewal = next(&mut fleet, 18 * SECOND);
    fleet.plan(MINUTE, Deed::Reach(Network::Refused));
    fleet.plan(2 * MINUTE, Deed::Reach(Network::Fine));
    next(&mut fleet, 2 * MINUTE);
    [start, renewal, next(&mut fleet, 2 * MINUTE + 9 * SECOND)]
}

#[test]
fn processes_of_a_host_cost_few_calls() {
    let [start, renewal, back] = calls_of_a_host(None);
    // Ten create the namespace and a slot; to join takes two.
    assert_eq!((start, renewal), (10 + 15 * 2, 1));
    // Each of them has its own renewal to try again.
    assert!(back <= 2 * 16, "{back} calls");
    let [_, renewal, _] = calls_of_a_host(Some(Broken::AllRenew));
    assert!(renewal >= 16, "{renewal} calls");
}

#[test]
fn hosts_that_start_at_once_choose_different_slots() {
    let plan = Plan { hosts: 200, processes: 1, worker_bits: 8, most_calls: u32::MAX, ..SMALL };
    let mut fleet = Fleet::new(plan, 1);
    (0..200).for_each(|host| fleet.plan(0, Deed::Boot(host)));
    (0..200).for_each(|host| fleet.plan(5 * MINUTE, Deed::Reboot(host, MINUTE)));
    fleet.run_until(6 * MINUTE - SECOND).expect("nothing goes wrong");
    let before = fleet.calls();
    fleet.run_until(6 * MINUTE + 9 * SECOND).expect("nothing goes wrong");
    let calls = fleet.calls() - before;
    println!("{calls} calls");
    assert!(calls <= 200 * 10, "{calls} calls");
}

/// The most slots of a host whose page is lost again and again, while calls take long.
fn slots_of_a_host(broken: Option<Broken>) -> usize {
    let mut fleet = Fleet::new(Plan { hosts: 1, processes: 16, broken, ..SMALL }, 1);
    fleet.plan(0, Deed::Reach(Network::Lagging(300)));
    fleet.plan(0, Deed::Boot(0));
    (1..30).for_each(|minute| fleet.plan(minute * MINUTE, Deed::LosePage(0)));
    let slots = (60..30 * 60).map(|second| {
        fleet.run_until(second * SECOND).expect("nothing goes wrong");
        fleet.open_workers().len()
    });
    slots.max().unwrap_or(0)
}

#[test]
fn processes_of_a_host_share_one_slot() {
    assert_eq!(slots_of_a_host(None), 1);
    assert!(slots_of_a_host(Some(Broken::Impatient)) > 1);
}

/// The figures of docs/comparison.md: a fleet that starts at once, renews, restarts in turn, and whose store is away.
fn figures(plan: Plan) {
    let begun = Instant::now();
    let mut fleet = Fleet::new(plan.clone(), 1);
    let show = |what: &str, fleet: &Fleet, from: i64, to: i64| {
        let (rate, most) = fleet.rate(from, to);
        let (ever, held) = fleet.worker_ids();
        println!(
            "{} hosts of {}: {what}: {rate:.0} calls a second for {} s, {most} at most, {ever} worker IDs used, {held} held; in {:?}\n  {}",
            plan.hosts,
            plan.processes,
            (to - from) / SECOND,
            begun.elapsed(),
            fleet.summary()
        );
    };
    for host in 0..plan.hosts {
        fleet.plan(0, Deed::Boot(host));
    }
    fleet.run_until(SECOND).expect("nothing goes wrong");
    let took = fleet.run_until_all_issue().expect("nothing goes wrong") + SECOND;
    println!("all issue after {took} ms");
    show("start", &fleet, 0, took.max(10 * SECOND));
    let steady = took + 5 * MINUTE;
    fleet.run_until(steady + 10 * MINUTE).expect("nothing goes wrong");
    show("steady", &fleet, steady, steady + 10 * MINUTE);

    // A hundredth at a time, each away for 10 s.
    let rolling = steady + 10 * MINUTE;
    for host in 0..plan.hosts {
        let group = (host * 100 / plan.hosts) as i64;
        fleet.plan(rolling + group * 20 * SECOND, Deed::Restart(host, 10 * SECOND));
    }
    let rolled = rolling + 100 * 20 * SECOND;
    fleet.run_until(rolled).expect("nothing goes wrong");
    show("rolling restart", &fleet, rolling, rolled);

    let away = rolled + 10 * MINUTE;
    fleet.plan(away, Deed::Reach(Network::Silent));
    let back = away + HOUR;
    fleet.plan(back, Deed::Reach(Network::Fine));
    fleet.run_until(back).expect("nothing goes wrong");
    show("store away", &fleet, away, back);
    let took = fleet.run_until_all_issue().expect("nothing goes wrong");
    println!("all issue again after {took} ms");
    fleet.run_until(back + 5 * MINUTE).expect("nothing goes wrong");
    show("store back, the first minute", &fleet, back, back + MINUTE);
    show("store back, the fifth minute", &fleet, back + 4 * MINUTE, back + 5 * MINUTE);

    // All slots have been used by then.
    let dark = back + 5 * MINUTE;
    for host in 0..plan.hosts {
        fleet.plan(dark, Deed::Reboot(host, MINUTE));
    }
    fleet.run_until(dark + MINUTE + SECOND).expect("nothing goes wrong");
    let took = fleet.run_until_all_issue().expect("nothing goes wrong") + SECOND;
    println!("all issue after {took} ms");
    show("power back", &fleet, dark + MINUTE, dark + MINUTE + took.max(10 * SECOND));
}

mod searched {
    use super::*;

    const LARGE: Plan = Plan {
        hosts: 1000,
        processes: 16,
        worker_bits: 10,
        most_calls: u32::MAX,
        audit: 5 * SECOND,
        pause: 10 * MINUTE..40 * MINUTE,
        ..SMALL
    };

    #[test]
    #[ignore = "a storm: npm run storms -- search"]
    fn a_thousand_hosts_keep_their_slots_for_a_day() {
        let seed = amount::seed().unwrap_or(1);
        assert_eq!(chaos(LARGE, seed, 24 * HOUR), Ok(()), "seed {seed}");
    }

    #[test]
    #[ignore = "a storm: npm run storms -- search"]
    fn figures_of_a_thousand_hosts() {
        figures(Plan { may_forget: false, ..LARGE });
    }

    #[test]
    #[ignore = "a storm: npm run storms -- search"]
    fn figures_of_ten_thousand_hosts() {
        figures(Plan { hosts: 10_000, processes: 1, worker_bits: 14, may_forget: false, ..LARGE });
    }
}

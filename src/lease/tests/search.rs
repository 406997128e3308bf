//! A search of every state that the machines can reach, breadth first.

use std::cell::Cell;

use super::fingerprint::Fingerprints;
use super::world::{CONFIG, Config, Fault, SEEN, Seen, Snapshot, World};

pub struct Outcome {
    states: usize,
    settled: usize,
    is_whole: bool,
    wrong: Option<String>,
    path: Vec<String>,
    seen: Seen,
}

/// Searches until something goes wrong.
fn explore(config: &Config) -> Outcome {
    SEEN.with_borrow_mut(|seen| seen.clear());
    let first = World::new(config);
    let mut seen = Fingerprints::default();
    seen.insert(first.fingerprint(config));
    // By state: the one before it, and its place among the next ones of that.
    let mut parents: Vec<(u32, u16)> = vec![(0, 0)];
    let mut level = vec![(first, 0_u32)];
    let (mut wrong, mut settled, mut is_whole) = (None, 0, true);
    'levels: while !level.is_empty() {
        let mut below = Vec::new();
        for (world, id) in level {
            let next = world.steps(config, false);
            if next.is_empty() || id % 29 == 0 {
                settled += 1;
                if let Some(why) = world.settle(config) {
                    wrong = Some((why, id));
                    break 'levels;
                }
            }
            for (place, (_, mut after)) in next.into_iter().enumerate() {
                after.tidy(config);
                if !seen.insert(after.fingerprint(config)) {
                    continue;
                }
                let number = parents.len() as u32;
                parents.push((id, place as u16));
                if let Some(why) = after.wrong.take().or_else(|| after.overlap(config)) {
                    wrong = Some((why, number));
                    break 'levels;
                }
                below.push((after, number));
            }
            if parents.len() > config.most {
                is_whole = false;
                break 'levels;
            }
        }
        level = below;
    }
    let path = wrong.as_ref().map_or(Vec::new(), |(_, id)| path(config, &parents, *id));
    let wrong = wrong.map(|(why, _)| why);
    let seen = SEEN.take();
    Outcome { states: parents.len(), settled, is_whole, wrong, path, seen }
}

fn path(config: &Config, parents: &[(u32, u16)], mut id: u32) -> Vec<String> {
    let mut places = Vec::new();
    while id != 0 {
        let (parent, place) = parents[id as usize];
        places.push(place);
        id = parent;
    }
    let mut world = World::new(config);
    let mut path = Vec::new();
    for place in places.into_iter().rev() {
        let (what, after) = world.steps(config, false).swap_remove(place.into());
        world = after;
        world.tidy(config);
        path.push(what);
    }
    path
}

/// Runs a search, and returns what is wrong with it.
fn run(name: &str, config: &Config, must: &[&'static str]) -> Result<usize, String> {
    let begun = std::time::Instant::now();
    let Outcome { states, settled, is_whole, wrong, path, seen } = explore(config);
    let whole = if is_whole { "all" } else { "first" };
    println!("{name}: {whole} {states} states, {settled} settled, {:?}", begun.elapsed());
    if let Some(wrong) = wrong {
        return Err(format!("{name}: {wrong}\n    {}", path.join("\n    ")));
    }
    let missing: Vec<_> = must.iter().filter(|what| !seen.contains(*what)).collect();
    if !missing.is_empty() {
        return Err(format!("{name}: never seen: {missing:?} of {seen:?}"));
    }
    Ok(states)
}

const ONE: Config = Config { is_begun: true, ..CONFIG };
const TWO: Config = Config { hosts: 1, processes: &[2], ..ONE };
const THREE: Config = Config { processes: &[2, 1], ..ONE };
const WIDE: Config = Config { buckets: 2, all: true, ..ONE };
const LINES: Config = Config { size: 2, lines: true, ..ONE };

/// A group, a name, what is searched, and what has to be seen in it.
type Case = (&'static str, String, Config, &'static [&'static str]);

fn cases() -> Vec<Case> {
    use Fault::*;
    let mut cases: Vec<Case> = Vec::new();
    let group = Cell::new("without faults");
    let mut add = |name: &str, most, config: Config, must| {
        cases.push((group.get(), name.to_owned(), Config { most, ..config }, must));
    };
    add(
        "two hosts start",
        20_000,
        Config { is_made: true, may_release: true, ticks: 3, ..CONFIG },
        &["no slot", "renewed", "watched"],
    );
    add(
        "two hosts start without a bucket",
        20_000,
        Config { ticks: 2, ..CONFIG },
        &["no slot", "opens"],
    );
    add(
        "two hosts start without a namespace",
        20_000,
        Config { is_absent: true, ticks: 2, ..CONFIG },
        &["opens", "no slot"],
    );
    add(
        "two hosts start without a namespace, two lines",
        20_000,
        Config { is_absent: true, size: 2, ticks: 1, ..CONFIG },
        &["opens"],
    );
    add(
        "two layouts start without a namespace",
        20_000,
        Config { is_absent: true, has_layouts: true, ticks: 1, faults: &[Late], ..CONFIG },
        &["refused: another layout", "opens"],
    );
    add(
        "a host of two processes starts",
        20_000,
        Config { hosts: 1, processes: &[2], is_absent: true, ticks: 2, is_fine: true, ..CONFIG },
        &["opens"],
    );
    add(
        "two buckets, two hosts start",
        20_000,
        Config { buckets: 2, is_absent: true, ticks: 1, ..CONFIG },
        &["opens"],
    );
    add(
        "two hosts claim a worker",
        20_000,
        Config { buckets: 2, claim: Some(1), is_made: true, may_release: true, ..CONFIG },
        &["no slot", "watched", "released"],
    );
    add(
        "two processes claim a worker, late",
        25_000,
        Config {
            hosts: 1,
            processes: &[2],
            buckets: 2,
            claim: Some(1),
            is_made: true,
            breaks: true,
            ticks: 2,
            faults: &[Late],
            ..CONFIG
        },
        &[
            "does not wait any longer",
            "late write applied",
            "a pending page ended by another process",
        ],
    );
    add(
        "two processes of two start",
        15_000,
        Config { processes: &[2, 1], size: 2, is_made: true, breaks: true, ticks: 1, ..CONFIG },
        &["does not wait any longer"],
    );
    add(
        "two hosts",
        25_000,
        Config { may_release: true, ..ONE },
        &["released low", "no slot", "renewed"],
    );
    add(
        "a host of two processes",
        25_000,
        Config { is_fine: true, may_release: true, ..TWO },
        &["renewed"],
    );
    add("two hosts in one bucket", 20_000, Config { size: 2, ticks: 1, ..ONE }, &["a conflict"]);
    add(
        "a joiner of a page that is renewed all the time",
        25_000,
        Config { hosts: 1, processes: &[3], joins: true, is_fine: true, ticks: 2, ..ONE },
        &["renewed"],
    );
    group.set("one fault");
    let faults: [(&[Fault], &'static [&'static str]); 14] = [
        (&[Lost], &[]),
        (&[Reply], &[]),
        (&[Late], &["late write applied"]),
        (&[Die], &[]),
        (&[Fault::Page], &["page lost"]),
        (&[Reboot], &[]),
        (&[Clone], &[]),
        (&[Revert], &["lost: reverted", "above the namespace floor"]),
        (&[Failover], &["lost: reverted"]),
        (&[Empty], &["lost: reverted", "above the namespace floor"]),
        (&[DeleteNamespace], &["another id", "a bucket above the horizon"]),
        (&[DeleteBucket], &["above the namespace floor"]),
        (&[Recover], &["touched", "lost: reverted"]),
        (&[Restore], &["lost: restored"]),
    ];
    for (faults, must) in faults {
        let name = format!("{:?}", faults[0]);
        let goes_back = matches!(faults[0], Revert | Failover);
        let snapshot = if goes_back { Snapshot::Start } else { Snapshot::None };
        let before = if goes_back { Snapshot::Before } else { Snapshot::None };
        add(
            &format!("two hosts, {name}"),
            if goes_back { 170_000 } else { 25_000 },
            Config { may_release: true, faults, snapshot, ..ONE },
            must,
        );
        add(
            &format!("a host of two processes, {name}"),
            8000,
            Config { may_release: true, ticks: 2, faults, ..TWO },
            &[],
        );
        add(
            &format!("two buckets, {name}"),
            8000,
            Config {
                may_release: true,
                restarts: true,
                ticks: 2,
                faults,
                snapshot: before,
                ..WIDE
            },
            &[],
        );
        add(
            &format!("two lines, {name}"),
            8000,
            Config { ticks: 2, faults, snapshot, ..LINES },
            &[],
        );
    }
    group.set("clocks");
    add(
        "two hosts, a clock ahead",
        25_000,
        Config { ticks: 4, faults: &[Jump], jumps: &[4], ..ONE },
        &["watched", "jumped"],
    );
    add(
        "two hosts, a clock back",
        25_000,
        Config { ticks: 4, faults: &[Jump], jumps: &[-4], ..ONE },
        &["watched", "jumped"],
    );
    add(
        "two hosts, a clock within the skew",
        15_000,
        Config { may_release: true, faults: &[Jump], jumps: &[1], ..ONE },
        &["jumped"],
    );
    add(
        "a host restarts and claims, a clock back",
        15_000,
        Config {
            hosts: 1,
            processes: &[1],
            claim: Some(0),
            faults: &[Jump, Reboot],
            jumps: &[-3],
            ..ONE
        },
        &["watched", "taken over"],
    );
    group.set("stores that forget");
    for fault in [Empty, DeleteNamespace, DeleteBucket] {
        let name = format!("{fault:?}");
        let [one, late, die]: [&'static [Fault]; 3] = match fault {
            Empty => [&[Empty], &[Empty, Late], &[Empty, Die]],
            DeleteNamespace => {
                [&[DeleteNamespace], &[DeleteNamespace, Late], &[DeleteNamespace, Die]]
            }
            _ => [&[DeleteBucket], &[DeleteBucket, Late], &[DeleteBucket, Die]],
        };
        add(
            &format!("a store that forgets, {name}"),
            40_000,
            Config { forgets: true, faults: one, ..ONE },
            &["a bucket above the horizon"],
        );
        add(
            &format!("a store that forgets, {name} and late"),
            20_000,
            Config { forgets: true, is_absent: true, ticks: 2, faults: late, ..CONFIG },
            &["late write applied"],
        );
        add(
            &format!("a store that forgets, {name} and die"),
            40_000,
            Config { forgets: true, faults: die, ..ONE },
            &["a bucket above the horizon"],
        );
    }
    for fault in [&[Empty], &[DeleteNamespace], &[DeleteBucket], &[Recover]] {
        add(
            &format!("a store that forgets, confirmed, {fault:?}"),
            10_000,
            Config { forgets: true, is_confirmed: true, is_made: true, faults: fault, ..CONFIG },
            &["a bucket above the horizon"],
        );
    }
    add(
        "a store that forgets, confirmed, two hosts start",
        10_000,
        Config { forgets: true, is_confirmed: true, ticks: 2, ..CONFIG },
        &["held"],
    );
    add(
        "a store that forgets, two hosts start",
        15_000,
        Config { forgets: true, ticks: 2, faults: &[DeleteBucket], ..CONFIG },
        &["a bucket above the horizon"],
    );
    add(
        "two hosts start without a namespace, deleted",
        15_000,
        Config { is_absent: true, ticks: 2, faults: &[DeleteNamespace], ..CONFIG },
        &["another id"],
    );
    add(
        "a store that forgets, a late namespace",
        20_000,
        Config { forgets: true, late_namespace: true, ticks: 2, faults: &[Empty], ..ONE },
        &["late write applied", "a bucket above the horizon"],
    );
    add(
        "a store that forgets, a late bucket",
        20_000,
        Config { forgets: true, late_bucket: true, ticks: 2, faults: &[DeleteBucket], ..ONE },
        &["late write applied", "a bucket above the horizon"],
    );
    group.set("others");
    add(
        "two lines, clone, a clock ahead",
        25_000,
        Config { is_ahead: true, ticks: 1, faults: &[Clone], ..LINES },
        &["a conflict"],
    );
    add(
        "two buckets, failover, the other line is claimed at once",
        60_000,
        Config {
            claim: Some(1),
            is_ahead: true,
            ticks: 1,
            faults: &[Failover],
            snapshot: Snapshot::Before,
            ..WIDE
        },
        &["raised after a loss"],
    );
    add(
        "two buckets, failover, the other line is claimed",
        15_000,
        Config {
            claim: Some(1),
            is_ahead: true,
            ticks: 2,
            faults: &[Failover],
            snapshot: Snapshot::Before,
            ..WIDE
        },
        &["raised after a loss"],
    );
    add(
        "recover, a third host",
        25_000,
        Config { hosts: 3, size: 2, ticks: 1, faults: &[Recover], ..ONE },
        &["touched", "another id"],
    );
    add(
        "a joiner after put back",
        12_000,
        Config { joins: true, may_release: true, faults: &[Revert, Die], ..TWO },
        &[],
    );
    add(
        "copied while open",
        250_000,
        Config { joins: true, ticks: 4, faults: &[Copy], knows_earlier: true, ..TWO },
        &[],
    );
    add(
        "copied, die",
        40_000,
        Config {
            joins: true,
            ticks: 4,
            faults: &[Copy, Die],
            breaks: true,
            knows_earlier: true,
            ..TWO
        },
        &[],
    );
    add(
        "copied, another host",
        40_000,
        Config { joins: true, ticks: 4, faults: &[Copy], knows_earlier: true, ..THREE },
        &[],
    );
    add(
        "copied, two worker IDs",
        40_000,
        Config { joins: true, size: 2, ticks: 4, faults: &[Copy], knows_earlier: true, ..TWO },
        &[],
    );
    add(
        "restart within ttl, twice",
        40_000,
        Config { hosts: 1, processes: &[1], ticks: 4, faults: &[Die, Die], ..ONE },
        &[],
    );
    add(
        "two unproven joiners",
        40_000,
        Config { hosts: 1, processes: &[3], joins: true, ticks: 4, faults: &[Die, Die], ..ONE },
        &[],
    );
    add(
        "recover, four lines",
        300_000,
        Config { size: 4, ticks: 1, faults: &[Recover], ..ONE },
        &["touched", "another id"],
    );
    add(
        "two buckets, put back, then the namespace deleted",
        15_000,
        Config { ticks: 2, faults: &[Revert, DeleteNamespace], snapshot: Snapshot::Before, ..WIDE },
        &[],
    );
    add(
        "two hosts, a clock back and right again",
        60_000,
        Config { ticks: 2, faults: &[Jump, Jump], jumps: &[-6, 6], ..ONE },
        &["jumped"],
    );
    add(
        "two hosts, restart after a namespace was deleted",
        15_000,
        Config { hosts: 1, processes: &[1], faults: &[Die, DeleteNamespace], ..ONE },
        &[],
    );
    add(
        "two lines, lost and clone",
        15_000,
        Config { ticks: 2, faults: &[Lost, Clone], ..TWO },
        &[],
    );
    add(
        "copied, release",
        40_000,
        Config {
            joins: true,
            may_release: true,
            restarts: true,
            ticks: 3,
            faults: &[Copy, Copy],
            knows_earlier: true,
            ..THREE
        },
        &[],
    );
    add(
        "limits: a joiner has higher ones",
        15_000,
        Config { joins: true, ahead: &[0, 3], by_host: true, faults: &[DeleteBucket, Die], ..TWO },
        &[],
    );
    add(
        "limits: another host has higher ones",
        15_000,
        Config { ahead: &[0, 3], ticks: 2, faults: &[DeleteBucket], ..ONE },
        &[],
    );
    group.set("ahead of the clock");
    let ahead: [&'static [Fault]; 12] = [
        &[Lost],
        &[Reply],
        &[Late],
        &[Die],
        &[Fault::Page],
        &[Reboot],
        &[Clone],
        &[Revert],
        &[Failover],
        &[Empty],
        &[DeleteBucket],
        &[Restore],
    ];
    for faults in ahead {
        let goes_back = matches!(faults[0], Revert | Failover);
        let snapshot = if goes_back { Snapshot::Start } else { Snapshot::None };
        let config = Config { may_release: true, ahead: &[4, 4], ahead_at: 4, faults, ..ONE };
        let name = format!("ahead: two hosts, {faults:?}");
        add(&name, if goes_back { 25_000 } else { 8000 }, Config { snapshot, ..config }, &[]);
        let config = Config { ticks: 2, ahead: &[4, 4], ahead_at: 4, faults, ..TWO };
        add(&format!("ahead: a host of two processes, {faults:?}"), 4000, config, &[]);
    }
    group.set("restored machines");
    let both: &[Fault] = &[Restore, Clone];
    add(
        "two hosts, restored and cloned",
        60_000,
        Config { may_release: true, ticks: 2, faults: both, ..ONE },
        &["lost: restored", "the original goes on"],
    );
    add(
        "two lines, restored and cloned",
        40_000,
        Config { hosts: 1, processes: &[1], size: 2, ticks: 2, faults: both, ..ONE },
        &["the original goes on"],
    );
    add(
        "hosts of two processes, restored and cloned",
        60_000,
        Config { ticks: 1, faults: both, ..THREE },
        &["the original goes on"],
    );
    add(
        "two hosts start, restored",
        20_000,
        Config { is_made: true, size: 2, ticks: 2, faults: &[Restore], ..CONFIG },
        &["lost: restored", "a pending page restored"],
    );
    add(
        "a host of two processes starts, restored twice",
        40_000,
        Config {
            hosts: 1,
            processes: &[2],
            is_made: true,
            size: 2,
            ticks: 1,
            faults: &[Restore, Restore],
            ..CONFIG
        },
        &["lost: restored", "a pending page restored"],
    );
    add(
        "two processes claim a worker, restored",
        20_000,
        Config {
            hosts: 1,
            processes: &[2],
            claim: Some(0),
            is_made: true,
            ticks: 2,
            faults: &[Restore],
            ..CONFIG
        },
        &["lost: restored"],
    );
    group.set("three hosts");
    let three: [&'static [Fault]; 7] =
        [&[Late], &[Die], &[Clone], &[Revert], &[Empty], &[DeleteNamespace], &[Restore]];
    for faults in three {
        let snapshot = if faults[0] == Revert { Snapshot::Start } else { Snapshot::None };
        let config = Config { hosts: 3, ticks: 2, faults, snapshot, ..LINES };
        add(&format!("three hosts, two lines, {faults:?}"), 4000, config, &[]);
    }
    group.set("a deleted bucket");
    add(
        "three hosts, a bucket deleted",
        200_000,
        Config { hosts: 3, ticks: 2, faults: &[DeleteBucket], ..CONFIG },
        &[],
    );
    group.set("pairs");
    let pairs: [&'static [Fault]; 27] = [
        &[Lost, Late],
        &[Reply, Late],
        &[Late, Late],
        &[Die, Late],
        &[Late, Revert],
        &[Late, Empty],
        &[Die, Revert],
        &[Fault::Page, Revert],
        &[Reboot, Late],
        &[Reboot, Revert],
        &[Late, Clone],
        &[Die, Clone],
        &[Clone, Revert],
        &[Reply, Revert],
        &[Late, DeleteNamespace],
        &[Late, DeleteBucket],
        &[Die, DeleteNamespace],
        &[Die, DeleteBucket],
        &[DeleteNamespace, DeleteBucket],
        &[DeleteNamespace, Revert],
        &[Late, Recover],
        &[Die, Recover],
        &[Recover, Revert],
        &[Recover, DeleteBucket],
        &[Recover, DeleteNamespace],
        &[Recover, Recover],
        &[Revert, Revert],
    ];
    for faults in pairs {
        add(
            &format!("two hosts, {faults:?}"),
            4000,
            Config { may_release: true, faults, ..ONE },
            &[],
        );
        add(&format!("two buckets, {faults:?}"), 3000, Config { ticks: 2, faults, ..WIDE }, &[]);
    }
    cases
}

/// `LEASE_SEARCH=text` runs the cases whose name contains it, `LEASE_FULL=20` with 20 times as many states.
fn search(wanted: &str, times: f64) {
    let name = std::env::var("LEASE_SEARCH").unwrap_or_default();
    let times = std::env::var("LEASE_FULL").map_or(times, |times| times.parse().unwrap());
    let mut states = 0;
    let is_wanted = |case: &Case| case.0.contains(wanted) && case.1.contains(&name);
    for (_, name, config, must) in cases().into_iter().filter(is_wanted) {
        let most = (config.most as f64 * times) as usize;
        let found = run(&name, &Config { most, ..config }, must);
        states += found.unwrap_or_else(|why| panic!("WRONG {why}"));
    }
    println!("{wanted}: {states} states");
}

/// In each: no two pages issue one tick, living hosts keep their slots, and in the end everybody has one.
#[test]
fn search_without_faults() {
    search("without faults", 1.0);
}

#[test]
fn search_with_one_fault() {
    search("one fault", 1.0);
}

#[test]
fn search_with_clocks_that_jump() {
    search("clocks", 1.0);
}

#[test]
fn search_in_stores_that_forget() {
    search("stores that forget", 1.0);
}

#[test]
fn search_with_copies_restarts_and_limits() {
    search("others", 1.0);
}

#[test]
fn search_ahead_of_the_clock() {
    search("ahead of the clock", 1.0);
}

#[test]
fn search_with_restored_machines() {
    search("restored machines", 1.0);
}

#[test]
fn search_with_three_hosts() {
    search("three hosts", 1.0);
}

#[test]
fn search_with_a_deleted_bucket() {
    search("a deleted bucket", 1.0);
}

#[test]
fn search_with_pairs_of_faults() {
    search("pairs", 1.0);
}

#[test]
fn a_search_that_sees_nothing_fails() {
    let nothing = Config { hosts: 0, processes: &[], ..CONFIG };
    assert!(run("nothing", &nothing, &[]).is_ok());
    assert!(run("nothing", &nothing, &["opens"]).is_err());
}

#[test]
#[ignore = "a storm: npm run storms -- search"]
fn searched_with_ten_times_the_states() {
    search("", 10.0);
}

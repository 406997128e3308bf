use super::pages;
use super::world::*;
use crate::amount;
use crate::search::{Found, search, search_some};

/// Searches all states. Returns what was seen in them.
fn explore(scenario: &Scenario) -> (Found<Scenario>, u16) {
    explore_by(scenario, search)
}

fn explore_by(
    scenario: &Scenario,
    search: impl Fn(&Scenario) -> Found<Scenario>,
) -> (Found<Scenario>, u16) {
    SEEN.set(0);
    let start = std::time::Instant::now();
    let found = search(scenario);
    let Scenario { hosts, processes, ticks, renewals, faults, broken, .. } = scenario;
    println!(
        "{hosts} hosts of {processes}, {ticks} ticks, {renewals} renewals, {faults:?}, {broken:?}: {}{} states in {:?}: {:?}",
        if found.is_whole { "all " } else { "" },
        found.states,
        start.elapsed(),
        found.wrong
    );
    (found, SEEN.get())
}

fn holds(scenario: Scenario, expected: u16) {
    let (found, seen) = explore(&scenario);
    println!("seen {seen:b}");
    is_right(found);
    assert_eq!(seen & expected, expected, "seen {seen:b}");
}

fn is_right(found: Found<Scenario>) {
    if let Some(wrong) = found.wrong {
        for world in found.path {
            println!("{}", world.summary());
        }
        panic!("{wrong:?}");
    }
}

/// What goes wrong, where a part of the world is broken.
fn finds(scenario: Scenario, broken: Broken) -> Wrong {
    let (found, _) = explore(&Scenario { broken: Some(broken), ..scenario });
    found.wrong.unwrap_or_else(|| panic!("{broken:?} was not found"))
}

const ONE_HOST: Scenario = Scenario { hosts: 1, processes: 2, ..TWO_HOSTS };

/// Processes of a host that start at one time, and may take a slot each.
const TWO_SLOTS: Scenario = Scenario { worker_bits: 1, ticks: 0, ..ONE_HOST };

fn of(scenario: Scenario, faults: &'static [Fault]) -> Scenario {
    Scenario { faults, ..scenario }
}

#[test]
fn processes_of_a_host_share_a_slot() {
    holds(ONE_HOST, JOINED);
    holds(of(ONE_HOST, &[Fault::Copy]), UNPROVEN);
    holds(of(ONE_HOST, &[Fault::Restart]), PROVEN);
}

#[test]
fn a_host_with_two_slots_returns_to_one() {
    holds(TWO_SLOTS, MOVED);
    holds(of(TWO_SLOTS, &[Fault::Copy]), MOVED);
    holds(of(TWO_SLOTS, &[Fault::Restart]), MOVED | PROVEN);
    holds(of(TWO_SLOTS, &[Fault::Die]), MOVED);
}

#[test]
fn hosts_take_a_slot_over() {
    holds(TWO_HOSTS, TAKEN_OVER | TAKEN | NO_SLOT);
    holds(of(TWO_HOSTS, &[Fault::Die]), TAKEN_OVER | TAKEN);
    holds(of(TWO_HOSTS, &[Fault::LosePage]), TAKEN_OVER);
    let at_once = Scenario { ticks: 0, renewals: 0, ..TWO_HOSTS };
    holds(of(at_once, &[Fault::Recover]), RECOVERED | AT_HORIZON);
}

#[test]
fn a_broken_store_is_found() {
    assert!(matches!(finds(TWO_HOSTS, Broken::Unconditional), Wrong::Overlap(..)));
    let three = Scenario { hosts: 3, renewals: 0, may_close: true, ..TWO_HOSTS };
    assert!(matches!(finds(three, Broken::ReleaseFloor), Wrong::Overlap(..)));
    let at_once = Scenario { ticks: 0, renewals: 0, ..TWO_HOSTS };
    let reverted = of(at_once, &[Fault::Revert, Fault::Recover]);
    assert!(matches!(finds(reverted, Broken::RecoveredLow), Wrong::Overlap(..)));
    let lost = of(TWO_HOSTS, &[Fault::LoseSlot]);
    assert!(matches!(finds(lost, Broken::BucketLost), Wrong::Overlap(..)));
}

#[test]
fn a_broken_page_is_found() {
    let is_lost = |wrong| matches!(wrong, Wrong::FalseLoss(_));
    let page = Broken::Page;
    assert!(matches!(finds(TWO_HOSTS, page(pages::Wrong::NoFloor)), Wrong::Overlap(..)));
    let given_up = of(ONE_HOST, &[Fault::GiveUp]);
    assert!(is_lost(finds(given_up, page(pages::Wrong::Unannounced))));
    assert!(is_lost(finds(given_up, page(pages::Wrong::SharedCell))));
    let twice = Scenario { renewals: 2, ..ONE_HOST };
    assert!(is_lost(finds(twice, page(pages::Wrong::KnownFalls))));
}

mod searched {
    use super::*;

    /// Each fault alone, by one host of two processes and by two hosts, and some with a call that is given up. A clone of two
    /// processes has too many states.
    #[test]
    #[ignore = "a storm: npm run storms -- search"]
    fn whatever_fails_no_window_overlaps() {
        let closing = Scenario { may_close: true, ..TWO_HOSTS };
        holds(closing, RELEASED_LOW);
        holds(of(closing, &[Fault::GiveUp]), RELEASED_LOW | LATE);
        holds(of(ONE_HOST, &[Fault::GiveUp]), JOINED | LATE);
        holds(of(TWO_HOSTS, &[Fault::GiveUp]), TAKEN | LATE);
        holds(of(ONE_HOST, &[Fault::Die]), JOINED);
        holds(of(ONE_HOST, &[Fault::Fill]), NO_SLOT);
        holds(of(ONE_HOST, &[Fault::LosePage]), JOINED);
        holds(of(TWO_HOSTS, &[Fault::Copy]), TAKEN);
        holds(of(TWO_HOSTS, &[Fault::Clone]), REVERTED);
        holds(Scenario { hosts: 2, renewals: 0, may_close: true, ..TWO_SLOTS }, MOVED);
        for fault in [Fault::GiveUp, Fault::LosePage, Fault::LoseSlot, Fault::Revert] {
            holds(of(TWO_SLOTS, vec![fault].leak()), MOVED);
        }
        for scenario in [ONE_HOST, TWO_HOSTS] {
            holds(of(scenario, &[Fault::LoseSlot]), MISSING | AT_HORIZON);
            holds(of(scenario, &[Fault::Revert]), REVERTED | AT_HORIZON);
            let at_once = Scenario { ticks: 0, ..scenario };
            holds(of(at_once, &[Fault::LoseAll]), MISSING | AT_HORIZON);
        }
        for faults in [
            &[Fault::GiveUp, Fault::Die],
            &[Fault::GiveUp, Fault::LosePage],
            &[Fault::GiveUp, Fault::Copy],
            &[Fault::GiveUp, Fault::Revert],
        ] {
            holds(of(TWO_HOSTS, faults), LATE);
        }
    }

    /// Each fault, and each two of them, by two hosts of two processes, by two of one, and by one of two: all states, or where
    /// there are more, so many in an order by the seed. `TESTS_TIMES=10` searches ten times as many.
    #[test]
    #[ignore = "a storm: npm run storms -- search"]
    fn whatever_two_things_fail_no_window_overlaps() {
        let most = 200_000 * amount::amount(1, 1) as usize;
        let seed = amount::seed().unwrap_or_else(|| fastrand::u64(..));
        println!("TESTS_SEED={seed}");
        let four = Scenario { processes: 2, ticks: 0, renewals: 0, ..TWO_HOSTS };
        let pairs = FAULTS.iter().enumerate().flat_map(|(at, one)| {
            FAULTS[at..]
                .iter()
                .map(move |other| if one == other { vec![*one] } else { vec![*one, *other] })
        });
        let mut whole = [0; 2];
        for faults in pairs {
            let faults = &*faults.leak();
            for scenario in [four, TWO_HOSTS, ONE_HOST] {
                let (found, _) = explore_by(&of(scenario, faults), |scenario| {
                    let mut random = fastrand::Rng::with_seed(seed);
                    search_some(scenario, most, |next| random.shuffle(next))
                });
                whole[usize::from(found.is_whole)] += 1;
                is_right(found);
            }
        }
        println!("{} searches of all states, {} of {most}", whole[1], whole[0]);
    }

    /// An operator recovers the namespace, also after the store went back: from then on nobody new issues what others did.
    #[test]
    #[ignore = "a storm: npm run storms -- search"]
    fn after_a_recovery_no_window_overlaps_with_those_of_before() {
        let unrenewed = Scenario { renewals: 0, ..TWO_HOSTS };
        holds(of(TWO_HOSTS, &[Fault::Recover]), MISSING | RECOVERED | AT_HORIZON);
        holds(of(ONE_HOST, &[Fault::Recover]), MISSING | RECOVERED | AT_HORIZON);
        for faults in [
            &[Fault::Revert, Fault::Recover],
            &[Fault::GiveUp, Fault::Recover],
            &[Fault::Clone, Fault::Recover],
        ] {
            holds(of(unrenewed, faults), RECOVERED | AT_HORIZON);
        }
        let renewed = of(TWO_HOSTS, &[Fault::Recover]);
        assert!(matches!(finds(renewed, Broken::FreedLow), Wrong::Overlap(..)));
    }

    /// A scenario from the environment: `HOSTS`, `PROCESSES`, `TICKS`, `RENEWALS`, `BITS` (of worker IDs), `CLOSE`,
    /// `NEW`, `FINE`, `FAULTS`.
    #[test]
    #[ignore = "a search by hand"]
    fn by_hand() {
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<i64>().ok());
        let faults = std::env::var("FAULTS").unwrap_or_default();
        let faults: Vec<_> =
            FAULTS.iter().copied().filter(|one| faults.contains(&format!("{one:?}"))).collect();
        let scenario = Scenario {
            hosts: number("HOSTS").unwrap_or(2) as usize,
            processes: number("PROCESSES").unwrap_or(1) as usize,
            ticks: number("TICKS").unwrap_or(1),
            renewals: number("RENEWALS").unwrap_or(1) as u8,
            worker_bits: number("BITS").unwrap_or(0) as u8,
            may_close: number("CLOSE") == Some(1),
            is_new: number("NEW") == Some(1),
            is_fine: number("FINE") == Some(1),
            faults: faults.leak(),
            ..TWO_HOSTS
        };
        holds(scenario, 0);
    }
}

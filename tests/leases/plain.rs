//! One machine after the other, against a store that answers at once.

use snowdrift::core::layout::Layout;
use snowdrift::lease::{
    At, BUCKET, Bucket, Call, Command, Event, Floor, Holder, Key, LeaseRefusal, Limits, Machine,
    Namespace, Phase, Record, Reply, Settings, Slot, Token,
};

use super::pages::{self, Here, Numbered, PAGES};
use super::register::{self, Records};

const LIMITS: Limits = Limits { ttl: 30_000, max_clock_skew: 10_000, max_ahead: 0 };

struct Store {
    records: Records,
    /// The number of calls, and of lists among them.
    calls: usize,
    lists: usize,
    random: fastrand::Rng,
    now: i64,
    /// How the server describes its own run.
    run: u64,
}

impl Store {
    fn new() -> Store {
        pages::set_actor(0, 0, &[]);
        PAGES.set(Vec::new());
        let random = fastrand::Rng::with_seed(1);
        Store { records: Records::new(), calls: 0, lists: 0, random, now: 1_000_000, run: 1 }
    }

    fn token(&mut self) -> Token {
        Token::new(self.random.u64(1..)).expect("it is above 0")
    }

    fn put(&mut self, key: Key, record: Record) {
        let token = self.token();
        self.records.insert(key, (token, record));
    }

    fn answer(&mut self, call: &Call) -> Reply {
        self.calls += 1;
        self.lists += usize::from(matches!(call, Call::List { .. }));
        register::answer(&mut self.records, call)
    }

    /// Steps a machine until it waits for something else than the store.
    fn run(&mut self, machine: &mut Machine<Numbered>, event: Event) -> Command {
        let mut event = event;
        loop {
            let fresh = self.token();
            let here =
                Here { fresh: fresh.get().into(), store: 0, is_full: false, is_locked: false };
            let at = At { mono: self.now, fresh, run: self.run };
            match machine.step(event, at, &here) {
                Command::Call(call) => {
                    let reply = self.answer(&call);
                    event = Event::Reply(reply, Some(self.now), self.now);
                }
                other => return other,
            }
        }
    }
}

fn settings(worker_bits: u8, claim: Option<u64>) -> Settings {
    let layout = Layout::new([41, 0, worker_bits, 0, 22 - worker_bits.min(21)], 1, 0);
    let holder = Holder { pid: 7, started: 5, host: "one".to_owned(), ..Holder::default() };
    Settings { layout, datacenter: 0, claim, limits: LIMITS, holder, may_forget: false }
}

#[test]
fn a_slot_among_four_million_is_found_without_listing_all() {
    let mut store = Store::new();
    let settings = settings(22, None);
    let id = 1;
    let (layout, floor) = (settings.layout, Floor::At(-1));
    store.put(Key::Namespace, Record::Namespace(Namespace { id, layout, limits: LIMITS, floor }));
    let expires = store.now + 20_000;
    let slot = Slot {
        namespace: id,
        owner: 9,
        is_held: true,
        floor: -1,
        ceiling: 1_020_000,
        expires,
        holder: Holder::default(),
    };
    for worker in 0..100_000 {
        store.put(Key::Slot(0, worker), Record::Slot(slot.clone()));
    }
    for bucket in 0..100_000 / BUCKET {
        let made = Bucket { namespace: id, made: u64::MAX, lost: 0 };
        store.put(Key::Bucket(0, bucket), Record::Bucket(made));
    }
    let mut most = 0;
    for _ in 0..50 {
        store.lists = 0;
        PAGES.set(Vec::new());
        let mut machine = Machine::new(settings.clone());
        assert_eq!(store.run(&mut machine, Event::Go), Command::Held);
        most = most.max(store.lists);
    }
    println!("{most} lists at most");
    assert!(most <= 20, "{most} lists");
}

#[test]
fn a_start_takes_as_many_calls_as_it_must() {
    let mut store = Store::new();
    let mut first = Machine::new(settings(5, None));
    assert_eq!(store.run(&mut first, Event::Go), Command::Held);
    let new_namespace = store.calls;
    assert_eq!(store.run(&mut first, Event::Close), Command::Released);
    let calls = store.calls;
    let mut other = Machine::new(settings(5, None));
    assert_eq!(store.run(&mut other, Event::Go), Command::Held);
    let new_slot = store.calls - calls;
    assert_eq!(store.run(&mut other, Event::Close), Command::Released);
    // The slot was used: it is the best one only where all are.
    for worker in 0..32 {
        let (token, record) = store.records.values().nth(2).cloned().expect("a slot");
        store.records.entry(Key::Slot(0, worker)).or_insert((token, record));
    }
    let calls = store.calls;
    let mut second = Machine::new(settings(5, None));
    assert_eq!(store.run(&mut second, Event::Go), Command::Held);
    let used_slot = store.calls - calls;
    let calls = store.calls;
    assert_eq!(store.run(&mut second, Event::Renew(1_040_000)), Command::Held);
    let renewal = store.calls - calls;
    assert_eq!((new_namespace, new_slot, used_slot, renewal), (10, 8, 5, 1));
}

#[test]
fn a_claim_is_held_once_and_told_to_the_second() {
    let mut store = Store::new();
    let mut first = Machine::new(settings(5, Some(3)));
    assert_eq!(store.run(&mut first, Event::Go), Command::Held);
    let page = *first.page().expect("it is held");
    assert_eq!(page.with(|page| page.worker), 3);
    // Another host.
    pages::set_actor(1, 0, &[]);
    let mut second = Machine::new(settings(5, Some(3)));
    let holder = Holder { pid: 7, started: 5, host: "one".to_owned(), ..Holder::default() };
    let refused = Command::Refused(LeaseRefusal::NoSlot(vec![(3, Some(holder))]));
    assert_eq!(store.run(&mut second, Event::Go), refused);
    assert_eq!(store.run(&mut second, Event::Go), refused);
    // The first one is silent for its ttl: its number is taken over, above what it was allowed.
    store.now += LIMITS.ttl;
    let allowed = page.with(|page| page.ceiling);
    assert_eq!(store.run(&mut second, Event::Go), Command::Held);
    let taken = *second.page().expect("it is held");
    assert!(taken.with(|page| page.floor) >= allowed);
    pages::set_actor(0, 0, &[]);
    let lost = store.run(&mut first, Event::Renew(1_070_000));
    assert_eq!(lost, Command::Lost(snowdrift::lease::Loss::Taken));
    assert_eq!(page.with(|page| page.phase), Phase::Ended);
}

#[test]
fn another_layout_or_higher_limits_are_refused() {
    let mut store = Store::new();
    let mut first = Machine::new(settings(5, None));
    assert_eq!(store.run(&mut first, Event::Go), Command::Held);
    let layout = first_layout(&store);
    pages::set_actor(1, 0, &[]);
    let refused = store.run(&mut Machine::new(settings(6, None)), Event::Go);
    assert_eq!(refused, Command::Refused(LeaseRefusal::Layout(layout)));
    let limits = Limits { ttl: LIMITS.ttl + 1, ..LIMITS };
    let mut longer = Machine::new(Settings { limits, ..settings(5, None) });
    assert_eq!(store.run(&mut longer, Event::Go), Command::Refused(LeaseRefusal::Limits(LIMITS)));
}

fn first_layout(store: &Store) -> Layout {
    match store.records.get(&Key::Namespace) {
        Some((_, Record::Namespace(namespace))) => namespace.layout,
        other => panic!("{other:?}"),
    }
}

/// A floor or ceiling that nobody can have had confirmed goes nowhere, and an expiry beyond all limits holds nothing.
#[test]
fn a_slot_whose_times_are_damaged_is_left_alone() {
    let mut store = Store::new();
    let mut first = Machine::new(settings(1, None));
    assert_eq!(store.run(&mut first, Event::Go), Command::Held);
    let worker = first.page().expect("it is held").with(|page| page.worker);
    let key = Key::Slot(0, worker);
    let Some((_, Record::Slot(slot))) = store.records.get(&key).cloned() else { panic!("no slot") };
    let far = Slot { ceiling: slot.ceiling + 100_000_000, ..slot.clone() };
    store.put(key, Record::Slot(far.clone()));
    store.put(Key::Slot(0, 1 - worker), Record::Slot(Slot { expires: i64::MAX, ..slot }));
    store.now += 2 * LIMITS.ttl;
    pages::set_actor(1, 0, &[]);
    let mut second = Machine::new(settings(1, None));
    assert_eq!(store.run(&mut second, Event::Go), Command::Held);
    let page = *second.page().expect("it is held");
    assert_eq!(page.with(|page| page.worker), 1 - worker);
    assert!(page.with(|page| page.floor) < far.ceiling);
}

/// A host that has two slots: the lower one's page and machine, and the other ones.
fn two_slots(store: &mut Store) -> [(Numbered, Machine<Numbered>); 2] {
    let mut held = [0, 1].map(|process| {
        // The second one finds no page of the first.
        PAGES.with_borrow_mut(|pages| pages.iter_mut().for_each(|page| page.is_gone = true));
        pages::set_actor(0, process, &[]);
        let mut machine = Machine::new(settings(5, None));
        assert_eq!(store.run(&mut machine, Event::Go), Command::Held);
        (*machine.page().expect("it is held"), machine)
    });
    PAGES.with_borrow_mut(|pages| pages.iter_mut().for_each(|page| page.is_gone = false));
    held.sort_by_key(|(page, _)| page.with(|page| page.worker));
    // Processes by the page: the first one is process 0.
    for (process, (page, _)) in held.iter().enumerate() {
        page.with(|page| (page.users, page.places) = (1 << process, 1 << process));
    }
    // Their floors have passed.
    store.now += LIMITS.max_clock_skew + 1;
    pages::set_actor(0, 1, &[]);
    held
}

fn is_held(store: &Store, page: Numbered) -> bool {
    let worker = page.with(|page| page.worker);
    match store.records.get(&Key::Slot(0, worker)) {
        Some((_, Record::Slot(slot))) => slot.is_held,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_host_with_two_slots_moves_to_the_lower_one() {
    let mut store = Store::new();
    let [(low, mut first), (high, mut second)] = two_slots(&mut store);
    pages::set_actor(0, 0, &[]);
    assert_eq!(store.run(&mut first, Event::Merge), Command::Wait, "it is the lower one");
    pages::set_actor(0, 1, &[]);
    assert_eq!(store.run(&mut second, Event::Merge), Command::Moved);
    assert_eq!(second.page(), Some(&low));
    // Until nothing is drawn from it.
    assert_eq!(high.with(|page| page.phase), Phase::Open);
    assert_eq!(store.run(&mut second, Event::Go), Command::Wait);
    assert_eq!(high.with(|page| page.phase), Phase::Ended);
    assert_eq!((is_held(&store, low), is_held(&store, high)), (true, false));
    assert_eq!(store.run(&mut second, Event::Renew(1_050_000)), Command::Held);
}

#[test]
fn a_page_is_not_joined_in_a_copy_of_its_store() {
    let mut store = Store::new();
    let [(low, _), (high, mut second)] = two_slots(&mut store);
    // The second one is in the copy, which describes another run. The lower page's record is there, too.
    store.run = 2;
    assert_eq!(store.run(&mut second, Event::Merge), Command::Retry);
    // A renewal that is due does not wait for the proof.
    assert_eq!(store.run(&mut second, Event::Renew(1_050_000)), Command::Held);
    let ends = store.now + LIMITS.ttl;
    while store.now <= ends {
        assert_eq!(store.run(&mut second, Event::Merge), Command::Retry);
        assert_eq!(second.page(), Some(&high));
        store.now += 1000;
    }
    assert_eq!(store.run(&mut second, Event::Merge), Command::Wait);
    assert_eq!(second.page(), Some(&high));
    assert_eq!(low.with(|page| (page.phase, page.users)), (Phase::Open, 1));
}

#[test]
fn a_host_with_two_slots_frees_both() {
    let mut store = Store::new();
    let [(low, mut first), (high, mut second)] = two_slots(&mut store);
    store.run = 2;
    assert_eq!(store.run(&mut second, Event::Merge), Command::Retry);
    pages::set_actor(0, 0, &[]);
    assert_eq!(store.run(&mut first, Event::Close), Command::Released);
    assert!(is_held(&store, low), "the second one joins it");
    pages::set_actor(0, 1, &[]);
    assert_eq!(store.run(&mut second, Event::Close), Command::Released);
    assert_eq!((is_held(&store, low), is_held(&store, high)), (false, false));
}

/// A holder may have renewed its slot after a recovery had raised the floor.
#[test]
fn a_slot_that_is_lost_after_a_recovery_begins_at_the_horizon() {
    let mut store = Store::new();
    let mut first = Machine::new(settings(0, None));
    assert_eq!(store.run(&mut first, Event::Go), Command::Held);
    let key = Key::Slot(0, 0);
    let Some((_, Record::Namespace(namespace))) = store.records.get(&Key::Namespace).cloned()
    else {
        panic!("no namespace")
    };
    let floor = store.now + LIMITS.ttl + LIMITS.max_clock_skew;
    let recovered = Namespace { id: namespace.id + 1, floor: Floor::At(floor), ..namespace };
    store.put(Key::Namespace, Record::Namespace(recovered));
    store.now += 5000;
    let renewed = store.run(&mut first, Event::Renew(store.now + LIMITS.ttl + 10_000));
    assert_eq!(renewed, Command::Held);
    let allowed = first.page().expect("it is held").with(|page| page.ceiling);
    assert!(allowed > floor);
    store.records.remove(&key);

    pages::set_actor(1, 0, &[]);
    let mut second = Machine::new(settings(0, None));
    assert_eq!(store.run(&mut second, Event::Go), Command::Held);
    assert!(second.page().expect("it is held").with(|page| page.floor) >= allowed);
}

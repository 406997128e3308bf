//! What stands where a page should be, and what a page says.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use snowdrift::core::clock::{Clock, ManualClock, UnixTime};
use snowdrift::core::fault::{Detail, Failure};
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;
use snowdrift::core::sequence::Rules;
use snowdrift::core::sequencer::Stall;
use snowdrift::generator::{ClockBack, Generator, Policies};
use snowdrift::pages::{BootId, Directory, Terms};

use super::{
    POLICIES, TestClock, directory, draw, duplicates, generator, is_root, memory, node, open,
};

const START: i64 = 1_700_000_000_000;

/// A generator whose clock stands at the start.
fn started(directory: &Directory, node: Node) -> Result<Generator, Failure> {
    open(directory, node, TestClock::at(START))
}

/// Nothing is issued, for a failure of the page.
fn failed(generator: &Generator) -> String {
    assert_eq!(draw(generator, 1), Err(Stall::NoPage));
    format!("{:?}", generator.page_failure().unwrap())
}

/// The error names the page and has these words, and the file is left as it is.
fn refused(directory: &Directory, words: &str) {
    let path = directory.page_of(&node(0));
    let before = fs::symlink_metadata(&path).unwrap().modified().unwrap();
    let error = format!("{:?}", started(directory, node(0)).err().unwrap());
    assert!(error.contains(path.to_str().unwrap()) && error.contains(words), "{words}: {error}");
    assert_eq!(fs::symlink_metadata(&path).unwrap().modified().unwrap(), before);
}

fn patch(path: &Path, at: u64, bytes: &[u8]) {
    File::options().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

fn fix_crc(path: &Path) {
    let bytes = fs::read(path).unwrap();
    patch(path, 252, &crc32fast::hash(&bytes[..252]).to_le_bytes());
}

#[test]
fn what_is_no_page_of_the_node_is_an_error_and_left_as_it_is() {
    let shared = memory();
    let directory = directory(shared.path());
    let path = directory.page_of(&node(0));
    started(&directory, node(0)).unwrap();
    let good = fs::read(&path).unwrap();
    let with = |harm: &dyn Fn(), words| {
        let _ = fs::remove_file(&path);
        fs::write(&path, &good).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        started(&directory, node(0)).unwrap();
        harm();
        refused(&directory, words);
    };
    with(&|| patch(&path, 0, &[0; 4096]), "page-foreign");
    with(&|| patch(&path, 0, b"GIF89a"), "page-foreign");
    for at in [16, 20, 24, 33, 40, 48, 56, 64, 72, 88, 109, 112, 116, 200, 252, 255] {
        // Of the page that is there: its ID and check are its own.
        let flip = || patch(&path, at, &[fs::read(&path).unwrap()[at as usize] ^ 0x10]);
        with(&flip, "page-damaged");
    }
    with(&|| patch(&path, 8, &[3]), "(\"format\", Number(3.0)), (\"known\", Number(4.0))");
    let swapped = || {
        let mut mark = 0x0102_0304_u32.to_ne_bytes();
        mark.reverse();
        patch(&path, 12, &mark);
        fix_crc(&path);
    };
    with(&swapped, "page-byte-order");
    let resize =
        |len| move |path: &Path| File::options().write(true).open(path).unwrap().set_len(len);
    with(&|| resize(0)(&path).unwrap(), "(\"length\", Number(0.0)), (\"wanted\", Number(4096.0))");
    with(&|| resize(4095)(&path).unwrap(), "Number(4095.0)");
    with(&|| resize(8192)(&path).unwrap(), "Number(8192.0)");
    with(&|| fs::set_permissions(&path, Permissions::from_mode(0o622)).unwrap(), "0622");
    let aside = directory.path().join("aside");
    let link = || {
        fs::rename(&path, &aside).unwrap();
        symlink(&aside, &path).unwrap();
    };
    with(&link, "(\"isLink\", Flag(true))");
    let other = || {
        started(&directory, node(1)).unwrap();
        fs::copy(directory.page_of(&node(1)), &path).unwrap();
    };
    with(&other, "page-misnamed");
    let hard_link = || {
        fs::remove_file(&path).unwrap();
        fs::hard_link(directory.page_of(&node(1)), &path).unwrap();
    };
    with(&hard_link, "page-misnamed");
    let directory_there = || {
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
    };
    with(&directory_there, "not-a-file");
    fs::remove_dir(&path).unwrap();
    let pipe = || {
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    };
    with(&pipe, "(\"isLink\", Flag(false))");
    fs::remove_file(&path).unwrap();
    if is_root() {
        with(&|| chown(&path, Some(54_321), None).unwrap(), "(\"owner\", Number(54321.0))");
    } else {
        println!("skipped: only root can give a file to another user");
    }
}

#[test]
fn layouts_and_epochs_are_nodes_of_their_own() {
    let shared = memory();
    let directory = directory(shared.path());
    let layouts = [
        Layout::NODE,
        Layout::new([41, 5, 5, 0, 12], 1, 1_288_834_974_657),
        Layout::new([41, 5, 5, 0, 12], 1, 1_420_070_400_000),
        Layout { epoch_ms: 0, ..Layout::NODE },
        Layout { epoch_ms: -1, ..Layout::NODE },
        Layout { tick_ms: 10, ..Layout::NODE },
    ];
    let pages: Vec<_> = layouts
        .iter()
        .map(|layout| started(&directory, Node::new(*layout, 1, 0).unwrap()).unwrap())
        .collect();
    for (page, layout) in pages.iter().zip(layouts) {
        assert_eq!(*page.page().header().node.layout(), layout);
    }
    assert_eq!(directory.pages().unwrap().len(), layouts.len());
}

#[test]
fn a_page_begins_above_the_clock_where_others_were_before_and_never_once_it_has_ended() {
    let shared = memory();
    let directory = directory(shared.path());
    for tick_ms in [1, 10] {
        let node = |worker| Node::new(Layout { tick_ms, ..Layout::NODE }, 1, worker).unwrap();
        let obtain = |worker| directory.obtain(&node(worker), Terms::FREE).unwrap();
        // What the page before has issued is unknown.
        let next = obtain(0);
        next.sequence().raise_before(0);
        next.begin_free(|| 70);
        next.begin_free(|| 80);
        assert_eq!(next.sequence().window().floor, 70);
        let rules = Rules { may_raise: true, ..Rules::default() };
        for tick in [70, 60] {
            let refused = next.sequence().reserve(&rules, &mut || tick, |_| 1);
            assert_eq!(refused, Err(Stall::AtFloor { until: 71 }));
        }
        let ended = obtain(1);
        ended.end();
        ended.begin_free(|| 70);
        assert!(ended.has_ended());
    }
}

/// Versions of snowdrift share a page: neither its header nor its word ever change.
#[test]
fn the_format_is_for_ever() {
    let shared = memory();
    let directory = Directory::with(shared.path(), BootId([7; 16])).unwrap();
    let clock = TestClock::at(START);
    let generator = open(&directory, node(5), clock.clone()).unwrap();
    let path = directory.page_of(&node(5));
    let name = path.file_name().unwrap();
    assert_eq!(name, "41.3.5.2.12-1ms-1580486400000-datacenter-1-worker-5.page");
    let tick = (START - Layout::NODE.epoch_ms) as u64;
    let number = |at: usize| {
        let bytes = fs::read(&path).unwrap();
        u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
    };
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes[..12], *b"SNOWDRFT\x04\0\0\0");
    assert_eq!(bytes[16..24], [41, 3, 5, 2, 12, 0, 0, 0]);
    assert_eq!([24, 32, 40, 48, 56].map(number), [1, 1_580_486_400_000, 1, 5, 0]);
    assert_eq!(number(64), 0);
    assert_eq!(bytes[88..104], [7; 16]);
    // Begun: the clock's tick is exhausted, in the first window.
    let window = 1 << 54;
    assert_eq!([256, 384, 392, 400].map(number), [tick << 15 | 4096, window, 0, 0]);
    let draw_at = |ms, want| {
        clock.set(START + ms);
        draw(&generator, want).unwrap();
    };
    draw_at(1, 7);
    assert_eq!(number(256), (tick + 1) << 15 | 7);
    // A rollback: counter 1, above the floor; and the mark of counter 0.
    draw_at(9, 1);
    draw_at(5, 2);
    assert_eq!([256, 408].map(number), [(tick + 5) << 15 | 1 << 13 | 2, tick + 9 + 1]);
    // The next page begins above what this one has issued, and above the clock, whatever that shows later.
    fs::remove_file(&path).unwrap();
    started(&directory, node(5)).unwrap();
    let ticks = [256, 384, 392, 400].map(number);
    assert_eq!(ticks, [tick << 15 | 4096, window, tick + 10, tick + 10]);
}

#[test]
fn a_page_of_another_boot_is_replaced_and_one_of_no_known_boot_is_not() {
    let shared = memory();
    let boot = |id| Directory::with(shared.path(), BootId([id; 16])).unwrap();
    let page_id = |directory: &Directory| started(directory, node(0)).unwrap().page().id();
    let first = page_id(&boot(1));
    assert_eq!(page_id(&boot(1)), first);
    assert_eq!(page_id(&boot(0)), first);
    let second = page_id(&boot(2));
    assert_ne!(second, first);
    assert_eq!(page_id(&boot(2)), second);
    // A live page that is taken for one of another boot loses its name, which its users notice.
    let clock = TestClock::at(START);
    let live = [(); 2].map(|()| open(&boot(2), node(0), clock.clone()).unwrap());
    clock.set(START + 1);
    assert!(live.iter().all(|one| draw(one, 1).is_ok() && one.page().id() == second));
    let third = page_id(&boot(3));
    clock.set(START + 2);
    for one in &live {
        let _ = draw(one, 1);
        assert_ne!(one.page().id(), second);
    }
    assert_ne!(third, second);
}

#[test]
fn the_clock_s_tick_is_exhausted_when_a_page_begins() {
    let shared = memory();
    let directory = directory(shared.path());
    let clock = TestClock::at(START);
    let open = || open(&directory, node(0), clock.clone()).unwrap();
    let generator = open();
    assert!(draw(&generator, 1).is_err());
    // It is the node's first one, so a rollback is like any other.
    clock.set(START - 5000);
    assert_eq!(draw(&generator, 1).unwrap().counter, 1);
    clock.set(START + 1);
    draw(&generator, 9).unwrap();
    // Another process joins: the page goes on.
    let joined = open();
    assert_eq!(draw(&joined, 1).unwrap().first, 9);
    // The next page begins above that tick.
    fs::remove_file(directory.page_of(&node(0))).unwrap();
    let next = open();
    assert!(draw(&next, 1).is_err());
    // That has ended this page, also for the rest of the ms that was checked. Its users go on in the next one.
    assert!(matches!(draw(&generator, 1), Err(Stall::AtFloor { .. })));
    assert_eq!(generator.page().id(), next.page().id());
    clock.set(START + 2);
    assert_eq!(draw(&generator, 5).unwrap().first, 0);
    assert_eq!(draw(&next, 1).unwrap().first, 5);
    assert_eq!(draw(&joined, 1).unwrap().first, 6);
    // A clock that shows an earlier ms has the name checked, too.
    fs::remove_file(directory.page_of(&node(0))).unwrap();
    let removed = next.page().id();
    clock.set(START + 1);
    let _ = draw(&next, 1);
    assert_ne!(next.page().id(), removed);
}

/// A clock that only waits move, in ns.
struct Waited(AtomicU64);

impl Clock for Waited {
    fn now(&self) -> UnixTime {
        let ns = self.0.load(SeqCst);
        UnixTime { ms: START + (ns / 1_000_000) as i64, ns: (ns % 1_000_000) as u32 }
    }

    fn wait(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos() as u64, SeqCst);
    }
}

/// A power cut leaves on a disk what was written back by then: the page that is opened says less than
/// was issued. Where boots have no ID, that may be any page.
#[test]
fn an_opening_does_not_wait_and_its_first_draw_waits_out_the_ms() {
    let policies = Policies { clock_back: ClockBack::Throw, ..POLICIES };
    let shared = memory();
    let directory = directory(shared.path());
    let clock = Arc::new(Waited(AtomicU64::new(0)));
    let open = || open(&directory, node(0), clock.clone()).unwrap();
    let mut drawn = Vec::new();
    for opened_at in START..START + 3 {
        clock.wait(Duration::from_nanos(400_000));
        let generator = open();
        assert_eq!(clock.now(), UnixTime { ms: opened_at, ns: 400_000 });
        // Another page may have issued all of this ms.
        let reserved = generator.try_reserve(&generator.user_page(), &policies, |_| 4096).unwrap();
        assert_eq!(UnixTime::from_ms(reserved.ms), clock.now());
        assert_eq!(reserved.ms, opened_at + 1);
        assert_eq!(generator.stats().waits, 0);
        drawn.push((reserved.first_id, reserved.block.len));
        let refused = generator.try_reserve(&generator.user_page(), &policies, |_| 1).unwrap_err();
        assert!(matches!(refused.stall, Stall::SequenceExhausted { .. }), "{refused:?}");
        fs::remove_file(directory.page_of(&node(0))).unwrap();
    }
    assert_eq!(duplicates(drawn), 0);
}

/// Others have used up the ms, or a long tick: a wait is the caller's choice.
#[test]
fn who_joins_a_page_in_use_does_not_wait_without_max_wait() {
    for (tick_ms, used) in [(1, 9), (1, 4095), (3000, 4096)] {
        let shared = memory();
        let directory = directory(shared.path());
        let node = Node::new(Layout { tick_ms, ..Layout::NODE }, 1, 3).unwrap();
        let clock = Arc::new(ManualClock::at(START));
        let other = open(&directory, node, clock.clone()).unwrap();
        clock.set(START + tick_ms);
        draw(&other, used).unwrap();
        let joined = open(&directory, node, clock.clone()).unwrap();
        let _ = draw(&joined, 4096);
        assert!(matches!(draw(&joined, 1), Err(Stall::SequenceExhausted { .. })));
        assert_eq!(clock.now().ms, START + tick_ms, "{used} of a tick of {tick_ms} ms");
    }
}

#[test]
fn of_a_page_whose_boot_is_unknown_nothing_is_issued_in_the_tick_of_the_opening() {
    let shared = memory();
    let clock = TestClock::at(START);
    let opened_in = |boot_id| {
        let directory = Directory::with(shared.path(), boot_id).unwrap();
        open(&directory, node(0), clock.clone()).unwrap()
    };
    let unknown = BootId::default();
    let before = opened_in(unknown);
    clock.set(START + 1);
    assert_eq!(draw(&before, 9).unwrap().first, 0);
    let path = before.page().path().unwrap().to_owned();
    let lost = fs::read(&path).unwrap();
    assert_eq!(draw(&before, 9).unwrap().first, 9);
    drop(before);
    fs::write(&path, lost).unwrap();
    for boot_id in [unknown, BootId([1; 16])] {
        let next = opened_in(boot_id);
        assert!(draw(&next, 1).is_err());
        clock.set(clock.now().ms + 1);
        assert_eq!(draw(&next, 1).unwrap().first, 0);
    }
}

#[test]
fn a_page_that_this_process_creates_is_of_this_boot_whose_id_is_unknown() {
    let node = Node::new(Layout { tick_ms: 3_600_000, epoch_ms: 0, ..Layout::NODE }, 1, 3).unwrap();
    let shared = memory();
    let directory = Directory::with(shared.path(), BootId::default()).unwrap();
    let open = || started(&directory, node).unwrap();
    assert_eq!(draw(&open(), 1).unwrap().first, 0);
    assert!(draw(&open(), 1).is_err());
}

#[test]
fn a_page_that_is_overwritten_in_use_is_an_error() {
    for len in [8, 4096] {
        let shared = memory();
        let generator = generator(shared.path(), node(0));
        patch(generator.page().path().unwrap(), 0, &[0; 4096][..len]);
        let error = failed(&generator);
        assert!(error.contains("page-overwritten"), "{len} bytes: {error}");
    }
}

/// The offsets of the word, the floor, the tick before, and the high marks.
const CELLS: [u64; 7] = [256, 392, 400, 408, 416, 424, 432];

#[test]
fn cells_that_no_sequencer_writes_end_the_page_and_repeat_nothing() {
    for tick_ms in [1, 3000, 3_600_000] {
        let node = Node::new(Layout { tick_ms, epoch_ms: 0, ..Layout::NODE }, 1, 3).unwrap();
        for at in CELLS {
            let shared = memory();
            let directory = directory(shared.path());
            let clock = TestClock::at(START);
            let open = || open(&directory, node, clock.clone());
            let users = [open().unwrap(), open().unwrap()];
            let mut drawn = Vec::new();
            let mut refusals = Vec::new();
            let mut draw_all = || {
                for user in &users {
                    match draw(user, 7) {
                        Ok(block) => drawn.push((node.first_id(&block), block.len)),
                        Err(Stall::NoPage) => refusals.push(failed(user)),
                        Err(stall) => refusals.push(format!("{stall:?}")),
                    }
                }
                (drawn.len(), refusals.clone())
            };
            clock.set(START + tick_ms);
            assert_eq!(draw_all().0, 2);
            patch(&directory.page_of(&node), at, &[0xff; 8]);
            let error = format!("{:?}", open().err().unwrap());
            assert!(error.contains("page-damaged"), "{at}: {error}");
            // An overwritten mark is read after a rollback only.
            for back in [0, 1, 2, 3, 4, 0] {
                clock.set(START + (1 - back) * tick_ms);
                draw_all();
            }
            let (_, refusals) = draw_all();
            let is_named = |refusal: &String| refusal.contains("page-overwritten");
            assert!(refusals.iter().any(is_named), "{at}: {refusals:?}");
            // The next page begins above the clock.
            fs::remove_file(directory.page_of(&node)).unwrap();
            draw_all();
            clock.set(START + 2 * tick_ms);
            let (before, _) = draw_all();
            clock.set(START + 3 * tick_ms);
            let (count, refusals) = draw_all();
            assert_eq!(count, before + 2, "{at}: {refusals:?}");
            assert_eq!(duplicates(drawn), 0, "ticks of {tick_ms} ms, cell {at}");
        }
    }
}

#[test]
fn a_page_shows_its_processes_and_a_thread_of_users() {
    let shared = memory();
    let directory = directory(shared.path());
    let users = || {
        let pages = directory.pages().unwrap();
        pages[0].1.as_ref().unwrap().processes.iter().map(|one| one.users).collect::<Vec<_>>()
    };
    let first = started(&directory, node(0)).unwrap();
    assert_eq!(users(), [1]);
    let second = started(&directory, node(0)).unwrap();
    assert_eq!(users(), [2]);
    drop(first);
    assert_eq!(users(), [1]);
    drop(second);
    assert_eq!(users(), [0; 0]);
    // Entries of processes that have ended are used again, and only then.
    let path = directory.page_of(&node(0));
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    for index in 0..64 {
        patch(&path, 1152 + 24 * index, &(u64::from(ended.id()) << 32 | 1).to_ne_bytes());
    }
    let third = started(&directory, node(0)).unwrap();
    assert_eq!(users().len(), 64);
    let pages = directory.pages().unwrap();
    let own = |one: &&snowdrift::pages::Process| one.pid == std::process::id() && one.is_alive();
    assert_eq!(pages[0].1.as_ref().unwrap().processes.iter().filter(own).count(), 1);
    drop(third);
    assert_eq!(users().len(), 63);
}

/// A clock at which something happens each time it is read, after it was read.
struct Meanwhile<F>(Arc<TestClock>, F);

impl<F: Fn() + Send + Sync> Clock for Meanwhile<F> {
    fn now(&self) -> UnixTime {
        let now = self.0.now();
        self.1();
        now
    }

    fn wait(&self, _: Duration) {}
}

#[test]
fn a_page_has_its_name_before_the_clock_is_read_to_begin_it() {
    let shared = memory();
    let directory = directory(shared.path());
    let path = directory.page_of(&node(0));
    let named: Arc<Mutex<Vec<bool>>> = Arc::default();
    let (page, note) = (path.clone(), named.clone());
    let meanwhile = move || note.lock().unwrap().push(page.exists());
    let clock = Meanwhile(TestClock::at(START), meanwhile);
    let generator = open(&directory, node(0), clock).unwrap();
    // Without its name: an earlier page may issue IDs after the reading.
    let opening = std::mem::take(&mut *named.lock().unwrap());
    assert!(!opening.is_empty() && opening.iter().all(|is_named| *is_named), "{opening:?}");
    fs::remove_file(&path).unwrap();
    let _ = draw(&generator, 1);
    let next = named.lock().unwrap();
    // The first one found that the page was removed.
    assert!(next.len() > 1 && !next[0] && next[1..].iter().all(|is_named| *is_named), "{next:?}");
}

/// The maker of a node's first page is held up before it begins the page.
#[test]
fn who_joins_a_first_page_that_its_maker_has_not_begun_draws_within_a_long_tick() {
    let node = Node::new(Layout { tick_ms: 3000, epoch_ms: 0, ..Layout::NODE }, 1, 3).unwrap();
    let shared = memory();
    let directory = directory(shared.path());
    let clock = TestClock::at(START);
    let joined = Arc::new(Mutex::new(None));
    let meanwhile = {
        let (joined, directory, clock) = (joined.clone(), directory.clone(), clock.clone());
        move || {
            let mut joined = joined.lock().unwrap();
            if joined.is_none() {
                let other = open(&directory, node, clock.clone()).unwrap();
                let block = draw(&other, 5).unwrap();
                *joined = Some((other.page().id(), block));
            }
        }
    };
    let maker = open(&directory, node, Meanwhile(clock, meanwhile)).unwrap();
    let (page, theirs) = joined.lock().unwrap().unwrap();
    assert_eq!(maker.page().id(), page);
    let ours = draw(&maker, 5).unwrap();
    assert_eq!((theirs.tick, theirs.first, ours.tick, ours.first), (ours.tick, 0, theirs.tick, 5));
}

#[test]
fn the_name_is_checked_after_the_clock_was_read() {
    let shared = memory();
    let directory = directory(shared.path());
    // Just after the clock was read the page is deleted, and another process opens the next one and
    // draws from it, two ms later.
    let others: Arc<Mutex<Vec<_>>> = Arc::default();
    let (here, drawn) = (directory.clone(), others.clone());
    let clock = TestClock::at(START);
    let now = clock.clone();
    let meanwhile = move || {
        let mut drawn = drawn.lock().unwrap();
        if now.now().ms == START + 4 && drawn.is_empty() {
            fs::remove_file(here.page_of(&node(0))).unwrap();
            let later = TestClock::at(START + 3);
            let other = open(&here, node(0), later.clone()).unwrap();
            later.set(START + 4);
            drawn.push(draw(&other, 5).unwrap());
        }
    };
    let generator = open(&directory, node(0), Meanwhile(clock.clone(), meanwhile)).unwrap();
    clock.set(START + 1);
    let first = draw(&generator, 1).unwrap();
    assert_eq!((first.tick, first.first), (Layout::NODE.tick_at(START + 1), 0));
    clock.set(START + 4);
    let block = draw(&generator, 1).unwrap();
    let other = others.lock().unwrap()[0];
    assert_eq!((block.tick, block.first), (other.tick, other.first + other.len));
}

#[test]
fn a_page_that_is_deleted_each_time_is_an_error_at_last() {
    let shared = memory();
    let directory = directory(shared.path());
    let path = directory.page_of(&node(0));
    let clock = Meanwhile(TestClock::at(START), move || {
        let _ = fs::remove_file(&path);
    });
    let generator = open(&directory, node(0), clock).unwrap();
    assert_eq!(draw(&generator, 1), Err(Stall::NoPage));
    let fault = generator.page_failure().unwrap();
    let Some(Detail::Number(times)) = fault.detail("times") else { panic!("{fault:?}") };
    assert!(fault.kind == "page-deleted" && (10.0..100.0).contains(times), "{fault:?}");
}

//! The register over files: torn and lost writes, disks that fail, processes that die or are stopped.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Instant;

use tempfile::TempDir;

use super::*;
use crate::core::layout::Layout;
use crate::files::path::paths_in;
use crate::lease::{Holder, Limits, Line, Ranges};

const KEY: Key = Key::Bucket(1, 5);
const OTHER: Key = Key::Bucket(1, 6);
const SHORT: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_secs(20);
const LIMITS: Limits = Limits { ttl: 30_000, max_clock_skew: 1_000, max_ahead: 0 };

fn register(directory: &Path) -> Register {
    Register::open(directory).unwrap()
}

fn namespace() -> Record {
    let (layout, created) = (Layout::NODE, Ranges::default());
    let floor = -1;
    Record::Namespace(Namespace { id: Token(9), layout, limits: LIMITS, floor, size: 1, created })
}

/// A bucket of worker ID 5 with a line of this ceiling.
fn bucket(is_held: bool, ceiling: i64) -> Record {
    let line = Line {
        owner: Token(7),
        token: Token(8),
        is_held,
        floor: -1,
        ceiling,
        expires: 1,
        holder: Holder::new(4711, 1, "", "host"),
    };
    Record::Bucket(Bucket::new(Token(9)).with(5, line))
}

fn write(to: &mut Register, key: Key, token: u64, record: Record, before: u64) -> Reply {
    tried(to, key, token, record, before).unwrap()
}

fn tried(
    to: &mut Register,
    key: Key,
    token: u64,
    record: Record,
    before: u64,
) -> Result<Reply, Failure> {
    let before = (before > 0).then_some(Token(before));
    to.answer(&Call::Write { key, token: Token(token), record, before }, SHORT)
}

fn found(from: &mut Register, key: Key) -> Found {
    match from.answer(&Call::Read(key), LONG).unwrap() {
        Reply::Found(found) => found,
        reply => panic!("{reply:?}"),
    }
}

/// The token, the ceiling, and whether the line is held.
fn line(from: &mut Register) -> Option<(u64, i64, bool)> {
    match found(from, KEY)? {
        (token, Ok(Record::Bucket(bucket))) => {
            Some((token.0, bucket.lines[&5].ceiling, bucket.lines[&5].is_held))
        }
        other => panic!("{other:?}"),
    }
}

fn unusable(from: &mut Register, key: Key) -> &'static str {
    let found = found(from, key);
    assert_eq!(found, Some((Token(0), Err(Unreadable::Format))));
    from.take_unusable()[&key].kind
}

#[test]
fn a_record_is_replaced_only_where_it_is_the_one_that_was_read() {
    let directory = TempDir::new().unwrap();
    // The first record creates the directory.
    let path = directory.path().join("new");
    let [mut one, mut two] = [register(&path), register(&path)];
    assert_eq!(found(&mut one, Key::Namespace), None);
    assert_eq!(write(&mut one, KEY, 3, bucket(false, 10), 2), Reply::Found(None));
    assert!(!path.exists());
    assert_eq!(write(&mut one, Key::Namespace, 1, namespace(), 0), Reply::Written);
    let stored = Some((Token(1), Ok(namespace())));
    assert_eq!(found(&mut two, Key::Namespace), stored);
    assert_eq!(write(&mut two, Key::Namespace, 2, namespace(), 0), Reply::Found(stored));
    assert_eq!(write(&mut two, KEY, 3, bucket(false, 10), 0), Reply::Written);
    assert_eq!(write(&mut one, KEY, 4, bucket(false, 20), 3), Reply::Written);
    let now = Some((Token(4), Ok(bucket(false, 20))));
    assert_eq!(write(&mut two, KEY, 5, bucket(false, 30), 3), Reply::Found(now.clone()));
    assert_eq!(found(&mut one, KEY), now);
    for turn in 5..40 {
        assert_eq!(
            write(&mut one, KEY, turn, bucket(false, turn as i64), turn - 1),
            Reply::Written
        );
        assert_eq!(line(&mut two), Some((turn, turn as i64, false)));
    }
    let mut names: Vec<_> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["datacenter-1-worker-5.slot", "namespace.slot"]);
}

#[test]
fn a_held_line_that_no_process_locks_is_free_with_its_ceiling() {
    let directory = TempDir::new().unwrap();
    let open = || register(directory.path());
    let [mut one, mut joiner, mut looker] = [open(), open(), open()];
    write(&mut one, KEY, 1, bucket(false, 5), 0);
    write(&mut one, KEY, 2, bucket(true, 10), 1);
    for register in [&mut one, &mut looker] {
        assert_eq!(line(register), Some((2, 10, true)));
    }
    // A process that shares the page holds it, too.
    joiner.hold(KEY, LONG).unwrap();
    // As the kernel does where a process dies.
    drop(one);
    assert_eq!(line(&mut looker), Some((2, 10, true)));
    joiner.let_go();
    assert_eq!(line(&mut looker), Some((2, 10, false)));
    // Its text stays as it was.
    joiner.hold(KEY, LONG).unwrap();
    assert_eq!(line(&mut looker), Some((2, 10, true)));
    // Lines of other worker IDs in the file have no lock: they are left to their expiry.
    let (token, Ok(Record::Bucket(one))) = found(&mut looker, KEY).unwrap() else { panic!() };
    let more = Record::Bucket(one.with(6, one.lines[&5].clone()));
    write(&mut joiner, KEY, 3, more, token.0);
    joiner.let_go();
    let Some((_, Ok(Record::Bucket(one)))) = found(&mut looker, KEY) else { panic!() };
    assert_eq!([5, 6].map(|worker| one.lines[&worker].is_held), [false, true]);
}

#[test]
fn a_hold_is_of_the_file_that_has_the_name() {
    let directory = TempDir::new().unwrap();
    let [mut one, mut looker] = [register(directory.path()), register(directory.path())];
    write(&mut one, KEY, 1, bucket(false, 5), 0);
    write(&mut one, KEY, 2, bucket(true, 10), 1);
    let path = one.path_of(KEY);
    fs::copy(&path, path.with_extension("copy")).unwrap();
    fs::rename(path.with_extension("copy"), &path).unwrap();
    assert_eq!(line(&mut looker), Some((2, 10, false)));
    write(&mut one, KEY, 3, bucket(true, 11), 2);
    assert_eq!(line(&mut looker), Some((3, 11, true)));
}

#[test]
fn a_write_that_was_torn_at_any_byte_never_was() {
    let directory = TempDir::new().unwrap();
    let mut one = register(directory.path());
    let path = one.path_of(KEY);
    write(&mut one, KEY, 1, bucket(false, 1), 0);
    for token in 2..5 {
        let before = fs::read(&path).unwrap();
        write(&mut one, KEY, token, bucket(false, token as i64), token - 1);
        let after = fs::read(&path).unwrap();
        let changed: Vec<usize> = (0..after.len()).filter(|at| before[*at] != after[*at]).collect();
        let (first, last) = (changed[0], *changed.last().unwrap());
        // Up to a byte, and from a byte on: sectors come to the disk in any order. What lies before the blocks is written after them.
        for at in (first..=last + 1).filter(|at| changed.contains(at) || *at == last + 1) {
            for is_first in [true, false] {
                let mut torn = if is_first { before.clone() } else { after.clone() };
                let from = if is_first { &after } else { &before };
                torn[first..at].copy_from_slice(&from[first..at]);
                torn[64..80].copy_from_slice(&before[64..80]);
                fs::write(&path, &torn).unwrap();
                let mut reader = register(directory.path());
                let read = line(&mut reader).unwrap();
                let is_whole = torn[4096..] == after[4096..];
                let expected = if is_whole { token } else { token - 1 };
                assert_eq!(read, (expected, expected as i64, false), "{at}");
                // And the file is as good as before.
                let next = bucket(false, 99);
                assert_eq!(write(&mut reader, KEY, 99, next, expected), Reply::Written);
                assert_eq!(line(&mut reader), Some((99, 99, false)));
            }
        }
        fs::write(&path, &after).unwrap();
    }
}

#[test]
fn what_power_cuts_leave_is_the_last_record_that_was_confirmed_or_one_written_later() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory = TempDir::new().unwrap();
        let is_failing = Arc::new(AtomicBool::new(false));
        let disk = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let flush: Flush = {
            let (disk, is_failing) = (disk.clone(), is_failing.clone());
            Arc::new(move |path, _| {
                if is_failing.load(SeqCst) {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                if path.is_file() {
                    *disk.lock() = fs::read(path)?;
                }
                Ok(())
            })
        };
        let open = || Register::with(directory.path(), flush.clone()).unwrap();
        let mut one = open();
        write(&mut one, KEY, 1, bucket(false, 1), 0);
        let path = one.path_of(KEY);
        let (mut token, mut written) = (1, 1);
        for _ in 0..30 {
            written += 1;
            is_failing.store(random.u8(..4) == 0, SeqCst);
            match tried(&mut one, KEY, written, bucket(false, written as i64), token) {
                Ok(Reply::Written) => token = written,
                Ok(Reply::Found(Some((now, _)))) => token = now.0,
                reply => assert!(reply.is_err() && is_failing.load(SeqCst), "{reply:?}"),
            }
            if random.bool() {
                continue;
            }
            // The power fails: of each sector that was not flushed, the disk has the old bytes or the new ones.
            is_failing.store(false, SeqCst);
            let (mut left, now) = (disk.lock().clone(), fs::read(&path).unwrap());
            for at in (0..left.len()).step_by(512).filter(|_| random.bool()) {
                left[at..at + 512].copy_from_slice(&now[at..at + 512]);
            }
            fs::write(&path, &left).unwrap();
            *disk.lock() = left;
            one = open();
            let (read, ceiling, _) = line(&mut one).unwrap();
            assert!(read >= token && ceiling == read as i64, "seed {seed}: {read} and {token}");
            token = read;
        }
    }
}

/// Of the files and names that were not flushed, the disk has any.
#[test]
fn what_power_cuts_leave_of_a_new_directory_is_what_was_confirmed_and_what_that_relies_on() {
    let mut lost = 0;
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory = TempDir::new().unwrap();
        let may_fail = Arc::new(AtomicBool::new(true));
        let names = |place: &Path| {
            let paths = paths_in(place, "slot").unwrap();
            paths.into_iter().map(|path| (fs::metadata(&path).unwrap().ino(), path))
        };
        // The bytes of files, and those that have their names.
        let disk = Arc::new(parking_lot::Mutex::new((HashMap::new(), HashSet::new())));
        let flush: Flush = {
            let (disk, may_fail) = (disk.clone(), may_fail.clone());
            let random = parking_lot::Mutex::new(random.fork());
            Arc::new(move |place, file| {
                if may_fail.load(SeqCst) && random.lock().u8(..6) == 0 {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                match file.metadata()? {
                    of if of.is_dir() => disk.lock().1 = names(place).map(|(of, _)| of).collect(),
                    of => _ = disk.lock().0.insert(of.ino(), fs::read(place)?),
                }
                Ok(())
            })
        };
        let open = || Register::with(directory.path(), flush.clone()).unwrap();
        let mut registers = [open(), open()];
        let (mut token, mut is_counted, mut confirmed, mut was_made) = (0, false, None, false);
        for _ in 0..20 {
            token += 1;
            let one = &mut registers[random.usize(..2)];
            // What a lease does.
            let mut seen = [Key::Namespace, KEY].map(|key| one.answer(&Call::Read(key), LONG));
            let (key, before, record) = match &mut seen {
                [Ok(Reply::Found(None)), _] => (Key::Namespace, None, namespace()),
                [_, Ok(Reply::Found(None))] => (KEY, None, Record::Bucket(Bucket::new(Token(9)))),
                [Ok(Reply::Found(Some((before, Ok(Record::Namespace(of)))))), Ok(_)]
                    if !of.created.contains(5) =>
                {
                    of.count(5);
                    (Key::Namespace, Some(*before), Record::Namespace(of.clone()))
                }
                [Ok(_), Ok(Reply::Found(Some((before, _))))] => {
                    (KEY, Some(*before), bucket(false, token))
                }
                _ => continue,
            };
            let call = Call::Write { key, token: Token(token as u64), record, before };
            if matches!(one.answer(&call, LONG), Ok(Reply::Written)) {
                match (key, before) {
                    (Key::Namespace, None) => was_made = true,
                    (Key::Namespace, _) => is_counted = true,
                    (_, None) => {}
                    _ => confirmed = Some(token),
                }
            }
            if random.u8(..3) > 0 {
                continue;
            }
            may_fail.store(false, SeqCst);
            let mut disk = disk.lock();
            let now: Vec<_> = names(directory.path()).collect();
            for (file, path) in now {
                if !disk.1.contains(&file) && random.bool() {
                    fs::remove_file(path).unwrap();
                    continue;
                }
                let (now, left) = (fs::read(&path).unwrap(), disk.0.get_mut(&file).unwrap());
                for at in (0..left.len()).step_by(512).filter(|_| random.bool()) {
                    left[at..at + 512].copy_from_slice(&now[at..at + 512]);
                }
                fs::write(&path, left).unwrap();
            }
            disk.1 = names(directory.path()).map(|(file, _)| file).collect();
            drop(disk);
            registers = [open(), open()];
            let created = match found(&mut registers[0], Key::Namespace) {
                Some((_, Ok(Record::Namespace(of)))) => Some(of.created.contains(5)),
                found => found.map(|found| panic!("seed {seed}: {found:?}")),
            };
            lost += usize::from(was_made && created.is_none());
            was_made = created.is_some();
            if is_counted || confirmed.is_some() {
                assert_eq!(created, Some(true), "seed {seed}");
            }
            if let Some(confirmed) = confirmed {
                let found = line(&mut registers[0]);
                assert!(found.is_some_and(|found| found.1 >= confirmed), "seed {seed}: {found:?}");
            }
            may_fail.store(true, SeqCst);
        }
    }
    assert!(lost > 20, "of those that nothing relied on: {lost}");
}

#[test]
fn a_record_counts_once_it_is_known_to_be_on_the_disk() {
    let directory = TempDir::new().unwrap();
    let flushes = Arc::new(AtomicUsize::new(0));
    let counted: Flush = {
        let flushes = flushes.clone();
        Arc::new(move |_, file| {
            flushes.fetch_add(1, SeqCst);
            file.sync_data()
        })
    };
    let mut one = Register::with(directory.path(), counted).unwrap();
    write(&mut one, KEY, 1, bucket(false, 1), 0);
    write(&mut one, KEY, 2, bucket(false, 2), 1);
    assert_eq!(flushes.load(SeqCst), 3, "the file, its name, and a change");
    assert_eq!(line(&mut one), Some((2, 2, false)));
    assert_eq!(flushes.load(SeqCst), 3);
    // A process that dies between write and flush, or whose disk fails.
    let full: Flush = Arc::new(|_, _| Err(io::ErrorKind::StorageFull.into()));
    let mut dying = Register::with(directory.path(), full).unwrap();
    let failure = tried(&mut dying, KEY, 3, bucket(false, 3), 2).unwrap_err();
    assert_eq!(failure.class, Class::Io(io::ErrorKind::StorageFull));
    let failure = dying.answer(&Call::Read(KEY), SHORT).unwrap_err();
    assert_eq!(failure.class, Class::Io(io::ErrorKind::StorageFull));
    drop(dying);
    assert_eq!(line(&mut one), Some((3, 3, false)));
    assert_eq!(flushes.load(SeqCst), 4, "the reader has flushed it");
    assert_eq!(line(&mut one), Some((3, 3, false)));
    assert_eq!(flushes.load(SeqCst), 4);
}

#[test]
fn a_full_disk_keeps_no_record_from_being_changed() {
    let directory = TempDir::new().unwrap();
    let name = std::ffi::CString::new(directory.path().to_str().unwrap()).unwrap();
    // SAFETY: all are C strings.
    let status = unsafe {
        let (kind, options) = (c"tmpfs".as_ptr(), c"size=128k".as_ptr());
        libc::mount(kind, name.as_ptr(), kind, 0, options.cast())
    };
    if status != 0 {
        eprintln!("skipped: this user cannot mount a file system");
        return;
    }
    let mut one = register(directory.path());
    write(&mut one, KEY, 1, bucket(false, 1), 0);
    let filled = fs::write(directory.path().join("more"), vec![1; 128 << 10]);
    assert_eq!(filled.unwrap_err().kind(), io::ErrorKind::StorageFull);
    for token in 2..9 {
        assert_eq!(write(&mut one, KEY, token, bucket(true, 1), token - 1), Reply::Written);
    }
    assert_eq!(line(&mut register(directory.path())), Some((8, 1, true)));
    // Slots that have files can be used.
    assert!(matches!(tried(&mut one, OTHER, 1, bucket(false, 1), 0), Ok(Reply::Found(_))));
    assert_eq!(one.take_unusable().remove(&OTHER).unwrap().kind, "slot-io");
    assert_eq!(found(&mut one, OTHER), None, "and no file is left half made");
    drop(one);
    // SAFETY: as above.
    unsafe { libc::umount2(name.as_ptr(), libc::MNT_DETACH) };
}

#[test]
fn a_process_that_is_stopped_while_it_changes_a_record_is_named_and_concerns_that_record_alone() {
    let directory = TempDir::new().unwrap();
    let mut one = register(directory.path());
    for key in [KEY, OTHER] {
        write(&mut one, key, 1, bucket(false, 1), 0);
    }
    let path = one.path_of(KEY);
    let stopped = RecordFile::open(&path, KEY, true).unwrap();
    let change = stopped.change(SHORT).unwrap();
    // Who only reads does not wait.
    assert_eq!(line(&mut one), Some((1, 1, false)));
    let begun = Instant::now();
    let failure = tried(&mut one, KEY, 2, bucket(false, 2), 1).unwrap_err();
    assert!(begun.elapsed() >= SHORT);
    assert_eq!(failure.fault.kind, "slot-changing");
    assert_eq!(failure.fault.detail("pid"), Some(&std::process::id().into()));
    assert_eq!(write(&mut one, OTHER, 2, bucket(false, 2), 1), Reply::Written);
    // It dies, or goes on.
    thread::scope(|scope| {
        let record = bucket(false, 2);
        let call = Call::Write { key: KEY, token: Token(2), record, before: Some(Token(1)) };
        let written = scope.spawn(move || one.answer(&call, LONG));
        drop(change);
        assert_eq!(written.join().unwrap().unwrap(), Reply::Written);
    });
}

#[test]
fn a_slot_that_is_passed_over_stays_so_until_its_own_file_can_be_changed() {
    let directory = TempDir::new().unwrap();
    let mut one = register(directory.path());
    let stopped = [KEY, OTHER].map(|key| {
        write(&mut one, key, 1, bucket(false, 1), 0);
        RecordFile::open(&one.path_of(key), key, true).unwrap()
    });
    let [change, other] = [0, 1].map(|at| stopped[at].change(SHORT).unwrap());
    for key in [KEY, OTHER] {
        let fault = tried(&mut one, key, 2, bucket(false, 2), 1).unwrap_err().fault;
        assert_eq!(one.pass_over(key, fault), Some((Token(0), Err(Unreadable::Format))));
        assert_eq!(one.take_unusable()[&key].kind, "slot-changing");
    }
    drop(other);
    assert!(found(&mut one, OTHER).is_some_and(|(_, record)| record.is_ok()));
    assert_eq!(unusable(&mut one, KEY), "slot-changing");
    drop(change);
    assert_eq!(line(&mut one), Some((1, 1, false)));
    // From now on a read waits for nobody again.
    let _change = stopped[0].change(SHORT).unwrap();
    assert_eq!(line(&mut one), Some((1, 1, false)));
}

#[test]
fn of_many_that_write_at_once_one_does() {
    let directory = TempDir::new().unwrap();
    let mut one = register(directory.path());
    write(&mut one, KEY, 1, bucket(false, 1), 0);
    const THREADS: u64 = 4;
    const WRITES: u64 = 60;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let directory = directory.path();
            scope.spawn(move || {
                let (mut register, mut seen) = (register(directory), 0);
                for write in 0..WRITES {
                    let token = (thread + 1) << 32 | (write + 1);
                    loop {
                        let (before, count, _) = line(&mut register).unwrap();
                        assert!(count >= seen, "a record never goes back");
                        seen = count + 1;
                        let record = bucket(false, seen);
                        let call = Call::Write {
                            key: KEY,
                            token: Token(token),
                            record,
                            before: Some(Token(before)),
                        };
                        if register.answer(&call, LONG).unwrap() == Reply::Written {
                            break;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(line(&mut one).unwrap().1, 1 + (THREADS * WRITES) as i64);
}

#[test]
fn damage_concerns_one_file_and_is_named() {
    let directory = TempDir::new().unwrap();
    let mut one = register(directory.path());
    for token in 1..4 {
        write(&mut one, KEY, token, bucket(false, 1), token - 1);
    }
    write(&mut one, OTHER, 1, bucket(false, 1), 0);
    let path = one.path_of(KEY);
    let whole = fs::read(&path).unwrap();
    let with = |bytes: Vec<u8>| {
        fs::write(&path, bytes).unwrap();
        unusable(&mut register(directory.path()), KEY)
    };
    let changed = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        bytes
    };
    assert_eq!(with(Vec::new()), "slot-foreign");
    assert_eq!(with(b"hello".repeat(9000)), "slot-foreign");
    assert_eq!(with(changed(8, 3)), "slot-older");
    assert_eq!(with(changed(8, 5)), "slot-newer");
    assert_eq!(with(whole[..9000].to_vec()), "slot-length");
    assert_eq!(with([&*whole, &[0]].concat()), "slot-length");
    assert_eq!(with(fs::read(one.path_of(OTHER)).unwrap()), "slot-misnamed");
    // What was confirmed is damaged: nobody knows what that was.
    let newest = (0..2).map(|block| 4096 + block * 20480).max_by_key(|at| whole[at + 8]).unwrap();
    assert_eq!(with(changed(newest + 30, 0xff)), "slot-damaged");
    // The block before does not count.
    let other = 4096 + 4096 + 20480 - newest;
    fs::write(&path, changed(other + 30, 0xff)).unwrap();
    assert_eq!(line(&mut one), Some((3, 1, false)));
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/null", &path).unwrap();
    assert_eq!(unusable(&mut one, KEY), "slot-link");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(unusable(&mut one, KEY), "slot-not-a-file");
    assert!(found(&mut one, OTHER).is_some_and(|(_, record)| record.is_ok()));
    // In a directory, a record is of one worker ID.
    let Record::Namespace(namespace) = namespace() else { panic!() };
    write(&mut one, Key::Namespace, 1, Record::Namespace(Namespace { size: 8, ..namespace }), 0);
    assert_eq!(unusable(&mut one, Key::Namespace), "slot-damaged");
}

#[test]
fn an_operator_sees_the_newest_record_and_changes_nothing() {
    let directory = TempDir::new().unwrap();
    let mut one = register(directory.path());
    let looker = Register::existing(directory.path()).unwrap();
    let look = |key| looker.look(key, SHORT).unwrap();
    write(&mut one, Key::Namespace, 1, namespace(), 0);
    assert_eq!(look(Key::Namespace), Some((Token(1), namespace().text())));
    assert_eq!((look(KEY), looker.buckets().unwrap()), (None, vec![]));
    write(&mut one, KEY, 1, bucket(true, 1), 0);
    assert_eq!(look(KEY), Some((Token(1), bucket(true, 1).text())));
    // Its holder dies in the middle of a change, before its record is known to be on the disk.
    let stopped = RecordFile::open(&one.path_of(KEY), KEY, true).unwrap();
    write(&mut one, KEY, 2, bucket(true, 2), 1);
    let path = one.path_of(KEY);
    let mut bytes = fs::read(&path).unwrap();
    bytes[contents::SETTLED] = 1;
    fs::write(&path, &bytes).unwrap();
    let change = stopped.change(SHORT).unwrap();
    drop(one);
    let before = fs::read(&path).unwrap();
    assert_eq!(look(KEY), Some((Token(2), bucket(false, 2).text())));
    assert_eq!(fs::read(&path).unwrap(), before);
    drop(change);
    // A text that no holder writes is shown as it is.
    let file = RecordFile::open(&path, KEY, true).unwrap();
    let text = "snowdrift2 bucket".to_owned();
    file.write((Token(3), text.clone()), Some(Token(2)), &to_disk(), SHORT).unwrap();
    assert_eq!(look(KEY), Some((Token(3), text)));
    // Other files are no buckets.
    for name in ["datacenter-01-worker-5.slot", "datacenter-1-worker-5.held", "x.slot"] {
        fs::write(directory.path().join(name), "").unwrap();
    }
    assert_eq!(looker.buckets().unwrap(), [KEY]);
    assert!(Register::existing(&directory.path().join("absent")).is_err_and(|no| no.is_missing()));
}

#[test]
fn who_replaces_a_record_as_an_operator_holds_nothing() {
    let directory = TempDir::new().unwrap();
    let [mut holder, mut operator] = [(); 2].map(|()| register(directory.path()));
    let (held, free) = (bucket(true, 1), bucket(false, 1));
    assert!(operator.replace(KEY, (Token(1), &held), None, SHORT).unwrap());
    assert!(!operator.replace(KEY, (Token(2), &held), None, SHORT).unwrap());
    assert_eq!(line(&mut holder), Some((1, 1, false)));
    holder.hold(KEY, SHORT).unwrap();
    assert!(!operator.replace(KEY, (Token(2), &held), Some(Token(9)), SHORT).unwrap());
    assert!(operator.replace(KEY, (Token(2), &free), Some(Token(1)), SHORT).unwrap());
    assert!(operator.replace(KEY, (Token(3), &held), Some(Token(2)), SHORT).unwrap());
    assert_eq!(line(&mut operator), Some((3, 1, true)));
    drop(holder);
    assert_eq!(line(&mut operator), Some((3, 1, false)));
}

#[test]
fn no_damaged_byte_makes_another_record_of_a_confirmed_one() {
    let directory = TempDir::new().unwrap();
    let mut one = register(directory.path());
    for token in 1..4 {
        write(&mut one, KEY, token, bucket(false, token as i64), token - 1);
    }
    let (path, record) = (one.path_of(KEY), found(&mut one, KEY));
    let whole = fs::read(&path).unwrap();
    let read = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        found(&mut register(directory.path()), KEY)
    };
    let refused = Some((Token(0), Err(Unreadable::Format)));
    let written =
        |at: &usize| at % 20480 < 600 || (4096..4700).contains(at) || at.is_multiple_of(97);
    let mut count = 0;
    for at in (0..whole.len()).filter(written) {
        let mut bytes = whole.clone();
        bytes[at] ^= [0x01, 0x80, 0xff][at % 3];
        let now = read(&bytes);
        count += u32::from(now == refused);
        assert!(now == record || now == refused, "byte {at}: {now:?}");
    }
    assert!((150..800).contains(&count), "{count} of the file's bytes count");
    for len in [0, 1, 8, 11, 12, 79, 80, 4095, 4096, whole.len() - 1] {
        assert_eq!(read(&whole[..len]), refused, "{len}");
    }
    assert_eq!(read(&whole), record);
}

#[test]
fn what_others_may_have_placed_is_not_used() {
    // SAFETY: it only answers.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can give files to others");
        return;
    }
    use std::os::unix::fs::{PermissionsExt, chown};
    let directory = TempDir::new().unwrap();
    let mut one = register(directory.path());
    write(&mut one, KEY, 1, bucket(false, 1), 0);
    let path = one.path_of(KEY);
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(&path, 0o666);
    assert_eq!(unusable(&mut one, KEY), "slot-writable");
    set_mode(&path, 0o600);
    chown(&path, Some(4711), None).unwrap();
    assert_eq!(unusable(&mut one, KEY), "slot-owner");
    chown(&path, Some(0), None).unwrap();
    fs::hard_link(&path, directory.path().join("link")).unwrap();
    assert_eq!(line(&mut one), Some((1, 1, false)), "nobody else can have made the link");
    set_mode(directory.path(), 0o777);
    assert_eq!(unusable(&mut one, KEY), "slot-linked");
}

#[test]
fn a_file_that_may_not_be_opened_is_unusable_as_long_as_it_is_not_held() {
    let directory = TempDir::new().unwrap();
    let mut one = register(directory.path());
    let failed = |kind: io::ErrorKind, key| {
        Failure::io("slot-io", "open", &register(directory.path()).path_of(key))(kind.into())
    };
    let denied = |key| failed(io::ErrorKind::PermissionDenied, key);
    assert!(one.is_unusable(KEY, &denied(KEY)));
    assert!(!one.is_unusable(KEY, &denied(Key::Namespace)), "another file failed");
    assert!(!one.is_unusable(KEY, &failed(io::ErrorKind::StorageFull, KEY)));
    write(&mut one, KEY, 1, bucket(true, 1), 0);
    assert!(!one.is_unusable(KEY, &denied(KEY)), "its holder waits until it may");
    assert!(one.is_unusable(OTHER, &denied(OTHER)));
}

#[test]
fn a_disk_that_is_full_at_the_start_leaves_nothing_behind() {
    let directory = TempDir::new().unwrap();
    let full: Flush = Arc::new(|_, _| Err(io::ErrorKind::StorageFull.into()));
    let mut one = Register::with(directory.path(), full).unwrap();
    // A slot that has a file may be used.
    assert!(matches!(tried(&mut one, KEY, 1, bucket(false, 1), 0), Ok(Reply::Found(_))));
    assert_eq!(one.take_unusable().remove(&KEY).unwrap().kind, "slot-io");
    let failure = tried(&mut one, Key::Namespace, 1, namespace(), 0).unwrap_err();
    assert_eq!(failure.class, Class::Io(io::ErrorKind::StorageFull));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_copied_directory_is_another_namespace_and_a_renamed_one_is_not() {
    let directory = TempDir::new().unwrap();
    let [path, moved, copy] = ["one", "moved", "copy"].map(|name| directory.path().join(name));
    let mut one = register(&path);
    write(&mut one, Key::Namespace, 1, namespace(), 0);
    write(&mut one, KEY, 1, bucket(false, 1), 0);
    fs::rename(&path, &moved).unwrap();
    let gone = one.answer(&Call::Read(KEY), SHORT).unwrap_err();
    assert!(gone.is_missing() && gone.is_of(&path), "it is not created again");
    assert!(tried(&mut one, KEY, 2, bucket(false, 1), 0).is_err() && !path.exists());
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(&moved).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    let [moved, copied] = [moved, copy].map(|path| {
        let mut register = register(&path);
        [Key::Namespace, KEY].map(|key| match found(&mut register, key) {
            Some((_, Ok(Record::Namespace(Namespace { id, .. })))) => id,
            Some((_, Ok(Record::Bucket(Bucket { id, .. })))) => id,
            found => panic!("{found:?}"),
        })
    });
    assert_eq!(moved, [Token(9); 2]);
    assert!(copied[0] != Token(9) && copied[0] == copied[1]);
}

#[test]
fn who_creates_a_record_with_a_held_line_holds_it() {
    let directory = TempDir::new().unwrap();
    let mut one = register(directory.path());
    write(&mut one, KEY, 1, bucket(true, 1), 0);
    assert_eq!(line(&mut register(directory.path())), Some((1, 1, true)));
    one.let_go();
    assert_eq!(line(&mut one), Some((1, 1, false)));
}

#[test]
fn a_file_that_was_replaced_is_not_written() {
    let directory = TempDir::new().unwrap();
    let mut one = register(directory.path());
    write(&mut one, KEY, 1, bucket(false, 1), 0);
    let path = one.path_of(KEY);
    let opened = RecordFile::open(&path, KEY, true).unwrap();
    fs::copy(&path, path.with_extension("copy")).unwrap();
    fs::rename(path.with_extension("copy"), &path).unwrap();
    let new = (Token(2), bucket(false, 2).text());
    let failure = opened.write(new, Some(Token(1)), &to_disk(), SHORT).unwrap_err();
    assert_eq!(failure.fault.kind, "slot-moved");
    assert_eq!(line(&mut one), Some((1, 1, false)));
}

#[test]
fn a_new_namespace_with_a_floor_has_its_name_at_once() {
    for (floor, names) in [(-1, 0), (5, 1)] {
        let directory = TempDir::new().unwrap();
        let flushed = Arc::new(AtomicUsize::new(0));
        let flush: Flush = {
            let flushed = flushed.clone();
            Arc::new(move |_, file| {
                flushed.fetch_add(usize::from(file.metadata()?.is_dir()), SeqCst);
                Ok(())
            })
        };
        let mut one = Register::with(directory.path(), flush).unwrap();
        let Record::Namespace(namespace) = namespace() else { unreachable!() };
        let record = Record::Namespace(Namespace { floor, ..namespace });
        assert_eq!(write(&mut one, Key::Namespace, 1, record, 0), Reply::Written);
        assert_eq!(flushed.load(SeqCst), names, "a floor of {floor}");
    }
}

#[test]
fn a_holder_that_writes_the_namespace_holds_its_slot_as_before() {
    let directory = TempDir::new().unwrap();
    let mut one = register(directory.path());
    write(&mut one, KEY, 1, bucket(true, 1), 0);
    write(&mut one, Key::Namespace, 2, namespace(), 0);
    assert_eq!(line(&mut register(directory.path())), Some((1, 1, true)));
}

#[test]
fn each_directory_of_a_device_is_another_place() {
    let places: HashSet<u64> = (0..1000).map(|file| mixed((7, file))).collect();
    assert_eq!(places.len(), 1000);
}

#[test]
fn only_files_with_the_names_of_buckets_are_listed() {
    let directory = TempDir::new().unwrap();
    let mut one = register(directory.path());
    write(&mut one, KEY, 1, bucket(false, 1), 0);
    write(&mut one, Key::Namespace, 2, namespace(), 0);
    fs::write(directory.path().join("datacenter-01-worker-7.slot"), "").unwrap();
    assert_eq!(one.buckets().unwrap(), [KEY]);
}

#[test]
fn a_socket_in_a_slot_s_place_is_named() {
    let directory = TempDir::new().unwrap();
    let mut one = register(directory.path());
    let _socket = std::os::unix::net::UnixListener::bind(one.path_of(KEY)).unwrap();
    assert_eq!(unusable(&mut one, KEY), "slot-not-a-file");
}

#[test]
fn a_file_that_cannot_be_read_fails_at_once() {
    // The first bytes of a process's memory cannot be read.
    let path = format!("/proc/{}/mem", std::process::id());
    let file = RecordFile::open(Path::new(&path), KEY, false).unwrap();
    let failure = file.look(LONG).unwrap_err();
    assert!(matches!(failure.class, Class::Io(_)), "{failure:?}");
}

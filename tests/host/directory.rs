//! What stands where the directory should be, or in it.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use snowdrift::core::clock::SystemClock;
use snowdrift::core::fault::{Class, Fault};
use snowdrift::core::layout::Layout;
use snowdrift::core::node::Node;
use snowdrift::generator::Generator;
use snowdrift::pages::{BootId, Directory};

use super::{directory, draw, generator, is_root, memory, node, open};

fn place(shared: &Path) -> PathBuf {
    let uid = fs::metadata(shared).unwrap().uid();
    shared.join(format!("snowdrift-{uid}"))
}

/// The error names the directory, and is of this kind.
fn refused(shared: &Path, words: &str) {
    let error = format!("{:?}", Directory::with(shared, BootId::now()).unwrap_err());
    assert!(error.contains(place(shared).to_str().unwrap()), "{error}");
    assert!(error.contains(words), "{error}");
}

#[test]
fn it_is_made_for_its_user_only_and_says_what_it_is() {
    let shared = memory();
    let generator = generator(shared.path(), node(3));
    let path = place(shared.path());
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o711);
    let file = fs::metadata(generator.page().path().unwrap()).unwrap();
    assert_eq!((file.mode() & 0o7777, file.len(), file.nlink()), (0o600, 4096, 2));
    let readme = fs::read_to_string(path.join("README")).unwrap();
    assert!(readme.contains("snowdrift slots"), "{readme}");
}

#[test]
fn a_squatted_name_is_an_error() {
    let shared = memory();
    let path = place(shared.path());
    let elsewhere = memory();
    symlink(elsewhere.path(), &path).unwrap();
    refused(shared.path(), "(\"isLink\", Flag(true))");
    fs::remove_file(&path).unwrap();
    symlink("nothing", &path).unwrap();
    refused(shared.path(), "(\"isLink\", Flag(true))");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    refused(shared.path(), "not-a-directory");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    for mode in [0o777, 0o1777, 0o770, 0o702] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        refused(shared.path(), "directory-writable");
    }
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    directory(shared.path());
    if is_root() {
        chown(&path, Some(54_321), None).unwrap();
        refused(shared.path(), "(\"owner\", Number(54321.0))");
    } else {
        println!("skipped: only root can give a directory to another user");
    }
}

/// Someone who may not write there, made it read-only, or removed it later.
#[test]
fn a_directory_that_is_harmed_later_is_an_error_or_made_again() {
    let shared = memory();
    let directory = directory(shared.path());
    fs::remove_dir(directory.path()).unwrap();
    generator(shared.path(), node(0));
    let open = || open(&directory, node(1), SystemClock);
    assert!(open().is_ok());
    fs::remove_dir_all(directory.path()).unwrap();
    symlink("/dev", directory.path()).unwrap();
    let error = format!("{:?}", open().err().unwrap());
    assert!(error.contains("(\"isLink\", Flag(true))"), "{error}");
}

#[test]
fn a_directory_that_was_removed_has_no_pages_and_one_that_cannot_be_read_is_an_error() {
    let shared = memory();
    let directory = directory(shared.path());
    generator(shared.path(), node(0));
    assert_eq!(directory.pages().unwrap().len(), 1);
    fs::remove_dir_all(directory.path()).unwrap();
    assert_eq!(directory.pages().unwrap().len(), 0);
    fs::write(directory.path(), "").unwrap();
    let refused = directory.pages().unwrap_err();
    assert!(refused.is_of(directory.path()) && refused.fault.kind == "page-io", "{refused:?}");
}

#[test]
fn a_second_user_s_page_is_its_own_or_of_the_user_that_this_process_was() {
    if !is_root() {
        println!("skipped: only root can give a file to another user");
        return;
    }
    let shared = memory();
    let directory = directory(shared.path());
    generator(shared.path(), node(0));
    let theirs = shared.path().join("snowdrift-54321");
    fs::create_dir(&theirs).unwrap();
    let page = theirs.join(directory.page_of(&node(0)).file_name().unwrap());
    let users = || directory.second_users(&node(0)).len();
    for (owner, count) in [(54_321, 1), (0, 1), (54_322, 0)] {
        fs::write(&page, "").unwrap();
        chown(&page, Some(owner), None).unwrap();
        assert_eq!(users(), 0, "nobody uses it");
        let used = File::options().read(true).write(true).open(&page).unwrap();
        used.lock_shared().unwrap();
        assert_eq!(users(), count, "of {owner}");
        drop(used);
        assert_eq!(users(), 0, "its user has ended");
    }
    fs::remove_file(&page).unwrap();
    fs::create_dir(&page).unwrap();
    assert_eq!(users(), 0, "not a file");
}

/// The last ID of a user who has ended may be of the same tick.
#[test]
fn a_second_user_who_has_ended_still_counts_if_ticks_are_long() {
    if !is_root() {
        println!("skipped: only root can give a file to another user");
        return;
    }
    let shared = memory();
    let directory = directory(shared.path());
    let theirs = shared.path().join("snowdrift-54321");
    fs::create_dir(&theirs).unwrap();
    let long = Node::new(Layout { tick_ms: 1000, ..Layout::NODE }, 1, 0).unwrap();
    let page = theirs.join(directory.page_of(&long).file_name().unwrap());
    fs::write(&page, "").unwrap();
    chown(&page, Some(54_321), None).unwrap();
    assert_eq!(directory.second_users(&long).len(), 1);
}

#[test]
fn where_it_may_be() {
    let error = Fault::from(Directory::find(Some(Path::new("/nowhere/at/all"))).unwrap_err());
    assert_eq!(error.details[..2], [("doing", "find".into()), ("place", "/nowhere/at/all".into())]);
    // A disk's file system: what is full or frozen there would stop or end whoever maps its files.
    let error = Fault::from(Directory::find(Some(Path::new("/proc"))).unwrap_err());
    assert_eq!((error.kind, &error.details[0]), ("not-in-memory", &("place", "/proc".into())));
    // Through a link it is the same directory.
    let shared = memory();
    let link = tempfile::tempdir().unwrap();
    symlink(shared.path(), link.path().join("link")).unwrap();
    let linked = Directory::find(Some(&link.path().join("link"))).unwrap().unwrap();
    assert_eq!(linked.path(), directory(shared.path()).path());
}

#[test]
fn without_a_directory_the_sequence_is_the_processes_own() {
    let generator = Generator::new(node(0), 0, Box::new(SystemClock));
    assert!(generator.page().path().is_none());
    assert!(draw(&generator, 1).is_ok());
}

/// A mount of its own, with so many KiB.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(kib: u32) -> Option<Mounted> {
        let at = tempfile::tempdir().unwrap();
        let size = format!("size={kib}k");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at.path());
        let is_mounted = mount.status().is_ok_and(|status| status.success());
        is_mounted.then_some(Mounted(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_file_system_is_an_error_and_stops_no_page_that_is_there() {
    let Some(mounted) = Mounted::new(16).filter(|_| is_root()) else {
        println!("skipped: no tmpfs can be mounted here");
        return;
    };
    let shared = mounted.0.path();
    let open = |worker| open(&directory(shared), node(worker), SystemClock);
    let first = open(0).unwrap();
    let ballast = shared.join("ballast");
    // As much as there is room for.
    fs::write(&ballast, vec![1; 64 << 10]).unwrap_err();
    let error = open(1).err().unwrap();
    assert_eq!(error.class, Class::Io(std::io::ErrorKind::StorageFull));
    assert!(error.is_of(&directory(shared).page_of(&node(1))), "{error:?}");
    let names = fs::read_dir(directory(shared).path()).unwrap();
    let is_temporary = |name: &std::ffi::OsString| name.to_str().unwrap().starts_with(".new");
    let left: Vec<_> = names.map(|name| name.unwrap().file_name()).filter(is_temporary).collect();
    assert!(left.is_empty(), "{left:?}");
    let opened_again = open(0).unwrap();
    for generator in [first, opened_again] {
        let drawn = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            draw(&generator, 1).ok()
        });
        assert!(drawn.is_some());
    }
    fs::remove_file(&ballast).unwrap();
    open(1).unwrap();
}

#[test]
fn what_killed_processes_left_is_swept_when_it_is_old() {
    let shared = memory();
    let directory = directory(shared.path());
    let left = |name: &str, age: u64| {
        let path = directory.path().join(name);
        let file = fs::File::create(&path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        path
    };
    let (old, young) = (left(".new-old", 61), left(".new-young", 5));
    let other = left("other", 1000);
    generator(shared.path(), node(0));
    assert_eq!([&old, &young, &other].map(|path| path.exists()), [false, true, true]);
}

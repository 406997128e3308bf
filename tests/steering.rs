//! What a test and its processes share: a clock that the test moves, logs of what they drew, and how IDs of
//! all are compared.

use std::env;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use memmap2::{MmapMut, MmapOptions};
use snowdrift::core::clock::{Clock, SystemClock, UnixTime};
use snowdrift::generator::{Generator, Policies, Reserved, Stalled, UserPage, Waits};
use tempfile::TempDir;

/// A memory file system's directory of the test's own.
pub fn memory() -> TempDir {
    tempfile::Builder::new().prefix("snowdrift-test-").tempdir_in("/dev/shm").unwrap()
}

fn map(file: &File) -> MmapMut {
    // SAFETY: the file is the test's own. It is changed atomically, or by one process that nobody else reads
    // before it has ended.
    unsafe { MmapOptions::new().map_mut(file) }.unwrap()
}

/// A few numbers in a file that the test and its processes map.
pub struct Steering(MmapMut);

impl Steering {
    pub fn new(path: &Path) -> Steering {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.unwrap();
        file.set_len(4096).unwrap();
        Steering(map(&file))
    }

    pub fn word(&self, index: usize) -> &AtomicI64 {
        // SAFETY: the map is larger and aligned, and only changed atomically.
        unsafe { &*self.0.as_ptr().cast::<AtomicI64>().add(index) }
    }

    /// By how many ms the processes' clock is off.
    pub fn clock_off(&self) -> &AtomicI64 {
        self.word(0)
    }

    /// What the processes do, as each test numbers it.
    pub fn phase(&self) -> &AtomicI64 {
        self.word(1)
    }

    /// Mostly small rollbacks, which counters answer; and jumps both ways.
    pub fn jump(&self) {
        let off = if fastrand::bool() { -300..300 } else { -10_000..10_000 };
        self.clock_off().store(fastrand::i64(off), SeqCst);
    }
}

/// The system's clock, off by what the test says.
impl Clock for Steering {
    fn now(&self) -> UnixTime {
        let now = SystemClock.now();
        UnixTime { ms: now.ms + self.clock_off().load(SeqCst), ..now }
    }

    fn wait(&self, duration: Duration) {
        SystemClock.wait(duration);
    }
}

/// Starts this executable with one of a module's tests, which is none unless it is started so. `by` is what starts
/// it; without that, what runs executables for another processor, such as `qemu-aarch64`.
pub fn command(by: &[&str], module: &str, test: &str) -> Command {
    let runner = env::var("HOST_TEST_RUNNER").unwrap_or_default();
    let own = env::current_exe().unwrap().into_os_string();
    let by = by.iter().copied().chain(runner.split_whitespace()).map(OsString::from);
    let mut words = by.chain([own]);
    let mut command = Command::new(words.next().expect("it ends with its own"));
    let (_, module) = module.split_once("::").expect("it begins with the crate");
    let test = format!("{module}::{test}");
    command.args(words).args(["--exact", &test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.stdout(Stdio::null());
    command
}

/// What a process drew, in a file that outlives it: 16 bytes a block.
pub struct Log {
    map: MmapMut,
    at: usize,
}

impl Log {
    pub fn new(path: &Path) -> Log {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
        // Room for many seconds of one that draws alone. What is not written takes no memory.
        file.set_len(256 << 20).unwrap();
        Log { map: map(&file), at: 0 }
    }

    /// False where it is full.
    pub fn append(&mut self, (first_id, len): (u64, u64)) -> bool {
        let Some(entry) = self.map.get_mut(self.at..self.at + 16) else { return false };
        entry[..8].copy_from_slice(&first_id.to_ne_bytes());
        entry[8..].copy_from_slice(&len.to_ne_bytes());
        self.at += 16;
        true
    }
}

/// How many blocks and IDs a process has logged so far, of the first 64 Ki blocks; it may go on.
fn logged_so_far(log: &Path) -> (usize, u64) {
    let mut bytes = Vec::new();
    let read = File::open(log).and_then(|file| file.take(1 << 20).read_to_end(&mut bytes));
    if read.is_err() {
        return (0, 0);
    }
    let (words, _) = bytes.as_chunks::<8>();
    let lens = words.iter().skip(1).step_by(2).map(|len| u64::from_ne_bytes(*len));
    lens.take_while(|&len| len > 0).fold((0, 0), |(blocks, ids), len| (blocks + 1, ids + len))
}

/// What a process logged: first IDs, and how many. Nothing, if it was killed before it had a log.
pub fn logged(log: &Path) -> Vec<(u64, u64)> {
    let Ok(file) = File::open(log) else { return Vec::new() };
    // SAFETY: the process that wrote to it has ended.
    let Ok(bytes) = (unsafe { MmapOptions::new().map(&file) }) else { return Vec::new() };
    let (words, _) = bytes.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let number = |word: &[u8; 8]| u64::from_ne_bytes(*word);
    pairs
        .iter()
        .map(|[id, len]| (number(id), number(len)))
        .take_while(|&(_, len)| len > 0)
        .collect()
}

pub fn signal(child: &Child, signal: i32) {
    // SAFETY: a signal to a process that was started here, and was not waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

/// Processes that draw, each of which logs that to a file of its own. One that is killed is followed by
/// another.
pub struct Drawers<Start> {
    start: Start,
    logs: TempDir,
    count: usize,
    pub children: Vec<Child>,
    pub kills: usize,
}

impl<Start: FnMut(usize, &Path) -> Child> Drawers<Start> {
    /// @param start starts one by its index among them, with the file it logs to
    pub fn new(count: usize, start: Start) -> Self {
        let mut all = Drawers { start, logs: memory(), count: 0, children: Vec::new(), kills: 0 };
        for index in 0..count {
            let child = all.begin(index);
            all.children.push(child);
        }
        all
    }

    fn begin(&mut self, index: usize) -> Child {
        let log = self.log(self.count);
        self.count += 1;
        (self.start)(index, &log)
    }

    fn log(&self, nth: usize) -> PathBuf {
        self.logs.path().join(nth.to_string())
    }

    /// All that were ever started.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn signal(&self, index: usize, number: i32) {
        signal(&self.children[index], number);
    }

    /// Kills some of them, whereupon `meanwhile` happens, and starts others.
    pub fn replace(&mut self, indices: std::ops::Range<usize>, meanwhile: impl FnOnce()) {
        for child in &mut self.children[indices.clone()] {
            child.kill().unwrap();
            child.wait().unwrap();
            self.kills += 1;
        }
        meanwhile();
        for index in indices {
            self.children[index] = self.begin(index);
        }
    }

    /// Kills one, and starts another.
    pub fn kill(&mut self, index: usize) {
        self.replace(index..index + 1, || ());
    }

    /// Waits until all that were ever started have drawn so many IDs together, and each that was started first so many
    /// blocks: a busy machine may run them late. Those that are stopped go on.
    pub fn await_drawn(&self, ids: u64, blocks_each: usize) {
        let limit = Instant::now() + Duration::from_secs(300);
        loop {
            let drawn: Vec<_> = (0..self.count).map(|nth| logged_so_far(&self.log(nth))).collect();
            let all: u64 = drawn.iter().map(|&(_, ids)| ids).sum();
            let first = &drawn[..self.children.len()];
            if all >= ids && first.iter().all(|&(blocks, _)| blocks >= blocks_each) {
                return;
            }
            assert!(Instant::now() < limit, "the processes draw nothing: {drawn:?}");
            self.children.iter().for_each(|child| signal(child, libc::SIGCONT));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until those that live have ended, as they were told to. Returns what each has drawn.
    pub fn end(mut self) -> Vec<Vec<(u64, u64)>> {
        for child in &mut self.children {
            let limit = Instant::now() + Duration::from_secs(300);
            // Those that stop themselves may do so once more.
            while child.try_wait().unwrap().is_none() {
                signal(child, libc::SIGCONT);
                assert!(Instant::now() < limit, "a process does not end");
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(child.wait().unwrap().success());
        }
        (0..self.count).map(|nth| logged(&self.log(nth))).collect()
    }
}

impl<Start> Drop for Drawers<Start> {
    /// So that none outlives a test that failed.
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reserves from a user's page as the addon does, which may wait.
pub fn reserve(
    generator: &Generator,
    user_page: &UserPage,
    policies: &Policies,
    want: u64,
) -> Result<Reserved, Stalled> {
    let attempt = || generator.try_reserve(user_page, policies, |_| want);
    generator.waiting(policies, &mut Waits::default(), want, attempt, |reserved| reserved)
}

/// How many IDs there are.
pub fn count(drawn: &[(u64, u64)]) -> u64 {
    drawn.iter().map(|&(_, len)| len).sum()
}

/// How many IDs were issued more than once, by (first ID, how many).
pub fn duplicates(mut issued: Vec<(u64, u64)>) -> u64 {
    issued.sort_unstable();
    let mut end = 0;
    let mut twice = 0;
    for (first, len) in issued {
        twice += end.min(first + len).saturating_sub(first);
        end = end.max(first + len);
    }
    twice
}

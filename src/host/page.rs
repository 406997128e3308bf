//! A node's page: a file of 4096 bytes in memory, mapped by every process that issues the node's IDs.
//!
//! | bytes | what | who writes it |
//! |---|---|---|
//! | 0..128 | the header | who creates it, before it has its name |
//! | 128..512 | the [`Cells`] | every reservation |
//! | 512..528 | of a durable page, the ID of the record's file; zeros at first | who opens it for that record |
//! | 528..656 | by counter, the tick at which IDs went on after a jump of over an hour, plus one | who sees it |
//! | 656..1024 | zeros | |
//! | 1024..2560 | the [table of processes](super::processes) | who opens and closes it, for people |
//! | 2560..4096 | zeros | |
//!
//! The header, its numbers little-endian but for the byte order mark:
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `SNOWDRF1` |
//! | 8..12, 12..16 | the format, 1; a byte order mark as the machine writes it |
//! | 16..21, 24..32, 32..40 | the layout: widths, tick in ms, epoch in Unix ms |
//! | 21 | 1 for a durable page |
//! | 40..48, 48..56 | datacenterId, workerId |
//! | 56..64 | maxAhead in ticks |
//! | 64..80, 80..96 | a random ID of the page; the boot that it is of, zeros where none is known |
//! | 96..104, 104..108, 108..112 | who created it: when (Unix ms), process, user |
//! | 112..116 | CRC-32 of bytes 0..112 |
//!
//! Its users share a lock on a byte of the file. Who replaces an unused page has that lock alone.
//!
//! Header and cells are format 1 for ever: versions of snowdrift share a page during an upgrade.
//!
//! A process that accesses a page behind its file's end receives SIGBUS. Nobody but its own user can
//! truncate the file, and snowdrift never does.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::{SystemTime, UNIX_EPOCH};

use memmap2::{MmapOptions, MmapRaw};
use parking_lot::Mutex;

use super::processes::{self, ENTRIES, Entry, Process};
use super::system::Identity;
use super::{HostError, system};
use crate::layout::{Layout, Tick};
use crate::node::Node;
use crate::sequencer::{HighMarks, NEVER};
use crate::shared::{Cells, Sequence, mark_code};
use crate::store::boot_id;
use crate::store::lock::{self, Hold, USERS};

const BYTES: usize = 4096;
const HEADER_BYTES: usize = 128;
const MAGIC: [u8; 8] = *b"SNOWDRF1";
const FORMAT: u32 = 1;
const BYTE_ORDER: u32 = 0x0102_0304;
const CRC_AT: usize = 112;

/// Which of the words that are kept are landings, one a counter.
const LANDINGS_AT: usize = 2;

/// How a page's name ends.
pub const EXTENSION: &str = "page";

/// What to do about a page that is not as it should be.
pub const REMEDY: &str = "It is left as it is: end this user's processes of this node, and remove it once \
    the clock has certainly passed the node's last ID";

/// A page's bytes. Everything that changes after creation is atomic.
#[repr(C, align(4096))]
struct Bytes {
    header: [AtomicU64; HEADER_BYTES / 8],
    cells: Cells,
    kept: [AtomicU64; 64],
    processes: [Entry; ENTRIES],
    rest: [AtomicU64; 192],
}

const _: () = assert!(
    size_of::<Bytes>() == BYTES
        && offset_of!(Bytes, cells) == 128
        && offset_of!(Bytes, kept) == 512
        && offset_of!(Bytes, processes) == 1024
        && offset_of!(Bytes, rest) == 2560
);

/// Which boot of the machine a page is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BootId(pub [u8; 16]);

impl BootId {
    /// This boot; zeros where the kernel does not tell.
    pub fn now() -> BootId {
        let id = boot_id().unwrap_or_default().replace('-', "");
        u128::from_str_radix(&id, 16)
            .map_or_else(|_| BootId::default(), |id| BootId(id.to_be_bytes()))
    }

    fn is_unknown(&self) -> bool {
        *self == BootId::default()
    }

    /// Whether both are known and differ. Of an unknown one see [`Page::may_be_old`].
    fn is_other(&self, than: &BootId) -> bool {
        self != than && !self.is_unknown() && !than.is_unknown()
    }
}

/// What a page is used for, as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is all that remembers what was issued.
    Plain,
    /// A record on the disk does, too. Nothing is issued from it before that names it.
    Durable,
}

/// What a page says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whose IDs it issues.
    pub node: Node,
    /// Its kind.
    pub kind: Kind,
    /// How far ahead of the clock they may lie. All who share the page agree on it.
    pub max_ahead: Tick,
    /// Tells it from every other page.
    pub page_id: u128,
    /// The boot that it is of.
    pub boot_id: BootId,
    /// When it was created, Unix ms.
    pub created_ms: i64,
    /// Who created it.
    pub pid: u32,
    /// As which user.
    pub uid: u32,
}

impl Header {
    fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let layout = self.node.layout();
        let widths = [
            layout.timestamp_bits,
            layout.datacenter_bits,
            layout.worker_bits,
            layout.clock_back_bits,
            layout.sequence_bits,
        ];
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(0, &MAGIC);
        put(8, &FORMAT.to_le_bytes());
        put(12, &BYTE_ORDER.to_ne_bytes());
        put(16, &widths);
        put(21, &[(self.kind == Kind::Durable).into()]);
        put(24, &layout.tick_ms.to_le_bytes());
        put(32, &layout.epoch_ms.to_le_bytes());
        put(40, &self.node.datacenter_id().to_le_bytes());
        put(48, &self.node.worker_id().to_le_bytes());
        put(56, &self.max_ahead.to_le_bytes());
        put(64, &self.page_id.to_le_bytes());
        put(80, &self.boot_id.0);
        put(96, &self.created_ms.to_le_bytes());
        put(104, &self.pid.to_le_bytes());
        put(108, &self.uid.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; HEADER_BYTES], path: &Path) -> Result<Header, HostError> {
        fn take<const N: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
            std::array::from_fn(|index| bytes[at + index])
        }
        let number = |at| i64::from_le_bytes(take(bytes, at));
        let damaged = || HostError::unusable(path, format!("is damaged. {REMEDY}"));
        if bytes[..8] != MAGIC {
            return Err(HostError::unusable(path, format!("is no page of snowdrift. {REMEDY}")));
        }
        let format = u32::from_le_bytes(take(bytes, 8));
        if format != FORMAT {
            return Err(HostError::OtherFormat { place: path.to_owned(), format, known: FORMAT });
        }
        if u32::from_le_bytes(take(bytes, CRC_AT)) != crc32fast::hash(&bytes[..CRC_AT]) {
            return Err(damaged());
        }
        if u32::from_ne_bytes(take(bytes, 12)) != BYTE_ORDER {
            let what = "was created by a process of the other byte order. Use one architecture for \
                        all processes of this node";
            return Err(HostError::unusable(path, what));
        }
        let layout = Layout::cut(take(bytes, 16), number(24), number(32));
        let node =
            Node::new(layout, number(40) as u64, number(48) as u64).map_err(|_| damaged())?;
        let is_durable = take(bytes, 21);
        Ok(Header {
            node,
            kind: if is_durable == [0] { Kind::Plain } else { Kind::Durable },
            max_ahead: number(56),
            page_id: u128::from_le_bytes(take(bytes, 64)),
            boot_id: BootId(take(bytes, 80)),
            created_ms: number(96),
            pid: u32::from_le_bytes(take(bytes, 104)),
            uid: u32::from_le_bytes(take(bytes, 108)),
        })
    }
}

/// The name of a node's page: all that makes a node, so that nodes never meet in one.
pub fn file_name(node: &Node) -> String {
    let layout = node.layout();
    format!(
        "{}.{}.{}.{}.{}-{}ms-{}-datacenter-{}-worker-{}.{EXTENSION}",
        layout.timestamp_bits,
        layout.datacenter_bits,
        layout.worker_bits,
        layout.clock_back_bits,
        layout.sequence_bits,
        layout.tick_ms,
        layout.epoch_ms,
        node.datacenter_id(),
        node.worker_id()
    )
}

/// Which page of a node.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Whose.
    pub node: &'a Node,
    /// For what.
    pub kind: Kind,
    /// All who share it agree on that.
    pub max_ahead: Tick,
    /// The boot at present.
    pub boot_id: &'a BootId,
    /// The user whose pages they are.
    pub uid: u32,
}

/// How a page came to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Another process created it, or an earlier call.
    Joined,
    /// It was created after another one, as far as is known.
    Next,
    /// It was created as the node's first one in this boot.
    First,
}

/// The bytes of a new page, which issues nothing until it is begun, and nothing up to `highest`: what
/// earlier ones are known to have reached; nor above `ceiling`. None has 0 in the word, so a cleared page is
/// noticed.
pub fn fresh(wanted: &Wanted, highest: Tick, ceiling: Tick) -> Vec<u8> {
    let Wanted { node, kind, max_ahead, boot_id, uid } = *wanted;
    let header = Header {
        node: *node,
        kind,
        max_ahead,
        page_id: fastrand::u128(1..),
        boot_id: *boot_id,
        created_ms: unix_ms(),
        pid: std::process::id(),
        uid,
    };
    let cells = Cells::not_begun(node.layout());
    Sequence::new(&cells, node.layout()).raise_floor(highest);
    cells.lower_ceiling(ceiling);
    let mut bytes = vec![0; BYTES];
    bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    let mut put = |at: usize, cell: u64| {
        let at = HEADER_BYTES + at;
        bytes[at..at + 8].copy_from_slice(&cell.to_ne_bytes());
    };
    put(0, cells.word());
    put(Cells::FLOOR_AT, cells.floor_cell());
    put(Cells::WINDOW_AT, cells.window_cell());
    bytes
}

/// The ID in a page's bytes.
pub fn id_of(bytes: &[u8]) -> u128 {
    u128::from_le_bytes(std::array::from_fn(|index| bytes[64 + index]))
}

fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// What has a page's name.
pub enum Joined {
    /// The page, mapped.
    Page(Box<Page>),
    /// Nothing.
    Absent,
    /// A page that another boot has left.
    OtherBoot,
    /// A page that is being replaced.
    Changing,
    /// A page that is not the one that is asked for. Nobody uses it, nor can anyone before it is dropped.
    Unused(Box<Page>),
}

/// A node's page, mapped. It may have lost its name since: then nothing may be issued from it.
pub struct Page {
    map: MmapRaw,
    /// Open and locked for as long as it is used.
    file: Mutex<Option<File>>,
    path: PathBuf,
    identity: Identity,
    header: Header,
    /// Whether it is in the table of processes.
    is_entered: bool,
    may_be_old: bool,
    pub(super) origin: Origin,
}

impl Page {
    /// Maps the page of this name. None where there is no page.
    fn map(path: &Path, uid: u32) -> Result<Option<Page>, HostError> {
        let (mut file, identity) = match open(path, uid, true) {
            Err(HostError::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            opened => opened?,
        };
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact(&mut bytes).map_err(HostError::io("read", path))?;
        let header = Header::from_bytes(&bytes, path)?;
        let map =
            MmapOptions::new().len(BYTES).map_raw(&file).map_err(HostError::io("map", path))?;
        let may_be_old = header.boot_id.is_unknown();
        Ok(Some(Page {
            map,
            file: Mutex::new(Some(file)),
            path: path.to_owned(),
            identity,
            header,
            is_entered: false,
            may_be_old,
            origin: Origin::Joined,
        }))
    }

    /// Uses the page of this name if it is the one that is asked for.
    pub fn join(path: &Path, wanted: &Wanted) -> Result<Joined, HostError> {
        let Some(mut page) = Page::map(path, wanted.uid)? else { return Ok(Joined::Absent) };
        let header = &page.header;
        if header.node != *wanted.node {
            let what = format!("is the page of another node under this name. {REMEDY}");
            return Err(HostError::unusable(path, what));
        }
        if header.boot_id.is_other(wanted.boot_id) {
            return Ok(Joined::OtherBoot);
        }
        let is_wanted = header.kind == wanted.kind && header.max_ahead == wanted.max_ahead;
        page.may_be_old |= wanted.boot_id.is_unknown();
        if !page.lock(if is_wanted { Hold::Shared } else { Hold::Exclusive })? {
            return match is_wanted || page.is_locked_alone()? {
                true => Ok(Joined::Changing),
                false => Err(page.refusal(wanted)),
            };
        }
        // It may have been replaced before it was locked.
        if !page.is_named()? {
            return Ok(Joined::Changing);
        }
        if !is_wanted {
            return Ok(Joined::Unused(Box::new(page)));
        }
        processes::enter(&page.bytes().processes, unix_ms());
        page.is_entered = true;
        Ok(Joined::Page(Box::new(page)))
    }

    /// Why a page that is in use is not the one that is asked for.
    fn refusal(&self, wanted: &Wanted) -> HostError {
        let (place, pid) = (self.path.clone(), self.living_user());
        if self.header.kind != wanted.kind {
            let is_durable = self.header.kind == Kind::Durable;
            return HostError::OtherKind { place, pid, is_durable };
        }
        let ms = |ticks: Tick| ticks.saturating_mul(wanted.node.layout().tick_ms);
        HostError::OtherMaxAhead {
            place,
            pid: pid.unwrap_or(self.header.pid),
            theirs_ms: ms(self.header.max_ahead),
            ours_ms: ms(wanted.max_ahead),
        }
    }

    fn lock(&self, hold: Hold) -> Result<bool, HostError> {
        let file = self.file.lock();
        let Some(file) = &*file else { return Ok(false) };
        lock::try_take(file, USERS, hold).map_err(HostError::io("lock", &self.path))
    }

    fn is_locked_alone(&self) -> Result<bool, HostError> {
        let file = self.file.lock();
        let Some(file) = &*file else { return Ok(false) };
        lock::is_exclusive(file, USERS).map_err(HostError::io("lock", &self.path))
    }

    /// Keeps others from using it, if nobody else does.
    pub fn try_alone(&self) -> Result<bool, HostError> {
        self.lock(Hold::Exclusive)
    }

    /// Closes its file, for it has lost its name and nothing is issued from it any more.
    pub fn retire(&self) {
        if let Some(file) = self.file.lock().take() {
            // Now, though a process that was just forked off still has the open file, too.
            let _ = lock::release(&file, USERS);
        }
    }

    /// Lets others use it, too.
    pub fn share(&self) -> Result<(), HostError> {
        self.lock(Hold::Shared).map(drop)
    }

    /// Tells it from every other page.
    pub fn id(&self) -> u128 {
        self.header.page_id
    }

    /// The highest tick that was issued under each counter.
    pub fn high_marks(&self) -> HighMarks {
        Sequence::new(self.cells(), self.header.node.layout()).high_marks()
    }

    /// Removes it, if it has its name.
    pub fn remove(&self) -> Result<(), HostError> {
        if self.is_named()? {
            fs::remove_file(&self.path).map_err(HostError::io("remove", &self.path))?;
        }
        Ok(())
    }

    /// Keeps others from using the page of this name. None where there is no page.
    pub fn alone(path: &Path, uid: u32) -> Result<Option<Page>, HostError> {
        let Some(page) = Page::map(path, uid)? else { return Ok(None) };
        if !page.try_alone()? {
            let (place, pid) = (page.path.clone(), page.living_user());
            return Err(HostError::InUse { place, pid });
        }
        Ok(Some(page))
    }

    /// Another process that uses it, as the table says.
    pub fn living_user(&self) -> Option<u32> {
        processes::living_other(&self.bytes().processes)
    }

    /// Nothing was issued from it above this tick; nor is, while nobody uses it.
    pub fn highest(&self) -> Tick {
        let sequence = Sequence::new(self.cells(), self.header.node.layout());
        sequence.high_marks().highest().max(sequence.floor()).max(NEVER)
    }

    /// Notes that ticks jumped by more than an hour, and where they went on: a reset asks for it. The last one
    /// of each counter counts.
    pub fn note_landing(&self, counter: usize, tick: Tick) {
        self.bytes().kept[LANDINGS_AT + counter].store(mark_code(tick), Relaxed);
    }

    /// Where ticks went on after their last jump under a counter; [`NEVER`] where that is not known.
    pub fn landing(&self, counter: usize) -> Tick {
        self.bytes().kept[LANDINGS_AT + counter].load(Relaxed) as Tick - 1
    }

    /// Nothing is issued from it above this tick, unless a record has granted that.
    pub fn ceiling(&self) -> Tick {
        match self.header.kind {
            Kind::Plain => self.cells().ceiling(),
            Kind::Durable => Tick::MAX,
        }
    }

    /// The ID of the record's file that a durable page is for; 0 at first.
    pub fn owner(&self) -> u128 {
        let [low, high] = [0, 1].map(|index| u128::from(self.bytes().kept[index].load(Acquire)));
        high << 64 | low
    }

    /// Changes that; it needs [`Page::try_alone`].
    pub fn set_owner(&self, file: u128) {
        self.bytes().kept[0].store(file as u64, Release);
        self.bytes().kept[1].store((file >> 64) as u64, Release);
    }

    fn bytes(&self) -> &Bytes {
        // SAFETY: the map is as long as `Bytes` and aligned to a system page, which is at least 4096
        // bytes. It lives as long as `self`. All fields are atomics, of which any bits are a value, and
        // other processes that map the file change them atomically. (Where their user truncates the file, the
        // access ends the process; it reads nothing else.)
        unsafe { &*self.map.as_ptr().cast::<Bytes>() }
    }

    /// What its processes share.
    pub fn cells(&self) -> &Cells {
        &self.bytes().cells
    }

    /// How it came to this process.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Where it is, or was.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether it may be of another boot, and so less than was issued from it: a power cut leaves on a
    /// disk what was written back by then. A process that opens it issues nothing of the clock's tick, as of a
    /// page that replaces another one.
    pub fn may_be_old(&self) -> bool {
        self.may_be_old
    }

    /// An error if it was overwritten or cleared.
    pub fn check_intact(&self) -> Result<(), HostError> {
        if self.bytes().header[0].load(Acquire).to_ne_bytes() == MAGIC {
            return Ok(());
        }
        let what = format!("was overwritten while it was in use. {REMEDY}");
        Err(HostError::unusable(&self.path, what))
    }

    /// Whether its name still names it, so that all who open the node find this page.
    ///
    /// The link count would not tell: a page that was renamed, or whose directory was, still has its
    /// link, and others create a new one beside it.
    pub fn is_named(&self) -> Result<bool, HostError> {
        match system::identity_at(&self.path) {
            Ok(identity) if identity == self.identity => self.check_intact().map(|()| true),
            Ok(_) => Ok(false),
            Err(cause)
                if matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(false)
            }
            Err(cause) => Err(HostError::io("look at", &self.path)(cause)),
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if self.is_entered {
            processes::leave(&self.bytes().processes);
        }
        self.retire();
    }
}

/// A page as people look at it, without using it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// What it says of itself.
    pub header: Header,
    /// The processes that say they use it.
    pub processes: Vec<Process>,
}

impl Snapshot {
    /// What the file says at present.
    pub fn of(path: &Path, uid: u32) -> Result<Snapshot, HostError> {
        let (mut file, _) = open(path, uid, false)?;
        let mut bytes = [0; BYTES];
        file.read_exact(&mut bytes).map_err(HostError::io("read", path))?;
        let header = bytes.first_chunk().expect("a page is longer than its header");
        let header = Header::from_bytes(header, path)?;
        let table = &bytes[offset_of!(Bytes, processes)..offset_of!(Bytes, rest)];
        let (entries, _) = table.as_chunks::<{ size_of::<Entry>() }>();
        Ok(Snapshot { header, processes: entries.iter().filter_map(Process::from_bytes).collect() })
    }
}

/// A page's file, if it can be one.
fn open(path: &Path, uid: u32, write: bool) -> Result<(File, Identity), HostError> {
    let (file, found, identity) = system::open(path, uid, write)?;
    if found.len() != BYTES as u64 {
        let what = format!("is {} bytes long and should be {BYTES}. {REMEDY}", found.len());
        return Err(HostError::unusable(path, what));
    }
    Ok((file, identity))
}

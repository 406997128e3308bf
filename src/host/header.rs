//! A page's header and file name. Its numbers are little-endian, except the byte order mark:
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `SNOWDRF1` |
//! | 8..12, 12..16 | the format, 1; a byte order mark in the machine's order |
//! | 16..56 | the node: [`Node::to_bytes`] |
//! | 21, a zero there | the kind: 0 plain, 1 durable, 2 leased, 3 a durable lease's |
//! | 56..64 | maxAhead in ticks |
//! | 64..80, 80..96 | a random ID of the page; its boot's ID, zeros where unknown |
//! | 96..104, 104..108, 108..112 | its creation: time (Unix ms), process, user |
//! | 112..116 | CRC-32 of bytes 0..112 |

use std::path::Path;

use crate::core::fault::{Class, Failure, fault};
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::files::cursor::Cursor;
use crate::files::system::boot_id;

pub(super) const HEADER_BYTES: usize = 128;
pub(super) const MAGIC: [u8; 8] = *b"SNOWDRF1";
const FORMAT: u32 = 1;
const BYTE_ORDER: u32 = 0x0102_0304;
/// Among the zeros of the node.
const KIND_AT: usize = 21;
const CRC_AT: usize = 112;

/// Extension of a page's name.
pub(super) const EXTENSION: &str = "page";

/// Extension of a node's marker: an empty file that records that the node had a page in this boot. A page created
/// without a marker is the node's first. It begins without a floor, and with ticks longer than 1 ms in the current
/// tick. If page and marker are both deleted, a process that did not use the earlier page takes the next one for the
/// first.
pub(super) const MARKER: &str = "born";

/// The boot of the machine that a page belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BootId(pub [u8; 16]);

impl BootId {
    /// This boot; zeros where the kernel reports none.
    pub fn now() -> BootId {
        let id = boot_id().unwrap_or_default().replace('-', "");
        u128::from_str_radix(id.trim(), 16)
            .map_or_else(|_| BootId::default(), |id| BootId(id.to_be_bytes()))
    }

    pub(super) fn is_unknown(&self) -> bool {
        *self == BootId::default()
    }

    /// Whether both are known and differ. For an unknown one see [`super::Page::may_be_old`].
    pub(super) fn is_other(&self, than: &BootId) -> bool {
        self != than && !self.is_unknown() && !than.is_unknown()
    }
}

/// The use of a page, as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The page is the only record of issued IDs.
    Plain,
    /// A record on the disk bounds the issued IDs. The page issues nothing before the record names it.
    Durable,
    /// A store has leased its slot to this host. The page is one slot for ever: once closed, it stays closed.
    Leased,
    /// As `Durable`, and the host's processes have leased the slot from the record's directory. The last one of them
    /// removes the page on release.
    DurableLease,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Plain => 0,
            Kind::Durable => 1,
            Kind::Leased => 2,
            Kind::DurableLease => 3,
        }
    }

    fn of_code(code: u8) -> Option<Kind> {
        [Kind::Plain, Kind::Durable, Kind::Leased, Kind::DurableLease]
            .into_iter()
            .find(|kind| kind.code() == code)
    }

    /// Its word in `js/`.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Durable => "state",
            Kind::Leased => "lease",
            Kind::DurableLease => "file-lease",
        }
    }

    /// Whether a record on the disk bounds the page's IDs.
    pub fn is_recorded(self) -> bool {
        matches!(self, Kind::Durable | Kind::DurableLease)
    }
}

/// A page's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The node whose IDs it issues.
    pub node: Node,
    /// Its kind.
    pub kind: Kind,
    /// Maximum ticks ahead of the clock. Equal in all processes that share the page.
    pub max_ahead: Tick,
    /// A random ID of the page.
    pub page_id: u128,
    /// Its boot.
    pub boot_id: BootId,
    /// Time of its creation, Unix ms.
    pub created_ms: i64,
    /// The process that created it.
    pub pid: u32,
    /// The user of that process.
    pub uid: u32,
}

impl Header {
    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut to = Cursor::new([0; HEADER_BYTES]);
        to.put(&MAGIC);
        to.put(&FORMAT.to_le_bytes());
        to.put(&BYTE_ORDER.to_ne_bytes());
        to.put(&self.node.to_bytes());
        to.put(&self.max_ahead.to_le_bytes());
        to.put(&self.page_id.to_le_bytes());
        to.put(&self.boot_id.0);
        to.put(&self.created_ms.to_le_bytes());
        to.put(&self.pid.to_le_bytes());
        to.put(&self.uid.to_le_bytes());
        debug_assert_eq!(to.at, CRC_AT);
        to.bytes[KIND_AT] = self.kind.code();
        to.put(&crc32fast::hash(&to.bytes[..CRC_AT]).to_le_bytes());
        to.bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; HEADER_BYTES], path: &Path) -> Result<Header, Failure> {
        let damaged = || Failure::new(Class::Page, fault!("page-damaged", place: path));
        let mut from = Cursor::new(*bytes);
        if from.take() != MAGIC {
            return Err(Failure::new(Class::Page, fault!("page-foreign", place: path)));
        }
        let format = u32::from_le_bytes(from.take());
        if format != FORMAT {
            let fault = fault!("page-format", place: path, format, known: FORMAT);
            return Err(Failure::new(Class::Page, fault));
        }
        let crc = u32::from_le_bytes(Cursor { at: CRC_AT, ..from }.take());
        if crc != crc32fast::hash(&bytes[..CRC_AT]) {
            return Err(damaged());
        }
        if u32::from_ne_bytes(from.take()) != BYTE_ORDER {
            return Err(Failure::new(Class::Page, fault!("page-byte-order", place: path)));
        }
        Ok(Header {
            node: Node::from_bytes(from.take()).map_err(|_| damaged())?,
            kind: Kind::of_code(bytes[KIND_AT]).ok_or_else(damaged)?,
            max_ahead: Tick::from_le_bytes(from.take()),
            page_id: u128::from_le_bytes(from.take()),
            boot_id: BootId(from.take()),
            created_ms: i64::from_le_bytes(from.take()),
            pid: u32::from_le_bytes(from.take()),
            uid: u32::from_le_bytes(from.take()),
        })
    }
}

/// The name of a node's page. It contains the whole node, so nodes never share a page.
pub(super) fn file_name(node: &Node) -> String {
    let Layout { tick_ms, epoch_ms, .. } = *node.layout();
    let widths = node.layout().widths().map(|bits| bits.to_string()).join(".");
    let (datacenter_id, worker_id) = (node.datacenter_id(), node.worker_id());
    format!(
        "{widths}-{tick_ms}ms-{epoch_ms}-datacenter-{datacenter_id}-worker-{worker_id}.{EXTENSION}"
    )
}

/// Prefix of the names of a datacenter's pages; none where the layout has no such datacenter.
pub(super) fn name_prefix(layout: &Layout, datacenter_id: u64) -> Option<String> {
    let name = file_name(&Node::new(*layout, datacenter_id, 0).ok()?);
    name.strip_suffix(&format!("0.{EXTENSION}")).map(str::to_owned)
}

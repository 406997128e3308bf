//! A page's header and file name. The header's numbers are little-endian, except the byte order mark:
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `SNOWDRFT` |
//! | 8..12, 12..16 | the format, 4; the byte order mark, in the machine's byte order |
//! | 16..56 | the node: [`Node::to_bytes`] |
//! | 56..64 | of the [`Terms`]: `max_ahead`, in ticks |
//! | 64..72 | of the terms: the ID of the lease's holder, 0 if the page is free |
//! | 72..88, 88..104 | the page's random ID; its boot's ID, zeros if unknown |
//! | 104..112, 112..116, 116..120 | the creation: time (Unix ms), process ID, user ID |
//! | 120..252 | zeros |
//! | 252..256 | CRC-32 of bytes 0..252 |

use std::path::Path;
use std::sync::LazyLock;

use crate::core::fault::{Class, Failure, fault};
use crate::core::layout::{Layout, Tick};
use crate::core::node::Node;
use crate::files::cursor::Cursor;
use crate::files::system::boot_id;

pub(super) const HEADER_BYTES: usize = 256;
pub(super) const PAGE_MAGIC: [u8; 8] = *b"SNOWDRFT";
const PAGE_FORMAT: u32 = 4;
const BYTE_ORDER: u32 = 0x0102_0304;
const CRC_AT: usize = 252;

/// Extension of a page's file name.
pub(super) const EXTENSION: &str = "page";

/// Extension of a node's marker: a hard link to its current page. The marker leads to that page even after its first
/// name was removed or replaced. The process that creates the next page ends the page under the marker, and begins
/// above its IDs. If there is no marker, a new page is the node's first.
pub(super) const MARKER: &str = "born";

/// The boot of the machine that a page belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BootId(pub [u8; 16]);

impl BootId {
    /// This boot; zeros if the kernel reports no ID. Read once: a process lives in one boot.
    pub fn now() -> BootId {
        static BOOT: LazyLock<BootId> = LazyLock::new(|| {
            let id = boot_id().unwrap_or_default().replace('-', "");
            BootId(u128::from_str_radix(id.trim(), 16).unwrap_or_default().to_be_bytes())
        });
        *BOOT
    }

    /// Whether the kernel reported none.
    pub fn is_unknown(&self) -> bool {
        *self == BootId::default()
    }

    /// Whether both are known and differ. For an unknown boot see [`super::Page::may_be_old`].
    pub fn is_other(&self, than: &BootId) -> bool {
        self != than && !self.is_unknown() && !than.is_unknown()
    }
}

/// The terms that all users of a page agree on. They are fixed at its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Maximum ticks ahead of the clock.
    pub max_ahead: Tick,
    /// The random ID of the holder of a lease from a store or a directory: such a page is of one slot, and once ended, it
    /// never begins again. `None` for a free page.
    pub owner: Option<u64>,
}

impl Terms {
    /// The terms of a free page. It is the only record of its IDs, so it may not run ahead of the clock: that needs a
    /// ceiling that survives the page.
    pub const FREE: Terms = Terms { max_ahead: 0, owner: None };

    /// What allows the page to issue, by its name in `js/`.
    pub fn word(&self) -> &'static str {
        if self.owner.is_some() { "lease" } else { "plain" }
    }
}

/// A page's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The node whose IDs the page issues.
    pub node: Node,
    /// The terms that its users agree on.
    pub terms: Terms,
    /// The page's random ID.
    pub page_id: u128,
    /// The boot of its creation.
    pub boot_id: BootId,
    /// Time of its creation, Unix ms.
    pub created_ms: i64,
    /// The process that created it.
    pub pid: u32,
    /// The user of that process.
    pub uid: u32,
}

impl Header {
    /// The header of a page that this process creates, still without ID, boot, time and user.
    pub(super) fn new(node: Node, terms: Terms) -> Header {
        let pid = std::process::id();
        Header { node, terms, page_id: 0, boot_id: BootId::default(), created_ms: 0, pid, uid: 0 }
    }

    /// Writes or reads the fields after the node.
    fn pass(&mut self, record: &mut Cursor) {
        let mut owner = self.terms.owner.unwrap_or_default();
        record.numbers(&mut [&mut self.terms.max_ahead, &mut owner, &mut self.page_id]);
        self.terms.owner = Some(owner).filter(|&owner| owner != 0);
        self.boot_id.0 = record.pass(self.boot_id.0);
        record.numbers(&mut [&mut self.created_ms, &mut self.pid, &mut self.uid]);
    }

    pub(super) fn to_bytes(mut self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&PAGE_MAGIC);
        bytes[8..12].copy_from_slice(&PAGE_FORMAT.to_le_bytes());
        bytes[12..16].copy_from_slice(&BYTE_ORDER.to_ne_bytes());
        bytes[16..56].copy_from_slice(&self.node.to_bytes());
        self.pass(&mut Cursor::writing(&mut bytes, 56));
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; HEADER_BYTES], path: &Path) -> Result<Header, Failure> {
        let number = |at| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let format = number(8);
        let is_whole = number(CRC_AT) == crc32fast::hash(&bytes[..CRC_AT]);
        let fault = if bytes[..8] != PAGE_MAGIC {
            fault!("page-foreign", place: path)
        } else if format != PAGE_FORMAT {
            fault!("page-format", place: path, format, known: PAGE_FORMAT)
        } else if is_whole && bytes[12..16] != BYTE_ORDER.to_ne_bytes() {
            fault!("page-byte-order", place: path)
        } else if let Some(header) = Header::read(bytes).filter(|_| is_whole) {
            return Ok(header);
        } else {
            fault!("page-damaged", place: path)
        };
        Err(Failure::new(Class::Page, fault))
    }

    fn read(mut bytes: [u8; HEADER_BYTES]) -> Option<Header> {
        let mut record = Cursor::reading(&mut bytes, 16);
        let node = Node::from_bytes(record.pass([0; _])).ok()?;
        let mut header = Header::new(node, Terms::FREE);
        header.pass(&mut record);
        Some(header)
    }
}

/// The file name of a node's page. It contains all of the node, so two nodes never share a page.
pub(super) fn page_name(node: &Node) -> String {
    let Layout { tick_ms, epoch_ms, .. } = *node.layout();
    let widths = node.layout().widths().map(|bits| bits.to_string()).join(".");
    let (datacenter_id, worker_id) = (node.datacenter_id(), node.worker_id());
    format!(
        "{widths}-{tick_ms}ms-{epoch_ms}-datacenter-{datacenter_id}-worker-{worker_id}.{EXTENSION}"
    )
}

/// Prefix of the file names of a datacenter's pages; `None` if the layout has no such datacenter.
pub(super) fn name_prefix(layout: &Layout, datacenter_id: u64) -> Option<String> {
    let name = page_name(&Node::new(*layout, datacenter_id, 0).ok()?);
    name.strip_suffix(&format!("0.{EXTENSION}")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions of snowdrift share pages. The CRC covers all bytes before it.
    #[test]
    fn a_header_has_the_same_bytes_in_all_versions() {
        let header = Header {
            node: Node::new(Layout::NODE, 7, 31).unwrap(),
            terms: Terms { max_ahead: 5, owner: Some(u64::MAX / 7) },
            page_id: u128::MAX / 5,
            boot_id: BootId([7; 16]),
            created_ms: 1_795_000_000_000,
            pid: 4711,
            uid: 1000,
        };
        let bytes = header.to_bytes();
        assert_eq!(u32::from_le_bytes(bytes[CRC_AT..].try_into().unwrap()), 1_788_503_053);
        assert_eq!(Header::from_bytes(bytes, Path::new("")), Ok(header));
    }
}

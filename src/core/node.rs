//! A node: the fields that are equal in all its IDs.

use crate::core::fault::{Fault, fault};
use crate::core::layout::{Layout, Tick, mask};
use crate::core::sequencer::Block;

/// The bytes of a node in a record.
const NODE_BYTES: usize = 40;

/// The issuer of IDs: a layout with its epoch, a datacenter ID and a worker ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    layout: Layout,
    datacenter_id: u64,
    worker_id: u64,
    /// The ID of tick 0, counter 0 and sequence 0: the constant bits of the node's IDs.
    lowest_id: u64,
}

impl Node {
    /// Fails if the layout is invalid or an ID does not fit it.
    pub fn new(layout: Layout, datacenter_id: u64, worker_id: u64) -> Result<Node, Fault> {
        let layout = layout.checked()?;
        for (name, value, bits) in [
            ("datacenterId", datacenter_id, layout.datacenter_bits),
            ("workerId", worker_id, layout.worker_bits),
        ] {
            let max = mask(bits);
            if value > max {
                return Err(fault!("field-too-large", name, value, max));
            }
        }
        let below_node = layout.clock_back_bits + layout.sequence_bits;
        let lowest_id = (datacenter_id << layout.worker_bits | worker_id) << below_node;
        Ok(Node { layout, datacenter_id, worker_id, lowest_id })
    }

    /// The node's bytes in a record: five widths, 3 zeros, then `tick_ms`, `epoch_ms`, datacenter ID and worker ID,
    /// little-endian.
    pub(crate) fn to_bytes(self) -> [u8; NODE_BYTES] {
        let Layout { tick_ms, epoch_ms, .. } = self.layout;
        let numbers = [tick_ms as u64, epoch_ms as u64, self.datacenter_id, self.worker_id];
        let mut bytes = [0; NODE_BYTES];
        bytes[..5].copy_from_slice(&self.layout.widths());
        for (field, number) in bytes[8..].chunks_exact_mut(8).zip(numbers) {
            field.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Reads a node from its bytes. Ignores the padding.
    pub(crate) fn from_bytes(bytes: [u8; NODE_BYTES]) -> Result<Node, Fault> {
        let number = |at| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let widths = std::array::from_fn(|field| bytes[field]);
        let layout = Layout::new(widths, number(8) as i64, number(16) as i64);
        Node::new(layout, number(24), number(32))
    }

    /// The layout of its IDs.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Its datacenter ID.
    pub fn datacenter_id(&self) -> u64 {
        self.datacenter_id
    }

    /// Its worker ID within the datacenter.
    pub fn worker_id(&self) -> u64 {
        self.worker_id
    }

    /// The first ID of a block. The block must come from a sequencer, which keeps it within the layout.
    pub fn first_id(&self, block: &Block) -> u64 {
        let sequence_bits = self.layout.sequence_bits;
        self.below(block.tick)
            | self.lowest_id
            | (block.counter as u64) << sequence_bits
            | block.first
    }

    /// A block of only this ID; `None` if the ID is of another node.
    pub fn block_of(&self, id: u64) -> Option<Block> {
        let Layout { clock_back_bits, sequence_bits, .. } = self.layout;
        let block = Block {
            tick: (id >> self.below_tick()) as Tick,
            counter: (id >> sequence_bits & mask(clock_back_bits)) as usize,
            first: id & mask(sequence_bits),
            len: 1,
        };
        let is_own = block.tick <= self.layout.last_tick() && self.first_id(&block) == id;
        is_own.then_some(block)
    }

    /// The lower bound of a tick's IDs: IDs of this tick and later are at least this, IDs of earlier ticks are less.
    pub fn below(&self, tick: Tick) -> u64 {
        (tick.max(0) as u64) << self.below_tick()
    }

    /// The number of bits below the timestamp.
    fn below_tick(&self) -> u32 {
        self.layout.bits() - u32::from(self.layout.timestamp_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_block_of_its_own_node_only() {
        let node = Node::new(Layout::NODE, 7, 31).unwrap();
        let block = Block { tick: 12_345, counter: 3, first: 4095, len: 1 };
        assert_eq!(node.block_of(node.first_id(&block)), Some(block));
        for other in [Node::new(Layout::NODE, 7, 30), Node::new(Layout::NODE, 6, 31)] {
            assert_eq!(other.unwrap().block_of(node.first_id(&block)), None);
        }
    }

    #[test]
    fn known_ids_decode_to_their_node_and_time() {
        // The Twitter ID is public. The Discord ID is the example of its API reference. The uid ID is from an article on
        // UidGenerator. All three are also in `__test__/ids/vectors.json`.
        let twitter = Layout::new([41, 5, 5, 0, 12], 1, 1_288_834_974_657);
        let discord = Layout { epoch_ms: 1_420_070_400_000, ..twitter };
        let uid = Layout::new([28, 0, 22, 0, 13], 1000, 1_463_673_600_000);
        for (layout, id, unix_ms, datacenter_id, worker_id, first) in [
            (twitter, 1541815603606036480, 1656432460105, 11, 26, 0),
            (discord, 175928847299117063, 1462015105796, 1, 0, 7),
            (uid, 3200169789968523265, 1556810799000, 0, 21, 1),
        ] {
            let node = Node::new(layout, datacenter_id, worker_id).unwrap();
            let block = Block { tick: layout.tick_at(unix_ms), counter: 0, first, len: 1 };
            assert_eq!(node.block_of(id), Some(block));
            assert_eq!(node.first_id(&block), id);
        }
    }

    #[test]
    fn the_largest_id_of_a_63_bit_layout_is_the_largest_signed_integer() {
        let node = Node::new(Layout::NODE, 7, 31).unwrap();
        let last = Block { tick: (1 << 41) - 1, counter: 3, first: 4095, len: 1 };
        assert_eq!(node.first_id(&last), i64::MAX as u64);
        assert_eq!(node.block_of(i64::MAX as u64), Some(last));
        let lowest = Node::new(Layout::NODE, 0, 0).unwrap();
        assert_eq!(lowest.block_of(1 << 63), None);
    }

    #[test]
    fn a_node_outside_its_layout_is_refused() {
        assert!(Node::new(Layout::NODE, 7, 31).is_ok());
        for (name, refused) in [
            ("datacenterId", Node::new(Layout::NODE, 8, 0)),
            ("workerId", Node::new(Layout::NODE, 0, 32)),
        ] {
            assert_eq!(refused.unwrap_err().detail("name"), Some(&name.into()));
        }
        assert!(Node::new(Layout { sequence_bits: 0, ..Layout::NODE }, 0, 0).is_err());
    }
}

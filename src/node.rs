//! Whose IDs they are.

use crate::layout::{Fields, Layout, LayoutError, Tick};
use crate::sequencer::Block;

/// Whoever may issue IDs with these bits: a layout with its epoch, a datacenter and a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    layout: Layout,
    datacenter_id: u64,
    worker_id: u64,
    /// The ID of tick 0, counter 0 and sequence 0: every ID of this node adds to it.
    lowest_id: u64,
}

impl Node {
    /// A node, if its layout is one and has room for it.
    pub fn new(layout: Layout, datacenter_id: u64, worker_id: u64) -> Result<Node, LayoutError> {
        let layout = layout.checked()?;
        let lowest_id = layout.encode(&Fields { datacenter_id, worker_id, ..Fields::default() })?;
        Ok(Node { layout, datacenter_id, worker_id, lowest_id })
    }

    /// How its IDs are cut.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Its datacenter.
    pub fn datacenter_id(&self) -> u64 {
        self.datacenter_id
    }

    /// Its worker within the datacenter.
    pub fn worker_id(&self) -> u64 {
        self.worker_id
    }

    /// The first ID of a block, which a sequencer has kept within the layout.
    pub fn first_id(&self, block: &Block) -> u64 {
        let sequence_bits = self.layout.sequence_bits;
        self.below(block.tick)
            | self.lowest_id
            | (block.counter as u64) << sequence_bits
            | block.first
    }

    /// The block that is this one ID; none if it is not of this node.
    pub fn block_of(&self, id: u64) -> Option<Block> {
        let Fields { tick, datacenter_id, worker_id, clock_back, sequence } =
            self.layout.decode(id).ok()?;
        let is_own = (datacenter_id, worker_id) == (self.datacenter_id, self.worker_id);
        is_own.then_some(Block { tick, counter: clock_back as usize, first: sequence, len: 1 })
    }

    /// What all IDs of a tick and later ones reach, and those of earlier ticks do not.
    pub fn below(&self, tick: Tick) -> u64 {
        let below_tick = self.layout.bits() - u32::from(self.layout.timestamp_bits);
        (tick.max(0) as u64) << below_tick
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_block_of_one_of_its_own_node_only() {
        let node = Node::new(Layout::NODE, 7, 31).unwrap();
        let block = Block { tick: 12_345, counter: 3, first: 4095, len: 1 };
        assert_eq!(node.block_of(node.first_id(&block)), Some(block));
        for other in [Node::new(Layout::NODE, 7, 30), Node::new(Layout::NODE, 6, 31)] {
            assert_eq!(other.unwrap().block_of(node.first_id(&block)), None);
        }
    }

    #[test]
    fn a_node_outside_its_layout_is_refused() {
        assert!(Node::new(Layout::NODE, 7, 31).is_ok());
        assert!(Node::new(Layout::NODE, 8, 0).is_err());
        assert!(Node::new(Layout::NODE, 0, 32).is_err());
        assert!(Node::new(Layout { sequence_bits: 0, ..Layout::NODE }, 0, 0).is_err());
    }
}

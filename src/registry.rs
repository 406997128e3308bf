//! One generator a node for the whole process, so that instances and worker_threads that name the
//! same node cannot collide.
//!
//! A generator is never forgotten, not even when all who used it have closed it: what it issued
//! must not be issued again by whoever opens the node next. A process names few nodes.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use crate::clock::SystemClock;
use crate::generator::{Generator, Node, Policies};

static NODES: LazyLock<Mutex<HashMap<Node, Entry>>> = LazyLock::new(Mutex::default);

struct Entry {
    generator: Arc<Generator>,
    users: usize,
}

/// A share in a node's generator. Dropping it gives the share up; the generator stays.
pub struct Share {
    generator: Arc<Generator>,
}

/// Opens a node, for the first time or along with others. All at one time must agree on the
/// policies; on a conflict, the answer is those in force.
pub fn open(node: Node, policies: Policies) -> Result<Share, Policies> {
    let mut nodes = NODES.lock();
    let entry = nodes.entry(node).or_insert_with(|| {
        let generator = Generator::new(node, policies, Box::new(SystemClock));
        Entry { generator: Arc::new(generator), users: 0 }
    });
    let in_force = entry.generator.policies();
    if in_force != policies {
        if entry.users > 0 {
            return Err(in_force);
        }
        entry.generator.set_policies(policies);
    }
    entry.users += 1;
    Ok(Share { generator: entry.generator.clone() })
}

impl Deref for Share {
    type Target = Generator;

    fn deref(&self) -> &Generator {
        &self.generator
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(entry) = NODES.lock().get_mut(self.generator.node()) {
            entry.users -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::generator::ClockBack;
    use crate::layout::Layout;

    const POLICIES: Policies = Policies {
        clock_back: ClockBack::Counter,
        max_wait: Duration::from_millis(10),
        max_ahead_ms: 0,
        random_start: false,
    };
    const OTHERS: Policies = Policies { clock_back: ClockBack::Throw, ..POLICIES };

    /// A node of this test alone: the registry is the process's.
    fn node(worker_id: u64) -> Node {
        Node::new(Layout::NODE, 7, worker_id).unwrap()
    }

    #[test]
    fn all_who_name_a_node_share_its_generator() {
        let one = open(node(1), POLICIES).unwrap();
        let two = open(node(1), POLICIES).unwrap();
        assert!(Arc::ptr_eq(&one.generator, &two.generator));
        assert!(!Arc::ptr_eq(&one.generator, &open(node(2), POLICIES).unwrap().generator));
    }

    #[test]
    fn another_policy_is_refused_while_the_node_is_open() {
        let open_one = open(node(3), POLICIES).unwrap();
        assert_eq!(open(node(3), OTHERS).err(), Some(POLICIES));
        drop(open_one);
        assert_eq!(open(node(3), OTHERS).unwrap().policies(), OTHERS);
    }

    #[test]
    fn a_node_that_was_closed_remembers_what_it_issued() {
        let layout = Layout { tick_ms: 86_400_000, ..Layout::NODE };
        let node = Node::new(layout, 7, 4).unwrap();
        let first = open(node, POLICIES).unwrap().reserve(|_| 1).unwrap();
        let again = open(node, POLICIES).unwrap().reserve(|_| 1).unwrap();
        assert_ne!(first.first_id, again.first_id);
    }

    #[test]
    fn threads_of_one_node_never_share_an_id() {
        let ids = std::thread::scope(|scope| {
            let draw = || {
                let share = open(node(5), POLICIES).unwrap();
                let mut ids = Vec::new();
                while ids.len() < 20_000 {
                    let reserved = share.reserve(|_| 7).unwrap();
                    ids.extend((0..reserved.block.len).map(|n| reserved.first_id + n));
                }
                ids
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(draw)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<u64>>()
        });
        let mut distinct = ids.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), ids.len());
    }
}

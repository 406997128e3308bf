//! The machine and the driver that ship.
//!
//! | file | what |
//! |---|---|
//! | `world` | stores, hosts, clocks, and what goes wrong in them |
//! | `search` | the machine in every order of its steps; `fingerprint` is that of `tests` |
//! | `fleet` | many hosts in virtual time, each process with the driver |
//! | `fleets` | what fleets keep: figures, and hours of faults |
//! | `plain` | what needs no search |

#[path = "../../../tests/fingerprint.rs"]
mod fingerprint;
mod fleet;
mod fleets;
mod plain;
mod search;
mod world;

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use super::Token;

thread_local! {
    /// Tokens by their first appearance in a state: two states that differ in the numbers alone are one.
    static NAMES: RefCell<HashMap<u64, u64>> = RefCell::default();
}

impl Hash for Token {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let name = NAMES.with_borrow_mut(|names| {
            let next = names.len() as u64 + 1;
            if self.0 == 0 { 0 } else { *names.entry(self.0).or_insert(next) }
        });
        state.write_u64(name);
    }
}

//! A search of every state that a model can reach, each once.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Actors that take one step at a time, in any order.
pub trait Model {
    /// Everything that a later step depends on.
    type State: Clone + Hash;
    /// What must not happen.
    type Wrong: Copy + Debug + PartialEq;

    /// The first state.
    fn start(&self) -> Self::State;

    /// Every state that is one step further, or what goes wrong there.
    fn steps(&self, state: &Self::State, next: &mut Vec<Self::State>) -> Result<(), Self::Wrong>;
}

/// What a search found, and how it came to it.
pub struct Found<M: Model> {
    pub states: usize,
    pub wrong: Option<M::Wrong>,
    pub path: Vec<M::State>,
    /// Whether these are all states.
    pub is_whole: bool,
}

/// Searches depth first, until something goes wrong.
pub fn search<M: Model>(model: &M) -> Found<M> {
    search_some(model, usize::MAX, |_| {})
}

/// The same, for so many states at most. `order` orders the states that are one step further.
pub fn search_some<M: Model>(
    model: &M,
    most: usize,
    mut order: impl FnMut(&mut [M::State]),
) -> Found<M> {
    let mut seen = HashSet::<u128, BuildHasherDefault<Identity>>::default();
    let mut stack = vec![(model.start(), 0)];
    let mut path = Vec::new();
    let mut next = Vec::new();
    seen.insert(fingerprint(&model.start()));
    while let Some((state, depth)) = stack.pop() {
        path.truncate(depth);
        path.push(state.clone());
        if let Err(wrong) = model.steps(&state, &mut next) {
            return Found { states: seen.len(), wrong: Some(wrong), path, is_whole: false };
        }
        if seen.len() >= most {
            return Found { states: seen.len(), wrong: None, path: Vec::new(), is_whole: false };
        }
        order(&mut next);
        for state in next.drain(..) {
            if seen.insert(fingerprint(&state)) {
                stack.push((state, depth + 1));
            }
        }
    }
    Found { states: seen.len(), wrong: None, path: Vec::new(), is_whole: true }
}

/// 128 bits tell more states apart than a search can visit.
fn fingerprint(state: &impl Hash) -> u128 {
    let mut lanes = Lanes(0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03);
    state.hash(&mut lanes);
    u128::from(lanes.0) << 64 | u128::from(lanes.1)
}

/// Two hashes at once.
struct Lanes(u64, u64);

impl Lanes {
    fn mix(&mut self, value: u64) {
        let fold = |lane: u64, by: u64| {
            let product = u128::from(lane ^ value) * u128::from(by);
            (product as u64) ^ (product >> 64) as u64
        };
        self.0 = fold(self.0, 0xa076_1d64_78bd_642f).wrapping_add(value);
        self.1 = fold(self.1.rotate_left(23), 0xe703_7ed1_a0b4_28db).wrapping_add(self.0);
    }
}

impl Hasher for Lanes {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, value: u8) {
        self.mix(value.into());
    }
    fn write_i8(&mut self, value: i8) {
        self.mix(value as u64);
    }
    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }
    fn write_isize(&mut self, value: isize) {
        self.mix(value as u64);
    }
    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A fingerprint is a hash already.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, _: &[u8]) {
        unreachable!("fingerprints are numbers");
    }
    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

//! A search of every state that a model can reach, each once.

use std::fmt::Debug;
use std::hash::Hash;

use crate::fingerprint::{Fingerprints, Lanes};

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
    let mut seen = Fingerprints::default();
    let mut stack = vec![(model.start(), 0)];
    let mut path = Vec::new();
    let mut next = Vec::new();
    seen.insert(fingerprint(&model.start()));
    while let Some((state, depth)) = stack.pop() {
        path.truncate(depth);
        path.push(state);
        if let Err(wrong) = model.steps(&path[depth], &mut next) {
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

fn fingerprint(state: &impl Hash) -> u128 {
    let mut lanes = Lanes::default();
    state.hash(&mut lanes);
    lanes.value()
}

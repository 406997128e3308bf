//! placeholder

use std::hash::{Hash, Hasher};

use super::Token;

impl Hash for Token {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

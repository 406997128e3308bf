//! The sequencer that several processes share: its steps in every order (`explore`).

mod explore;

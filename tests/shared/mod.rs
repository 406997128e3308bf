//! The sequencer that several processes share: its steps in every order (`explore`), the lives of its pages (`lives`), and
//! the code beside the plain sequencer (`plain`). `tests/loom` has it on weak memory.

mod explore;
mod lives;
mod plain;

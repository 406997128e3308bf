//! The sequencer that several processes share, and its pages: the code that ships, in every order of its steps, and
//! beside the plain sequencer.
//!
//! | file | what |
//! |---|---|
//! | `steps` | runs the code step by step |
//! | `world` | what the steps change |
//! | `core`, `files`, `pages`, `generator` | the code that ships, on a world |
//! | `draws` | searches the steps of draws and windows |
//! | `lives` | searches the lives of pages |
//! | `plain` | the code beside the plain sequencer |

pub mod core;
mod draws;
pub mod files;
pub mod generator;
mod lives;
pub mod pages;
mod plain;
pub mod steps;
pub mod world;

//! Stores, real and simulated, held to their contract; and whole fleets of them, simulated.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod contract;
mod engine;
mod file;
mod machine;
mod reset;
#[path = "../rule/mod.rs"]
mod rule;
mod simulation;

//! The file store beside a host's pages, and a machine with both, simulated.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../amount/mod.rs"]
mod amount;
mod child;
mod file;
mod leases;
mod machine;
mod pages;
mod processes;
mod reset;
mod simulation;
mod slots;
#[path = "../steering/mod.rs"]
mod steering;

//! Stores, real and simulated: the file store beside a host's pages, an engine that is held to its
//! contract, and whole fleets of both, simulated.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../amount/mod.rs"]
mod amount;
mod child;
mod contract;
mod engine;
mod file;
mod leases;
mod machine;
mod pages;
mod processes;
mod reset;
mod simulation;
#[path = "../steering/mod.rs"]
mod steering;

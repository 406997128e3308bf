//! The file store beside a host's pages, and a machine with both, simulated.

mod child;
mod file;
mod leases;
mod machine;
mod pages;
mod processes;
mod reset;
mod simulation;
mod slots;

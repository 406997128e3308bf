//! Stores, real and simulated, held to their contract; and whole fleets of them, simulated.

mod contract;
mod engine;
mod file;
mod machine;
mod simulation;

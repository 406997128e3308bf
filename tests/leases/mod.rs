//! Leases from stores: the code that ships (`src/lease`) in every order of its steps.
//!
//! A step is a call that reaches the store, a reply that arrives, a call that is given up and may be applied at any later
//! time, a tick of the clock, IDs that are issued, or a [`Fault`](world::Fault) of the world around. Processes of a host share a page; all share the
//! store. In each state no two pages may allow the same tick, but where data were lost or a machine was cloned: there up to
//! the ceilings that were confirmed or asked for at that moment.
//!
//! | file | what |
//! |---|---|
//! | `pages` | the pages of all hosts, and what the protocol may ask of them |
//! | `world` | all that processes share, its steps and faults, and what must not happen |
//! | `register` | a store as a map |
//! | `fleet` | many hosts for hours, in virtual time, with faults from a seed |
//! | `plain` | what needs no search: claims, refusals, many slots |
//! | `tests` | what holds, and which [`Broken`](world::Broken) parts are found |

mod fleet;
mod pages;
mod plain;
mod register;
mod tests;
mod world;

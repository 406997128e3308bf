//! What the operating system decides: where pages are by default, which file systems can hold them, who
//! may write to them, and which processes run.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::*;

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub use unix::*;

//! Startup schemes for the kernel's TCP.
//!
//! A scheme is a congestion control of Linux: until startup ends it decides on the window, then the kernel's own CUBIC
//! or Reno does. Any program that uses TCP can use it, unchanged.
//!
//! | Where | What |
//! |---|---|
//! | `bpf/NAME.h` | a scheme in C, without anything of a kernel; a test runs it beside the one of `flowstart-core` |
//! | `bpf/startup.bpf.h` | what is the same for all schemes: when the kernel calls, and what it is told |
//! | `bpf/NAME.bpf.c` | both together: a program for the kernel |
//! | [`port`] | which schemes there are, and their parameters as the programs read them |
//! | [`hint`] | hints for destinations |
//! | [`quick_start`] | a Quick-Start router at the interface of a host (XDP), which reads and writes its option of IPv4 |
//! | `kernel` | loading, unloading, counts and events (feature `kernel`, Linux) |

pub mod hint;
#[cfg(all(target_os = "linux", feature = "kernel"))]
pub mod kernel;
pub mod port;
pub mod quick_start;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

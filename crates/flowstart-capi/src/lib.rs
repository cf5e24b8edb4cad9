//! The controller for hosts that are written in C.
//!
//! A host includes `flowstart.h`, links `libflowstart`, makes a controller for each flow, reports what it sends and
//! what is acknowledged and lost, and asks how much it may send and how fast. The README shows it in twenty lines,
//! `examples/flow.c` in a whole transfer.
//!
//! | Looking for | Where |
//! |---|---|
//! | the functions, checks of pointers and sizes, panics, threads; all that is `unsafe` | `boundary.rs` |
//! | the structs of the header | `layout.rs` |
//! | what events of C mean to the controller | `flow.rs` |
//! | texts that name a scheme | `scheme.rs` |
//! | which algorithms a host in C can run | `needs.rs` |
//! | what is known of a path, and ranges of numbers | `knowledge.rs`, `quantity.rs` |
//! | errors | `refusal.rs` |
//!
//! The controller is `flowstart_core`'s, the one of the simulator and of the adapters for noq and quinn, with the same
//! defaults. This crate does not build on `flowstart-quic`: what that adds is for hosts that report an ACK frame piece
//! by piece and do not say how long the receiver held it back. A host in C says all of that in one struct, which is one
//! [`AckFrame`](flowstart_core::controller::AckFrame).

#[allow(unsafe_code, reason = "the border to C; the rest of the crate is safe Rust")]
pub mod boundary;
mod flow;
mod knowledge;
pub mod layout;
mod needs;
mod quantity;
mod refusal;
mod scheme;

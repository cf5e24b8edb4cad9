//! The functions that JavaScript calls, and those that it has. All `unsafe` of this crate is in this file.
//!
//! `files/worker.js` is the other side: it writes what it wants into `room`, and calls `answer`.

#![allow(unsafe_code, reason = "JavaScript and WebAssembly share memory, and nothing else")]

use std::cell::RefCell;
use std::panic;
use std::ptr;
use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::Desk;

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Milliseconds since the worker began.
    safe fn now() -> f64;
    /// Takes this text, which is gone afterwards.
    fn tell(text: *const u8, length: usize);
}

/// The time since the worker began.
fn clock() -> Duration {
    Duration::try_from_secs_f64(now() / 1000.0).unwrap_or_default()
}

/// Tells an event as JSON.
fn told(name: &str, data: &Value) {
    let text = json!({ "event": name, "data": data }).to_string();
    // SAFETY: the text lives until the call returns, and the other side reads no more of it.
    unsafe { tell(text.as_ptr(), text.len()) };
}

/// Room for a text of this many bytes.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn room(length: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; length].into_boxed_slice()).cast()
}

/// Does what the text in the room asks for, and frees the room.
///
/// # Safety
///
/// The room is one that [`room`] gave for this length, and no other call has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn answer(room: *mut u8, length: usize) {
    // SAFETY: it comes from `room`, which made it of a box of this length.
    let text = unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(room, length)) };
    thread_local! {
        static DESK: RefCell<Result<Desk, String>> = {
            // A panic ends the instance; its page shall know why.
            panic::set_hook(Box::new(|info| told("failed", &json!({ "problem": info.to_string() }))));
            RefCell::new(Desk::new(clock))
        };
    }
    DESK.with_borrow_mut(|desk| match desk {
        Ok(desk) => desk.answer(&String::from_utf8_lossy(&text), &told),
        Err(problem) => told("failed", &json!({ "problem": problem })),
    });
}

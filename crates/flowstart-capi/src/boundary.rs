//! The functions that C calls. All `unsafe` of this crate is in this file.
//!
//! Each function checks its pointers and the sizes of structs, takes the controller if no other thread has it, and
//! catches panics. What happens behind is safe Rust in `flow.rs`.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::CString;
use std::mem::{MaybeUninit, offset_of};
use std::ops::RangeInclusive;
use std::os::raw::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Mutex, TryLockError};

use flowstart_core::controller::{Controller as Core, ControllerConfig};
use flowstart_core::units::Bytes;

use crate::flow::Flow;
use crate::knowledge::Knowledge;
use crate::layout::{Ack, Config, Output, Path, Status};
use crate::needs::check_needs;
use crate::quantity::flag;
use crate::refusal::Refusal;
use crate::scheme;

/// Longest text of a scheme or a congestion avoidance.
const LONGEST_TEXT: usize = 1024;
/// Segment and initial window of a host that states none (RFC 9002, section 7.2).
const SEGMENT: u64 = 1200;
const INITIAL_WINDOW: u64 = 10;

/// The controller of one flow. One thread at a time may use it.
// A mutex that is only ever tried: a second thread gets an error instead of waiting, and a panic leaves its mark.
#[derive(Debug)]
pub struct Controller(Mutex<Flow>);

impl Controller {
    pub(crate) fn new(flow: Flow) -> Self {
        Self(Mutex::new(flow))
    }
}

/// Size of [`Output`] in the first version of this library.
const OUTPUT_FIRST: usize = offset_of!(Output, in_recovery) + size_of::<u32>();

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// A struct of C that begins with its size.
///
/// # Safety
///
/// The type is `repr(C)`, its first field is `size: usize`, and all bytes zero are a value of it, as is whatever a
/// caller in C may write: numbers and pointers.
unsafe trait Versioned: Copy {
    /// The name in C.
    const NAME: &'static str;
    /// Size in the first version of this library.
    const FIRST: usize;
}

// SAFETY: numbers and pointers in `repr(C)`, the size first.
unsafe impl Versioned for Config {
    const NAME: &'static str = "flowstart_config";
    const FIRST: usize = offset_of!(Config, reserved) + size_of::<u32>();
}

// SAFETY: numbers in `repr(C)`, the size first.
unsafe impl Versioned for Path {
    const NAME: &'static str = "flowstart_path";
    const FIRST: usize = offset_of!(Path, doubt_handshake) + size_of::<u32>();
}

// What later versions add stands behind, or hosts of the first version would state it by accident.
const _: () = assert!(offset_of!(Path, train_rate) == Path::FIRST);

// SAFETY: numbers in `repr(C)`, the size first.
unsafe impl Versioned for Ack {
    const NAME: &'static str = "flowstart_ack";
    const FIRST: usize = offset_of!(Ack, persistent_congestion) + size_of::<u32>();
}

/// The version of the library that runs, such as "0.1.0". The text lives as long as the program.
#[unsafe(no_mangle)]
pub extern "C" fn flowstart_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// What was wrong with the last call of this thread that did not return `FLOWSTART_STATUS_OK`: the field, its value and
/// what is allowed. Empty if there was none. The text is valid until a call of this thread fails again.
#[unsafe(no_mangle)]
pub extern "C" fn flowstart_last_error() -> *const c_char {
    // A thread that ends may call this when its text is gone already.
    LAST_ERROR.try_with(|last| last.try_borrow().map_or(c"".as_ptr(), |last| last.as_ptr())).unwrap_or(c"".as_ptr())
}

/// Makes a controller, which `flowstart_free()` frees, and stores it in `created`. On an error that becomes NULL.
///
/// # Safety
///
/// `config` is NULL or points to a struct of the size that it states, whose texts are NULL or end with a zero.
/// `created` is NULL or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowstart_new(config: *const Config, created: *mut *mut Controller) -> Status {
    caught(|| {
        if created.is_null() {
            return Err(null("created"));
        }
        // SAFETY: not NULL, so by the contract it points to a pointer, which this writes and does not read.
        unsafe { created.write(ptr::null_mut()) };
        // SAFETY: the caller's contract for `config`.
        let config = unsafe { read(config, "config") }?;
        // SAFETY: the caller's contract for the texts.
        let (startup, avoidance) = unsafe { (text("scheme", config.scheme)?, text("avoidance", config.avoidance)?) };
        let controller = Box::new(build(&config, startup.as_deref(), avoidance.as_deref())?);
        // SAFETY: as above.
        unsafe { created.write(Box::into_raw(controller)) };
        Ok(())
    })
}

fn build(config: &Config, startup: Option<&str>, avoidance: Option<&str>) -> Result<Controller, Refusal> {
    let or = |value, default| if value == 0 { default } else { value };
    Refusal::unless_in("reserved", config.reserved.into(), 0..=0)?;
    let ect1 = flag("ect1", config.ect1)?;
    let startup = scheme::startup(startup.unwrap_or("slow-start"))?;
    let avoidance = scheme::avoidance(avoidance.unwrap_or("cubic"))?;
    let segment = Bytes::new(or(config.segment, SEGMENT));
    let initial_window = or(config.initial_window, INITIAL_WINDOW);
    let config = ControllerConfig { segment, initial_window, undo: true, ..ControllerConfig::new(startup, avoidance) };
    check_needs(&config, ect1)?;
    Ok(Controller::new(Flow::new(Core::new(config)?, segment)))
}

/// Frees a controller; NULL is allowed. A controller that another thread is using is not freed
/// (`FLOWSTART_STATUS_BUSY`). Afterwards it must not be used, nor freed again.
///
/// # Safety
///
/// `controller` is NULL, or comes from `flowstart_new()` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowstart_free(controller: *mut Controller) -> Status {
    caught(|| {
        // SAFETY: NULL, or by the contract a controller.
        let Some(used) = (unsafe { controller.as_ref() }) else { return Ok(()) };
        if let Err(TryLockError::WouldBlock) = used.0.try_lock() {
            return Err(busy());
        }
        // SAFETY: by the contract it comes from `Box::into_raw` in flowstart_new(), and nobody uses it any more.
        drop(unsafe { Box::from_raw(controller) });
        Ok(())
    })
}

/// The handshake is over and data may leave: the scheme launches with what is known of the path. `path` may be NULL:
/// nothing is known. Before it the window is the initial window. A loss or a mark before it launches without
/// knowledge, because it needs a response.
///
/// # Safety
///
/// `controller` as in `flowstart_free()`; `path` is NULL or points to a struct of the size that it states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowstart_launch(controller: *mut Controller, now: u64, path: *const Path) -> Status {
    // SAFETY: the caller's contract.
    let known = || unsafe { read_path(path) };
    // SAFETY: the caller's contract.
    unsafe { with(controller, |flow| flow.launch(now, known()?)) }
}

/// Packets take another path from now on (RFC 9000, section 9.4): everything that was learned is forgotten, and the
/// scheme launches with what is known of the new path; `path` may be NULL. Packets sent before do not count.
///
/// # Safety
///
/// As `flowstart_launch()`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowstart_on_path_change(controller: *mut Controller, now: u64, path: *const Path) -> Status {
    // SAFETY: the caller's contract.
    let known = || unsafe { read_path(path) };
    // SAFETY: the caller's contract.
    unsafe { with(controller, |flow| flow.change_path(now, known()?)) }
}

/// A packet that counts towards the bytes in flight left at `now`, in nanoseconds from an origin of the caller's.
/// Packet numbers grow from packet to packet; numbers may be left out. Packets of the handshake may be reported if
/// their numbers fit into that order. `in_flight` includes this packet. `app_limited`: 1 if before it nothing waited to
/// be sent, else 0.
///
/// # Safety
///
/// As `flowstart_free()`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowstart_on_sent(
    controller: *mut Controller,
    now: u64,
    packet_number: u64,
    bytes: u64,
    in_flight: u64,
    app_limited: u32,
) -> Status {
    let event = |flow: &mut Flow| flow.on_sent(now, packet_number, bytes, in_flight, flag("app_limited", app_limited)?);
    // SAFETY: the caller's contract.
    unsafe { with(controller, event) }
}

/// A packet was declared lost. `flowstart_on_ack()` follows, once for all packets that one acknowledgement or one timer
/// has revealed; the window moves only then.
///
/// # Safety
///
/// As `flowstart_free()`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowstart_on_packet_lost(
    controller: *mut Controller,
    packet_number: u64,
    bytes: u64,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe { with(controller, |flow| flow.on_packet_lost(packet_number, bytes)) }
}

/// An acknowledgement arrived, or a timer declared packets lost: then `delivered_bytes` is 0.
///
/// # Safety
///
/// `controller` as in `flowstart_free()`; `ack` is NULL or points to a struct of the size that it states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowstart_on_ack(controller: *mut Controller, ack: *const Ack) -> Status {
    // SAFETY: the caller's contract.
    let ack = || unsafe { read(ack, "ack") };
    // SAFETY: the caller's contract.
    unsafe { with(controller, |flow| flow.on_ack(&ack()?)) }
}

/// All packets behind the last reduction of the window were delivered after all: the reduction is undone.
///
/// # Safety
///
/// As `flowstart_free()`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowstart_on_spurious_loss(controller: *mut Controller, now: u64) -> Status {
    // SAFETY: the caller's contract.
    unsafe { with(controller, |flow| flow.on_spurious_loss(now)) }
}

/// Full packets have another size from now on, 1 to 65535 bytes (path MTU discovery).
///
/// # Safety
///
/// As `flowstart_free()`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowstart_set_segment(controller: *mut Controller, segment: u64) -> Status {
    // SAFETY: the caller's contract.
    unsafe { with(controller, |flow| flow.set_segment(segment)) }
}

/// What may be sent at `now`. Ask before sending, and at `next_wakeup`. Whatever this returns, an `output` of a valid
/// size is filled: on an error with a fixed window of two segments and without pacing, so a host that goes on
/// regardless still sends, slowly.
///
/// # Safety
///
/// `controller` as in `flowstart_free()`; `output` is NULL or points to a struct of the size that it states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowstart_query(controller: *mut Controller, now: u64, output: *mut Output) -> Status {
    caught(|| {
        if output.is_null() {
            return Err(null("output"));
        }
        // SAFETY: not NULL, so by the contract it points to a struct that begins with its size.
        let size = unsafe { output.cast::<usize>().read_unaligned() };
        check_size("output", "flowstart_output", size, OUTPUT_FIRST..=size_of::<Output>())?;
        // SAFETY: the caller's contract.
        let answer = unsafe { enter(controller, |flow| flow.query(now)) };
        let (answer, result) = match answer {
            Ok(answer) => (answer, Ok(())),
            // SAFETY: the caller's contract.
            Err(refusal) => (Output::fallback(unsafe { segment(controller) }), Err(refusal)),
        };
        let answer = Output { size, ..answer };
        // SAFETY: `output` points to at least `size` bytes, and `answer` has at least as many. They do not overlap,
        // because `answer` is on this stack.
        unsafe { ptr::copy_nonoverlapping(ptr::from_ref(&answer).cast::<u8>(), output.cast::<u8>(), size) };
        result
    })
}

/// Runs `call` and notes its error for `flowstart_last_error()`.
fn caught(call: impl FnOnce() -> Result<(), Refusal>) -> Status {
    let Err(Refusal { status, message }) = catch(call) else { return Status::Ok };
    let message = CString::new(message.replace('\0', "\\0")).unwrap_or_default();
    // A thread that ends may call this when its text is gone already; then only the code tells.
    let _ = LAST_ERROR.try_with(|last| last.try_borrow_mut().map(|mut last| *last = message));
    status
}

/// Turns a panic into an error. What it leaves half-changed is behind a mutex, which remembers it.
fn catch<T>(call: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(failed(&*panic)))
}

/// An event of a controller.
///
/// # Safety
///
/// `controller` is NULL, or comes from `flowstart_new()` and was not freed.
unsafe fn with(controller: *mut Controller, event: impl FnOnce(&mut Flow) -> Result<(), Refusal>) -> Status {
    // SAFETY: the caller's contract.
    caught(|| unsafe { enter(controller, event) })
}

/// Takes the controller, if nobody else has it, for `call`.
///
/// # Safety
///
/// As [`with`].
unsafe fn enter<T>(
    controller: *mut Controller,
    call: impl FnOnce(&mut Flow) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    // SAFETY: NULL, or by the contract a controller; other threads may have such a reference as well.
    let Some(controller) = (unsafe { controller.as_ref() }) else { return Err(null("controller")) };
    catch(|| match controller.0.try_lock() {
        Ok(mut flow) => call(&mut flow),
        Err(TryLockError::WouldBlock) => Err(busy()),
        Err(TryLockError::Poisoned(_)) => {
            Err(Refusal::new(Status::Failed, "the controller has failed in an earlier call; free it and make another"))
        }
    })
}

/// The segment of a controller that may have failed; the default where there is none to ask.
///
/// # Safety
///
/// As [`with`].
unsafe fn segment(controller: *mut Controller) -> Bytes {
    // SAFETY: as in `enter`.
    let controller = unsafe { controller.as_ref() };
    match controller.map(|controller| controller.0.try_lock()) {
        Some(Ok(flow)) => flow.segment(),
        Some(Err(TryLockError::Poisoned(left))) => left.get_ref().segment(),
        Some(Err(TryLockError::WouldBlock)) | None => Bytes::new(SEGMENT),
    }
}

/// What is known of a path; NULL: nothing.
///
/// # Safety
///
/// `path` is NULL or points to a struct of the size that it states.
unsafe fn read_path(path: *const Path) -> Result<Knowledge, Refusal> {
    if path.is_null() {
        return Ok(Knowledge::default());
    }
    // SAFETY: the caller's contract.
    Knowledge::read(&unsafe { read(path, "path") }?)
}

/// The struct of a caller, whose header may be older: what its struct does not have is zero.
///
/// # Safety
///
/// `from` is NULL or points to a struct of the size that it states.
unsafe fn read<T: Versioned>(from: *const T, field: &str) -> Result<T, Refusal> {
    if from.is_null() {
        return Err(null(field));
    }
    // SAFETY: not NULL, so by the contract it points to a struct that begins with its size.
    let size = unsafe { from.cast::<usize>().read_unaligned() };
    check_size(field, T::NAME, size, T::FIRST..=size_of::<T>())?;
    let mut copy = MaybeUninit::<T>::zeroed();
    // SAFETY: `from` has `size` bytes by the contract, `copy` has at least as many, and it is a new place.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), size) };
    // SAFETY: zeroes and what C wrote are a value of every `Versioned` type.
    Ok(unsafe { copy.assume_init() })
}

fn check_size(field: &str, name: &str, size: usize, known: RangeInclusive<usize>) -> Result<(), Refusal> {
    if known.contains(&size) {
        return Ok(());
    }
    let (from, to) = known.into_inner();
    let newer = if size > to { ", unless the header is newer than the library" } else { "" };
    let message = format!("{field}.size is {size}; allowed is {from} to {to}: sizeof({name}){newer}");
    Err(Refusal::new(Status::Size, message))
}

/// A text of C; `None`: NULL.
///
/// # Safety
///
/// `from` is NULL or points to bytes of which one is zero.
unsafe fn text(field: &str, from: *const c_char) -> Result<Option<String>, Refusal> {
    if from.is_null() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    for place in 0..LONGEST_TEXT {
        // SAFETY: no byte before this one was zero, so by the contract this one is there.
        match unsafe { from.add(place).read() } {
            0 => {
                let text = String::from_utf8(bytes);
                return text.map(Some).map_err(|_| Refusal::value(format_args!("{field}: allowed is UTF-8")));
            }
            byte => bytes.push(byte.to_ne_bytes()[0]),
        }
    }
    Err(Refusal::value(format_args!("{field} is too long; allowed are fewer than {LONGEST_TEXT} bytes")))
}

fn null(field: &str) -> Refusal {
    Refusal::new(Status::Null, format_args!("{field} is NULL; allowed is a pointer"))
}

fn busy() -> Refusal {
    Refusal::new(Status::Busy, "another thread is using the controller; allowed is one thread at a time")
}

fn failed(panic: &(dyn Any + Send)) -> Refusal {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    Refusal::new(Status::Failed, format_args!("the library has failed: {}", text.unwrap_or("no reason is known")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_core::avoidance::AvoidanceConfig;
    use flowstart_core::event::{Ack as Event, DecisionLog, Loss};
    use flowstart_core::launch::Launch;
    use flowstart_core::path::PathKnowledge;
    use flowstart_core::rtt::RttEstimator;
    use flowstart_core::startup::{CustomStartup, Startup, StartupConfig, Step};
    use flowstart_core::time::Timestamp;
    use flowstart_core::window::Window;
    use std::ffi::CStr;

    /// A scheme with a mistake: it panics when data is lost.
    #[derive(Clone, Debug)]
    struct Mistaken;

    impl Startup for Mistaken {
        fn launch(&mut self, _: Timestamp, _: &PathKnowledge, _: &mut DecisionLog) -> Launch {
            Launch::window(Bytes::new(12_000))
        }

        fn on_ack(&mut self, _: &Event, window: Window, _: bool, _: &RttEstimator) -> Step {
            Step::Continue { cwnd: window.cwnd }
        }

        fn on_lost(&mut self, _: &Loss) {
            panic!("a mistake");
        }
    }

    fn mistaken() -> *mut Controller {
        let scheme = CustomStartup::new("mistaken", Box::new(Mistaken)).unwrap();
        let avoidance = AvoidanceConfig::Reno(Default::default());
        let segment = Bytes::new(1400);
        let config = ControllerConfig { segment, ..ControllerConfig::new(StartupConfig::Custom(scheme), avoidance) };
        Box::into_raw(Box::new(Controller::new(Flow::new(Core::new(config).unwrap(), segment))))
    }

    fn ask(controller: *mut Controller) -> (Status, Output) {
        let mut output = Output::fallback(Bytes::new(1));
        // SAFETY: what the test made.
        let status = unsafe { flowstart_query(controller, 0, &raw mut output) };
        (status, output)
    }

    fn last_error() -> String {
        // SAFETY: a text that ends with a zero.
        unsafe { CStr::from_ptr(flowstart_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn after_a_panic_the_controller_takes_no_events_and_answers_with_two_segments() {
        let controller = mistaken();
        let mut ack = Ack {
            size: size_of::<Ack>(),
            now: 100,
            largest_acked: 0,
            delivered_bytes: 0,
            delivered_packets: 0,
            in_flight: 0,
            rtt: 0,
            ack_delay: 0,
            ce_packets: 0,
            app_limited: 0,
            persistent_congestion: 0,
        };
        // SAFETY: what the test made, freed once.
        unsafe {
            assert_eq!(flowstart_launch(controller, 0, ptr::null()), Status::Ok);
            assert_eq!(flowstart_on_sent(controller, 0, 0, 1400, 1400, 0), Status::Ok);
            assert_eq!(ask(controller).1.cwnd, 12_000);
            assert_eq!(flowstart_on_packet_lost(controller, 0, 1400), Status::Ok);
            assert_eq!(flowstart_on_ack(controller, &raw const ack), Status::Failed);
            assert_eq!(last_error(), "the library has failed: a mistake");
            ack.now = 200;
            assert_eq!(flowstart_on_ack(controller, &raw const ack), Status::Failed);
            assert!(last_error().contains("in an earlier call"), "{}", last_error());
            let (status, output) = ask(controller);
            assert_eq!((status, output.cwnd, output.phase as u32), (Status::Failed, 2800, 3));
            assert_eq!(flowstart_free(controller), Status::Ok);
        }
    }

    #[test]
    fn a_call_beside_another_threads_is_refused_and_a_controller_in_use_is_not_freed() {
        let controller = mistaken();
        // SAFETY: what the test made.
        let inside = unsafe { controller.as_ref() }.unwrap();
        let guard = inside.0.lock().unwrap();
        std::thread::scope(|scope| {
            let address = controller.expose_provenance();
            scope.spawn(move || {
                let controller = ptr::with_exposed_provenance_mut(address);
                // SAFETY: what the test made; freeing is refused.
                unsafe {
                    assert_eq!(flowstart_on_sent(controller, 0, 0, 1400, 1400, 0), Status::Busy);
                    assert_eq!(flowstart_free(controller), Status::Busy);
                }
                assert!(last_error().contains("one thread at a time"), "{}", last_error());
                let (status, output) = ask(controller);
                assert_eq!((status, output.cwnd), (Status::Busy, 2400));
            });
        });
        drop(guard);
        // SAFETY: what the test made, freed once.
        unsafe {
            assert_eq!(flowstart_on_sent(controller, 0, 0, 1400, 1400, 0), Status::Ok);
            assert_eq!(flowstart_free(controller), Status::Ok);
        }
    }
}

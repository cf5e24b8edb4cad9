//! What is left when a user interrupts a command: no half-written files, which may have gigabytes.

#[cfg(unix)]
use flowstart_lab::results::folder::remove_growing;

/// Removes half-written files when the user or the system ends the program (SIGINT, SIGTERM). The program ends as it
/// would without this, so the shell learns of the signal.
#[cfg(unix)]
pub(crate) fn leaves_nothing_half_written() {
    use signal_hook::consts::{SIGINT, SIGTERM};

    // Without the handler a signal ends the program all the same.
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _none_is_begun = remove_growing();
            #[cfg(target_os = "linux")]
            let _none_is_made = crate::testbed::scratch::remove_all();
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
}

/// Other systems have no such signals.
#[cfg(not(unix))]
pub(crate) fn leaves_nothing_half_written() {}

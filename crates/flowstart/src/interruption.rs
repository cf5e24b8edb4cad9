//! What is left when a user interrupts a command: no half-written files, which may have gigabytes.

use std::process::ExitCode;

#[cfg(unix)]
use flowstart_lab::results::folder::remove_growing;

use crate::failure::FAILED;

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

/// The number of the signal that ends a program whatever it waits for. A terminal and a script may both send the first,
/// and the second has a meaning of its own where a service ends slowly.
#[cfg(unix)]
const INSISTENT: usize = 3;

/// Ends the program with the third SIGINT or SIGTERM: a command that ends by itself after the first may wait for a
/// reader of its output who does not read.
#[cfg(unix)]
pub(crate) fn ends_when_insisted() {
    use signal_hook::consts::{SIGINT, SIGTERM};

    // Without the handler it ends when it has written.
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().nth(INSISTENT - 1) {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
}

/// Other systems have no such signals.
#[cfg(not(unix))]
pub(crate) fn ends_when_insisted() {}

/// SIGINT and SIGTERM, of which each asks a service to end. Other systems have Ctrl-C only.
pub(crate) struct Interruptions {
    #[cfg(unix)]
    caught: [tokio::signal::unix::Signal; 2],
}

impl Interruptions {
    /// Catches them from here on; fails if the system does not allow it.
    pub(crate) fn caught() -> std::io::Result<Self> {
        #[cfg(unix)]
        use tokio::signal::unix::{SignalKind, signal};
        ends_when_insisted();
        Ok(Self {
            #[cfg(unix)]
            caught: [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?],
        })
    }

    /// Completes with the next of them.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.caught;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }

    /// Completes with the next Ctrl-C.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        drop(tokio::signal::ctrl_c().await);
    }
}

/// The signal by which the user, the system or the terminal's end asks this program to end.
#[cfg(unix)]
pub(crate) async fn signal() -> i32 {
    use tokio::signal::unix::{SignalKind, signal};

    ends_when_insisted();
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    // Where they are not caught, a signal ends the program at once.
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hang_up)] = kinds.map(signal) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => kinds[0].as_raw_value(),
        _ = terminate.recv() => kinds[1].as_raw_value(),
        _ = hang_up.recv() => kinds[2].as_raw_value(),
    }
}

/// Ends this program as the signal would have, so the shell learns of it.
#[cfg(unix)]
pub(crate) fn end_by(signal: i32) -> ExitCode {
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    ExitCode::from(FAILED)
}

/// Ctrl-C, where there are no signals.
#[cfg(not(unix))]
pub(crate) async fn signal() -> i32 {
    drop(tokio::signal::ctrl_c().await);
    0
}

/// The program ends with a failure.
#[cfg(not(unix))]
pub(crate) fn end_by(_signal: i32) -> ExitCode {
    ExitCode::from(FAILED)
}

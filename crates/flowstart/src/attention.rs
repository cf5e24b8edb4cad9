//! How much the user wants to hear on stderr (`--quiet`, `--verbose`), and signs of life during waits.

use std::io::IsTerminal;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

/// A wait of this length needs a sign of life.
const PATIENCE: Duration = Duration::from_secs(2);

/// Options of every subcommand.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Attention {
    /// No notes, no progress. Errors and warnings remain on stderr.
    #[arg(short, long, global = true, conflicts_with = "verbose", display_order = 900)]
    quiet: bool,
    /// Say what runs and how long it takes. These details go to stderr.
    #[arg(short, long, global = true, display_order = 901)]
    verbose: bool,
}

static CHOSEN: OnceLock<Attention> = OnceLock::new();

fn chosen() -> Attention {
    CHOSEN.get().copied().unwrap_or_default()
}

impl Attention {
    /// Applies to everything that the program says from now on.
    pub(crate) fn apply(self) {
        // Only the first call counts, and there is one.
        let _ = CHOSEN.set(self);
    }
}

/// Whether notes are wanted.
pub(crate) fn wants_notes() -> bool {
    !chosen().quiet
}

/// Whether details are wanted.
pub(crate) fn wants_details() -> bool {
    chosen().verbose
}

/// Whether progress is shown: on a terminal, unless the user wants quiet.
pub(crate) fn shows_progress() -> bool {
    wants_notes() && std::io::stderr().is_terminal()
}

/// Writes a line to stderr, like `eprintln!`. A line that cannot be written is lost without further effect.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        drop(writeln!(std::io::stderr(), $($text)*));
    }};
}

/// Writes a note to stderr, unless the user wants quiet.
macro_rules! note {
    ($($text:tt)*) => {
        if $crate::attention::wants_notes() {
            tell!("note: {}", format_args!($($text)*));
        }
    };
}

/// Writes a detail to stderr, if the user wants details.
macro_rules! detail {
    ($($text:tt)*) => {
        if $crate::attention::wants_details() {
            tell!($($text)*);
        }
    };
}

/// A step that may take long. On a terminal a message with the elapsed time appears after two seconds. When the step
/// ends, the message goes away, and users who want details are told the time.
#[derive(Debug)]
pub(crate) struct Waiting {
    what: String,
    since: Instant,
    ended: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Waiting {
    /// Begins a step: what is done in it, as in "writing the report".
    pub(crate) fn begin(what: impl Into<String>) -> Self {
        let (what, ended) = (what.into(), Arc::<(Mutex<bool>, Condvar)>::default());
        let thread = shows_progress().then(|| {
            let (what, ended) = (what.clone(), ended.clone());
            std::thread::spawn(move || show(&what, &ended))
        });
        Self { what, since: Instant::now(), ended, thread }
    }
}

/// Shows the message from the end of patience to the end of the step.
fn show(what: &str, (ended, changed): &(Mutex<bool>, Condvar)) {
    let guard = ended.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = changed.wait_timeout_while(guard, PATIENCE, |ended| !*ended);
    let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
    if !timeout.timed_out() {
        return;
    }
    let spinner = ProgressBar::new_spinner().with_elapsed(PATIENCE);
    if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {spinner} {msg}") {
        spinner.set_style(style);
    }
    spinner.set_message(what.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(100));
    drop(changed.wait_while(guard, |ended| !*ended));
    spinner.finish_and_clear();
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let (ended, changed) = &*self.ended;
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread that shows the message is no reason to stop.
            let _ = thread.join();
        }
        detail!("{}: {:.1} s", self.what, self.since.elapsed().as_secs_f64());
    }
}

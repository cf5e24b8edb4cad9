//! The file of `--packet-log`: a line of CSV for each packet.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flowstart_core::time::Timestamp;
use flowstart_emu::packet_log::{Entries, Entry};

use crate::failure::Failure;

/// What the columns are. Times are nanoseconds since the router's begin.
const COLUMNS: &str = "direction,bytes,arrived_ns,planned_ns,left_ns";

/// A file that takes entries.
pub(super) struct PacketLog {
    out: BufWriter<File>,
    file: PathBuf,
    name: String,
}

impl PacketLog {
    /// A new file. What is there already stays as it is.
    pub(super) fn create(file: &Path) -> Result<Self, Failure> {
        let name = format!("--packet-log `{}`", file.display());
        let opened = File::create_new(file).and_then(|file| {
            let mut out = BufWriter::new(file);
            writeln!(out, "{COLUMNS}").map(|()| out)
        });
        opened
            .map(|out| Self { out, file: file.into(), name: name.clone() })
            .map_err(|cause| Failure::Input(format!("{name}: {cause}")))
    }

    /// Leaves nothing of a router that did not begin.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(&self.file);
    }

    /// Writes all entries; why not, if it ends earlier.
    pub(super) fn write(mut self, entries: Entries) -> Result<(), String> {
        let written = entries.write(|entry| write_line(&mut self.out, entry)).and_then(|()| self.out.flush());
        written.map_err(|cause| format!("{}: {cause}; it is not whole", self.name))
    }
}

fn write_line(out: &mut impl Write, entry: &Entry) -> io::Result<()> {
    let Entry { is_down, size, arrived, crossed } = entry;
    let nanos = |time: &Timestamp| time.since(Timestamp::ZERO).as_nanos();
    let direction = if *is_down { "down" } else { "up" };
    match crossed {
        Some((planned, left)) => {
            writeln!(out, "{direction},{size},{},{},{}", nanos(arrived), nanos(planned), nanos(left))
        }
        // It was dropped or lost.
        None => writeln!(out, "{direction},{size},{},,", nanos(arrived)),
    }
}

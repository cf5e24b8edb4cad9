//! One qlog file: it begins when its client's address is proven, keeps its bounds, and ends with a whole record.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use super::folder::Folder;

/// What is kept of a handshake until its client has proved its address. A handshake has about 10 KB; more would let
/// those who prove nothing fill the memory.
const MOST_OF_HANDSHAKE: usize = 64 << 10;
/// What is written in one go.
const PIECE: usize = 16 << 10;

/// A file that takes whole records.
pub(super) struct LogFile {
    folder: Folder,
    path: PathBuf,
    state: State,
    /// Whole records that are not in the file yet.
    waiting: Vec<u8>,
}

enum State {
    /// The client has not proved its address.
    Before,
    /// `size` bytes are written, and there is room for `charged`.
    Open { file: File, size: u64, charged: u64 },
    /// Nothing is taken any more.
    Over,
}

impl LogFile {
    /// A file of this name, which is not there before it [begins](Self::begin).
    pub(super) fn new(folder: &Folder, name: &str) -> Self {
        let path = folder.file(name);
        Self { folder: folder.clone(), path, state: State::Before, waiting: Vec::new() }
    }

    /// Nothing is taken any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// Makes the file, if there is none yet, with what was added so far.
    pub(super) fn begin(&mut self) {
        if !matches!(self.state, State::Before) {
            return;
        }
        let Some(charged) = self.folder.charge(0, self.waiting.len() as u64) else { return self.end("left-out") };
        match File::create_new(&self.path) {
            Ok(file) => self.state = State::Open { file, size: 0, charged },
            Err(error) => return self.fail(&error),
        }
        self.write_waiting();
        if self.is_over() {
            // Without its first records a file is useless. If it cannot be removed, it does no harm.
            if std::fs::remove_file(&self.path).is_ok() {
                self.folder.give_back(charged);
            }
        }
    }

    /// Takes one more record.
    pub(super) fn add(&mut self, record: &[u8]) {
        let wanted = self.waiting.len() + record.len();
        match self.state {
            State::Over => return,
            State::Before if wanted > MOST_OF_HANDSHAKE => return self.end("left-out"),
            State::Open { size, .. } if size + wanted as u64 > self.folder.most_of_file() => {
                self.write_waiting();
                if !self.is_over() {
                    self.end("cut-off");
                }
                return;
            }
            State::Before | State::Open { .. } => self.waiting.extend_from_slice(record),
        }
        if matches!(self.state, State::Open { .. }) && wanted >= PIECE {
            self.write_waiting();
        }
    }

    /// Writes what waits, if the file has begun.
    pub(super) fn write_waiting(&mut self) {
        let State::Open { file, size, charged } = &mut self.state else { return };
        let after = *size + self.waiting.len() as u64;
        let Some(room) = self.folder.charge(*charged, after) else { return self.end("cut-off") };
        *charged = room;
        match file.write_all(&self.waiting) {
            Ok(()) => {
                *size = after;
                self.waiting.clear();
            }
            Err(error) => {
                // What was written of a record goes, so that the file ends with a whole one.
                drop(file.set_len(*size));
                self.fail(&error);
            }
        }
    }

    fn fail(&mut self, error: &io::Error) {
        self.folder.failed(&self.path, error);
        self.close();
    }

    fn end(&mut self, result: &'static str) {
        self.folder.count(result);
        self.close();
    }

    fn close(&mut self) {
        self.state = State::Over;
        self.waiting = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::super::folder::tests::folder;
    use super::*;

    const RECORD: &[u8] = b"\x1e{\"name\":\"quic:packet_sent\"}\n";

    fn names(place: &tempfile::TempDir) -> usize {
        std::fs::read_dir(place.path()).unwrap().count()
    }

    #[test]
    fn a_handshake_that_does_not_end_leaves_no_file_and_takes_little_memory() {
        let place = tempfile::tempdir().unwrap();
        let (folder, told) = folder(place.path(), 1_000_000);
        let mut file = LogFile::new(&folder, "a");
        while !file.is_over() {
            file.add(RECORD);
            assert!(file.waiting.len() <= MOST_OF_HANDSHAKE);
        }
        file.begin();
        let mut other = LogFile::new(&folder, "b");
        other.add(RECORD);
        drop(other);
        assert_eq!((names(&place), told.lock().unwrap().len()), (0, 0));
    }

    #[test]
    fn a_file_ends_with_a_whole_record_at_its_bound() {
        let place = tempfile::tempdir().unwrap();
        let (folder, _) = folder(place.path(), 1_000_000);
        let mut file = LogFile::new(&folder, "a");
        file.add(RECORD);
        file.begin();
        while !file.is_over() {
            file.add(RECORD);
        }
        // A tenth, as far as whole records fit.
        let written = std::fs::read(place.path().join("a")).unwrap();
        assert_eq!(written, RECORD.repeat(100_000 / RECORD.len()));
    }

    #[test]
    fn files_together_take_no_more_than_the_folder_may() {
        let place = tempfile::tempdir().unwrap();
        let (folder, told) = folder(place.path(), 100_000);
        for number in 0..100 {
            let mut file = LogFile::new(&folder, &number.to_string());
            file.add(RECORD);
            file.begin();
            for _ in 0..number * 20 {
                file.add(RECORD);
            }
            file.write_waiting();
        }
        let files: Vec<_> = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let sizes = files.iter().map(|path| std::fs::metadata(path).unwrap().len());
        assert!((10..=24).contains(&files.len()) && sizes.sum::<u64>() <= 100_000, "{files:?}");
        for path in files {
            let written = std::fs::read(path).unwrap();
            assert_eq!(written, RECORD.repeat(written.len() / RECORD.len()));
        }
        assert_eq!(told.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_file_that_cannot_be_made_is_told_of_once() {
        let place = tempfile::tempdir().unwrap();
        let (folder, told) = folder(place.path(), 1_000_000);
        for _ in 0..2 {
            let mut file = LogFile::new(&folder, "no/such/folder");
            file.add(RECORD);
            file.begin();
            assert!(file.is_over());
        }
        let told = told.lock().unwrap();
        assert!(told.len() == 1 && told[0].contains("qlog cannot be written"), "{told:?}");
    }
}

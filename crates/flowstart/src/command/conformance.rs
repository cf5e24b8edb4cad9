//! `flowstart conformance`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use flowstart_conformance::{File, files};
use flowstart_files::sync_folder_of;
use flowstart_lab::results::folder::{SCRATCH, prepare_folder, write_file};

use crate::attention::Waiting;
use crate::failure::Failure;
use crate::interruption::leaves_nothing_half_written;
use crate::output::print;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write event vectors of every scheme, and a header of C that runs them.
    Write(WriteArguments),
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  flowstart conformance write kit
  cc -std=c99 -I kit port.c -o port && ./port kit/vectors/*.jsonl

For ports of the schemes, in a kernel or in another QUIC stack: vectors/SCHEME.jsonl has events and what the scheme \
decides behind each of them; flowstart_conformance.h says what a port implements, runs the vectors against it, and \
prints the first difference; README.md says how. The same version writes the same bytes.")]
struct WriteArguments {
    /// Folder for the files; must be new or empty.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let What::Write(WriteArguments { folder }) = &arguments.what;
    let _occupied = prepare_folder(folder, false)?;
    leaves_nothing_half_written();
    let waiting = Waiting::begin("writing the conformance kit");
    let files = files();
    let vectors = write_vectors_last(folder, &files)?;
    drop(waiting);
    let what = "files of vectors, flowstart_conformance.h and README.md";
    print(&format!("{}: {vectors} {what}\n", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The folder of the vectors in the kit's folder.
const VECTORS: &str = "vectors";

/// Writes the vectors into a folder that gets its name when everything else is there: half a kit has no vectors, so
/// nobody takes it for a whole one. Returns how many files of vectors there are.
fn write_vectors_last(folder: &Path, files: &[File]) -> Result<usize, Failure> {
    let growing = folder.join(format!("{SCRATCH}{VECTORS}"));
    // What a killed program left; nobody else works in the kit's folder.
    remove(&growing)?;
    let written = write_into(&growing, folder, files);
    if written.is_err() {
        // The error of the writing is the one to tell.
        let _ = remove(&growing);
    }
    written
}

fn write_into(growing: &Path, folder: &Path, files: &[File]) -> Result<usize, Failure> {
    fs::create_dir(growing).map_err(|error| failed(growing, &error))?;
    let vector = |file: &File| Path::new(&file.path).strip_prefix(VECTORS).ok().map(|name| growing.join(name));
    let vectors = files.iter().filter_map(|file| Some((vector(file)?, file)));
    let others = files.iter().filter(|file| vector(file).is_none()).map(|file| (folder.join(&file.path), file));
    let number = vectors.clone().count();
    for (path, file) in vectors.chain(others) {
        write_file(&path, |out| out.write_all(file.text.as_bytes()))?;
    }
    let whole = folder.join(VECTORS);
    let renamed = fs::rename(growing, &whole).and_then(|()| sync_folder_of(&whole));
    renamed.map_err(|error| failed(&whole, &error))?;
    Ok(number)
}

fn remove(folder: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(folder, &error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::Other(format!("{}: {error}", path.display()))
}

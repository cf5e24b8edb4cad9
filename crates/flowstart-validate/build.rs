//! Finds the published figures and the measurements of other programs that validations compare with.

use std::path::PathBuf;
use std::{env, io};

/// The folder of reference data: in the repository it stands above the crates, in this crate's package it is inside.
fn validation() -> io::Result<PathBuf> {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let places = [own.join("validation"), own.join("../../validation")];
    let found = places.into_iter().find(|folder| folder.is_dir());
    found.ok_or_else(|| io::Error::other("the folder `validation` is neither in the crate nor in the repository"))
}

fn main() -> io::Result<()> {
    let own = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    // With its whole path: in a folder that was moved the script runs again, and tells the new place.
    println!("cargo::rerun-if-changed={own}/build.rs");
    println!("cargo::rustc-env=FLOWSTART_VALIDATION={}", validation()?.display());
    Ok(())
}

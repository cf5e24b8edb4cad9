//! Tells crates that use this one where its sources are. `flowstart-lab` reads there what comments say of parameters.

use std::env;

fn main() {
    let own = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    // With its whole path: in a folder that was moved the script runs again, and tells the new place.
    println!("cargo::rerun-if-changed={own}/build.rs");
    println!("cargo::metadata=sources={own}/src");
}

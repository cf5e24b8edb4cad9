//! The package as Python sees it: its sources with the extension module that cargo has built, and the tests in
//! `python/`, by the interpreter of `scripts/setup python` if it is there.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The extension module that belongs to this test.
fn built() -> PathBuf {
    let name = format!("{}_flowstart{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    std::env::current_exe().unwrap().parent().unwrap().join(name)
}

/// The interpreter, which has the libraries that some tests need if `scripts/setup python` has made it.
fn interpreter() -> PathBuf {
    let own = here().join("../../target/python-venv/bin/python");
    if own.exists() { own } else { "python3".into() }
}

/// A folder with the package.
fn package() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("flowstart");
    fs::create_dir(&package).unwrap();
    for entry in fs::read_dir(here().join("python/flowstart")).unwrap() {
        let file = entry.unwrap().path();
        if file.is_file() {
            fs::copy(&file, package.join(file.file_name().unwrap())).unwrap();
        }
    }
    fs::copy(built(), package.join("_flowstart.abi3.so")).unwrap();
    folder
}

#[test]
#[cfg(unix)]
fn the_package_does_what_its_tests_in_python_say() {
    let package = package();
    let mut run = Command::new(interpreter());
    run.args(["-m", "unittest", "discover", "--verbose", "--start-directory"]).arg(here().join("tests/python"));
    run.env("PYTHONPATH", package.path()).env("PYTHONDONTWRITEBYTECODE", "1").current_dir(package.path());
    match run.status() {
        Ok(status) => assert!(status.success(), "{status}"),
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "python3: {error}");
            println!("skipped: python3: {error}");
        }
    }
}
